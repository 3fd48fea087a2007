"""Reader of Chakra execution traces: a file of nodes for each rank.

A file is a list of protobuf messages, each after its length: `GlobalMetadata`, then a `Node` each
(see chakra_node.py). A node waits for its control and data dependencies. Collectives of two ranks
belong together if their process groups have the same ranks, and they are the k-th of these in both
files. Sizes are those of ASTRA-sim: what a rank puts in (Ring.cc: all-gather grows by the number of
ranks). Source of the meaning: Workload.cc of https://github.com/astra-sim/astra-sim.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from roce_gym.bounded import open_bounded
from roce_gym.errors import TraceFileError
from roce_gym.traces.builder import Builder, Trace
from roce_gym.traces.chakra_files import chakra_files, file_name, read_group_file
from roce_gym.traces.chakra_node import CommType, Node, NodeReader, NodeType, process_groups
from roce_gym.traces.limits import (
    MAX_DEPENDENCIES,
    MAX_DURATION_PS,
    MAX_MESSAGE_BYTES,
    MAX_RANKS,
    MAX_TAG,
)
from roce_gym.traces.protobuf import WireError, fields, records
from roce_gym.units import PS_PER_US
from roce_gym.workload.op_graph import CollectiveCall

VERSION = "0.0.4"
BARRIER_BYTES = 4
"""A barrier of NCCL is an all-reduce of one number."""

_OPERATIONS = {
    CommType.ALL_REDUCE: "all_reduce",
    CommType.REDUCE: "broadcast",
    CommType.ALL_GATHER: "all_gather",
    CommType.BROADCAST: "broadcast",
    CommType.ALL_TO_ALL: "all_to_all",
    CommType.REDUCE_SCATTER: "reduce_scatter",
    CommType.REDUCE_SCATTER_BLOCK: "reduce_scatter",
    CommType.BARRIER: "all_reduce",
}
_TIMED = {
    NodeType.COMP: "",
    NodeType.MEM_LOAD: "memory loads: taken for computations",
    NodeType.MEM_STORE: "memory stores: taken for computations",
}
_USED = {"comm_type", "comm_size", "comm_src", "comm_dst", "comm_tag", "pg_name", "root_rank"}


def read_chakra(path: str | Path, groups_file: str | Path | None = None) -> Trace:
    """Reads a trace.

    Args:
        path: see `chakra_files`.
        groups_file: process groups, as ASTRA-sim's; beside those that the trace itself has.

    Raises:
        TraceFileError: names file, record and value.
    """
    groups = {} if groups_file is None else read_group_file(groups_file)
    reader = _Reader(chakra_files(path), groups)
    for rank in range(len(reader.files)):
        reader.read(rank)
    return reader.finish(path)


class _Reader:
    """Takes files one after the other."""

    def __init__(self, files: Sequence[Path], groups: Mapping[str, list[int]]) -> None:
        self.files = files
        self.build = Builder(len(files), self.fault)
        self._nodes = NodeReader()
        self._everyone = tuple(range(len(files)))
        self._given = {name: self._group(name, ranks) for name, ranks in groups.items()}
        self._calls: dict[tuple[tuple[int, ...], int], int] = {}
        self._rank = self._record = 0
        self._start_rank()

    def fault(self, message: str) -> TraceFileError:
        """An error about the record last read."""
        return TraceFileError(f"{self.files[self._rank]}, record {self._record}: {message}")

    def read(self, rank: int) -> None:
        """All operations of a rank."""
        self._rank, self._record = rank, 0
        self._start_rank()
        with open_bounded(self.files[rank]) as file:
            messages = records(file)
            try:
                self._record = 1
                self._metadata(next(messages, None))
                self._record = 2
                for message in messages:
                    self._node(self._nodes.read(message))
                    self._record += 1
            except WireError as fault:
                raise self.fault(str(fault)) from None
        self._resolve()

    def finish(self, path: str | Path) -> Trace:
        """What was read."""
        return self.build.finish(
            path, "chakra", lambda rank, record: f"{self.files[rank]}, record {record}"
        )

    def _start_rank(self) -> None:
        self._ids, self._first = array("Q"), len(self.build)
        self._waits_for, self._waiting = array("Q"), array("q")
        self._groups = dict(self._given)
        self._count: dict[tuple[int, ...], int] = {}

    def _metadata(self, message: bytes | None) -> None:
        if message is None:
            raise self.fault("the file is empty")
        versions = [value for number, value in fields(message) if number == 1]
        if versions != [VERSION.encode()]:
            self.build.notes.add(f"files that do not say that their version is {VERSION}")

    def _resolve(self) -> None:
        """Dependencies, whose nodes may come later in the file, from ids to positions."""
        ids = np.frombuffer(self._ids, np.uint64)
        order = np.argsort(ids, kind="stable")
        ordered = ids[order]
        twice = ordered[1:] == ordered[:-1]
        if twice.any():
            at = int(order[1 + int(twice.argmax())])
            raise self._fault_at(at, f"node id {ids[at]} is given twice")
        wanted = np.frombuffer(self._waits_for, np.uint64)
        waiting = np.frombuffer(self._waiting, np.int64)
        at_most = max(ids.size - 1, 0)
        place = np.minimum(np.searchsorted(ordered, wanted), at_most)
        missing = ordered[place] != wanted if ids.size else np.ones(wanted.size, bool)
        if missing.any():
            i = int(missing.argmax())
            raise self._fault_at(
                int(waiting[i]), f"depends on node {wanted[i]}, which the file does not have"
            )
        self.build.depend_all(waiting + self._first, order[place] + self._first)

    def _fault_at(self, node: int, message: str) -> TraceFileError:
        self._record = node + 2
        return self.fault(message)

    # ---------------------------------------------------------------------- nodes

    def _node(self, node: Node) -> None:
        """One operation for each node, so that positions and records go together."""
        if len(self._waits_for) + len(node.dependencies) > MAX_DEPENDENCIES:
            raise self.fault(f"more than {MAX_DEPENDENCIES} dependencies")
        self._waits_for.extend(node.dependencies)
        self._waiting.extend([len(self._ids)] * len(node.dependencies))
        self._ids.append(node.id)
        kind = node.type
        if kind in _TIMED:
            self._computation(node)
        elif kind == NodeType.SEND:
            self._message(node, self.build.send, "comm_dst", "comm_src")
        elif kind == NodeType.RECV:
            self._message(node, self.build.receive, "comm_src", "comm_dst")
        elif kind == NodeType.COLL:
            self._collective(node)
        else:
            self._other(node)

    def _computation(self, node: Node) -> None:
        duration_ps = node.duration_us * PS_PER_US
        if duration_ps > MAX_DURATION_PS:
            raise self.fault(
                f"duration_micros = {node.duration_us} is not allowed; allowed: 0 … "
                f"{MAX_DURATION_PS // PS_PER_US}"
            )
        self.build.notes.add(_TIMED[NodeType(node.type)], int(node.type != NodeType.COMP))
        if not duration_ps:
            self.build.notes.add(
                "computations without a duration (at most operations to count): they take no time"
            )
        self.build.compute(self._rank, self._record, duration_ps)

    def _message(self, node: Node, add: Callable[..., int], other_name: str, own_name: str) -> None:
        self._note_unused(node)
        size = self._number(node, "comm_size", 0, MAX_MESSAGE_BYTES)
        own = self._number(node, own_name, 0, len(self.files) - 1, self._rank)
        if own != self._rank:
            raise self.fault(f"{own_name} = {own} is not allowed; allowed: {self._rank}, or none")
        other = self._rank_of(node, other_name)
        if other == self._rank:
            raise self.fault(f"rank {other} sends to itself")
        add(self._rank, self._record, other, size, self._number(node, "comm_tag", 0, MAX_TAG, 0))

    def _collective(self, node: Node) -> None:
        self._note_unused(node)
        kind = self._number(node, "comm_type", 0, CommType.BARRIER)
        if kind not in _OPERATIONS:
            allowed = ", ".join(f"{int(c)} ({c.name})" for c in _OPERATIONS)
            raise self.fault(
                f"comm_type = {kind} ({CommType(kind).name}) is not supported; allowed: {allowed}"
            )
        ranks = self._ranks(node)
        least = BARRIER_BYTES if kind == CommType.BARRIER else None
        size = self._number(node, "comm_size", 0, MAX_MESSAGE_BYTES, least)
        if len(ranks) == 1:
            self.build.notes.add("collectives of 1 rank: they take no time")
            self.build.compute(self._rank, self._record, 0)
            return
        if kind == CommType.REDUCE:
            self.build.notes.add("reduces: carried out as broadcasts, which move as many bytes")
        call = self._call(CommType(kind), ranks, self._whole_buffer(CommType(kind), size, ranks))
        self.build.member(self._rank, self._record, call)

    def _whole_buffer(self, kind: CommType, size: int, ranks: tuple[int, ...]) -> int:
        """As `CollectiveCall` counts it."""
        if size == 0:
            self.build.notes.add("collectives of 0 bytes: carried out with a few")
            size = BARRIER_BYTES
        whole = size * len(ranks) if kind == CommType.ALL_GATHER else size
        if whole > MAX_MESSAGE_BYTES:
            raise self.fault(f"a buffer of {whole} bytes; allowed: 1 … {MAX_MESSAGE_BYTES}")
        return whole

    def _call(self, kind: CommType, ranks: tuple[int, ...], size: int) -> int:
        """The collective that this is a part of."""
        members = tuple(sorted(ranks))
        number = self._count.get(members, 0)
        self._count[members] = number + 1
        operation = _OPERATIONS[kind]
        index = self._calls.get((members, number))
        if index is None:
            index = self.build.collective(CollectiveCall(operation, "auto", ranks, size))
            self._calls[members, number] = index
            return index
        call = self.build.collectives[index]
        if call.operation != operation:
            raise self.fault(
                f"is collective number {number + 1} among its ranks, a {operation}; at other "
                f"ranks that is a {call.operation}"
            )
        if call.bytes != size:
            self.build.notes.add("collectives of unequal sizes: all ranks have the largest")
            self.build.collectives[index] = call._replace(bytes=max(call.bytes, size))
        return index

    def _ranks(self, node: Node) -> tuple[int, ...]:
        """Of its process group; the root of a broadcast or reduce comes first."""
        name = node.attributes.get("pg_name", "")
        if isinstance(name, int):
            name = str(name)
        if name not in self._groups and name not in ("", "0"):
            raise self.fault(
                f"pg_name = {name[:40]!r} is unknown; neither the trace nor a file of groups has it"
            )
        ranks = self._groups.get(name, self._everyone)
        if self._rank not in ranks:
            raise self.fault(f"rank {self._rank} is no member of group {name[:40]!r}")
        if "root_rank" in node.attributes:
            root = self._rank_of(node, "root_rank")
            if root not in ranks:
                raise self.fault(f"root_rank = {root} is no member of group {name[:40]!r}")
            at = ranks.index(root)
            ranks = ranks[at:] + ranks[:at]
        return ranks

    def _other(self, node: Node) -> None:
        """Nodes that only pass on what they wait for."""
        groups = process_groups(node.inputs) if node.type == NodeType.METADATA else None
        if groups is None:
            known = node.type in NodeType.__members__.values()
            name = NodeType(node.type).name if known else str(node.type)
            self.build.notes.add(f"nodes of type {name}: they take no time")
        else:
            for name, (ranks, size) in groups.items():
                if size > len(self.files):
                    raise self.fault(
                        f"process group {name[:40]!r} has {size} ranks{self._missing(size - 1)}"
                    )
                self._groups[name] = self._group(name, ranks) if ranks else self._everyone
        self.build.compute(self._rank, self._record, 0)

    def _group(self, name: str, ranks: list[int]) -> tuple[int, ...]:
        last = len(self.files) - 1
        if not ranks or len(set(ranks)) < len(ranks) or not all(0 <= r <= last for r in ranks):
            raise TraceFileError(
                f"{self.files[0].parent}: process group {name[:40]!r} is not allowed; allowed: "
                f"different ranks of 0 … {last}{self._missing(max(ranks, default=0))}"
            )
        return tuple(ranks)

    def _rank_of(self, node: Node, name: str) -> int:
        """A rank that has a file."""
        value = node.attributes.get(name)
        missing = self._missing(value) if isinstance(value, int) else ""
        return self._number(node, name, 0, len(self.files) - 1, why=missing)

    def _missing(self, rank: int) -> str:
        """What to add to a message about a rank; nothing if it has a file or cannot have one."""
        if not len(self.files) <= rank < MAX_RANKS:
            return ""
        return f"; of rank {rank} the file {file_name(self.files[0], rank)} is missing"

    def _number(
        self,
        node: Node,
        name: str,
        low: int,
        high: int,
        default: int | None = None,
        why: str = "",
    ) -> int:
        value = node.attributes.get(name, default)
        if value is None:
            raise self.fault(f"attribute {name} is missing")
        if not isinstance(value, int) or not low <= value <= high:
            shown = value if isinstance(value, int) else repr(value[:40])
            raise self.fault(f"{name} = {shown} is not allowed; allowed: {low} … {high}{why}")
        return value

    def _note_unused(self, node: Node) -> None:
        if node.attributes.keys() - _USED - {"is_cpu_op"}:
            self.build.notes.add("messages and collectives with other attributes than are used")
