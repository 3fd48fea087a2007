"""Programs of pipeline stages, copied for all their ranks into one operation graph.

Memory: 51 bytes an operation, 8 a dependency, about 100 a collective; everything is counted before
anything is allocated.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from roce_gym.errors import ConfigError
from roce_gym.workload.llm.layout import GroupKind, Layout
from roce_gym.workload.llm.program import Program
from roce_gym.workload.op_graph import CollectiveCall, OpGraph, OpKind

MAX_OPERATIONS = 2**25
"""Of a graph; 2 GB. Llama-3 405B on 16,384 GPUs, not scaled down, is about half of that."""


class Ops(NamedTuple):
    """Operations of one rank, for ranks that follow no program; arrays as in :class:`OpGraph`."""

    kind: NDArray[np.int8]
    peer: NDArray[np.int32]
    bytes: NDArray[np.int64]
    tag: NDArray[np.int64]
    channel: NDArray[np.int16]
    num_dependencies: NDArray[np.int64]
    dependency: NDArray[np.int64]  # positions in these arrays


class Part(NamedTuple):
    """A program and the ranks that follow it: those of one stage of a layout."""

    program: Program
    layout: Layout
    stage: int = 0

    @property
    def ranks(self) -> NDArray[np.int32]:
        """Shape (ranks,), int32."""
        ranks: NDArray[np.int32] = self.layout.grid[self.stage].ravel()
        return ranks


def copy_programs(
    field: str, parts: list[Part], slowdown: NDArray[np.float64], others: tuple[Ops, ...] = ()
) -> OpGraph:
    """The graph of all ranks, sorted by rank.

    Args:
        field: of the scenario, for messages.
        parts: each rank is in one.
        slowdown: shape (ranks,), factor on compute times.
        others: operations of the ranks after those of the parts.

    Raises:
        ConfigError: there are too many operations.
    """
    ranks = len(slowdown)
    operations = np.zeros(ranks + len(others), np.int64)
    dependencies = np.zeros(ranks + len(others), np.int64)
    for part in parts:
        operations[part.ranks] = len(part.program.steps)
        dependencies[part.ranks] = sum(len(one.after) for one in part.program.steps)
    operations[ranks:] = [len(one.kind) for one in others]
    dependencies[ranks:] = [len(one.dependency) for one in others]
    _require_few(field, int(operations.sum()), ranks)
    first = np.concatenate([[0], np.cumsum(operations)])
    first_dependency = np.concatenate([[0], np.cumsum(dependencies)])
    graph = _Arrays(int(first[-1]), int(first_dependency[-1]))
    calls, bases = _calls(parts)
    for part, base in zip(parts, bases, strict=True):
        block = _Block(first[part.ranks][:, None], len(part.program.steps))
        graph.copy_program(part, block, first_dependency[part.ranks][:, None])
        graph.fill_peers(part, ranks, block, base)
        graph.fill_durations(part, block, slowdown)
    for i, one in enumerate(others):
        graph.put(ranks + i, one, int(first[ranks + i]), int(first_dependency[ranks + i]))
    return graph.finish(ranks + len(others), calls)


def _require_few(field: str, operations: int, ranks: int) -> None:
    if operations > MAX_OPERATIONS:
        raise ConfigError(
            f"{field}: {operations:,} operations on {ranks:,} ranks are too many; allowed: "
            f"{MAX_OPERATIONS:,}. Lower scale.layers, micro_batches, checkpoint.every or bursts"
        )


def _calls(
    parts: list[Part],
) -> tuple[tuple[CollectiveCall, ...], list[dict[GroupKind, int]]]:
    """All collectives, and for each part the number of the first of each kind of group.

    Call `c` of group `g` of a part is number `base + c * groups + g`. The first and the last stage
    share those of their embeddings.
    """
    calls: list[CollectiveCall] = []
    bases: list[dict[GroupKind, int]] = []
    embedding: dict[int, int] = {}
    for part in parts:
        base: dict[GroupKind, int] = {}
        bases.append(base)
        for kind, made in part.program.calls.items():
            base[kind] = len(calls)
            if kind == "embedding":
                base[kind] = embedding.setdefault(id(part.layout), len(calls))
                if base[kind] < len(calls):
                    continue
            groups = part.layout.groups(kind, part.stage)
            for call in made:
                calls += [
                    CollectiveCall(call.operation, "auto", group, call.bytes) for group in groups
                ]
    return tuple(calls), bases


class _Block(NamedTuple):
    """Where the copies of a program are: its operations on each rank of a stage.

    Attributes:
        first: shape (ranks, 1), int64, of each rank.
        length: of the program, or of its dependencies.
    """

    first: NDArray[np.int64]
    length: int

    def write(self, array: NDArray[Any], at: NDArray[np.intp] | slice, values: Any) -> None:
        """Writes `values`, shape (ranks, positions) or less, at positions `at` of each copy."""
        start, ranks = int(self.first[0, 0]), len(self.first)
        if int(self.first[-1, 0]) - start == (ranks - 1) * self.length:  # one after the other
            block = array[start : start + ranks * self.length].reshape(ranks, self.length)
            block[:, at] = values
        else:
            array[self.first + np.arange(self.length)[at]] = values


class _Arrays:
    """The arrays of the graph while they are filled."""

    def __init__(self, size: int, num_dependencies: int) -> None:
        self.rank = np.empty(size, np.int32)
        self.kind = np.empty(size, np.int8)
        self.peer = np.full(size, -1, np.int32)
        self.bytes = np.zeros(size, np.int64)
        self.tag = np.zeros(size, np.int64)
        self.channel = np.zeros(size, np.int16)
        self.duration_ps = np.zeros(size, np.int64)
        self.first_dependency = np.empty(size + 1, np.int64)
        self.dependency = np.empty(num_dependencies, np.int64)

    def copy_program(self, part: Part, block: _Block, first_dependency: NDArray[np.int64]) -> None:
        """What is alike on all ranks of a part; `first_dependency`: shape (ranks, 1)."""
        steps, everywhere = part.program.steps, slice(None)
        counts = np.array([len(step.after) for step in steps], np.int64)
        block.write(self.rank, everywhere, part.ranks[:, None])
        block.write(self.kind, everywhere, np.array([step.kind for step in steps], np.int8))
        block.write(
            self.first_dependency, everywhere, first_dependency + np.cumsum(counts) - counts
        )
        at = _where(step.peer is not None or step.kind == OpKind.MARK for step in steps)
        chosen = [steps[i] for i in at]
        block.write(self.bytes, at, np.array([step.bytes for step in chosen], np.int64))
        block.write(self.tag, at, np.array([step.tag for step in chosen], np.int64))
        block.write(self.channel, at, np.array([step.channel for step in chosen], np.int16))
        after = np.array([position for step in steps for position in step.after], np.int64)
        waits = _Block(first_dependency, len(after))
        waits.write(self.dependency, everywhere, block.first + after)

    def fill_peers(
        self, part: Part, num_ranks: int, block: _Block, base: dict[GroupKind, int]
    ) -> None:
        """Ranks at the other end of messages, and numbers of collectives."""
        program, layout, stage = part.program, part.layout, part.stage
        peers = {
            "previous": layout.grid[stage - 1].ravel(),
            "next": layout.grid[(stage + 1) % layout.pipeline].ravel(),
        }
        if program.servers:
            peers["storage"] = num_ranks + part.ranks % program.servers
        for name, ranks in peers.items():
            at = _where(step.peer == name for step in program.steps)
            block.write(self.peer, at, ranks[:, None])
        for kind, made in program.calls.items():
            at = _where(step.group == kind for step in program.steps)
            numbers = layout.group_numbers(kind).ravel().astype(np.int32)
            groups = int(numbers.max()) + 1
            call = np.arange(len(made), dtype=np.int32) * groups + base[kind]
            block.write(self.peer, at, call[None, :] + numbers[:, None])

    def fill_durations(self, part: Part, block: _Block, slowdown: NDArray[np.float64]) -> None:
        """Compute times, longer on stragglers, and times that are not theirs."""
        steps = part.program.steps
        at = _where(step.kind == OpKind.COMPUTE for step in steps)
        duration_ps = np.array([steps[i].duration_ps for i in at], np.float64)
        is_idle = np.array([steps[i].is_idle for i in at], np.bool_)
        factor = np.where(is_idle, 1.0, slowdown[part.ranks][:, None])
        block.write(self.duration_ps, at, np.rint(duration_ps * factor))

    def put(self, rank: int, ops: Ops, first: int, first_dependency: int) -> None:
        """Operations of one rank of its own."""
        chosen = slice(first, first + len(ops.kind))
        self.rank[chosen] = rank
        self.kind[chosen] = ops.kind
        self.peer[chosen] = ops.peer
        self.bytes[chosen] = ops.bytes
        self.tag[chosen] = ops.tag
        self.channel[chosen] = ops.channel
        counts = ops.num_dependencies
        self.first_dependency[chosen] = first_dependency + np.cumsum(counts) - counts
        end = first_dependency + len(ops.dependency)
        self.dependency[first_dependency:end] = ops.dependency + first

    def finish(self, num_ranks: int, calls: tuple[CollectiveCall, ...]) -> OpGraph:
        """The graph."""
        self.first_dependency[-1] = len(self.dependency)
        return OpGraph(
            num_ranks=num_ranks,
            rank=self.rank,
            kind=self.kind,
            peer=self.peer,
            bytes=self.bytes,
            tag=self.tag,
            channel=self.channel,
            duration_ps=self.duration_ps,
            first_dependency=self.first_dependency,
            dependency=self.dependency,
            collectives=calls,
        )


def _where(is_meant: Iterable[bool]) -> NDArray[np.intp]:
    return np.flatnonzero(np.fromiter(is_meant, np.bool_))
