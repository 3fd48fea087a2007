"""Algorithm and bus bandwidth of collectives, as NCCL-tests defines them.

NCCL-tests, doc/PERFORMANCE.md: algbw = bytes / time; busbw = algbw x a factor which makes it what
each rank's link must carry, whatever the number of ranks. `bytes` is the whole buffer, see
`op_graph.CollectiveCall`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from roce_gym.units import PS_PER_S
from roce_gym.workload.plan import JobPlan


class CollectiveKind(NamedTuple):
    """Collectives that can be compared with each other."""

    operation: str
    algorithm: str
    ranks: int
    bytes: int


def bus_factor(operation: str, ranks: int) -> float:
    """Bus bandwidth over algorithm bandwidth.

    Raises:
        KeyError: the operation is unknown.
    """
    others = (ranks - 1) / ranks
    return {
        "all_reduce": 2 * others,
        "all_gather": others,
        "reduce_scatter": others,
        "all_to_all": others,
        "broadcast": 1.0,
    }[operation]


def algorithm_bandwidth_bps(size: int, time_ps: float) -> float:
    """Bits of the buffer a second."""
    return 8.0 * size * PS_PER_S / time_ps


def bus_bandwidth_bps(operation: str, ranks: int, size: int, time_ps: float) -> float:
    """What the busiest link must have carried at least, bit/s."""
    return bus_factor(operation, ranks) * algorithm_bandwidth_bps(size, time_ps)


def kinds_of_calls(job: JobPlan) -> Iterator[CollectiveKind]:
    """What each collective of a graph is, in the order of their numbers."""
    if job.graph is None:
        return
    calls = job.graph.graph.collectives
    for call, machine in zip(calls, job.graph.call_machine, strict=True):
        algorithm = job.graph.machines[machine].algorithm
        yield CollectiveKind(call.operation, algorithm, len(call.ranks), call.bytes)


def kind_of_rounds(job: JobPlan) -> CollectiveKind | None:
    """What a round of a job is, if it is one collective and not a graph.

    Its bytes are those sent: the job's, rounded up to whole messages.
    """
    n = len(job.hosts)
    if job.kind == "ring_all_reduce":
        size = job.message_bytes * n * len(job.qps) * job.chunks
        return CollectiveKind("all_reduce", "ring", n, size)
    if job.kind == "all_to_all":
        return CollectiveKind("all_to_all", "direct", n, job.message_bytes * n)
    return None
