"""Going through an operation graph in an order in which it can be executed."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

_FEW = 32
"""Edges at once below which plain loops beat array calls."""


class Order(NamedTuple):
    """What a walk along edges before → behind finds, if the network took no time."""

    never_done: NDArray[np.int64]  # nodes on or behind a circle, ascending
    end_ps: NDArray[np.int64]  # [nodes] earliest end of each
    longest_chain: int  # nodes that wait for each other


def go_through(
    before: NDArray[np.int64], behind: NDArray[np.int64], duration_ps: NDArray[np.int64]
) -> Order:
    """Does all nodes that can be done, level by level.

    Args:
        before, behind: edges; the second node waits for the first.
        duration_ps: of each node; their sum fits into 64 bits.
    """
    count = duration_ps.size
    child = behind[np.argsort(before, kind="stable")]
    first = np.concatenate([[0], np.cumsum(np.bincount(before, minlength=count))])
    waits = np.bincount(behind, minlength=count)
    end_ps = duration_ps.copy()
    ready = np.flatnonzero(waits == 0)
    levels = 0
    while ready.size:
        levels += 1
        counts = first[ready + 1] - first[ready]
        step = _step_few if counts.sum() < _FEW else _step_many
        ready = step(ready, counts, first, child, waits, end_ps, duration_ps)
    return Order(np.flatnonzero(waits > 0), end_ps, levels)


def _step_few(
    ready: NDArray[np.int64],
    counts: NDArray[np.int64],
    first: NDArray[np.int64],
    child: NDArray[np.int64],
    waits: NDArray[np.int64],
    end_ps: NDArray[np.int64],
    duration_ps: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Nodes that are ready once the given ones are done."""
    found = []
    for node, count in zip(ready.tolist(), counts.tolist(), strict=True):
        at = first[node]
        for other in child[at : at + count].tolist():
            end_ps[other] = max(end_ps[other], end_ps[node] + duration_ps[other])
            waits[other] -= 1
            if waits[other] == 0:
                found.append(other)
    return np.array(found, np.int64)


def _step_many(
    ready: NDArray[np.int64],
    counts: NDArray[np.int64],
    first: NDArray[np.int64],
    child: NDArray[np.int64],
    waits: NDArray[np.int64],
    end_ps: NDArray[np.int64],
    duration_ps: NDArray[np.int64],
) -> NDArray[np.int64]:
    """The same, with arrays."""
    offset = np.repeat(first[ready] - np.cumsum(counts) + counts, counts)
    others = child[offset + np.arange(offset.size)]
    np.maximum.at(end_ps, others, np.repeat(end_ps[ready], counts) + duration_ps[others])
    unique, times = np.unique(others, return_counts=True)
    waits[unique] -= times
    found: NDArray[np.int64] = unique[waits[unique] == 0]
    return found
