"""What readers of traces add to `OpGraphBuilder`: limits, notes, places in files, checks."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

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
from roce_gym.workload.graph_builder import OpGraphBuilder
from roce_gym.workload.graph_check import check, message_order
from roce_gym.workload.op_graph import CollectiveCall, OpGraph, OpKind


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
        self.notes = NoteBook()
        self.collectives: list[CollectiveCall] = []
        self._fault = fault
        self._members = 0
        self._ops = OpGraphBuilder(num_ranks)
        self._place = array("q")

    def __len__(self) -> int:
        return len(self._ops)

    @property
    def num_ranks(self) -> int:
        """May be set later, where a file says it late."""
        return self._ops.num_ranks

    @num_ranks.setter
    def num_ranks(self, value: int) -> None:
        self._ops.num_ranks = value

    def compute(self, rank: int, place: int, duration_ps: int) -> int:
        """Adds a computation; its position."""
        return self._add(rank, OpKind.COMPUTE, place, duration_ps=duration_ps)

    def send(
        self, rank: int, place: int, peer: int, size: int, tag: int = 0, channel: int = 0
    ) -> int:
        """Adds a SEND; its position."""
        return self._message(rank, OpKind.SEND, place, peer, size, tag, channel)

    def receive(
        self, rank: int, place: int, peer: int, size: int, tag: int = 0, channel: int = 0
    ) -> int:
        """Adds a RECV; its position."""
        return self._message(rank, OpKind.RECV, place, peer, size, tag, channel)

    def member(self, rank: int, place: int, collective: int) -> int:
        """Adds a rank's part in a collective; its position."""
        return self._add(rank, OpKind.COLLECTIVE, place, peer=collective)

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
        if self._ops.num_dependencies >= MAX_DEPENDENCIES:
            raise self._fault(f"more than {MAX_DEPENDENCIES} dependencies")
        self._ops.depend(op, dependency)

    def depend_all(self, op: NDArray[np.int64], dependency: NDArray[np.int64]) -> None:
        """The same for many."""
        if self._ops.num_dependencies + op.size > MAX_DEPENDENCIES:
            raise self._fault(f"more than {MAX_DEPENDENCIES} dependencies")
        self._ops.depend_all(op, dependency)

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
        graph = self._fit_receives(self._ops.graph(self.collectives))
        name = "trace"
        try:
            check(graph, name)
        except GraphError as error:
            op, text = error.op, str(error).removeprefix(f"{name}: ")
            place = str(path) if op is None else where(self._ops.rank_of(op), self._place[op])
            raise TraceFileError(f"{place}: {text}") from None
        return Trace(trace_format, graph, self.notes.notes())

    def _message(
        self, rank: int, kind: OpKind, place: int, peer: int, size: int, tag: int, channel: int
    ) -> int:
        if size == 0:
            self.notes.add("messages of 0 bytes: 1 byte is sent")
            size = 1
        return self._add(rank, kind, place, peer=peer, size=size, tag=tag, channel=channel)

    def _add(self, rank: int, kind: OpKind, place: int, **fields: Any) -> int:
        if len(self._ops) >= MAX_OPS:
            raise self._fault(f"more than {MAX_OPS} operations")
        self._place.append(place)
        return self._ops.add(rank, kind, **fields)

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
