import csv
import time
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roce_gym.config import Dumbbell, FatTree, LeafSpine, Star, TopologyFile
from roce_gym.errors import TopologyError
from roce_gym.routing import Router, stable_hash, stable_hashes
from roce_gym.topology import build_network
from roce_gym.topology.graph import network_from_cables

SHARED = Path(__file__).resolve().parents[2] / "shared"
FAT = SHARED / "samples" / "hpcc" / "fat.txt"
PATHS = sorted(SHARED.glob("reference/ns3/*/paths.csv"))


def nodes_of(network, path):
    """Node ids along a path, after checking that its links join."""
    for a, b in pairwise(path):
        assert network.link_dst[a] == network.link_src[b]
    return [int(network.link_src[path[0]]), *(int(network.link_dst[link]) for link in path)]


def naive_distance(network, src, dst):
    """Hops between two nodes when hosts do not forward; None without a way."""
    hops, front, seen = 0, {src}, {src}
    while front and dst not in front:
        hops += 1
        front = {
            int(d)
            for s, d in zip(network.link_src, network.link_dst, strict=True)
            if int(s) in front and (s == src or s >= network.num_hosts)
        } - seen
        seen |= front
    return hops if front else None


def test_star_and_dumbbell__only_path():
    star = Router(build_network(Star(hosts=3)))
    assert star.ecmp_path(2, 0, 1) == (4, 1)
    dumbbell = build_network(Dumbbell(hosts_per_side=2))
    assert nodes_of(dumbbell, Router(dumbbell).ecmp_path(3, 0, 5)) == [3, 5, 4, 0]
    assert nodes_of(dumbbell, Router(dumbbell).ecmp_path(0, 1, 5)) == [0, 4, 1]


def test_leaf_spine__spread_is_even_and_repeatable():
    network = build_network(LeafSpine(leaves=3, hosts_per_leaf=2, spines=4))
    router, other = Router(network), Router(network)
    paths = [router.ecmp_path(0, 5, entropy) for entropy in range(4000)]
    assert paths[::-1] == [other.ecmp_path(0, 5, entropy) for entropy in reversed(range(4000))]
    spines = Counter(nodes_of(network, path)[2] for path in paths)
    assert sorted(spines) == [9, 10, 11, 12]
    # Binomial(4000, 1/4): standard deviation 27.
    assert all(abs(count - 1000) < 150 for count in spines.values())


def test_stable_hash__known_values():
    assert stable_hash(0) == 0xE220A8397B1DCDAF  # first output of SplitMix64 seeded with 0
    assert stable_hash(1, 2) != stable_hash(2, 1)
    assert stable_hash(2**64 + 5) == stable_hash(5)


@given(st.lists(st.tuples(*[st.integers(0, 2**64 - 1)] * 3), min_size=1, max_size=9))
def test_stable_hashes__are_those_of_each_row(rows):
    columns = list(zip(*rows, strict=True))
    assert stable_hashes(*columns).tolist() == [stable_hash(*row) for row in rows]
    assert stable_hashes(7, columns[1]).tolist() == [stable_hash(7, b) for b in columns[1]]


def test_ecmp_paths__every_switch_hashes_by_itself():
    network = build_network(FatTree(k=4))
    router = Router(network)
    ends = [(a, b) for a in range(16) for b in range(16) if a != b]
    entropies = [1000 * i for i in range(len(ends))]
    paths = router.ecmp_paths(*zip(*ends, strict=True), entropies)
    for (src, dst), entropy, path in zip(ends, entropies, paths, strict=True):
        flow, way = stable_hash(src, dst, entropy), [int(network.host_link[src])]
        while way[-1] != network.host_link[dst] ^ 1:
            node = int(network.link_dst[way[-1]])
            links = router.next_links(node, dst) or (int(network.host_link[dst]) ^ 1,)
            way.append(links[stable_hash(flow, node) % len(links)])
        assert path == tuple(way) == router.ecmp_path(src, dst, entropy)


def two_stage_network():
    """Switches s0 -{1,2}- s3 -{4,5}- s6, a host at each end; switches are nodes 2 to 8."""
    ends = [(0, 2), (1, 8)]
    ends += [(2, 3), (2, 4), (3, 5), (4, 5), (5, 6), (5, 7), (6, 8), (7, 8)]
    return network_from_cables(2, 7, ends, 10**9, 0)


def test_choices_of_successive_switches_are_independent():
    network = two_stage_network()
    router = Router(network)
    seen = Counter()
    for entropy in range(4000):
        nodes = nodes_of(network, router.ecmp_path(0, 1, entropy))
        seen[nodes[2], nodes[4]] += 1
    assert set(seen) == {(3, 6), (3, 7), (4, 6), (4, 7)}
    assert all(abs(count - 1000) < 150 for count in seen.values())


def test_parallel_cables_share_the_load():
    network = network_from_cables(2, 2, [(0, 2), (2, 3), (3, 2), (1, 3)], 10**9, 0)
    router = Router(network)
    assert {router.ecmp_path(0, 1, e)[1] for e in range(50)} == {2, 5}
    assert router.path_through([0, 2, 3, 1]) == (0, 2, 7)
    assert router.path_through([1, 3, 2, 0]) == (6, 3, 1)


@st.composite
def random_networks(draw):
    num_hosts, num_switches = draw(st.integers(2, 6)), draw(st.integers(1, 7))
    switch = st.integers(num_hosts, num_hosts + num_switches - 1)
    ends = [(host, draw(switch)) for host in range(num_hosts)]
    trunks = draw(st.lists(st.tuples(switch, switch), max_size=14))
    ends += [(a, b) for a, b in trunks if a != b]
    return network_from_cables(num_hosts, num_switches, draw(st.permutations(ends)), 10**9, 0)


@settings(deadline=None)
@given(network=random_networks(), entropy=st.integers(0, 2**64 - 1))
def test_paths_are_shortest_and_avoid_hosts(network, entropy):
    router = Router(network)
    for src in range(network.num_hosts):
        for dst in set(range(network.num_hosts)) - {src}:
            hops = naive_distance(network, src, dst)
            if hops is None:
                with pytest.raises(TopologyError, match=f"from host {src} to host {dst}"):
                    router.ecmp_path(src, dst, entropy)
                continue
            path = router.ecmp_path(src, dst, entropy)
            nodes = nodes_of(network, path)
            assert len(path) == hops
            assert (nodes[0], nodes[-1]) == (src, dst)
            assert all(node >= network.num_hosts for node in nodes[1:-1])


def test_ecmp__ends_must_be_two_hosts():
    router = Router(build_network(Star(hosts=3)))
    for src, dst in ((1, 1), (0, 3), (-1, 0)):
        with pytest.raises(TopologyError, match=f"not from node {src} to node {dst}"):
            router.ecmp_path(src, dst, 0)


@pytest.mark.parametrize(
    ("labels", "ends", "message"),
    [
        ([10, 0], None, "at least two hosts and a switch"),
        ([], None, "at least two hosts and a switch"),
        ([10, 0, 99, 30], None, "path 10-0-99-30: node 99 does not exist"),
        ([10, 0, 2, 30], None, "no cable leads from switch 2 to host 30"),
        ([10, 1, 3, 30], None, "no cable leads from host 10 to switch 1"),
        ([10, 0, 3, 30], None, "no cable leads from switch 0 to switch 3"),
        ([10, 0, 20, 0, 30], None, "node 20 is a host; hosts do not forward"),
        ([10, 0, 1, 0, 20], None, "passes a node twice"),
        ([0, 1, 3, 30], None, "must start at a host, not at switch 0"),
        ([10, 0, 1], None, "must end at a host, not at switch 1"),
        ([10, 0, 20], (1, 0), "must start at host 20, not at host 10"),
        ([10, 0, 20], (0, 2), "must end at host 30, not at host 20"),
    ],
)
def test_path_through__faults(labels, ends, message):
    # Hosts 10, 20 on switch 0, host 30 on switch 3; switches 0 - {1, 2} - 3.
    network = network_from_cables(
        num_hosts=3,
        num_switches=4,
        ends=[(0, 3), (1, 3), (2, 6), (3, 4), (3, 5), (4, 6), (5, 6)],
        rate_bps=10**9,
        delay_ps=0,
        node_label=[10, 20, 30, 0, 1, 2, 3],
    )
    router = Router(network)
    assert router.path_through([10, 0, 2, 3, 30], (0, 2)) == (0, 8, 12, 5)
    with pytest.raises(TopologyError, match=message):
        router.path_through(labels, ends)


@pytest.mark.skipif(not PATHS, reason="reference runs are absent")
@pytest.mark.parametrize("file", PATHS, ids=lambda path: path.parent.name)
def test_path_through__accepts_reference_paths(file):
    network = build_network(TopologyFile(path=str(file.with_name("topology.txt"))))
    router = Router(network)
    with file.open() as lines:
        rows = list(csv.DictReader(lines))
    assert rows
    for row in rows:
        src, dst = (network.host_of_label(int(row[end])) for end in ("src", "dst"))
        for column, ends in (("data_path", (src, dst)), ("ack_path", (dst, src))):
            labels = [int(label) for label in row[column].split("-")]
            path = router.path_through(labels, ends)
            assert network.node_label[nodes_of(network, path)].tolist() == labels
            # The reference simulator routes on shortest paths, too.
            assert len(path) == len(router.ecmp_path(*ends, 0))


@pytest.mark.skipif(not FAT.is_file(), reason="sample files are absent")
def test_ecmp__fat_tree_uses_many_paths():
    network = build_network(TopologyFile(path=str(FAT)))
    router = Router(network)
    assert len({router.ecmp_path(0, 319, entropy) for entropy in range(200)}) > 4


def test_speed__large_ring_and_many_queue_pairs():
    network = build_network(LeafSpine(leaves=512, hosts_per_leaf=32, spines=32))
    router = Router(network)
    begin = time.process_time()
    for host in range(network.num_hosts):
        router.ecmp_path(host, (host + 32) % network.num_hosts, host)
    assert time.process_time() - begin < 5
