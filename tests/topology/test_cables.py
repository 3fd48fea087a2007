"""Delays of cables: from their length, by tier, never both."""

import pytest
from pydantic import ValidationError

from roce_gym.config import Clos3, Dumbbell, LeafSpine, RailOptimised, Ring, Star, Triangle
from roce_gym.topology import build_network

SPINES = {"leaves": 2, "hosts_per_leaf": 1, "spines": 1}


def delays_ns(config):
    """Delay of each cable."""
    return (build_network(config).link_delay_ps[::2] / 1000).tolist()


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, [1000, 1000, 1000, 1000]),
        ({"link_delay_ns": 7}, [7, 7, 7, 7]),
        ({"host_cable_m": 3}, [15, 15, 1000, 1000]),
        ({"host_cable_m": 0, "fabric_cable_m": 50}, [0, 0, 250, 250]),
        ({"host_delay_ns": 20, "fabric_cable_m": 0.5}, [20, 20, 2.5, 2.5]),
        ({"link_delay_ns": 7, "fabric_delay_ns": 9}, [7, 7, 9, 9]),
    ],
)
def test_five_ns_a_metre(given, expected):
    assert delays_ns(LeafSpine(**SPINES, **given)) == expected


@pytest.mark.parametrize(
    "kind",
    [
        lambda **given: Dumbbell(hosts_per_side=1, **given),
        lambda **given: Ring(switches=3, **given),
        lambda **given: Triangle(**given),
    ],
)
def test_every_kind_with_a_fabric_has_both_lengths(kind):
    delays = delays_ns(kind(host_cable_m=2, fabric_cable_m=10))
    assert set(delays) == {10, 50} and delays[-1] == 50


def test_star_has_cables_of_hosts_only():
    assert delays_ns(Star(hosts=2, host_cable_m=2)) == [10, 10]
    with pytest.raises(ValidationError, match="fabric_cable_m"):
        Star(hosts=2, fabric_cable_m=2)


@pytest.mark.parametrize(
    ("kind", "given", "message"),
    [
        (LeafSpine, {"link_delay_ns": 5}, "host_cable_m = 3 and link_delay_ns = 5 are both given"),
        (LeafSpine, {"host_delay_ns": 0}, "host_cable_m = 3 and host_delay_ns = 0 are both given"),
        (RailOptimised, {"link_delay_ns": 5}, "host_cable_m = 3 and link_delay_ns = 5"),
        (Clos3, {"core_cable_m": 9, "core_delay_ns": 1}, "core_cable_m = 9 and core_delay_ns = 1"),
    ],
)
def test_length_and_delay_are_one_too_many(kind, given, message):
    needed = {
        LeafSpine: SPINES,
        RailOptimised: {"nodes": 2},
        Clos3: {
            "pods": 2,
            "leaves_per_pod": 1,
            "hosts_per_leaf": 1,
            "spines_per_pod": 1,
            "cores": 1,
        },
    }
    with pytest.raises(ValidationError, match=message):
        kind(**needed[kind], host_cable_m=3, **given)
