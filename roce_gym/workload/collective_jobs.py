"""Jobs of one kind of collective, and pipelines, as operation graphs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from roce_gym.config.collectives import Collective, Pipeline
from roce_gym.config.nccl import NcclSettings
from roce_gym.errors import ConfigError
from roce_gym.topology.graph import Network
from roce_gym.units import us_to_ps
from roce_gym.workload.graph_builder import OpGraphBuilder
from roce_gym.workload.graph_plan import GraphWork
from roce_gym.workload.machines import Options
from roce_gym.workload.op_graph import CollectiveCall, OpGraph, OpKind
from roce_gym.workload.queue_pairs import JobPlace


def collective_work(job: Collective, place: JobPlace, _network: Network, _seed: int) -> GraphWork:
    """Every rank begins all collectives of a round at once."""
    nccl = job.nccl or NcclSettings()
    try:
        algorithm = nccl.algorithm(job.operation) if nccl.NCCL_ALGO else job.algorithm
    except ValueError as error:
        raise ConfigError(f"{place.name}.nccl: {error}") from None
    calls = [
        CollectiveCall(job.operation, algorithm, group, nccl.on_wire(job.bytes))
        for group in _groups(job, place)
        for _ in range(job.in_flight)
    ]
    return GraphWork(
        graph=_calls_at_once(calls, len(place.hosts)),
        options=Options(
            channels=nccl.channels(job.channels),
            chunk_bytes=nccl.chunk_bytes or job.chunk_bytes,
            slices=job.slices,
            qps_per_connection=nccl.NCCL_IB_QPS_PER_CONNECTION or job.qps_per_connection,
            split_data_on_qps=(
                job.split_data_on_qps
                if nccl.NCCL_IB_SPLIT_DATA_ON_QPS is None
                else nccl.splits_data
            ),
        ),
        rounds=-1 if job.rounds is None else job.rounds,
        compute_ps=us_to_ps(job.compute_us),
        jitter=job.jitter,
    )


def _groups(job: Collective, place: JobPlace) -> list[tuple[int, ...]]:
    """The ranks of each group."""
    n = _require_hosts(place)
    count = 1 if job.group_ranks is None else -(-n // job.group_ranks)
    size = n // count
    if n % count or size < 2:
        raise ConfigError(
            f"{place.name}.group_ranks = {job.group_ranks} does not cut {n} hosts into equal "
            "groups of at most so many, two or more"
        )
    if job.groups == "spread":
        return [tuple(range(first, n, count)) for first in range(count)]
    return [tuple(range(first, first + size)) for first in range(0, n, size)]


def _calls_at_once(calls: Sequence[CollectiveCall], num_ranks: int) -> OpGraph:
    """Each rank begins all calls that it takes part in; a call's ranks are ascending."""
    rank = np.concatenate([np.array(call.ranks, np.int32) for call in calls])
    call = np.repeat(np.arange(len(calls), dtype=np.int32), [len(call.ranks) for call in calls])
    order = np.lexsort((call, rank))
    ops = len(order)
    zeros = np.zeros(ops, np.int64)
    return OpGraph(
        num_ranks=num_ranks,
        rank=rank[order],
        kind=np.full(ops, OpKind.COLLECTIVE, np.int8),
        peer=call[order],
        bytes=zeros,
        tag=zeros,
        channel=zeros.astype(np.int16),
        duration_ps=zeros,
        first_dependency=np.zeros(ops + 1, np.int64),
        dependency=np.zeros(0, np.int64),
        collectives=tuple(calls),
    )


def pipeline_work(job: Pipeline, place: JobPlace, _network: Network, _seed: int) -> GraphWork:
    """Each stage computes one micro-batch at a time, in the order of the schedule."""
    stages = _require_hosts(place)
    times = (us_to_ps(job.forward_us), us_to_ps(job.backward_us))
    build = OpGraphBuilder(stages)
    for stage in range(stages):
        last: list[int] = []
        for is_back, batch in stage_order(job.schedule, stage, stages, job.micro_batches):
            source, target = (stage + 1, stage - 1) if is_back else (stage - 1, stage + 1)
            needs = list(last)
            if 0 <= source < stages:
                needs.append(build.add(stage, OpKind.RECV, peer=source, size=job.bytes, tag=batch))
            last = [build.add(stage, OpKind.COMPUTE, duration_ps=times[is_back], needs=needs)]
            if 0 <= target < stages:
                build.add(stage, OpKind.SEND, peer=target, size=job.bytes, tag=batch, needs=last)
    rounds = -1 if job.rounds is None else job.rounds
    return GraphWork(graph=build.graph(), rounds=rounds, jitter=job.jitter)


def stage_order(schedule: str, stage: int, stages: int, batches: int) -> list[tuple[bool, int]]:
    """(is backward, micro-batch) in the order in which a stage computes them."""
    ahead = batches if schedule == "gpipe" else min(stages - 1 - stage, batches)
    order = [(False, k) for k in range(ahead)]
    for k in range(batches - ahead):
        order += [(False, ahead + k), (True, k)]
    return order + [(True, k) for k in range(batches - ahead, batches)]


def _require_hosts(place: JobPlace) -> int:
    if len(place.hosts) < 2:
        raise ConfigError(f"{place.name}: needs at least 2 hosts, the tenant has 1")
    return len(place.hosts)
