"""Three-tier Clos networks, and rails of multi-GPU servers."""

from __future__ import annotations

import numpy as np

from roce_gym.config import Clos3, RailOptimised
from roce_gym.topology.bundles import Bundle, all_to_all, host_cables, network_from_bundles
from roce_gym.topology.graph import NVSWITCH, Network, Tier


def clos3(config: Clos3) -> Network:
    """Hosts leaf by leaf, leaves pod by pod, spines pod by pod, cores plane by plane.

    Cables between switches follow in this order: leaf by leaf to the spines, spine by spine to the
    cores of its plane.
    """
    pods, leaves, spines = config.pods, config.leaves_per_pod, config.num_spines
    num_leaves, num_spines = pods * leaves, pods * spines
    num_hosts = num_leaves * config.hosts_per_leaf
    first_leaf, first_spine = num_hosts, num_hosts + num_leaves
    first_core = first_spine + num_spines
    plane = config.num_cores // spines
    fabric = [
        all_to_all(
            first_leaf + pod * leaves + np.arange(leaves),
            first_spine + pod * spines + np.arange(spines),
        )
        for pod in range(pods)
    ]
    core = [
        all_to_all(
            np.array([first_spine + spine]), first_core + spine % spines * plane + np.arange(plane)
        )
        for spine in range(num_spines)
    ]
    return network_from_bundles(
        num_hosts=num_hosts,
        tiers=(
            Tier("leaf", num_leaves),
            Tier("spine", num_spines),
            Tier("core", config.num_cores),
        ),
        bundles=[
            Bundle(
                host_cables(num_leaves, config.hosts_per_leaf),
                config.host_rate_gbps,
                config.delay_ns("host"),
            ),
            Bundle(
                np.concatenate(fabric),
                config.spine_rate_gbps,
                config.delay_ns("fabric"),
            ),
            Bundle(np.concatenate(core), config.core_rate_gbps, config.delay_ns("core")),
        ],
    )


def rail_optimised(config: RailOptimised) -> Network:
    """GPUs' NICs server by server, their NVLink ends, then NVSwitches, rails and spines.

    Labels count GPUs, then switches: GPU `i` of server `s` is `s * gpus_per_node + i`, both as a
    NIC and on NVLink.
    """
    nodes, rails, spines = config.nodes, config.gpus_per_node, config.spines
    places = nodes * rails
    gpu = np.arange(places)
    nvswitch, rail = 2 * places, 2 * places + nodes
    num_switches = nodes + rails + spines
    return network_from_bundles(
        num_hosts=2 * places,
        tiers=(Tier(NVSWITCH, nodes), Tier("rail", rails), Tier("spine", spines)),
        bundles=[
            Bundle(
                np.stack([gpu, rail + gpu % rails], axis=1),
                config.host_rate_gbps,
                config.delay_ns("host"),
            ),
            Bundle(
                np.stack([places + gpu, nvswitch + gpu // rails], axis=1),
                config.nvlink_gbps,
                config.nvlink_delay_ns,
            ),
            Bundle(
                all_to_all(rail + np.arange(rails), rail + rails + np.arange(spines)),
                config.spine_rate_gbps,
                config.delay_ns("fabric"),
            ),
        ],
        node_label=np.concatenate([gpu, gpu, places + np.arange(num_switches)]),
        num_servers=nodes,
    )
