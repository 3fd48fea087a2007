"""Whether an operation graph can be carried out: its messages matched, nothing waiting for itself.

All of it works on whole arrays; a million operations take a second or two.
"""

from __future__ import annotations

from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from roce_gym.workload.op_graph import OpGraph, OpKind

MAX_TOTAL = float(2**62)
"""Of all durations in ps, and of all bytes: sums of them fit into 64 bits."""

_FEW = 32
"""Operations at once below which plain loops beat array calls."""

_NAMES = {OpKind.SEND: "SEND", OpKind.RECV: "RECV"}


class GraphError(Exception):
    """Raised when a graph cannot be carried out.

    Attributes:
        op: position of the operation at fault; -1: of none in particular.
    """

    def __init__(self, op: int, message: str) -> None:
        super().__init__(message)
        self.op = op


class CriticalPath(NamedTuple):
    """The longest chain of operations that wait for each other, if the network took no time."""

    duration_ps: int  # of the chain whose computations take longest
    num_ops: int  # of the chain with most operations


def check_graph(graph: OpGraph, send_of: NDArray[np.int64] | None = None) -> CriticalPath:
    """Checks everything that the simulator relies on.

    Args:
        graph: to be checked.
        send_of: what `match_messages` gave for it, if that is known.

    Raises:
        GraphError: a value is out of range, a message has no other end or another size there, a
            collective lacks a member, or operations wait for each other in a circle.
    """
    check_values(graph)
    _check_members(graph)
    pairs = match_messages(graph) if send_of is None else send_of
    receives = np.flatnonzero(graph.kind == OpKind.RECV)
    differ = receives[graph.bytes[receives] != graph.bytes[pairs]]
    if differ.size:
        op = int(differ[0])
        send = int(pairs[np.searchsorted(receives, op)])
        raise GraphError(
            op, f"RECV of {graph.bytes[op]} bytes, but its SEND has {graph.bytes[send]}"
        )
    return _walk(graph, receives, pairs)


def check_values(graph: OpGraph) -> None:
    """Checks each operation for itself.

    Raises:
        GraphError: names operation, value and what is allowed.
    """
    ranks = graph.num_ranks
    _refuse(graph.rank, (graph.rank < 0) | (graph.rank >= ranks), f"rank = {{}}; {_to(ranks)}")
    messages = (graph.kind == OpKind.SEND) | (graph.kind == OpKind.RECV)
    wrong = messages & ((graph.peer < 0) | (graph.peer >= ranks))
    _refuse(graph.peer, wrong, f"peer = {{}} is not a rank; {_to(ranks)}")
    _refuse(graph.peer, messages & (graph.peer == graph.rank), "rank {} sends to itself")
    _refuse(graph.bytes, messages & (graph.bytes < 1), "bytes = {}; allowed: 1 and above")
    _refuse(graph.duration_ps, graph.duration_ps < 0, "duration_ps = {}; allowed: 0 and above")
    collective = graph.kind == OpKind.COLLECTIVE
    wrong = collective & ((graph.peer < 0) | (graph.peer >= len(graph.collectives)))
    _refuse(graph.peer, wrong, f"collective {{}}; {_to(len(graph.collectives))}")
    for name, values in (("bytes", graph.bytes), ("durations in ps", graph.duration_ps)):
        total = float(values.sum(dtype=np.float64))
        if total > MAX_TOTAL:
            raise GraphError(-1, f"all {name} add up to {total:.3g}; allowed: {MAX_TOTAL:.3g}")
    owner = np.repeat(np.arange(graph.rank.size), np.diff(graph.first_dependency))
    outside = (graph.dependency < 0) | (graph.dependency >= graph.rank.size)
    if outside.any():
        raise GraphError(int(owner[outside.argmax()]), "waits for an operation that does not exist")
    foreign = graph.rank[graph.dependency] != graph.rank[owner]
    if foreign.any():
        op = int(owner[foreign.argmax()])
        raise GraphError(op, "waits for an operation of another rank; only a RECV does that")


def match_messages(graph: OpGraph) -> NDArray[np.int64]:
    """The SEND of each RECV.

    The k-th SEND from a to b with a tag and a channel belongs to the k-th RECV at b from a.

    Returns:
        [number of RECVs] positions of SENDs, for the RECVs in order of position.

    Raises:
        GraphError: a SEND or a RECV is left over.
    """
    sends, receives = _keys(graph, OpKind.SEND), _keys(graph, OpKind.RECV)
    common = min(sends.shape[1], receives.shape[1])
    unequal = (sends[:4, :common] != receives[:4, :common]).any(axis=0)
    if unequal.any():
        i = int(unequal.argmax())
        send_first = tuple(sends[:4, i]) < tuple(receives[:4, i])
        _left_over(graph, int((sends if send_first else receives)[4, i]))
    if sends.shape[1] != receives.shape[1]:
        longer = sends if sends.shape[1] > common else receives
        _left_over(graph, int(longer[4, common]))
    found = np.empty(common, np.int64)
    found[np.argsort(receives[4])] = sends[4]
    return found


def _keys(graph: OpGraph, kind: OpKind) -> NDArray[np.int64]:
    """[5, n] source, destination, tag, channel, position of the SENDs or RECVs, sorted."""
    at = np.flatnonzero(graph.kind == kind)
    own, other = graph.rank[at].astype(np.int64), graph.peer[at].astype(np.int64)
    ends = (own, other) if kind == OpKind.SEND else (other, own)
    keys = np.stack([*ends, graph.tag[at], graph.channel[at].astype(np.int64), at])
    return keys[:, np.lexsort(keys[::-1])]


def _left_over(graph: OpGraph, op: int) -> None:
    kind = OpKind(int(graph.kind[op]))
    same = (
        (graph.kind == kind)
        & (graph.rank == graph.rank[op])
        & (graph.peer == graph.peer[op])
        & (graph.tag == graph.tag[op])
        & (graph.channel == graph.channel[op])
    )
    number = int(same[: op + 1].sum())
    other, way = ("RECV", "to") if kind == OpKind.SEND else ("SEND", "from")
    raise GraphError(
        op,
        f"{_NAMES[kind]} {way} rank {graph.peer[op]} at rank {graph.rank[op]} with tag "
        f"{graph.tag[op]}, channel {graph.channel[op]}: there is no {other} number {number} for it",
    )


def _check_members(graph: OpGraph) -> None:
    """Each rank of a collective has one operation for it, and nobody else has."""
    at = np.flatnonzero(graph.kind == OpKind.COLLECTIVE)
    found = np.stack([graph.peer[at].astype(np.int64), graph.rank[at].astype(np.int64), at])
    found = found[:, np.lexsort(found[::-1])]
    lengths = np.array([len(call.ranks) for call in graph.collectives], np.int64)
    ranks = chain.from_iterable(call.ranks for call in graph.collectives)
    members = np.fromiter(ranks, np.int64, int(lengths.sum()))
    wanted = np.stack([np.repeat(np.arange(lengths.size), lengths), members])
    wanted = wanted[:, np.lexsort(wanted[::-1])]
    twice = (wanted[:, 1:] == wanted[:, :-1]).all(axis=0)
    if twice.any():
        call, rank = wanted[:, int(twice.argmax())]
        raise GraphError(-1, f"collective {call} lists rank {rank} twice")
    common = min(found.shape[1], wanted.shape[1])
    unequal = (found[:2, :common] != wanted[:, :common]).any(axis=0)
    i = int(unequal.argmax()) if unequal.any() else common
    has_extra = i < found.shape[1] and (
        i >= wanted.shape[1] or tuple(found[:2, i]) < tuple(wanted[:, i])
    )
    if has_extra:
        call, rank, op = found[:, i]
        raise GraphError(int(op), f"rank {rank} is no member of collective {call}, or is it twice")
    if i < wanted.shape[1]:
        call, rank = wanted[:, i]
        op = int(found[2, max(i - 1, 0)]) if found.shape[1] else -1
        raise GraphError(op, f"rank {rank} has no operation for collective {call}")


def _walk(graph: OpGraph, receives: NDArray[np.int64], sends: NDArray[np.int64]) -> CriticalPath:
    """Goes through all operations in an order in which they could be done."""
    source, target = _edges(graph, receives, sends)
    n = graph.rank.size + len(graph.collectives)
    duration = np.zeros(n, np.int64)
    duration[: graph.rank.size] = graph.duration_ps
    child = target[np.argsort(source, kind="stable")]
    first = np.concatenate([[0], np.cumsum(np.bincount(source, minlength=n))])
    waits = np.bincount(target, minlength=n)
    start = np.zeros(n, np.int64)
    ready = np.flatnonzero(waits == 0)
    done = levels = 0
    while ready.size:
        done += ready.size
        levels += 1
        ready = _advance(ready, first, child, waits, start, duration)
    if done < n:
        _raise_circle(waits, source, target, graph.rank.size)
    return CriticalPath(int((start + duration).max(initial=0)), levels)


def _advance(
    ready: NDArray[np.int64],
    first: NDArray[np.int64],
    child: NDArray[np.int64],
    waits: NDArray[np.int64],
    start: NDArray[np.int64],
    duration: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Finishes some nodes; those that are ready then."""
    counts = first[ready + 1] - first[ready]
    if counts.sum() < _FEW:
        following = []
        for node in ready.tolist():
            end = start[node] + duration[node]
            for kid in child[first[node] : first[node + 1]].tolist():
                start[kid] = max(start[kid], end)
                waits[kid] -= 1
                if waits[kid] == 0:
                    following.append(kid)
        return np.array(following, np.int64)
    offset = np.repeat(first[ready] - np.cumsum(counts) + counts, counts)
    kids = child[offset + np.arange(offset.size)]
    np.maximum.at(start, kids, np.repeat(start[ready] + duration[ready], counts))
    unique, times = np.unique(kids, return_counts=True)
    waits[unique] -= times
    return unique[waits[unique] == 0]


def _edges(
    graph: OpGraph, receives: NDArray[np.int64], sends: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Who waits for whom. Collective k is node n + k: ready when all its members may begin."""
    n = graph.rank.size
    owner = np.repeat(np.arange(n), np.diff(graph.first_dependency))
    at = np.flatnonzero(graph.kind == OpKind.COLLECTIVE)
    in_collective = graph.kind[owner] == OpKind.COLLECTIVE
    node = n + graph.peer.astype(np.int64)
    source = [graph.dependency, sends, graph.dependency[in_collective], node[at]]
    target = [owner, receives, node[owner[in_collective]], at]
    return np.concatenate(source), np.concatenate(target)


def _raise_circle(
    waits: NDArray[np.int64], source: NDArray[np.int64], target: NDArray[np.int64], num_ops: int
) -> None:
    """Finds a circle among the nodes that nothing made ready."""
    stuck = (waits[source] > 0) & (waits[target] > 0)
    before = np.full(waits.size, -1, np.int64)
    before[target[stuck]] = source[stuck]
    node = int(np.flatnonzero(waits > 0)[0])
    seen: dict[int, None] = {}
    while node not in seen:
        seen[node] = None
        node = int(before[node])
    path = list(seen)
    ops = [node for node in path[path.index(node) :] if node < num_ops]
    raise GraphError(
        min(ops),
        f"waits for itself through {len(ops)} operations (dependencies, messages, collectives)",
    )


def _refuse(values: NDArray, wrong: NDArray[np.bool_], message: str) -> None:
    if wrong.any():
        op = int(wrong.argmax())
        raise GraphError(op, message.format(values[op]))


def _to(count: int) -> str:
    return f"allowed: 0 … {count - 1}" if count else "allowed: none"
