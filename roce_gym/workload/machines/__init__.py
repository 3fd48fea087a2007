"""Step machines of collectives: for each operation and algorithm, lanes and what they carry."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from roce_gym.workload.machines.halving import halving_doubling
from roce_gym.workload.machines.lanes import Ints, Lanes, Phase
from roce_gym.workload.machines.meshes import direct, pairwise
from roce_gym.workload.machines.rings import chain, hierarchical, ring
from roce_gym.workload.machines.trees import tree_all_reduce, tree_broadcast

__all__ = ["Machine", "Options", "Phase", "Sizes", "make_machine"]

Sizes = NDArray[np.int64]
"""Shape (phases, 3): messages of a lane, bytes of each, messages that a sender may be ahead."""


CHUNK_BYTES = 1 << 19
"""A slot of NCCL's buffers: NCCL_BUFFSIZE / NCCL_STEPS = 4 MiB / 8 (NCCL documentation, environment
variables; src/include/device.h)."""

TREE_CHUNK_BYTES = 1 << 15
"""Of all channels and queue pairs together. To what NCCL makes the pieces of trees smaller when
there are few of them (src/enqueue.cc); of larger ones the windows of leaves fill queues."""

MOST_RING_PIECES = 16
"""Of a step of a ring, unless their size is given: a link is busy with two, and memory for one step
of every rank does not grow with the bytes."""

_MIN_CHUNK_BYTES = 1 << 12
"""Of one of many channels: a packet of the largest RoCE MTU (IBTA volume 1)."""


class Options(NamedTuple):
    """How collectives are cut up.

    Attributes:
        channels: equal parts of a collective that run beside each other on queue pairs of their
            own.
        chunk_bytes: a step is sent in pieces of this size at most; None: see `Machine.chunk_bytes`.
        slices: messages that a piece is cut into, each of which is passed on by itself.
        qps_per_connection: queue pairs between two ranks, a channel.
        split_data_on_qps: whether each message is spread over all of them, or they take turns
            (NCCL_IB_SPLIT_DATA_ON_QPS).
    """

    channels: int = 1
    chunk_bytes: int | None = None
    slices: int = 1
    qps_per_connection: int = 1
    split_data_on_qps: bool = False

    @property
    def copies(self) -> int:
        """Equal parts of what a rank sends to another, on queue pairs of their own."""
        return self.channels * self.qps_per_connection


class Machine(NamedTuple):
    """L lanes of all channels, sorted by sender; N needs, sorted by lane. See `lanes.Lanes`.

    Attributes:
        operation, algorithm: what it does, and how.
        num_ranks: that take part.
        connection: shape (L,); lanes with the same ends and connection share a queue pair. It is
            (part * channels + channel) * qps_per_connection + number of the queue pair.
    """

    operation: str
    algorithm: str
    num_ranks: int
    src: Ints
    dst: Ints
    connection: Ints
    phase: Ints
    after: Ints
    need_lane: Ints
    need_on: Ints
    need_whole: NDArray[np.bool_]
    phases: tuple[Phase, ...]

    def chunk_bytes(self, options: Options) -> int:
        """Largest piece of a step: as given, else what is good for the algorithm."""
        if options.chunk_bytes is not None:
            return options.chunk_bytes
        if self.algorithm == "tree":
            return max(_MIN_CHUNK_BYTES, TREE_CHUNK_BYTES // options.copies)
        return CHUNK_BYTES

    def sizes(self, total: int, options: Options) -> Sizes:
        """What the lanes of each phase carry in a collective of `total` bytes.

        A step of a lane is cut into equal messages, rounded up to whole bytes.
        """
        rows = []
        chunk_bytes = self.chunk_bytes(options)
        for phase in self.phases:
            step = -(-total * phase.numerator // (phase.denominator * options.copies))
            piece = step * (options.qps_per_connection if options.split_data_on_qps else 1)
            pieces = -(-piece // chunk_bytes)
            if self.algorithm == "ring" and phase.rolls and options.chunk_bytes is None:
                pieces = min(pieces, MOST_RING_PIECES)
            messages = pieces * options.slices
            ahead = messages if phase.rolls else phase.window * options.slices
            rows.append((phase.steps * messages, -(-step // messages), ahead))
        return np.array(rows, np.int64)


def make_machine(
    operation: str, algorithm: str, n: int, server: NDArray[np.int32], options: Options
) -> Machine:
    """The step machine of a collective among `n` ranks, at least 2.

    Args:
        operation, algorithm: as in `config.ALGORITHMS`.
        n: ranks.
        server: shape (n,), of each rank; for hierarchical ones.
        options: how many channels and queue pairs.
    """
    makers = {
        "ring": partial(chain, n) if operation == "broadcast" else partial(ring, operation, n),
        "tree": partial(tree_broadcast if operation == "broadcast" else tree_all_reduce, n),
        "halving_doubling": partial(halving_doubling, operation, n),
        "hierarchical": partial(hierarchical, operation, server),
        "direct": partial(direct, n),
        "pairwise": partial(pairwise, n),
    }
    return _spread(makers[algorithm](), operation, algorithm, n, options)


def _spread(lanes: Lanes, operation: str, algorithm: str, n: int, options: Options) -> Machine:
    """Copies the lanes of one channel to all channels and queue pairs, and sorts them by sender.

    Of one sender, channels come first, then the order of lanes in a channel, then queue pairs.
    """
    size, qps, copies = len(lanes.src), options.qps_per_connection, options.copies
    lane = np.tile(np.arange(size), copies)
    copy = np.repeat(np.arange(copies), size)
    order = np.lexsort((copy % qps, lane, copy // qps, lanes.src[lane]))
    place = np.empty((copies, size), np.int32)
    place.reshape(-1)[order] = np.arange(size * copies)
    lane, copy = lane[order], copy[order]
    after = np.full(size * copies, -1, np.int32)
    waits = lanes.after[lane] >= 0
    after[waits] = place[copy[waits], lanes.after[lane[waits]]]
    needs = []
    for mine in range(copies):
        for other in range(mine // qps * qps, (mine // qps + 1) * qps):
            for_all = lanes.need_whole | options.split_data_on_qps | (mine == other)
            rows = (place[mine][lanes.need_lane], place[other][lanes.need_on], lanes.need_whole)
            needs.append([row[for_all] for row in rows])
    need = [np.concatenate(rows) for rows in zip(*needs, strict=True)]
    by_lane = np.lexsort((need[1], need[0]))
    return Machine(
        operation=operation,
        algorithm=algorithm,
        num_ranks=n,
        src=lanes.src[lane],
        dst=lanes.dst[lane],
        connection=(lanes.part[lane] * copies + copy).astype(np.int32),
        phase=lanes.phase[lane],
        after=after,
        need_lane=need[0][by_lane],
        need_on=need[1][by_lane],
        need_whole=need[2][by_lane],
        phases=lanes.phases,
    )
