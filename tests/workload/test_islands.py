"""Placement in islands."""

import pytest

from roce_gym.config import validate_scenario
from roce_gym.errors import ConfigError
from roce_gym.topology import build_network
from roce_gym.workload.islands import island_levels
from roce_gym.workload.placement import place_tenants

RING = {"kind": "ring_all_reduce", "bytes": 1000}
CLOS = {  # pods of 2 leaves of 4 hosts: hosts 0 … 7, 8 … 15, 16 … 23
    "kind": "clos3",
    "pods": 3,
    "leaves_per_pod": 2,
    "hosts_per_leaf": 4,
    "spines_per_pod": 2,
    "cores": 2,
}


def islands(count, **rest):
    return {"hosts": {"kind": "islands", "count": count}, **rest}


def at(*hosts, **rest):
    return {"hosts": list(hosts), **rest}


def place(*tenants, topology=CLOS):
    raw = {
        "name": "test",
        "topology": topology,
        "tenants": [{"name": f"t{i}", "jobs": [RING], **one} for i, one in enumerate(tenants)],
    }
    made = validate_scenario(raw)
    return place_tenants(made.tenants, build_network(made.topology), 7)


def test_levels():
    network = build_network(
        validate_scenario(
            {
                "name": "t",
                "topology": CLOS,
                "tenants": [{"name": "a", "hosts": [0, 1], "jobs": [RING]}],
            }
        ).topology
    )
    leaf, pod = island_levels(network)
    assert leaf.tolist() == [24 + i // 4 for i in range(24)]
    assert pod.tolist() == [24 + i // 8 * 2 for i in range(24)]


def test_a_leaf_then_a_pod_then_pods():
    assert place(islands(4)) == [(0, 1, 2, 3)]
    assert place(islands(6)) == [(0, 1, 2, 3, 4, 5)]
    assert place(islands(11)) == [tuple(range(11))]


def test_the_smallest_island_that_is_enough():
    # Leaves have 1, 4, 3, 4, 2, 4 hosts left, pods 5, 7, 6.
    taken = at(0, 1, 2, 8, 16, 17)
    assert place(taken, islands(2))[1] == (18, 19)
    assert place(taken, islands(3))[1] == (9, 10, 11)
    assert place(taken, islands(4))[1] == (4, 5, 6, 7)
    assert place(taken, islands(5))[1] == (3, 4, 5, 6, 7)
    assert place(taken, islands(6))[1] == (18, 19, 20, 21, 22, 23)


def test_the_largest_as_a_whole_where_none_is_enough():
    # The pod with 7, then the rest of 3 in the smallest leaf that has them: 4 of pod 0 or 2.
    taken = at(0, 1, 2, 8, 16, 17)
    assert place(taken, islands(10))[1] == (4, 5, 6, *range(9, 16))


def test_tenants_get_hosts_of_their_own_whatever_their_order():
    first, second, third = place(islands(4), at(0, 1, 2, 3), islands(4))
    assert (first, second, third) == ((4, 5, 6, 7), (0, 1, 2, 3), (8, 9, 10, 11))


def test_packed_and_random_tenants_are_there_first():
    packed = {"hosts": {"kind": "packed", "count": 12}}
    drawn = {"hosts": {"kind": "random", "count": 8}}
    island, _, random = place(islands(4), packed, drawn)
    assert not set(island) & ({*range(12)} | set(random))


def test_hosts_are_free_again_when_a_tenant_has_left():
    early = islands(20, leave_us=100)
    late = islands(20, arrive_us=100)
    assert place(early, late) == [tuple(range(20))] * 2
    with pytest.raises(ConfigError, match=r"t1.hosts.count = 20 is not allowed; 4 of 24 hosts"):
        place(early, islands(20, arrive_us=99))


def test_servers_are_the_islands_of_a_rail_fabric():
    rails = {"kind": "rail_optimised", "nodes": 4, "gpus_per_node": 4, "spines": 1}
    assert place(at(0, 5), islands(4), islands(3), topology=rails) == [
        (0, 5),
        (8, 9, 10, 11),
        (1, 2, 3),
    ]


def test_a_ring_of_switches_has_no_pods():
    ring = {"kind": "ring", "switches": 4, "hosts_per_switch": 3}
    assert place(at(0), islands(3), islands(5), topology=ring)[1:] == [
        (3, 4, 5),
        (1, 2, 6, 7, 8),
    ]


def test_first_and_stride_do_not_go_with_islands():
    with pytest.raises(ConfigError, match="kind = 'islands' looks for hosts itself; first = 3"):
        place({"hosts": {"kind": "islands", "count": 2, "first": 3}})
