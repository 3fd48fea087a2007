"""A network in numbers: what it consists of, and how well its parts are joined."""

from __future__ import annotations

from typing import Any

import numpy as np

from roce_gym.routing import Router
from roce_gym.topology.graph import Network
from roce_gym.units import BPS_PER_GBPS, PS_PER_NS


def describe_network(network: Network) -> dict[str, Any]:
    """Hosts, switches by tier, cables by what they join, oversubscription, and paths."""
    return {
        "hosts": network.num_places,
        "servers": network.num_servers,
        "switches": network.num_switches,
        "tiers": {tier.name: tier.size for tier in network.tiers if tier.size},
        "cables": _cables(network),
        "oversubscription": _oversubscription(network),
        "paths_between_first_and_last_host": Router(network).num_paths(0, network.num_places - 1),
        "routed_one_way": network.link_routed is not None,
        "lossy_links": int((network.link_loss > 0).sum()),
    }


def _tiers(network: Network) -> tuple[list[str], np.ndarray]:
    """Names, hosts first, and each node's index into them; files have one tier of switches."""
    tiers = network.tiers or (("switch", network.num_switches),)
    names, sizes = ["host"], [network.num_hosts]
    for name, size in tiers:
        names.append(name)
        sizes.append(size)
    return names, np.repeat(np.arange(len(sizes)), sizes)


def _cables(network: Network) -> list[dict[str, Any]]:
    """Kinds of cables, from the hosts upwards."""
    names, tier = _tiers(network)
    ends = np.sort(np.stack([tier[network.link_src[::2]], tier[network.link_dst[::2]]], 1), axis=1)
    rates, delays = network.link_rate_bps[::2], network.link_delay_ps[::2]
    rows = np.column_stack([ends, rates, delays])
    kinds, counts = np.unique(rows, axis=0, return_counts=True)
    return [
        {
            "between": f"{plural(names[low])} and {plural(names[high])}",
            "count": int(count),
            "rate_gbps": rate / BPS_PER_GBPS,
            "delay_ns": delay / PS_PER_NS,
        }
        for (low, high, rate, delay), count in zip(kinds.tolist(), counts, strict=True)
    ]


def _oversubscription(network: Network) -> dict[str, float]:
    """By tier that has links both ways: bandwidth downwards over that upwards."""
    names, tier = _tiers(network)
    src, dst = tier[network.link_src], tier[network.link_dst]
    found = {}
    for index, name in enumerate(names):
        own = src == index
        down = float(network.link_rate_bps[own & (dst < index)].sum())
        up = float(network.link_rate_bps[own & (dst > index)].sum())
        if down and up:
            found[name] = down / up
    return found


def plural(name: str) -> str:
    """Of a tier's name."""
    if name == "leaf":
        return "leaves"
    return f"{name}es" if name.lower().endswith("ch") else f"{name}s"
