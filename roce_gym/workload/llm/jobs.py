"""Jobs of the configuration that are given by a language model: what a round of them does."""

from __future__ import annotations

from typing import NamedTuple

from roce_gym.config.nccl import NcclSettings
from roce_gym.config.training_jobs import FineTuning, Inference, Training
from roce_gym.errors import ConfigError
from roce_gym.workload.llm.serving import inference_graph
from roce_gym.workload.llm.training import training_graph
from roce_gym.workload.op_graph import CollectiveCall, OpGraph

ModelJob = Training | FineTuning | Inference


class ModelWork(NamedTuple):
    """A graph that is executed once a round, and how its collectives are cut up.

    Attributes:
        graph: its ranks are the hosts of the tenant, in their order.
        channels: equal parts of a collective, on queue pairs of their own.
        chunk_bytes: largest message of a collective's step; None: the algorithm's default.
        qps_per_connection, split_data_on_qps: as NCCL's variables of these names.
        rounds: most rounds; -1: no limit.
        jitter: of compute times, by rank and round.
    """

    graph: OpGraph
    channels: int
    chunk_bytes: int | None
    qps_per_connection: int
    split_data_on_qps: bool
    rounds: int
    jitter: float


def model_work(field: str, job: ModelJob, num_hosts: int, seed: tuple[int, ...]) -> ModelWork:
    """What a round of a job does.

    Args:
        field: name of the job, for messages.
        job: what to do.
        num_hosts: of the tenant.
        seed: of the run, and numbers of tenant and job.

    Raises:
        ConfigError: it cannot be done on so many hosts, or with NCCL's variables as they are.
    """
    nccl = job.nccl or NcclSettings()
    if isinstance(job, Inference):
        graph = inference_graph(field, job, num_hosts, seed)
    else:
        graph = training_graph(field, job, num_hosts, seed)
    if job.nccl is not None:
        graph = graph._replace(collectives=_as_nccl_does(field, nccl, graph.collectives))
    return ModelWork(
        graph=graph,
        channels=nccl.channels(1),
        chunk_bytes=nccl.chunk_bytes,
        qps_per_connection=nccl.qps_per_connection,
        split_data_on_qps=nccl.splits_data,
        rounds=-1 if job.rounds is None else job.rounds,
        jitter=job.jitter,
    )


def _as_nccl_does(
    field: str, nccl: NcclSettings, calls: tuple[CollectiveCall, ...]
) -> tuple[CollectiveCall, ...]:
    """The collectives with NCCL's algorithm, and with the flags of its protocol as bytes."""
    algorithm: dict[str, str] = {}
    for operation in sorted({call.operation for call in calls}):
        try:
            algorithm[operation] = nccl.algorithm(operation)
        except ValueError as error:
            raise ConfigError(f"{field}.nccl: {error}") from None
    return tuple(
        call._replace(algorithm=algorithm[call.operation], bytes=nccl.on_wire(call.bytes))
        for call in calls
    )
