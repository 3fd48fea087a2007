"""From the topology section of a scenario to the network as arrays."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from roce_gym.config import (
    Clos3,
    Dumbbell,
    FatTree,
    LeafSpine,
    RailOptimised,
    Ring,
    Star,
    Topology,
    TopologyFile,
    Triangle,
)
from roce_gym.errors import TopologyError
from roce_gym.topology.clos import clos3, rail_optimised
from roce_gym.topology.generate import circle, dumbbell, leaf_spine, star
from roce_gym.topology.graph import Network
from roce_gym.topology.hpcc_file import read_hpcc_topology

__all__ = ["Network", "build_network", "check_network"]

_MAX_NAMED = 5


def build_network(config: Topology) -> Network:
    """Builds or reads the network of a scenario, and checks it.

    Raises:
        TopologyError: see :func:`check_network`.
        TraceFileError: a topology file cannot be read.
    """
    if isinstance(config, TopologyFile):
        network = read_hpcc_topology(config.path)
        try:
            check_network(network)
        except TopologyError as error:
            raise TopologyError(f"{config.path}: {error}") from None
        return network
    network = _generate(config)
    rails_apart = isinstance(config, RailOptimised) and not config.spines
    check_network(network, whole=not rails_apart)
    return network


def _generate(
    config: Star | Dumbbell | LeafSpine | Clos3 | FatTree | RailOptimised | Ring | Triangle,
) -> Network:
    if isinstance(config, Star):
        return star(config)
    if isinstance(config, Dumbbell):
        return dumbbell(config)
    if isinstance(config, LeafSpine):
        return leaf_spine(config)
    if isinstance(config, Clos3):
        return clos3(config)
    if isinstance(config, FatTree):
        return clos3(config.as_clos3)
    if isinstance(config, RailOptimised):
        return rail_optimised(config)
    return circle(config)


def check_network(network: Network, *, whole: bool = True) -> None:
    """What routing and the simulator rely on.

    Args:
        network: to check.
        whole: whether all hosts must reach each other over Ethernet.

    Raises:
        TopologyError: fewer than two hosts; a host without exactly one cable, or with a cable to
            another host; hosts that cannot reach each other. Names the nodes.
    """
    if network.num_hosts < 2:
        raise TopologyError(f"at least 2 hosts are needed, found {network.num_hosts}")
    num_cables = np.bincount(network.link_src, minlength=network.num_hosts)[: network.num_hosts]
    wrong = np.flatnonzero(num_cables != 1)
    if len(wrong):
        shown = ", ".join(
            f"{network.describe(host)} has {num_cables[host]}" for host in wrong[:_MAX_NAMED]
        )
        raise TopologyError(f"each host needs exactly one cable; {shown}{_more(wrong)}")
    switch = network.link_dst[network.host_link]
    wrong = np.flatnonzero(switch < network.num_hosts)
    if len(wrong):
        host = int(wrong[0])
        raise TopologyError(
            f"the cable of a host must lead to a switch; that of {network.describe(host)} leads "
            f"to {network.describe(int(switch[host]))}"
        )
    if not whole:
        return
    island = _islands(network)[: network.num_places]
    apart = np.flatnonzero(island != island[0])
    if len(apart):
        raise TopologyError(
            f"{network.describe(0)} cannot reach {network.describe(int(apart[0]))}"
            f"{_more(apart, 1)}; all hosts must be connected"
        )


def _islands(network: Network) -> NDArray[np.int32]:
    """Shape (num_nodes,), int32: the least node id that each node is connected with."""
    island = np.arange(network.num_hosts + network.num_switches, dtype=np.int32)
    while True:
        least = island.copy()
        np.minimum.at(least, network.link_dst, island[network.link_src])
        least = least[least]
        if np.array_equal(least, island):
            return island
        island = least


def _more(nodes: NDArray[np.intp], named: int = _MAX_NAMED) -> str:
    return f" and {len(nodes) - named} more" if len(nodes) > named else ""
