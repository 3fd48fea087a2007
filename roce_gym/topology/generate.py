"""Topologies that are given by a few numbers: star, dumbbell, leaf–spine.

Nodes: hosts (leaf by leaf), then leaves, then spines. Cables: those of the hosts in host order,
then those between switches, leaf by leaf. Labels are node ids.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from roce_gym.config import Dumbbell, LeafSpine, Star
from roce_gym.topology.graph import Network, network_from_cables
from roce_gym.units import gbps_to_bps, ns_to_ps


def star(config: Star) -> Network:
    """One switch, node `hosts`, with a cable to each host."""
    return network_from_cables(
        num_hosts=config.hosts,
        num_switches=1,
        ends=_host_cables(leaves=1, hosts_per_leaf=config.hosts),
        rate_bps=gbps_to_bps(config.host_rate_gbps),
        delay_ps=ns_to_ps(config.link_delay_ns),
    )


def dumbbell(config: Dumbbell) -> Network:
    """Two switches with `hosts_per_side` hosts each; the trunk is the last cable."""
    num_hosts = 2 * config.hosts_per_side
    trunk = np.array([[num_hosts, num_hosts + 1]])
    return network_from_cables(
        num_hosts=num_hosts,
        num_switches=2,
        ends=np.concatenate([_host_cables(2, config.hosts_per_side), trunk]),
        rate_bps=_rates(num_hosts, config.host_rate_gbps, 1, config.trunk_rate_gbps),
        delay_ps=ns_to_ps(config.link_delay_ns),
    )


def leaf_spine(config: LeafSpine) -> Network:
    """Two tiers: leaf `i` is node `num_hosts + i`, spine `j` node `num_hosts + leaves + j`."""
    leaves, spines = config.leaves, config.spines
    num_hosts = leaves * config.hosts_per_leaf
    leaf = num_hosts + np.repeat(np.arange(leaves), spines)
    spine = num_hosts + leaves + np.tile(np.arange(spines), leaves)
    return network_from_cables(
        num_hosts=num_hosts,
        num_switches=leaves + spines,
        ends=np.concatenate(
            [_host_cables(leaves, config.hosts_per_leaf), np.stack([leaf, spine], axis=1)]
        ),
        rate_bps=_rates(num_hosts, config.host_rate_gbps, leaves * spines, config.spine_rate_gbps),
        delay_ps=ns_to_ps(config.link_delay_ns),
    )


def _host_cables(leaves: int, hosts_per_leaf: int) -> NDArray[np.int64]:
    """Shape (num_hosts, 2): each host and its leaf."""
    host = np.arange(leaves * hosts_per_leaf)
    return np.stack([host, len(host) + host // hosts_per_leaf], axis=1)


def _rates(
    num_hosts: int, host_gbps: float, num_trunks: int, trunk_gbps: float
) -> NDArray[np.int64]:
    """Shape (num_hosts + num_trunks,), bits per second, one a cable."""
    return np.repeat(
        np.array([gbps_to_bps(host_gbps), gbps_to_bps(trunk_gbps)]), [num_hosts, num_trunks]
    )
