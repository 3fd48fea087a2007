"""Operation graphs worked out on paper: two hosts at a switch, 100 Gb/s, 1 us of delay a cable."""

import pytest

from roce_gym.config import validate_scenario
from roce_gym.fabric import Fabric
from roce_gym.workload.graph_builder import OpGraphBuilder
from roce_gym.workload.graph_jobs import GRAPH_MAKERS
from roce_gym.workload.graph_plan import GraphWork
from roce_gym.workload.op_graph import CollectiveCall, OpKind

pytestmark = pytest.mark.nojit

COMPUTE, SEND, RECV, COLLECTIVE, MARK = OpKind
US = 1_000_000
WIRE = (1_000 + 66 + 20) * 80  # ps of a message of 1,000 B with header and gap
ACK = (60 + 20) * 80
FLIGHT = 2 * (WIRE + US)  # through the switch


@pytest.fixture
def fabric_of(monkeypatch):
    def make(work, hosts=2, **settings):
        monkeypatch.setitem(GRAPH_MAKERS, "pipeline", lambda *_: work)
        job = {"kind": "pipeline", "bytes": 1, "forward_us": 0, "backward_us": 0, **settings}
        raw = {
            "name": "by hand",
            "topology": {
                "kind": "star",
                "hosts": hosts,
                "host_rate_gbps": 100,
                "link_delay_ns": 1_000,
            },
            "nic": {
                "mtu_bytes": 1_024,
                "header_bytes": 66,
                "interframe_gap_bytes": 20,
                "ack_bytes": 60,
            },
            "preset": "pfc_only",
            "tenants": [{"name": "t", "hosts": list(range(hosts)), "jobs": [job]}],
        }
        return Fabric(validate_scenario(raw), seed=1)

    return make


def rounds(interval):
    return interval.completions[["index", "start_ps", "end_ps"]].tolist()


def test_a_message_between_computations(fabric_of):
    build = OpGraphBuilder(2)
    first = build.add(0, COMPUTE, duration_ps=3 * US)
    build.add(0, SEND, peer=1, size=1_000, needs=[first])
    got = build.add(1, RECV, peer=0, size=1_000)
    build.add(1, COMPUTE, duration_ps=5 * US, needs=[got])
    interval = fabric_of(GraphWork(build.graph(), rounds=1)).advance(us=100)
    assert rounds(interval) == [(0, 0, 3 * US + FLIGHT + 5 * US)]
    assert interval.delivered_bytes.tolist() == [1_000]


def test_computations_that_do_not_depend_on_each_other_overlap(fabric_of):
    build = OpGraphBuilder(1)
    long = build.add(0, COMPUTE, duration_ps=7 * US)
    short = build.add(0, COMPUTE, duration_ps=2 * US)
    build.add(0, COMPUTE, duration_ps=4 * US, needs=[short])
    build.add(0, COMPUTE, duration_ps=1 * US, needs=[long, short])
    interval = fabric_of(GraphWork(build.graph(), rounds=3)).advance(us=100)
    assert rounds(interval) == [(k, 8 * US * k, 8 * US * (k + 1)) for k in range(3)]


def test_a_rank_is_at_most_one_round_ahead(fabric_of):
    """The sender would take 1 us a round, the receiver takes 10."""
    build = OpGraphBuilder(2)
    first = build.add(0, COMPUTE, duration_ps=US)
    build.add(0, SEND, peer=1, size=1_000, needs=[first])
    got = build.add(1, RECV, peer=0, size=1_000)
    build.add(1, COMPUTE, duration_ps=10 * US, needs=[got])
    fabric = fabric_of(GraphWork(build.graph()))
    ends = [US + FLIGHT + 10 * US * (k + 1) for k in range(3)]
    interval = fabric.advance(ps=ends[0] - 1)
    assert interval.delivered_bytes.tolist() == [2_000]  # rounds 0 and 1, and no more
    interval = fabric.advance(ps=ends[2] + 1 - fabric.now_ps)
    assert rounds(interval) == [(0, 0, ends[0]), (1, ends[0], ends[1]), (2, ends[1], ends[2])]
    assert interval.delivered_bytes.tolist() == [2_000]  # of rounds 2 and 3


def test_a_message_that_comes_before_its_receive_may_begin_waits(fabric_of):
    build = OpGraphBuilder(2)
    build.add(0, SEND, peer=1, size=1_000)
    late = build.add(1, COMPUTE, duration_ps=50 * US)
    build.add(1, RECV, peer=0, size=1_000, needs=[late])
    interval = fabric_of(GraphWork(build.graph(), rounds=1)).advance(us=100)
    assert rounds(interval) == [(0, 0, 50 * US)]


def test_messages_of_one_channel_arrive_in_order_those_of_two_side_by_side(fabric_of):
    """1,000 B behind 10,000 B: ten packets; or in turns with them."""
    for channel in (0, 1):
        build = OpGraphBuilder(2)
        build.add(0, SEND, peer=1, size=10_000, tag=1)
        build.add(0, SEND, peer=1, size=1_000, tag=2, channel=channel)
        build.add(1, RECV, peer=0, size=10_000, tag=1)
        got = build.add(1, RECV, peer=0, size=1_000, tag=2, channel=channel)
        build.add(1, COMPUTE, duration_ps=100 * US, needs=[got])
        interval = fabric_of(GraphWork(build.graph(), rounds=1)).advance(us=200)
        ((_, _, end),) = rounds(interval)
        full = (1_024 + 66 + 20) * 80
        rest = (10_000 - 9 * 1_024 + 66 + 20) * 80
        before = 9 * full + rest if channel == 0 else full
        # the switch sends a packet when it has the whole of it, and full ones take longest
        assert end == before + full + WIRE + 2 * US + 100 * US


def test_jitter_is_one_factor_for_a_rank_and_round(fabric_of):
    build = OpGraphBuilder(1)
    first = build.add(0, COMPUTE, duration_ps=10 * US)
    build.add(0, COMPUTE, duration_ps=30 * US, needs=[first])
    work = GraphWork(build.graph(), rounds=50, compute_ps=20 * US, jitter=0.5)
    interval = fabric_of(work).advance(us=10_000)
    last, factors = 0, []
    for _, begun, end in rounds(interval):
        factor = (begun - last) / (20 * US)
        assert end - begun == pytest.approx(40 * US * factor, abs=2)
        factors.append(factor)
        last = end
    assert 0.5 <= min(factors) < 0.7
    assert 1.3 < max(factors) <= 1.5


def test_a_collective_is_timed_from_the_last_rank_that_begins_it(fabric_of):
    """Rank 1 begins 9 us late; then both exchange half of 2,000 B twice."""
    build = OpGraphBuilder(2)
    build.add(0, COLLECTIVE, peer=0)
    late = build.add(1, COMPUTE, duration_ps=9 * US)
    build.add(1, COLLECTIVE, peer=0, needs=[late])
    graph = build.graph([CollectiveCall("all_reduce", "ring", (0, 1), 2_000)])
    interval = fabric_of(GraphWork(graph, rounds=1)).advance(us=100)
    # Rank 1 has what rank 0 sent and posts both its messages; the first one lets rank 0 post its
    # second, which its NIC sends behind the ACK.
    end = 9 * US + FLIGHT + ACK + FLIGHT
    assert interval.collectives.tolist() == [(0, 0, 0, 9 * US, end, 2_000)]
    assert rounds(interval) == [(0, 0, end)]


def test_collectives_of_one_moment_begin_in_events_of_their_own(fabric_of):
    build = OpGraphBuilder(2)
    for rank in (0, 1):
        for call in range(3):
            build.add(rank, COLLECTIVE, peer=call)
    calls = [CollectiveCall("all_gather", "ring", (0, 1), 2_000)] * 3
    interval = fabric_of(GraphWork(build.graph(calls), rounds=1)).advance(us=100)
    ends = [2 * (WIRE + US) + k * WIRE for k in range(3)]
    assert interval.collectives[["call", "start_ps"]].tolist() == [(0, 0), (1, 0), (2, 0)]
    ours = interval.collectives["end_ps"].tolist()
    assert ours == ends


def test_marks_tell_when_they_are_done(fabric_of):
    """Several of one moment take an event each, and no time."""
    build = OpGraphBuilder(2)
    first = build.add(0, COMPUTE, duration_ps=3 * US)
    mark = build.add(0, MARK, tag=7, needs=[first])
    build.add(0, MARK, tag=8, needs=[first])
    build.add(0, SEND, peer=1, size=1_000, needs=[mark])
    got = build.add(1, RECV, peer=0, size=1_000)
    build.add(1, MARK, needs=[got])
    interval = fabric_of(GraphWork(build.graph(), rounds=2)).advance(us=100)
    sent = [3 * US, 6 * US]
    assert sorted(interval.marks.tolist()) == sorted(
        (0, mark, k, sent[k] + (FLIGHT if mark == 2 else 0)) for k in (0, 1) for mark in (0, 1, 2)
    )
    assert rounds(interval) == [(0, 0, 3 * US + FLIGHT), (1, 3 * US + FLIGHT, 6 * US + FLIGHT)]
    assert not len(interval.collectives)


def test_no_round_begins_after_stop(fabric_of):
    build = OpGraphBuilder(1)
    build.add(0, COMPUTE, duration_ps=10 * US)
    interval = fabric_of(GraphWork(build.graph()), stop_us=25).advance(us=100)
    assert len(interval.completions) == 3
