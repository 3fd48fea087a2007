"""Lanes: what step machines of collectives are made of (docs/rules.md, section 9.2).

A *lane* is a stream of messages from one rank to another. How many of them its sender may have
posted follows from how many it has received on other lanes: its *needs*. So a ring of any size is
one lane a rank with one need, a tree at most three lanes a rank; no list of messages is ever built.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

Ints = NDArray[np.int32]


class Phase(NamedTuple):
    """What lanes of one kind carry.

    Attributes:
        numerator, denominator: bytes of a step, as a share of the collective's bytes.
        steps: in a lane.
        rolls: whether the first step needs nothing from the lane before it in its ring; then a
            sender is one step ahead of what it received, else message k needs message k.
        window: pieces that a sender may be ahead of what it received, where it does not roll.
    """

    numerator: int
    denominator: int
    steps: int = 1
    rolls: bool = False
    window: int = 0


class Lanes(NamedTuple):
    """L lanes of one channel, with N needs. Ranks and lanes count from 0.

    Attributes:
        src, dst: shape (L,), ranks.
        part: shape (L,); lanes with the same ends and part share a queue pair.
        phase: shape (L,), into `phases`.
        after: shape (L,), lane of the same sender that has to be sent wholly before; -1: none.
        need_lane, need_on: shape (N,): a lane, and one into its sender, on which it waits.
        need_whole: shape (N,), bool: for all of it, rather than message by message.
        phases: what lanes carry.
    """

    src: Ints
    dst: Ints
    part: Ints
    phase: Ints
    after: Ints
    need_lane: Ints
    need_on: Ints
    need_whole: NDArray[np.bool_]
    phases: tuple[Phase, ...]


class LaneBuilder:
    """Collects lanes in blocks."""

    def __init__(self) -> None:
        self._lanes: list[list[Ints]] = []
        self._needs: list[tuple[Ints, Ints, NDArray[np.bool_]]] = []
        self._count = 0

    def add(
        self,
        src: ArrayLike,
        dst: ArrayLike,
        *,
        phase: ArrayLike,
        part: int = 0,
        after: ArrayLike = -1,
    ) -> Ints:
        """Adds a lane for each pair of ends; returns their numbers."""
        src, dst = np.atleast_1d(np.asarray(src, np.int32)), np.asarray(dst, np.int32)
        rows = np.broadcast_arrays(src, dst, part, phase, after)
        self._lanes.append([row.astype(np.int32) for row in rows])
        self._count += len(src)
        return np.arange(self._count - len(src), self._count, dtype=np.int32)

    def need(self, lane: ArrayLike, on: ArrayLike, *, whole: bool = False) -> None:
        """Each of the lanes waits for what comes in on the other."""
        pair = np.broadcast_arrays(np.asarray(lane, np.int32), np.asarray(on, np.int32))
        lanes, others = (np.atleast_1d(row).astype(np.int32) for row in pair)
        self._needs.append((lanes, others, np.full(len(lanes), whole)))

    def build(self, *phases: Phase) -> Lanes:
        """All lanes and needs so far."""
        columns = [np.concatenate(rows) for rows in zip(*self._lanes, strict=True)]
        none = (np.zeros(0, np.int32), np.zeros(0, np.int32), np.zeros(0, np.bool_))
        needs = [np.concatenate(rows) for rows in zip(none, *self._needs, strict=True)]
        src, dst, part, phase, after = columns
        return Lanes(src, dst, part, phase, after, needs[0], needs[1], needs[2], phases)
