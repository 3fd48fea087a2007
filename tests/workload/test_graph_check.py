"""Graphs that cannot be executed are refused with the operation's number; others are not."""

import numpy as np
import pytest

from roce_gym.errors import ConfigError
from roce_gym.workload.graph_builder import OpGraphBuilder
from roce_gym.workload.graph_check import check, match_messages
from roce_gym.workload.op_graph import CollectiveCall, OpKind

COMPUTE, SEND, RECV, COLLECTIVE, _ = OpKind


def ping(size=100, back=100):
    build = OpGraphBuilder(2)
    build.add(0, SEND, peer=1, size=size, tag=5)
    build.add(1, RECV, peer=0, size=back, tag=5)
    return build


def test_messages_of_one_kind_are_matched_in_order():
    build = OpGraphBuilder(3)
    build.add(1, RECV, peer=0, size=7, tag=1)
    build.add(1, RECV, peer=0, size=8)
    build.add(0, SEND, peer=1, size=8)
    build.add(1, RECV, peer=2, size=9)
    build.add(0, SEND, peer=1, size=8)
    build.add(0, SEND, peer=1, size=7, tag=1)
    build.add(1, RECV, peer=0, size=8)
    build.add(2, SEND, peer=1, size=9)
    build.add(0, SEND, peer=1, size=6, channel=3)
    build.add(1, RECV, peer=0, size=6, channel=3)
    graph = build.graph()
    check(graph)
    assert match_messages(graph).tolist() == [-1, -1, 1, -1, 6, 0, -1, 3, 9, -1]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rank": [0, 2]}, "operation 1: rank = 2 is not allowed; allowed: 0 … 1"),
        ({"kind": [1, 9]}, "operation 1: kind = 9 .*0 .COMPUTE."),
        ({"peer": [0, 0]}, "operation 0: peer = 0 is not allowed; allowed: another rank"),
        ({"peer": [1, -1]}, "operation 1: peer = -1 is not allowed; allowed: 0 … 1"),
        ({"bytes": [0, 0]}, r"operation 0: bytes = 0 is not allowed; allowed: 1 … 2\^50"),
        ({"bytes": [10**18, 10**18]}, "bytes = 1000000000000000000 is not allowed"),
        ({"bytes": [100, 99]}, "0 .SEND of 100 bytes. does not fit operation 1 .RECV of 99"),
        ({"tag": [1, 2]}, "operation 0 .SEND. from rank 0 to rank 1, tag 1, .* has no RECV"),
        ({"duration_ps": [-1, 0]}, "duration_ps = -1"),
        ({"tag": [1]}, "graph.tag: 1 entries; allowed: 2"),
        ({"first_dependency": [0, 1, 1]}, "first_dependency must rise from 0 to 0"),
    ],
)
def test_wrong_values_are_named(change, message):
    graph = ping().graph()
    check(graph)
    arrays = {k: np.array(v, getattr(graph, k).dtype) for k, v in change.items()}
    with pytest.raises(ConfigError, match=message):
        check(graph._replace(**arrays))


def test_a_dependency_on_another_rank():
    build = ping()
    build.add(1, COMPUTE, needs=[0])
    with pytest.raises(ConfigError, match=r"operation 2: dependency = 0 .*operations of rank 1"):
        check(build.graph())


def test_a_circle_of_dependencies():
    build = OpGraphBuilder(1)
    build.add(0, COMPUTE, needs=[2])
    build.add(0, COMPUTE, needs=[0])
    build.add(0, COMPUTE, needs=[1])
    build.add(0, COMPUTE)
    with pytest.raises(ConfigError, match="operation 0 of rank 0 can never be done: 3 operations"):
        check(build.graph())


def test_a_circle_of_messages():
    build = OpGraphBuilder(2)
    for rank in (0, 1):
        receive = build.add(rank, RECV, peer=1 - rank, size=1)
        build.add(rank, SEND, peer=1 - rank, size=1, needs=[receive])
    with pytest.raises(ConfigError, match="4 operations wait for each other"):
        check(build.graph())


@pytest.mark.parametrize(("operation", "allowed"), [("all_gather", False), ("broadcast", True)])
def test_a_message_that_waits_for_a_collective_for_which_its_receiver_is_needed(operation, allowed):
    """The first rank of a broadcast waits for nobody."""
    build = OpGraphBuilder(2)
    build.add(0, COLLECTIVE, peer=0)
    build.add(0, SEND, peer=1, size=1, needs=[0])
    build.add(1, RECV, peer=0, size=1)
    build.add(1, COLLECTIVE, peer=0, needs=[2])
    graph = build.graph([CollectiveCall(operation, "auto", (0, 1), 10)])
    if allowed:
        check(graph)
    else:
        with pytest.raises(ConfigError, match="can never be done"):
            check(graph)


@pytest.mark.parametrize(
    ("call", "ranks", "message"),
    [
        (("all_reduce", "auto", (0, 1), 0), (0, 1), "collectives.0.bytes = 0"),
        (("all_reduce", "auto", (0,), 1), (0,), "needs two or more ranks"),
        (("all_reduce", "auto", (0, 0), 1), (0, 0), "needs two or more ranks"),
        (("all_reduce", "auto", (0, 2), 1), (0, 1), "wrong: rank 1"),
        (("all_reduce", "auto", (0, 1), 1), (0, 1, 1), "wrong: rank 0"),
        (("all_reduce", "auto", (0, 1, 2), 1), (0, 1), "wrong: rank 2"),
    ],
)
def test_collectives_that_lack_ranks(call, ranks, message):
    build = OpGraphBuilder(3)
    for rank in ranks:
        build.add(rank, COLLECTIVE, peer=0)
    with pytest.raises(ConfigError, match=message):
        check(build.graph([CollectiveCall(*call)]))


def test_a_long_chain_is_no_circle():
    build = OpGraphBuilder(1)
    for i in range(100_000):
        build.add(0, COMPUTE, needs=[i - 1] if i else [])
    check(build.graph())
