"""Graphs in which all ranks do the same, each in its own groups."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from roce_gym.errors import GraphError, TraceFileError
from roce_gym.traces.builder import Trace
from roce_gym.traces.limits import MAX_COLLECTIVES, MAX_DURATION_PS, MAX_MEMBERS, MAX_OPS
from roce_gym.traces.notes import NoteBook
from roce_gym.workload.graph_check import check
from roce_gym.workload.op_graph import CollectiveCall, OpGraph, OpKind


class Group(IntEnum):
    """Among whom a collective runs."""

    TP = 0
    DP = 1
    EP = 2
    DP_EP = 3


class Layout(NamedTuple):
    """Parallel layout; ranks count tensor first, then expert, then data, then pipeline."""

    num_ranks: int
    tensor: int
    expert: int
    stages: int

    def groups(self, group: Group) -> NDArray[np.int64]:
        """[number of groups, ranks of each] ascending."""
        data_expert = self.num_ranks // (self.stages * self.expert * self.tensor)
        ranks = np.arange(self.num_ranks).reshape(
            self.stages, data_expert, self.expert, self.tensor
        )
        if group == Group.TP:
            return ranks.reshape(-1, self.tensor)
        if group == Group.DP:
            return ranks.transpose(0, 3, 1, 2).reshape(-1, data_expert * self.expert)
        if group == Group.EP:
            return ranks.transpose(0, 1, 3, 2).reshape(-1, self.expert)
        return ranks.transpose(0, 2, 3, 1).reshape(-1, data_expert)


class Step(NamedTuple):
    """A computation; or a collective and then a computation, if `operation` is not empty.

    Attributes:
        line: where it stands.
        duration_ps: of the computation.
        operation, group, bytes: of the collective.
        is_awaited: whether the next step waits for the end of this one, not only for its begin.
    """

    line: int
    duration_ps: int
    operation: str
    group: Group
    bytes: int
    is_awaited: bool


class _Template:
    """The operations of one rank; `call[i]` indexes the collectives, -1 for a computation."""

    def __init__(self) -> None:
        self.line: list[int] = []
        self.duration_ps: list[int] = []
        self.call: list[int] = []
        self.waits_for: list[int] = []
        self.calls: list[tuple[str, Group, int]] = []

    def compute(self, step: Step, after: int) -> int:
        """Adds a computation, or prolongs the one that it would follow; its position."""
        if step.duration_ps == 0 and after >= 0:
            return after
        if after == len(self.call) - 1 >= 0 and self.call[after] < 0:
            self.duration_ps[after] += step.duration_ps
            return after
        return self._add(step.line, step.duration_ps, -1, after)

    def collective(self, step: Step, after: int) -> int:
        """Adds a collective; its position."""
        self.calls.append((step.operation, step.group, step.bytes))
        return self._add(step.line, 0, len(self.calls) - 1, after)

    def _add(self, line: int, duration_ps: int, call: int, after: int) -> int:
        self.line.append(line)
        self.duration_ps.append(duration_ps)
        self.call.append(call)
        self.waits_for.append(after)
        return len(self.call) - 1


def expand(
    path: str | Path, trace_format: str, layout: Layout, steps: Iterable[Step], notes: NoteBook
) -> Trace:
    """The graph of all ranks.

    Args:
        path: what to call the file in messages.
        trace_format: name of the format.
        layout: of the ranks.
        steps: what each rank does, in order.
        notes: of the reader; collectives of a single rank are added.

    Raises:
        TraceFileError: there would be too many operations or collectives.
    """
    groups = {group: layout.groups(group) for group in Group}
    template = _make_template(path, layout, groups, steps, notes)
    m, n = len(template.call), layout.num_ranks
    collectives, first = _calls(path, template, groups)
    group_of = {group: _group_of(members, n) for group, members in groups.items()}
    call = np.array(template.call, np.int64)
    is_call = call >= 0
    peer = np.full((n, m), -1, np.int32)
    for op in np.flatnonzero(is_call).tolist():
        peer[:, op] = first[call[op]] + group_of[template.calls[call[op]][1]]
    waits_for = np.array(template.waits_for, np.int64)
    has_wait = waits_for >= 0
    base = m * np.arange(n)[:, None]
    zeros = np.zeros(n * m, np.int64)
    graph = OpGraph(
        num_ranks=n,
        rank=np.repeat(np.arange(n, dtype=np.int32), m),
        kind=np.tile(np.where(is_call, OpKind.COLLECTIVE, OpKind.COMPUTE).astype(np.int8), n),
        peer=peer.ravel(),
        bytes=zeros,
        tag=zeros,
        channel=np.zeros(n * m, np.int16),
        duration_ps=np.tile(np.array(template.duration_ps, np.int64), n),
        first_dependency=np.concatenate([[0], np.cumsum(np.tile(has_wait, n))]).astype(np.int64),
        dependency=(base + waits_for[has_wait]).ravel(),
        collectives=tuple(collectives),
    )
    try:
        check(graph, str(path))
    except GraphError as error:
        line = "" if error.op is None else f", line {template.line[error.op % m]}"
        raise TraceFileError(str(error).replace(str(path), f"{path}{line}", 1)) from None
    return Trace(trace_format, graph, notes.notes())


def _make_template(
    path: str | Path,
    layout: Layout,
    groups: dict[Group, NDArray[np.int64]],
    steps: Iterable[Step],
    notes: NoteBook,
) -> _Template:
    template, last = _Template(), -1
    for number, step in enumerate(steps):
        if not step.operation:
            last = template.compute(step, last)
        elif groups[step.group].shape[1] == 1:
            notes.add(f"collectives in {step.group.name} groups of 1 rank")
        else:
            end = template.compute(step, template.collective(step, last))
            last = end if step.is_awaited else last
        if template.duration_ps[-1] > MAX_DURATION_PS:
            raise TraceFileError(
                f"{path}, line {step.line}: computations up to here take "
                f"{template.duration_ps[-1]} ps; allowed: 0 … {MAX_DURATION_PS}"
            )
        if len(template.call) * layout.num_ranks > MAX_OPS or number > MAX_OPS:
            raise TraceFileError(
                f"{path}, line {step.line}: {layout.num_ranks} ranks have more than {MAX_OPS} "
                "operations up to here"
            )
    return template


def _calls(
    path: str | Path, template: _Template, groups: dict[Group, NDArray[np.int64]]
) -> tuple[list[CollectiveCall], list[int]]:
    """All collectives, and where those of each call begin."""
    total = sum(groups[group].shape[0] for _, group, _ in template.calls)
    members = sum(groups[group].size for _, group, _ in template.calls)
    if total > MAX_COLLECTIVES or members > MAX_MEMBERS:
        raise TraceFileError(
            f"{path}: {total} collectives with {members} members; allowed: {MAX_COLLECTIVES} with "
            f"{MAX_MEMBERS}"
        )
    ranks = {g: [tuple(row) for row in members.tolist()] for g, members in groups.items()}
    calls: list[CollectiveCall] = []
    first = []
    for operation, group, size in template.calls:
        first.append(len(calls))
        calls += [CollectiveCall(operation, "auto", own, size) for own in ranks[group]]
    return calls, first


def _group_of(members: NDArray[np.int64], num_ranks: int) -> NDArray[np.int64]:
    """[ranks] number of the group that each is in."""
    found = np.empty(num_ranks, np.int64)
    found[members.ravel()] = np.repeat(np.arange(members.shape[0]), members.shape[1])
    return found
