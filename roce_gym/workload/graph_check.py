"""Whether an operation graph can be executed, and which RECV each SEND belongs to."""

from __future__ import annotations

from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roce_gym.errors import GraphError
from roce_gym.workload.graph_order import Order, go_through
from roce_gym.workload.op_graph import OpGraph, OpKind

MAX_BYTES = 2**50
"""Of a message or a collective; what times in ps allow, and more than any memory."""

MAX_TOTAL = 2.0**62
"""Of all bytes, and of all durations in ps: sums fit into 64 bits."""


def check(graph: OpGraph, name: str = "graph") -> None:
    """Refuses what cannot be executed.

    Args:
        graph: any.
        name: what it is called in messages.

    Raises:
        GraphError: arrays do not fit together; a rank, peer, size, time or dependency is out of
            range; a message has no receiver; a collective lacks a rank; operations wait for each
            other in a circle. Names the operation.
    """
    _check_shapes(graph, name)
    _check_ranges(graph, name)
    _check_dependencies(graph, name)
    _check_collectives(graph, name)
    _check_order(graph, match_messages(graph, name), name)


def match_messages(graph: OpGraph, name: str = "graph") -> NDArray[np.int32]:
    """Shape (n,): the RECV that the message of each SEND belongs to; -1 for other operations.

    Raises:
        GraphError: a SEND without a RECV of its size, or a RECV without a SEND.
    """
    sends, receives = message_order(graph, OpKind.SEND), message_order(graph, OpKind.RECV)
    ours, theirs = _message_keys(graph, sends), _message_keys(graph, receives)
    count = min(len(sends), len(receives))
    same = np.ones(count, np.bool_)
    for our, their in zip(ours, theirs, strict=True):
        same &= our[:count] == their[:count]
    if not same.all() or len(sends) != len(receives):
        _raise_unmatched(graph, name)
    unequal = np.flatnonzero(graph.bytes[sends] != graph.bytes[receives])
    if len(unequal):
        a, b = int(sends[unequal[0]]), int(receives[unequal[0]])
        raise GraphError(
            f"{name}: operation {a} (SEND of {graph.bytes[a]} bytes) does not fit operation {b} "
            f"(RECV of {graph.bytes[b]} bytes); allowed: the same size",
            a,
        )
    mate = np.full(len(graph.rank), -1, np.int32)
    mate[sends] = receives
    return mate


def message_order(graph: OpGraph, kind: OpKind) -> NDArray[np.intp]:
    """The SENDs or RECVs of a graph, so that those of a message have the same index in both."""
    ops = np.flatnonzero(graph.kind == kind)
    return ops[np.lexsort(_message_keys(graph, ops))]


def _message_keys(graph: OpGraph, ops: NDArray[np.intp]) -> list[NDArray[Any]]:
    """Channel, tag, destination and source; operations that are equal here go by position."""
    own, peer = graph.rank[ops], graph.peer[ops]
    is_send = graph.kind[ops] == OpKind.SEND
    src, dst = np.where(is_send, own, peer), np.where(is_send, peer, own)
    return [graph.channel[ops], graph.tag[ops], dst, src]


def _raise_unmatched(graph: OpGraph, name: str) -> None:
    waiting: dict[tuple[int, ...], list[list[int]]] = {}
    for op in np.flatnonzero((graph.kind == OpKind.SEND) | (graph.kind == OpKind.RECV)).tolist():
        is_send = graph.kind[op] == OpKind.SEND
        ends = (graph.rank[op], graph.peer[op]) if is_send else (graph.peer[op], graph.rank[op])
        key = (*map(int, ends), int(graph.tag[op]), int(graph.channel[op]))
        waiting.setdefault(key, [[], []])[0 if is_send else 1].append(op)
    for (src, dst, tag, channel), (sends, receives) in waiting.items():
        if len(sends) == len(receives):
            continue
        few = min(len(sends), len(receives))
        ours, mine, other = (
            (sends, "SEND", "RECV") if len(sends) > len(receives) else (receives, "RECV", "SEND")
        )
        raise GraphError(
            f"{name}: operation {ours[few]} ({mine}) from rank {src} to rank {dst}, tag {tag}, "
            f"channel {channel}, has no {other}: there are {len(sends)} SENDs and "
            f"{len(receives)} RECVs; allowed: equally many",
            ours[few],
        )


def _refuse(name: str, op: int, what: str, value: object, allowed: str) -> None:
    raise GraphError(
        f"{name}: operation {op}: {what} = {value} is not allowed; allowed: {allowed}", op
    )


def _check_shapes(graph: OpGraph, name: str) -> None:
    n = len(graph.rank)
    if graph.num_ranks < 1 or n == 0:
        raise GraphError(f"{name}: {graph.num_ranks} ranks and {n} operations; allowed: 1 or more")
    fields = ("kind", "peer", "bytes", "tag", "channel", "duration_ps")
    lengths = {field: (len(getattr(graph, field)), n) for field in fields}
    lengths["first_dependency"] = (len(graph.first_dependency), n + 1)
    for field, (length, wanted) in lengths.items():
        if length != wanted:
            raise GraphError(f"{name}.{field}: {length} entries; allowed: {wanted}")
    first = graph.first_dependency
    if first[0] != 0 or first[-1] != len(graph.dependency) or (np.diff(first) < 0).any():
        raise GraphError(
            f"{name}.first_dependency must rise from 0 to {len(graph.dependency)}, the number of "
            "dependencies"
        )


def _check_ranges(graph: OpGraph, name: str) -> None:
    kind = graph.kind
    is_message = (kind == OpKind.SEND) | (kind == OpKind.RECV)
    ranks = f"0 … {graph.num_ranks - 1}"
    calls = f"0 … {len(graph.collectives) - 1}"
    kinds = ", ".join(f"{k.value} ({k.name})" for k in OpKind)
    bad_peer = is_message & ((graph.peer < 0) | (graph.peer >= graph.num_ranks))
    is_call = kind == OpKind.COLLECTIVE
    bad_call = is_call & ((graph.peer < 0) | (graph.peer >= len(graph.collectives)))
    bad_bytes = is_message & ((graph.bytes < 1) | (graph.bytes > MAX_BYTES))
    bad_time = (graph.duration_ps < 0) | (graph.duration_ps > MAX_BYTES)
    for bad, field, allowed in (
        ((kind < 0) | (kind > max(OpKind)), "kind", kinds),
        ((graph.rank < 0) | (graph.rank >= graph.num_ranks), "rank", ranks),
        (bad_peer, "peer", ranks),
        (is_message & (graph.peer == graph.rank), "peer", "another rank"),
        (bad_call, "peer", f"a collective, {calls}"),
        (bad_bytes, "bytes", "1 … 2^50"),
        (bad_time, "duration_ps", "0 … 2^50"),
    ):
        if bad.any():
            op = int(np.argmax(bad))
            _refuse(name, op, field, int(getattr(graph, field)[op]), allowed)
    for field in ("bytes", "duration_ps"):
        total = float(getattr(graph, field).sum(dtype=np.float64))
        if total > MAX_TOTAL:
            raise GraphError(f"{name}: the sum of {field} = {total:.3g}; allowed: 0 … 2^62")


def _check_dependencies(graph: OpGraph, name: str) -> None:
    op = np.repeat(np.arange(len(graph.rank)), np.diff(graph.first_dependency))
    bad = (graph.dependency < 0) | (graph.dependency >= len(graph.rank))
    if not bad.any():
        bad = graph.rank[graph.dependency] != graph.rank[op]
    if bad.any():
        i = int(np.argmax(bad))
        allowed = f"operations of rank {graph.rank[op[i]]}"
        _refuse(name, int(op[i]), "dependency", int(graph.dependency[i]), allowed)


def _check_collectives(graph: OpGraph, name: str) -> None:
    for i, call in enumerate(graph.collectives):
        where = f"{name}.collectives.{i}"
        if not 1 <= call.bytes <= MAX_BYTES:
            raise GraphError(f"{where}.bytes = {call.bytes} is not allowed; allowed: 1 … 2^50")
        if len(call.ranks) < 2 or len(set(call.ranks)) < len(call.ranks):
            raise GraphError(f"{where}.ranks: needs two or more ranks, each once")
    calls = np.flatnonzero(graph.kind == OpKind.COLLECTIVE)
    calls = calls[np.lexsort((graph.rank[calls], graph.peer[calls]))]
    sizes = [len(call.ranks) for call in graph.collectives]
    members = np.fromiter(chain.from_iterable(c.ranks for c in graph.collectives), np.int64)
    owner = np.repeat(np.arange(len(sizes)), sizes)
    order = np.lexsort((members, owner))
    if np.array_equal(graph.peer[calls], owner) and np.array_equal(
        graph.rank[calls], members[order]
    ):
        return
    ends = np.searchsorted(graph.peer[calls], np.arange(len(sizes) + 1))
    for i, call in enumerate(graph.collectives):
        own = calls[ends[i] : ends[i + 1]]
        found = graph.rank[own]
        if not np.array_equal(found, np.sort(call.ranks)):
            wrong = sorted(set(call.ranks) ^ set(found.tolist())) or sorted(found.tolist())
            raise GraphError(
                f"{name}.collectives.{i}: needs one operation of each of its ranks; wrong: rank "
                f"{wrong[0]}",
                int(own[0]) if own.size else None,
            )


def _check_order(graph: OpGraph, mate: NDArray[np.int32], name: str) -> None:
    """Everything can be done: no circle of dependencies, messages and collectives."""
    left = order_of(graph, mate).never_done
    left = left[left < len(graph.rank)]
    if len(left):
        first = int(left[0])
        raise GraphError(
            f"{name}: operation {first} of rank {graph.rank[first]} can never be done: "
            f"{len(left)} operations wait for each other in a circle, or behind one",
            first,
        )


def order_of(graph: OpGraph, mate: NDArray[np.int32]) -> Order:
    """Goes through a graph whose fields are in order.

    A collective k is node n + k here, between the operations of its ranks and what depends on
    them: all wait for all; in a broadcast, for the first rank only.

    Args:
        graph: n operations.
        mate: see `match_messages`.
    """
    n, num_calls = len(graph.rank), len(graph.collectives)
    op = np.repeat(np.arange(n), np.diff(graph.first_dependency))
    is_call = graph.kind == OpKind.COLLECTIVE
    calls = np.flatnonzero(is_call)
    sends = np.flatnonzero(mate >= 0)
    by_call = graph.dependency[is_call[graph.dependency]]
    roots = [c.ranks[0] if c.operation == "broadcast" else -1 for c in graph.collectives]
    root = np.array(roots, np.int64)[graph.peer[calls]]
    joins = calls[(root < 0) | (root == graph.rank[calls])]
    before = [graph.dependency, sends, joins, n + graph.peer[by_call]]
    behind = [op, mate[sends], n + graph.peer[joins], op[is_call[graph.dependency]]]
    duration_ps = np.concatenate([graph.duration_ps, np.zeros(num_calls, np.int64)])
    return go_through(np.concatenate(before), np.concatenate(behind), duration_ps)
