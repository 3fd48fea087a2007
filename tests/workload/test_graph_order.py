import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from roce_gym.workload import graph_order
from roce_gym.workload.graph_order import go_through


def slowly(count, edges, duration):
    """Earliest ends by going over all edges again and again."""
    waits = [[a for a, b in edges if b == node] for node in range(count)]
    end, level = {}, {}
    for _ in range(count):
        for node in range(count):
            if node not in end and all(a in end for a in waits[node]):
                end[node] = max((end[a] for a in waits[node]), default=0) + duration[node]
                level[node] = max((level[a] for a in waits[node]), default=0) + 1
    return end, max(level.values(), default=0)


def walk(edges, duration):
    pairs = np.array(edges, np.int64).reshape(-1, 2)
    return go_through(pairs[:, 0], pairs[:, 1], np.array(duration, np.int64))


@given(st.data())
def test_against_a_slow_walk(data):
    """With circles and repeated edges; both ways of doing a level."""
    count = data.draw(st.integers(1, 12))
    node = st.integers(0, count - 1)
    edges = data.draw(st.lists(st.tuples(node, node), max_size=25))
    duration = data.draw(st.lists(st.integers(0, 9), min_size=count, max_size=count))
    end, levels = slowly(count, edges, duration)
    few = graph_order._FEW
    for graph_order._FEW in (0, few):
        order = walk(edges, duration)
        assert order.never_done.tolist() == [n for n in range(count) if n not in end]
        assert {n: order.end_ps[n] for n in end} == end
        assert order.longest_chain == levels


def test_wide_and_deep():
    """A node before 1,000 others, which all stand before a chain of 1,000."""
    edges = [(0, i) for i in range(1, 1001)] + [(i, 1001) for i in range(1, 1001)]
    edges += [(i, i + 1) for i in range(1001, 2000)]
    order = walk(edges, [2] * 2001)
    assert order.never_done.size == 0
    assert (order.longest_chain, order.end_ps[2000]) == (1002, 2004)
