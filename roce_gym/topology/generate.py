"""Topologies that are given by a few numbers: star, dumbbell, leaf–spine, ring.

Nodes: hosts (leaf by leaf), then leaves, then spines. Cables: those of the hosts in host order,
then those between switches, leaf by leaf. Labels are node ids.
"""

from __future__ import annotations

import numpy as np

from roce_gym.config import Dumbbell, LeafSpine, Ring, Star, Triangle
from roce_gym.topology.bundles import Bundle, all_to_all, host_cables, network_from_bundles
from roce_gym.topology.graph import Network, Tier


def star(config: Star) -> Network:
    """One switch, node `hosts`, with a cable to each host."""
    ends = host_cables(leaves=1, hosts_per_leaf=config.hosts)
    return network_from_bundles(
        num_hosts=config.hosts,
        tiers=(Tier("switch", 1),),
        bundles=[Bundle(ends, config.host_rate_gbps, config.delay_ns("host"))],
    )


def dumbbell(config: Dumbbell) -> Network:
    """Two switches with `hosts_per_side` hosts each; the trunk is the last cable."""
    num_hosts = 2 * config.hosts_per_side
    trunk = np.array([[num_hosts, num_hosts + 1]])
    return network_from_bundles(
        num_hosts=num_hosts,
        tiers=(Tier("switch", 2),),
        bundles=[
            Bundle(
                host_cables(2, config.hosts_per_side),
                config.host_rate_gbps,
                config.delay_ns("host"),
            ),
            Bundle(trunk, config.trunk_rate_gbps, config.delay_ns("fabric")),
        ],
    )


def leaf_spine(config: LeafSpine) -> Network:
    """Two tiers: leaf `i` is node `num_hosts + i`, spine `j` node `num_hosts + leaves + j`."""
    leaves, spines = config.leaves, config.num_spines
    num_hosts = leaves * config.hosts_per_leaf
    return network_from_bundles(
        num_hosts=num_hosts,
        tiers=(Tier("leaf", leaves), Tier("spine", spines)),
        bundles=[
            Bundle(
                host_cables(leaves, config.hosts_per_leaf),
                config.host_rate_gbps,
                config.delay_ns("host"),
            ),
            Bundle(
                all_to_all(num_hosts + np.arange(leaves), num_hosts + leaves + np.arange(spines)),
                config.spine_rate_gbps,
                config.delay_ns("fabric"),
            ),
        ],
    )


def circle(config: Ring | Triangle) -> Network:
    """Switch `i` is node `num_hosts + i`; its cable to the next one leads clockwise.

    That is link `2 (num_hosts + i)`. Where routes are to be clockwise, they take these only.
    """
    count = config.switches
    num_hosts = count * config.hosts_per_switch
    switch = np.arange(count)
    ends = num_hosts + np.stack([switch, (switch + 1) % count], axis=1)
    is_clockwise = np.arange(2 * (num_hosts + count)) % 2 == 0
    is_clockwise[: 2 * num_hosts] = True
    return network_from_bundles(
        num_hosts=num_hosts,
        tiers=(Tier("switch", count),),
        bundles=[
            Bundle(
                host_cables(count, config.hosts_per_switch),
                config.host_rate_gbps,
                config.delay_ns("host"),
            ),
            Bundle(ends, config.trunk_rate_gbps, config.delay_ns("fabric")),
        ],
        routed=is_clockwise if config.routing == "clockwise" else None,
    )
