"""Rings: all-reduce, all-gather, reduce-scatter, and the chain that broadcasts.

Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", 2009.
"""

from __future__ import annotations

import numpy as np

from roce_gym.workload.machines.lanes import LaneBuilder, Lanes, Phase


def ring(operation: str, n: int) -> Lanes:
    """Each rank sends a share of 1/n a step to the next; 2 (n - 1) steps, or n - 1."""
    build = LaneBuilder()
    rank = np.arange(n)
    lanes = build.add(rank, (rank + 1) % n, phase=0)
    build.need(lanes, np.roll(lanes, 1))
    steps = 2 * (n - 1) if operation == "all_reduce" else n - 1
    return build.build(Phase(1, n, steps, rolls=True))


def chain(n: int) -> Lanes:
    """Rank 0 sends everything to rank 1, which passes it on piece by piece, and so on."""
    build = LaneBuilder()
    lanes = build.add(np.arange(n - 1), np.arange(1, n), phase=0)
    build.need(lanes[1:], lanes[:-1])
    return build.build(Phase(1, 1))


def hierarchical(operation: str, server: np.ndarray) -> Lanes:
    """Rings inside servers, and rings of the ranks that have one position in their servers.

    All-reduce: reduce-scatter inside, all-reduce across, all-gather inside. Reduce-scatter: inside,
    then across. All-gather: across, then inside.

    Args:
        operation: of the three.
        server: shape (n,), of each rank; every server has equally many ranks.
    """
    n = len(server)
    by_server = np.argsort(server, kind="stable").reshape(len(np.unique(server)), -1)
    m, g = by_server.shape
    build = LaneBuilder()

    def inside(phase: int) -> np.ndarray:
        return _ring_along(build, by_server, n, phase)

    def across(phase: int) -> np.ndarray:
        return _ring_along(build, by_server.T, n, phase)

    within = Phase(1, g, g - 1, rolls=True)
    if operation == "all_gather":
        first, second = across(0), inside(1)
        phases = [Phase(1, n, m - 1, rolls=True), within]
    else:
        first, second = inside(0), across(1)
        steps = 2 * (m - 1) if operation == "all_reduce" else m - 1
        phases = [within, Phase(1, n, steps, rolls=True)]
    _follow(build, first, second)
    if operation == "all_reduce":
        _follow(build, second, inside(2))
        phases.append(within)
    return build.build(*phases)


def _ring_along(build: LaneBuilder, circles: np.ndarray, n: int, phase: int) -> np.ndarray:
    """A ring along each row; shape (n,): the lane into each rank, then the lane out of it."""
    following = np.roll(circles, -1, axis=1)
    lanes = build.add(circles.reshape(-1), following.reshape(-1), phase=phase)
    into, out = np.zeros(n, np.int32), np.zeros(n, np.int32)
    into[following.reshape(-1)] = lanes
    out[circles.reshape(-1)] = lanes
    build.need(out, into)
    return np.stack([into, out])


def _follow(build: LaneBuilder, first: np.ndarray, second: np.ndarray) -> None:
    build.need(second[1], first[0], whole=True)
