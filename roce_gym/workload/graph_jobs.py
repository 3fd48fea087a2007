"""Jobs of the configuration that are operation graphs: what each round of them does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from roce_gym.topology.graph import Network
from roce_gym.workload.collective_jobs import collective_work, pipeline_work
from roce_gym.workload.graph_plan import GraphWork
from roce_gym.workload.llm.jobs import ModelJob, model_work
from roce_gym.workload.machines import Options
from roce_gym.workload.queue_pairs import JobPlace
from roce_gym.workload.trace_jobs import trace_work

GraphMaker = Callable[[Any, JobPlace, Network, int], GraphWork]
"""From a job, where it stands (hosts in rank order), the network and the seed of the run."""


def model_graph(job: ModelJob, place: JobPlace, _network: Network, seed: int) -> GraphWork:
    """A job that is given by a language model."""
    work = model_work(place.name, job, len(place.hosts), (seed, place.tenant, place.job))
    options = Options(
        channels=work.channels,
        chunk_bytes=work.chunk_bytes,
        qps_per_connection=work.qps_per_connection,
        split_data_on_qps=work.split_data_on_qps,
    )
    return GraphWork(graph=work.graph, options=options, rounds=work.rounds, jitter=work.jitter)


GRAPH_MAKERS: dict[str, GraphMaker] = {
    "collective": collective_work,
    "pipeline": pipeline_work,
    "trace": trace_work,
    "training": model_graph,
    "fine_tuning": model_graph,
    "inference": model_graph,
}
"""By the job's `kind`. The graph's ranks are the tenant's hosts, in their order.

Raise `ConfigError` with the name of the field, which begins with `place.name`.
"""


def make_graph(job: Any, place: JobPlace, network: Network, seed: int) -> GraphWork:
    """What each round of a job does.

    Raises:
        ConfigError: it cannot be done on these hosts; names the field.
    """
    return GRAPH_MAKERS[job.kind](job, place, network, seed)
