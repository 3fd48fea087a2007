import numpy as np
import pytest

from roce_gym.config import Dumbbell, LeafSpine, Star
from roce_gym.errors import TopologyError
from roce_gym.topology import build_network, check_network
from roce_gym.topology.graph import network_from_cables


def cables(network):
    """(src, dst, Gb/s) of each cable's first direction."""
    rates = network.link_rate_bps[::2] // 10**9
    return list(
        zip(
            network.link_src[::2].tolist(),
            network.link_dst[::2].tolist(),
            rates.tolist(),
            strict=True,
        )
    )


def test_star():
    network = build_network(Star(hosts=3, host_rate_gbps=25, link_delay_ns=1.5))
    assert (network.num_hosts, network.num_switches, network.num_links) == (3, 1, 6)
    assert cables(network) == [(0, 3, 25), (1, 3, 25), (2, 3, 25)]
    assert network.link_delay_ps.tolist() == [1500] * 6
    assert network.link_loss.tolist() == [0.0] * 6
    assert network.host_rate_bps == 25 * 10**9


def test_dumbbell():
    network = build_network(Dumbbell(hosts_per_side=2, trunk_rate_gbps=400))
    assert cables(network) == [(0, 4, 100), (1, 4, 100), (2, 5, 100), (3, 5, 100), (4, 5, 400)]


def test_leaf_spine():
    network = build_network(LeafSpine(leaves=2, hosts_per_leaf=2, spines=3, spine_rate_gbps=400))
    hosts = [(0, 4, 100), (1, 4, 100), (2, 5, 100), (3, 5, 100)]
    assert cables(network) == hosts + [(leaf, spine, 400) for leaf in (4, 5) for spine in (6, 7, 8)]
    assert network.node_label.tolist() == list(range(9))


@pytest.mark.parametrize(
    "config",
    [
        Star(hosts=4),
        Dumbbell(hosts_per_side=1),
        LeafSpine(leaves=3, hosts_per_leaf=1, spines=2),
        LeafSpine(leaves=64, hosts_per_leaf=32, spines=64),
    ],
)
def test_arrays__dtypes_and_paired_directions(config):
    network = build_network(config)
    assert network.link_src.dtype == network.link_dst.dtype == network.node_label.dtype == np.int32
    assert network.link_rate_bps.dtype == network.link_delay_ps.dtype == np.int64
    assert network.link_loss.dtype == np.float64
    for array in (network.link_src, network.link_dst, network.link_rate_bps, network.link_delay_ps):
        assert array.shape == (network.num_links,) and array.flags.c_contiguous
    assert (network.link_src[::2] == network.link_dst[1::2]).all()
    assert (network.link_dst[::2] == network.link_src[1::2]).all()
    assert (network.link_src[network.host_link] == np.arange(network.num_hosts)).all()


@pytest.mark.parametrize(
    ("num_hosts", "num_switches", "ends", "labels", "message"),
    [
        (1, 1, [(0, 1)], None, "at least 2 hosts are needed, found 1"),
        (2, 1, [(0, 2)], None, "host 1 has 0"),
        (2, 2, [(0, 2), (1, 3), (0, 3)], [7, 8, 1, 2], "host 7 has 2"),
        (2, 1, [(0, 1)], None, "must lead to a switch; that of host 0 leads to host 1"),
        (3, 2, [(0, 3), (1, 4), (2, 4)], [5, 6, 9, 0, 1], "host 5 cannot reach host 6 and 1 more"),
    ],
)
def test_check__faults_name_nodes(num_hosts, num_switches, ends, labels, message):
    network = network_from_cables(num_hosts, num_switches, ends, 10**9, 0, node_label=labels)
    with pytest.raises(TopologyError, match=message):
        check_network(network)


def test_check__switch_without_use_is_fine():
    check_network(network_from_cables(2, 2, [(0, 2), (1, 2)], 10**9, 0))


def test_check__long_chain_of_switches_is_connected():
    chain = [(2 + i, 3 + i) for i in range(499)]
    ends = [(0, 2), (1, 501), *reversed(chain)]
    check_network(network_from_cables(2, 500, ends, 10**9, 0))
    with pytest.raises(TopologyError, match="host 0 cannot reach host 1"):
        check_network(network_from_cables(2, 500, ends[:250] + ends[251:], 10**9, 0))


def test_host_of_label():
    network = network_from_cables(2, 1, [(0, 2), (1, 2)], 10**9, 0, node_label=[1, 5, 0])
    assert network.host_of_label(5) == 1
    with pytest.raises(TopologyError, match="node 0 is a switch, not a host"):
        network.host_of_label(0)
    with pytest.raises(TopologyError, match="node 2 does not exist; the 2 hosts are within 1 … 5"):
        network.host_of_label(2)
