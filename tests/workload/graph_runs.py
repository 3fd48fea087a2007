"""A slow interpreter of operation graphs on a network of one's own, to see when things end."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

import numpy as np

from roce_gym.workload.op_graph import CollectiveCall, OpGraph, OpKind


def no_time(_call: CollectiveCall) -> int:
    return 0


def run(
    graph: OpGraph,
    call_ps: Callable[[CollectiveCall], int] = no_time,
    message_ps: Callable[[int], int] = lambda size: 0,
) -> list[int]:
    """When each operation is done; -1: never.

    A collective takes `call_ps` from when its last rank has come, a message `message_ps` of its
    bytes from when it is posted.
    """
    n = len(graph.kind)
    done = [-1] * n
    waits = np.diff(graph.first_dependency).tolist()
    unblocks: dict[int, list[int]] = defaultdict(list)
    for op in range(n):
        for other in graph.dependency[graph.first_dependency[op] : graph.first_dependency[op + 1]]:
            assert graph.rank[other] == graph.rank[op]
            unblocks[int(other)].append(op)
    began: dict[int, int] = {}
    came: dict[int, list[int]] = defaultdict(list)
    mate = _mates(graph)
    arrived: dict[int, int] = {}
    ready = [(0, op) for op in range(n) if waits[op] == 0]
    while ready:
        ready.sort(reverse=True)
        time, op = ready.pop()
        began[op] = time
        for finished, at in _finish(
            graph, op, time, began, came, mate, arrived, call_ps, message_ps
        ):
            done[finished] = at
            for other in unblocks[finished]:
                waits[other] -= 1
                if waits[other] == 0:
                    deps = graph.dependency[
                        graph.first_dependency[other] : graph.first_dependency[other + 1]
                    ]
                    ready.append((max(done[d] for d in deps), other))
    return done


def _finish(graph, op, time, began, came, mate, arrived, call_ps, message_ps):
    kind = graph.kind[op]
    if kind == OpKind.COMPUTE:
        return [(op, time + int(graph.duration_ps[op]))]
    if kind == OpKind.SEND:
        receive = mate[op]
        arrived[receive] = time + message_ps(int(graph.bytes[op]))
        out = [(op, time)]
        if receive in began:
            out.append((receive, max(began[receive], arrived[receive])))
        return out
    if kind == OpKind.MARK:
        return [(op, time)]
    if kind == OpKind.RECV:
        return [(op, max(time, arrived[op]))] if op in arrived else []
    number = int(graph.peer[op])
    call = graph.collectives[number]
    assert int(graph.rank[op]) in call.ranks
    came[number].append(op)
    if len(came[number]) < len(call.ranks):
        return []
    end = max(began[one] for one in came[number]) + call_ps(call)
    return [(one, end) for one in came[number]]


def _mates(graph: OpGraph) -> dict[int, int]:
    """The RECV of each SEND; fails if a message has none, or sizes differ."""
    sends: dict[tuple[int, ...], list[int]] = defaultdict(list)
    receives: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for op in range(len(graph.kind)):
        here, there = int(graph.rank[op]), int(graph.peer[op])
        how = (int(graph.tag[op]), int(graph.channel[op]))
        if graph.kind[op] == OpKind.SEND:
            sends[(here, there, *how)].append(op)
        elif graph.kind[op] == OpKind.RECV:
            receives[(there, here, *how)].append(op)
    assert {k: len(v) for k, v in sends.items()} == {k: len(v) for k, v in receives.items()}
    mate = {s: r for key in sends for s, r in zip(sends[key], receives[key], strict=True)}
    assert all(graph.bytes[s] == graph.bytes[r] for s, r in mate.items())
    return mate


def volumes(graph: OpGraph, rank: int) -> dict[str, list[int]]:
    """Sizes of what a rank takes part in, in order: by name of the operation, sends as "send"."""
    out: dict[str, list[int]] = defaultdict(list)
    for op in np.flatnonzero(graph.rank == rank):
        if graph.kind[op] == OpKind.COLLECTIVE:
            call = graph.collectives[graph.peer[op]]
            out[f"{call.operation} {len(call.ranks)}"].append(call.bytes)
        elif graph.kind[op] == OpKind.SEND:
            out["send"].append(int(graph.bytes[op]))
    return dict(out)
