"""Operation graphs, one operation after the other."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from roce_gym.workload.op_graph import CollectiveCall, OpGraph, OpKind


class OpGraphBuilder:
    """Collects operations and what they wait for. Nothing is checked, see `graph_check`."""

    def __init__(self, num_ranks: int) -> None:
        self.num_ranks = num_ranks
        self._rank, self._kind, self._peer = array("i"), array("b"), array("i")
        self._bytes, self._tag, self._channel = array("q"), array("q"), array("h")
        self._duration_ps = array("q")
        self._op, self._dependency = array("q"), array("q")

    def __len__(self) -> int:
        return len(self._rank)

    @property
    def num_dependencies(self) -> int:
        """How many there are so far."""
        return len(self._op)

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
        op = len(self._rank)
        self._rank.append(rank)
        self._kind.append(kind)
        self._peer.append(peer)
        self._bytes.append(size)
        self._tag.append(tag)
        self._channel.append(channel)
        self._duration_ps.append(duration_ps)
        for dependency in needs:
            self.depend(op, dependency)
        return op

    def depend(self, op: int, dependency: int) -> None:
        """Lets an operation wait for another."""
        self._op.append(op)
        self._dependency.append(dependency)

    def depend_all(self, op: NDArray[np.int64], dependency: NDArray[np.int64]) -> None:
        """The same for many."""
        self._op.frombytes(op.astype(np.int64).tobytes())
        self._dependency.frombytes(dependency.astype(np.int64).tobytes())

    def rank_of(self, op: int) -> int:
        """Whose operation it is."""
        return self._rank[op]

    def graph(self, collectives: Sequence[CollectiveCall] = ()) -> OpGraph:
        """All operations so far; nothing can be added afterwards."""
        op = np.frombuffer(self._op, np.int64)
        dependency = np.frombuffer(self._dependency, np.int64)
        counts = np.bincount(op, minlength=len(self))
        return OpGraph(
            num_ranks=self.num_ranks,
            rank=np.frombuffer(self._rank, np.int32),
            kind=np.frombuffer(self._kind, np.int8),
            peer=np.frombuffer(self._peer, np.int32),
            bytes=np.frombuffer(self._bytes, np.int64),
            tag=np.frombuffer(self._tag, np.int64),
            channel=np.frombuffer(self._channel, np.int16),
            duration_ps=np.frombuffer(self._duration_ps, np.int64),
            first_dependency=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
            dependency=dependency[np.argsort(op, kind="stable")],
            collectives=tuple(collectives),
        )
