"""Work as a graph of operations of ranks: what traces and model descriptions become.

An operation belongs to one rank and begins when all operations of that rank that it depends on are
done. Five kinds:

* COMPUTE takes `duration_ps`.
* SEND hands `bytes` for rank `peer` to the NIC and is done at once, as posting a verb is; messages
  between two ranks on one `channel` share a queue pair and stay in order.
* RECV is done when its message has arrived whole. The k-th SEND from a to b with a tag and a
  channel belongs to the k-th RECV at b from a with the same tag and channel, in order of position.
* COLLECTIVE is a rank's part in `collectives[peer]`; it is done when that rank has all it needs.
* MARK is done at once. When it was is told (`telemetry.Interval.marks`); `tag` says what it marks.

`graph_check.check` says whether a graph can be executed; docs/rules.md, section 9.1, says how.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class OpKind(IntEnum):
    """What an operation does."""

    COMPUTE = 0
    SEND = 1
    RECV = 2
    COLLECTIVE = 3
    MARK = 4


class CollectiveCall(NamedTuple):
    """One collective among some ranks; each of them has one COLLECTIVE operation for it.

    `operation`: all_reduce, all_gather, reduce_scatter, broadcast or all_to_all; `algorithm`: one
    that the operation allows, or "auto". `bytes` is the size of the whole buffer, as in NCCL-tests:
    what all_reduce and broadcast take in, what all_gather gives out, what reduce_scatter and
    all_to_all take in, per rank.
    """

    operation: str
    algorithm: str
    ranks: tuple[int, ...]
    bytes: int


class OpGraph(NamedTuple):
    """Operations in arrays; n of them, m dependencies. Ranks count from 0."""

    num_ranks: int
    rank: NDArray[np.int32]  # [n]
    kind: NDArray[np.int8]  # [n] OpKind
    peer: NDArray[np.int32]  # [n] rank at the other end, index of a collective, or -1
    bytes: NDArray[np.int64]  # [n] of SEND and RECV, else 0
    tag: NDArray[np.int64]  # [n] of SEND, RECV and MARK, else 0
    channel: NDArray[np.int16]  # [n] of SEND and RECV, else 0
    duration_ps: NDArray[np.int64]  # [n] of COMPUTE, else 0
    first_dependency: NDArray[np.int64]  # [n + 1] op i waits for dependency[first[i]:first[i + 1]]
    dependency: NDArray[np.int64]  # [m] operations of the same rank
    collectives: tuple[CollectiveCall, ...] = ()
