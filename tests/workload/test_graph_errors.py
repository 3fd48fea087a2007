"""Faults of operation graphs name the operation, for those who know where it comes from."""

import numpy as np
import pytest

from roce_gym.errors import GraphError
from roce_gym.workload.graph_check import check, match_messages, order_of
from roce_gym.workload.op_graph import CollectiveCall, OpGraph, OpKind

C, S, R, K, _ = map(int, OpKind)


def graph(ops, waits=(), ranks=2, collectives=()):
    """`ops`: (rank, kind, peer, bytes, duration); `waits`: (op, dependency), by op."""
    columns = np.array(ops, np.int64).reshape(-1, 5).T
    n = columns.shape[1]
    pairs = np.array(waits, np.int64).reshape(-1, 2)
    zeros = np.zeros(n, np.int64)
    first = np.concatenate([[0], np.cumsum(np.bincount(pairs[:, 0], minlength=n))])
    return OpGraph(
        num_ranks=ranks,
        rank=columns[0].astype(np.int32),
        kind=columns[1].astype(np.int8),
        peer=columns[2].astype(np.int32),
        bytes=columns[3],
        tag=zeros,
        channel=zeros.astype(np.int16),
        duration_ps=columns[4],
        first_dependency=first,
        dependency=pairs[:, 1],
        collectives=tuple(CollectiveCall(*call) for call in collectives),
    )


BOTH = [("all_reduce", "auto", (0, 1), 10)]


@pytest.mark.parametrize(
    ("made", "op", "message"),
    [
        (graph([(0, C, -1, 0, 5), (2, C, -1, 0, 5)]), 1, "rank = 2 is not allowed"),
        (graph([(0, S, 1, 5, 0)]), 0, "has no RECV: there are 1 SENDs and 0 RECVs"),
        (graph([(1, R, 0, 5, 0), (0, S, 1, 5, 0), (1, R, 0, 5, 0)]), 2, "has no SEND"),
        (graph([(0, S, 1, 5, 0), (1, R, 0, 6, 0)]), 0, "allowed: the same size"),
        (graph([(0, C, -1, 0, 1), (1, C, -1, 0, 1)], [(1, 0)]), 1, "operations of rank 1"),
        (graph([(0, C, -1, 0, 1)], [(0, 0)]), 0, "can never be done: 1 operations"),
        (graph([(0, K, 0, 0, 0)], collectives=BOTH), 0, "needs one operation of each of its"),
        (graph([(0, C, -1, 0, 0)], collectives=BOTH), None, "wrong: rank 0"),
        (graph([(0, K, 0, 0, 0)] * 2 + [(1, K, 0, 0, 0)], collectives=BOTH), 0, "wrong: rank"),
        (graph([(0, C, -1, 0, 2**50)] * 2**13), None, "the sum of duration_ps = 9.22e+18"),
    ],
)
def test_fault(made, op, message):
    with pytest.raises(GraphError) as caught:
        check(made, "this")
    assert caught.value.op == op
    assert str(caught.value).startswith("this")
    assert message in str(caught.value)


def test_collectives_wait_for_all_their_ranks():
    """Rank 1 joins after 7 ps, and both go on then; a broadcast waits for its root only."""
    ops = [(0, K, 0, 0, 0), (0, C, -1, 0, 3), (1, C, -1, 0, 7), (1, K, 0, 0, 0), (1, C, -1, 0, 1)]
    made = graph(ops, [(1, 0), (3, 2), (4, 3)], collectives=BOTH)
    check(made)
    assert order_of(made, match_messages(made)).end_ps[:5].tolist() == [0, 10, 7, 7, 8]
    made = made._replace(collectives=(CollectiveCall("broadcast", "auto", (0, 1), 10),))
    assert order_of(made, match_messages(made)).end_ps[:5].tolist() == [0, 3, 7, 7, 8]


def test_circle_over_a_collective():
    """Rank 0 joins after it has what rank 1 sends after it has joined."""
    ops = [(0, R, 1, 5, 0), (0, K, 0, 0, 0), (1, K, 0, 0, 0), (1, S, 0, 5, 0)]
    waits = [(1, 0), (3, 2)]
    with pytest.raises(GraphError, match="operation 0 of rank 0 can never be done: 3 operations"):
        check(graph(ops, waits, collectives=BOTH))
