"""Jobs of one kind of collective, and pipelines, as operation graphs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from roce_gym.config.collectives import Collective, Pipeline
from roce_gym.errors import ConfigError
from roce_gym.topology.graph import Network
from roce_gym.units import us_to_ps
from roce_gym.workload.graph_plan import GraphWork
from roce_gym.workload.machines import Options
from roce_gym.workload.op_graph import CollectiveCall, OpGraph, OpKind
from roce_gym.workload.queue_pairs import JobPlace


def collective_work(job: Collective, place: JobPlace, _network: Network, _seed: int) -> GraphWork:
    """Every rank begins all collectives of a round at once."""
    calls = [
        CollectiveCall(job.operation, job.algorithm, group, job.bytes)
        for group in _groups(job, place)
        for _ in range(job.in_flight)
    ]
    return GraphWork(
        graph=_calls_at_once(calls, len(place.hosts)),
        options=Options(
            channels=job.channels,
            chunk_bytes=job.chunk_bytes,
            slices=job.slices,
            qps_per_connection=job.qps_per_connection,
            split_data_on_qps=job.split_data_on_qps,
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


class OpGraphBuilder:
    """Collects operations one by one."""

    def __init__(self, num_ranks: int) -> None:
        self._num_ranks = num_ranks
        self._rows: list[tuple[int, int, int, int, int, int, int]] = []
        self._needs: list[int] = []
        self._ends: list[int] = [0]

    def add(
        self,
        rank: int,
        kind: OpKind,
        *,
        peer: int = -1,
        size: int = 0,
        tag: int = 0,
        channel: int = 0,
        duration_ps: int = 0,
        needs: Sequence[int] = (),
    ) -> int:
        """Adds an operation; returns its number. Arguments as the fields of :class:`OpGraph`."""
        self._rows.append((rank, kind, peer, size, tag, channel, duration_ps))
        self._needs += needs
        self._ends.append(len(self._needs))
        return len(self._rows) - 1

    def graph(self, collectives: Sequence[CollectiveCall] = ()) -> OpGraph:
        """All operations so far."""
        columns = np.array(self._rows, np.int64).reshape(-1, 7).T
        rank, kind, peer, size, tag, channel, duration_ps = columns
        return OpGraph(
            num_ranks=self._num_ranks,
            rank=rank.astype(np.int32),
            kind=kind.astype(np.int8),
            peer=peer.astype(np.int32),
            bytes=size,
            tag=tag,
            channel=channel.astype(np.int16),
            duration_ps=duration_ps,
            first_dependency=np.array(self._ends, np.int64),
            dependency=np.array(self._needs, np.int64),
            collectives=tuple(collectives),
        )


def _require_hosts(place: JobPlace) -> int:
    if len(place.hosts) < 2:
        raise ConfigError(f"{place.name}: needs at least 2 hosts, the tenant has 1")
    return len(place.hosts)
