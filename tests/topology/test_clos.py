"""Two and three tiers: sizes by hand, ECMP path counts, rates by tier, oversubscription."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from roce_gym.config import Clos3, FatTree, LeafSpine
from roce_gym.routing import Router
from roce_gym.topology import build_network


def sizes(network):
    return {tier.name: tier.size for tier in network.tiers}


def cables(network):
    """(lower tier, higher tier, Gb/s) to the number of cables."""
    found = {}
    for link in range(0, network.num_links, 2):
        ends = network.link_src[link], network.link_dst[link]
        key = (*map(network.tier, ends), int(network.link_rate_bps[link]) // 10**9)
        found[key] = found.get(key, 0) + 1
    return found


def seen_paths(network, src, dst, tries):
    router = Router(network)
    return {router.ecmp_path(src, dst, entropy) for entropy in range(tries)}


# --------------------------------------------------------------------------- fat tree


def test_fat_tree__of_4_by_hand():
    # Pods of 2 leaves and 2 spines; hosts 0…15, leaves 16…23, spines 24…31, cores 32…35.
    network = build_network(FatTree(k=4))
    assert (network.num_hosts, network.num_switches, network.num_links) == (16, 20, 96)
    assert sizes(network) == {"leaf": 8, "spine": 8, "core": 4}
    assert cables(network) == {
        ("host", "leaf", 100): 16,
        ("leaf", "spine", 100): 16,
        ("spine", "core", 100): 16,
    }
    pairs = set(zip(network.link_src[::2].tolist(), network.link_dst[::2].tolist(), strict=True))
    assert {(16, 24), (16, 25), (17, 24), (17, 25)} <= pairs and (16, 26) not in pairs
    cores_of = {spine: {b for a, b in pairs if a == spine} for spine in range(24, 32)}
    assert cores_of[24] == cores_of[26] == {32, 33} and cores_of[25] == cores_of[31] == {34, 35}
    router = Router(network)
    assert [router.num_paths(0, dst) for dst in (1, 2, 3, 4, 15)] == [1, 2, 2, 4, 4]
    assert [len(router.ecmp_path(0, dst, 7)) for dst in (1, 3, 15)] == [2, 4, 6]


@given(st.integers(1, 6).map(lambda half: 2 * half))
@settings(deadline=None, max_examples=6)
def test_fat_tree__counts(k):
    network = build_network(FatTree(k=k))
    half = k // 2
    assert network.num_hosts == k**3 // 4
    assert sizes(network) == {"leaf": k * half, "spine": k * half, "core": half**2}
    assert network.num_links == 2 * 3 * network.num_hosts
    ports = np.bincount(network.link_src)[network.num_hosts :]
    assert (ports == k).all()
    assert Router(network).num_paths(0, network.num_hosts - 1) == half**2


def test_fat_tree__ecmp_uses_every_path():
    network = build_network(FatTree(k=4))
    assert len(seen_paths(network, 0, 15, 200)) == 4
    assert len(seen_paths(network, 0, 2, 100)) == 2


def test_fat_tree__odd_k():
    with pytest.raises(ValidationError, match="k = 5 is odd; allowed: even numbers, 2 … 64"):
        FatTree(k=5)


# --------------------------------------------------------------------------- clos3


def test_clos3__rates_and_delays_by_tier():
    # 400G hosts, 800G between switches: 4 hosts (1.6 Tb/s) on 1 uplink of 800G a spine.
    network = build_network(
        Clos3(
            pods=2,
            leaves_per_pod=3,
            hosts_per_leaf=4,
            spines_per_pod=2,
            cores=2,
            host_rate_gbps=400,
            spine_rate_gbps=800,
            core_rate_gbps=1600,
            host_cable_m=2,
            fabric_cable_m=30,
            core_delay_ns=1500,
        )
    )
    assert cables(network) == {
        ("host", "leaf", 400): 24,
        ("leaf", "spine", 800): 12,
        ("spine", "core", 1600): 4,
    }
    delays = [int(network.link_delay_ps[2 * cable]) // 1000 for cable in (0, 24, 36)]
    assert delays == [10, 150, 1500]
    assert network.host_rate_bps == 400 * 10**9


@given(
    pods=st.integers(2, 3),
    leaves=st.integers(2, 3),
    hosts=st.integers(1, 3),
    spines=st.integers(1, 3),
    plane=st.integers(1, 3),
)
@settings(deadline=None, max_examples=25)
def test_clos3__path_counts(pods, leaves, hosts, spines, plane):
    network = build_network(
        Clos3(
            pods=pods,
            leaves_per_pod=leaves,
            hosts_per_leaf=hosts,
            spines_per_pod=spines,
            cores=spines * plane,
        )
    )
    assert network.num_hosts == pods * leaves * hosts
    cables = network.num_hosts + pods * leaves * spines + pods * spines * plane
    assert network.num_links == 2 * cables
    router = Router(network)
    assert router.num_paths(0, hosts) == spines
    assert router.num_paths(0, network.num_hosts - 1) == spines * plane


@pytest.mark.parametrize(
    ("ratio", "spines"), [(1, 8), (2, 4), (3, 2), (4, 2), (8, 1), (0.5, 16), (7.9, 1)]
)
def test_oversubscription__gives_the_most_spines_that_keep_it(ratio, spines):
    # 8 hosts of 100G on links of 100G.
    config = LeafSpine(leaves=2, hosts_per_leaf=8, oversubscription=ratio)
    assert config.num_spines == spines
    assert sizes(build_network(config)) == {"leaf": 2, "spine": spines}


def test_clos3__oversubscription_of_both_tiers():
    config = Clos3(
        pods=2,
        leaves_per_pod=4,
        hosts_per_leaf=8,
        oversubscription=2,
        core_oversubscription=4,
        host_rate_gbps=400,
        spine_rate_gbps=800,
        core_rate_gbps=800,
    )
    # 3.2 Tb/s of hosts over 2 = two spines; a spine's 4 leaves of 800G over 4 = one core each.
    assert (config.num_spines, config.num_cores) == (2, 2)


CLOS = {"pods": 2, "leaves_per_pod": 2, "hosts_per_leaf": 4, "spines_per_pod": 2, "cores": 2}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"cores": 3}, "cores = 3 must be a multiple of spines_per_pod = 2"),
        ({"cores": None}, "cores and core_oversubscription are both missing; allowed: one"),
        ({"oversubscription": 2}, "spines_per_pod = 2 and oversubscription = 2.0 are both"),
        (
            {"spines_per_pod": None, "oversubscription": 5},
            r"oversubscription = 5 gives no uplinks of 100 Gb/s for 400 Gb/s downwards; allowed: "
            r"0.003906 … 4",
        ),
        (
            {"cores": None, "core_oversubscription": 3},
            "core_oversubscription = 3 gives no uplinks of 100 Gb/s for 200 Gb/s downwards",
        ),
        (
            {"spines_per_pod": None, "oversubscription": 1e-3},
            "oversubscription = 0.001 gives 4000 uplinks",
        ),
    ],
)
def test_clos3__faults(change, message):
    with pytest.raises(ValidationError, match=message):
        Clos3(**(CLOS | change))
