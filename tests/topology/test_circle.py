"""Rings and triangles: cables, both ways of routing, and that clockwise routes close a circle."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roce_gym.config import Ring, Triangle, validate_scenario
from roce_gym.fabric import Fabric
from roce_gym.routing import Router
from roce_gym.topology import build_network


def nodes(network, path):
    return [int(network.link_src[path[0]]), *network.link_dst[list(path)].tolist()]


def waits_for(network):
    """Trunk to the trunks that follow it on some route: buffers that wait for others."""
    router = Router(network)
    edges = {}
    for src in range(network.num_hosts):
        for dst in range(network.num_hosts):
            if src != dst:
                trunks = router.ecmp_path(src, dst, 0)[1:-1]
                for before, after in pairwise(trunks):
                    edges.setdefault(before, set()).add(after)
    return edges


def has_circle(edges):
    alive = set(edges)
    while True:
        rest = {node for node in alive if edges[node] & alive}
        if rest == alive:
            return bool(alive)
        alive = rest


def test_ring__by_hand():
    # Hosts 0…7, switches 8…11.
    network = build_network(Ring(switches=4, hosts_per_switch=2, trunk_rate_gbps=400))
    ends = list(zip(network.link_src[::2].tolist(), network.link_dst[::2].tolist(), strict=True))
    assert ends[:3] == [(0, 8), (1, 8), (2, 9)]
    assert ends[8:] == [(8, 9), (9, 10), (10, 11), (11, 8)]
    assert network.link_rate_bps[[0, 16]].tolist() == [100 * 10**9, 400 * 10**9]


def test_ring__shortest_goes_either_way():
    network = build_network(Ring(switches=4))
    router = Router(network)
    assert nodes(network, router.ecmp_path(0, 3, 0)) == [0, 4, 7, 3]
    assert [router.num_paths(0, dst) for dst in (1, 2, 3)] == [1, 2, 1]


def test_ring__clockwise_goes_one_way():
    network = build_network(Ring(switches=4, routing="clockwise"))
    router = Router(network)
    assert nodes(network, router.ecmp_path(0, 3, 0)) == [0, 4, 5, 6, 7, 3]
    assert nodes(network, router.ecmp_path(3, 0, 0)) == [3, 7, 4, 0]
    assert [router.num_paths(0, dst) for dst in (1, 2, 3)] == [1, 1, 1]
    # A path that is asked for may lead the other way.
    assert nodes(network, router.path_through([0, 4, 7, 3])) == [0, 4, 7, 3]


def test_triangle_is_a_ring_of_three():
    a, b = build_network(Triangle(routing="clockwise")), build_network(Ring(switches=3))
    assert a.link_src.tolist() == b.link_src.tolist()
    assert a.link_dst.tolist() == b.link_dst.tolist()
    assert nodes(a, Router(a).ecmp_path(0, 2, 0)) == [0, 3, 4, 5, 2]
    assert nodes(b, Router(b).ecmp_path(0, 2, 0)) == [0, 3, 5, 2]


@given(st.integers(3, 9), st.integers(1, 2))
@settings(deadline=None, max_examples=12)
def test_clockwise_buffers_wait_in_a_circle(switches, hosts):
    network = build_network(Ring(switches=switches, hosts_per_switch=hosts, routing="clockwise"))
    assert has_circle(waits_for(network))
    assert all(src % 2 == 0 for src in waits_for(network))


def test_shortest_in_a_triangle_waits_for_nobody():
    assert waits_for(build_network(Triangle())) == {}


@pytest.mark.parametrize("routing", ["shortest", "clockwise"])
def test_triangle__traffic_arrives(routing):
    jobs = [{"kind": "all_to_all", "bytes": 30_000, "rounds": 1}]
    scenario = validate_scenario(
        {
            "name": "triangle",
            "topology": {"kind": "triangle", "routing": routing},
            "tenants": [{"name": "a", "hosts": [0, 1, 2], "jobs": jobs}],
        }
    )
    interval = Fabric(scenario).advance(us=200)
    assert interval.delivered_bytes.tolist() == [10_000] * 6
    counterclockwise = interval.tx_bytes[7::2].sum()
    assert (counterclockwise == 0) == (routing == "clockwise")


@pytest.mark.parametrize("kind", [{"kind": "triangle"}, {"kind": "ring", "switches": 5}])
@pytest.mark.parametrize("routing", ["shortest", "clockwise"])
def test_clockwise__pauses_wait_for_each_other_for_ever(kind, routing):
    # Everyone sends to the second next switch, at line rate: each buffer fills with packets for the
    # next one, which is full as well. Shortest routes in a triangle, or less load, have no circle.
    switches = kind.get("switches", 3)
    flows = [
        {"src": host, "dst": (host + 2) % switches, "bytes": 10_000_000} for host in range(switches)
    ]
    scenario = validate_scenario(
        {
            "name": "deadlock",
            "topology": kind | {"routing": routing},
            "switch": {"buffer_bytes": 600_000},
            "tenants": [
                {
                    "name": "a",
                    "hosts": list(range(switches)),
                    "jobs": [{"kind": "flows", "flows": flows}],
                }
            ],
        }
    )
    fabric = Fabric(scenario, preset="pfc_only")
    fabric.advance(us=2000)
    later = fabric.advance(us=2000)
    is_stuck = later.delivered_bytes.sum() == 0 and later.outstanding_bytes.sum() > 0
    # Two switches on is the shorter way in a ring of five: clockwise either way.
    assert is_stuck == (routing == "clockwise" or switches == 5)
    if is_stuck:
        trunks = slice(2 * switches, None, 2)
        assert (later.paused_ps[trunks] == later.end_ps - later.start_ps).all()
        assert later.dropped_packets.sum() == 0
