"""Collects operations one by one, in arrays, and makes a checked graph of them."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from roce_gym.errors import GraphError, TraceFileError
from roce_gym.traces.limits import (
    MAX_COLLECTIVES,
    MAX_DEPENDENCIES,
    MAX_MEMBERS,
    MAX_OPS,
)
from roce_gym.traces.notes import Note, NoteBook
from roce_gym.workload.graph_check import check, message_order
from roce_gym.workload.op_graph import CollectiveCall, OpGraph, OpKind

_COMPUTE, _SEND, _RECV, _COLLECTIVE = map(int, OpKind)


class Trace(NamedTuple):
    """What a file says.

    Attributes:
        format: its name, as in `roce_gym.traces.FORMATS`.
        graph: the operations; can be carried out.
        notes: what the file says beside that.
    """

    format: str
    graph: OpGraph
    notes: tuple[Note, ...]


class Builder:
    """Operations and dependencies in order of appearance.

    `fault` in all methods' errors is the one given to the constructor: it knows the place in the
    file that is being read.
    """

    def __init__(self, num_ranks: int, fault: Callable[[str], TraceFileError]) -> None:
        """Starts with nothing; `num_ranks` was checked by the reader."""
        self.num_ranks = num_ranks
        self.notes = NoteBook()
        self.collectives: list[CollectiveCall] = []
        self._fault = fault
        self._members = 0
        self._rank, self._kind, self._peer = array("i"), array("b"), array("i")
        self._bytes, self._tag, self._channel = array("q"), array("q"), array("h")
        self._duration, self._place = array("q"), array("q")
        self._op, self._dependency = array("q"), array("q")

    def __len__(self) -> int:
        return len(self._rank)

    def compute(self, rank: int, place: int, duration_ps: int) -> int:
        """Adds a computation; its position."""
        return self._add(rank, _COMPUTE, place, -1, 0, 0, 0, duration_ps)

    def send(
        self, rank: int, place: int, peer: int, size: int, tag: int = 0, channel: int = 0
    ) -> int:
        """Adds a SEND; its position."""
        return self._message(rank, _SEND, place, peer, size, tag, channel)

    def receive(
        self, rank: int, place: int, peer: int, size: int, tag: int = 0, channel: int = 0
    ) -> int:
        """Adds a RECV; its position."""
        return self._message(rank, _RECV, place, peer, size, tag, channel)

    def member(self, rank: int, place: int, collective: int) -> int:
        """Adds a rank's part in a collective; its position."""
        return self._add(rank, _COLLECTIVE, place, collective, 0, 0, 0, 0)

    def collective(self, call: CollectiveCall) -> int:
        """Adds a collective; its index."""
        self._members += len(call.ranks)
        if len(self.collectives) >= MAX_COLLECTIVES or self._members > MAX_MEMBERS:
            raise self._fault(
                f"more than {MAX_COLLECTIVES} collectives, or {MAX_MEMBERS} members of them"
            )
        self.collectives.append(call)
        return len(self.collectives) - 1

    def depend(self, op: int, dependency: int) -> None:
        """Lets an operation wait for another."""
        if len(self._op) >= MAX_DEPENDENCIES:
            raise self._fault(f"more than {MAX_DEPENDENCIES} dependencies")
        self._op.append(op)
        self._dependency.append(dependency)

    def depend_all(self, op: NDArray[np.int64], dependency: NDArray[np.int64]) -> None:
        """The same for many."""
        if len(self._op) + op.size > MAX_DEPENDENCIES:
            raise self._fault(f"more than {MAX_DEPENDENCIES} dependencies")
        self._op.frombytes(op.astype(np.int64).tobytes())
        self._dependency.frombytes(dependency.astype(np.int64).tobytes())

    def finish(
        self, path: str | Path, trace_format: str, where: Callable[[int, int], str]
    ) -> Trace:
        """Checks everything.

        Args:
            path: how to begin a message about no operation in particular.
            trace_format: name of the format.
            where: for the rank and the place of an operation, how to begin a message about it.

        Raises:
            TraceFileError: the operations cannot be carried out; see `graph_check`.
        """
        graph = self._fit_receives(self._graph())
        name = "trace"
        try:
            check(graph, name)
        except GraphError as error:
            op, text = error.op, str(error).removeprefix(f"{name}: ")
            place = str(path) if op is None else where(self._rank[op], self._place[op])
            raise TraceFileError(f"{place}: {text}") from None
        return Trace(trace_format, graph, self.notes.notes())

    def _message(
        self, rank: int, kind: int, place: int, peer: int, size: int, tag: int, channel: int
    ) -> int:
        if size == 0:
            self.notes.add("messages of 0 bytes: 1 byte is sent")
            size = 1
        return self._add(rank, kind, place, peer, size, tag, channel, 0)

    def _add(
        self,
        rank: int,
        kind: int,
        place: int,
        peer: int,
        size: int,
        tag: int,
        channel: int,
        duration_ps: int,
    ) -> int:
        position = len(self._rank)
        if position >= MAX_OPS:
            raise self._fault(f"more than {MAX_OPS} operations")
        self._rank.append(rank)
        self._kind.append(kind)
        self._peer.append(peer)
        self._bytes.append(size)
        self._tag.append(tag)
        self._channel.append(channel)
        self._duration.append(duration_ps)
        self._place.append(place)
        return position

    def _graph(self) -> OpGraph:
        n = len(self._rank)
        op = np.frombuffer(self._op, np.int64)
        dependency = np.frombuffer(self._dependency, np.int64)
        counts = np.bincount(op, minlength=n)
        return OpGraph(
            num_ranks=self.num_ranks,
            rank=np.frombuffer(self._rank, np.int32),
            kind=np.frombuffer(self._kind, np.int8),
            peer=np.frombuffer(self._peer, np.int32),
            bytes=np.frombuffer(self._bytes, np.int64),
            tag=np.frombuffer(self._tag, np.int64),
            channel=np.frombuffer(self._channel, np.int16),
            duration_ps=np.frombuffer(self._duration, np.int64),
            first_dependency=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
            dependency=dependency[np.argsort(op, kind="stable")],
            collectives=tuple(self.collectives),
        )

    def _fit_receives(self, graph: OpGraph) -> OpGraph:
        """A RECV may be posted for more than arrives; it then takes what its SEND has."""
        sends, receives = (message_order(graph, kind) for kind in (OpKind.SEND, OpKind.RECV))
        if sends.size != receives.size:
            return graph  # that will be found
        more = graph.bytes[receives] > graph.bytes[sends]
        if not more.any():
            return graph
        self.notes.add("receives posted for more bytes than arrive", int(more.sum()))
        size = graph.bytes.copy()
        size[receives[more]] = graph.bytes[sends[more]]
        return graph._replace(bytes=size)
