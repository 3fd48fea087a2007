"""Every rank with every other: all-to-all, and direct all-gather and reduce-scatter."""

from __future__ import annotations

import numpy as np

from roce_gym.workload.machines.lanes import LaneBuilder, Lanes, Phase


def direct(n: int) -> Lanes:
    """A share of 1/n to each other rank, all at once, the next rank first."""
    build = LaneBuilder()
    rank = np.repeat(np.arange(n), n - 1)
    build.add(rank, (rank + 1 + np.tile(np.arange(n - 1), n)) % n, phase=0)
    return build.build(Phase(1, n))


def pairwise(n: int) -> Lanes:
    """In step k to the k-th next rank and from the k-th before; the next step when that came."""
    build = LaneBuilder()
    rank = np.arange(n)
    last = np.full(n, -1, np.int32)
    for step in range(1, n):
        lanes = build.add(rank, (rank + step) % n, phase=0, after=last)
        if step > 1:
            build.need(lanes, np.roll(last, step - 1), whole=True)
        last = lanes
    return build.build(Phase(1, n))
