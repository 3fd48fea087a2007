"""Recursive halving and doubling: all-reduce, all-gather, reduce-scatter.

Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in MPICH",
IJHPCA 19, 2005. If n is not a power of two, all-reduce first folds: the even ones of the first
2 (n - p) ranks give all they have to their neighbours, with p the power of two below n, and get the
result in the end.

Those neighbours are late: their links are busy with what is given to them. Who is not late sends to
one that is no sooner than it hears from it, message by message; else two would send to one, and ECN
or PFC would slow both down. Thereafter it is late itself.
"""

from __future__ import annotations

import numpy as np

from roce_gym.workload.machines.lanes import LaneBuilder, Lanes, Phase


def halving_doubling(operation: str, n: int) -> Lanes:
    """With each partner in turn, half of what was exchanged before, then twice as much."""
    levels = n.bit_length() - 1
    folded = n - (1 << levels)
    active = np.concatenate([np.arange(1, 2 * folded, 2), np.arange(2 * folded, n)])
    build = LaneBuilder()
    phases: list[Phase] = []
    into, out = np.full(n, -1, np.int32), np.full(n, -1, np.int32)
    is_late = np.zeros(n, np.bool_)
    if folded:
        kept = active[:folded]
        into[kept] = build.add(kept - 1, kept, phase=0)
        is_late[kept] = True
        phases.append(Phase(1, 1))
    for level in _levels(operation, levels):
        partner = active[np.arange(1 << levels) ^ (1 << level)]
        lanes = build.add(active, partner, phase=len(phases), after=out[active])
        waits = into[active] >= 0
        build.need(lanes[waits], into[active][waits], whole=True)
        out[active], into[partner] = lanes, lanes
        hears = is_late[partner] & ~is_late[active]
        build.need(lanes[hears], into[active[hears]])
        is_late[active] |= is_late[partner]
        phases.append(_phase(operation, level, levels, len(phases) - (folded > 0)))
    if folded:
        back = build.add(kept, kept - 1, phase=len(phases), after=out[kept])
        build.need(back, into[kept], whole=True)
        phases.append(Phase(1, 1))
    return build.build(*phases)


def _levels(operation: str, levels: int) -> list[int]:
    """Distances of the partners, as powers of two, step by step."""
    near_first = list(range(levels))
    if operation == "all_gather":
        return near_first
    if operation == "reduce_scatter":
        return near_first[::-1]
    return near_first + near_first[::-1]


def _phase(operation: str, level: int, levels: int, step: int) -> Phase:
    if operation == "all_gather":
        return Phase(1 << level, 1 << levels)
    if operation == "reduce_scatter":
        return Phase(1, 2 << step)
    return Phase(1, 2 << level)
