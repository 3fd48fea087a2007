"""Placement in islands: hosts in as few servers, leaves and pods as can be.

A tenant takes the smallest free server, else leaf, else pod, that holds it whole (best fit, which
leaves large islands for large tenants). If none does, it takes the largest as a whole and looks for
the rest anew. Ties go to the one that comes first.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from roce_gym.topology.graph import Network


def island_levels(network: Network) -> list[NDArray[np.int64]]:
    """For each kind of island, from small to large, shape (num_places,): the island of each host.

    Islands are servers with NVLink, where there are any; else the switches that hosts are cabled
    to, and pods: leaves that share a switch without hosts above them.
    """
    places = network.num_places
    if network.num_servers:
        return [np.arange(places) // (places // network.num_servers)]
    leaf = network.link_dst[network.nic_link].astype(np.int64)
    return [leaf, _pods(network, leaf)[leaf]]


def _pods(network: Network, leaf: NDArray[np.int64]) -> NDArray[np.int64]:
    """Shape (nodes,): the least leaf of each leaf's pod; of other nodes: themselves."""
    root = np.arange(network.num_hosts + network.num_switches)

    def find(node: int) -> int:
        while root[node] != node:
            node = int(root[node])
        return node

    leaves = set(leaf.tolist())
    first_below: dict[int, int] = {}
    for src, dst in zip(network.link_src.tolist(), network.link_dst.tolist(), strict=True):
        if src in leaves and dst >= network.num_hosts and dst not in leaves:
            a, b = find(src), find(first_below.setdefault(dst, src))
            root[max(a, b)] = min(a, b)
    return np.array([find(node) for node in range(len(root))], np.int64)


def pick_islands(free: Sequence[int], count: int, levels: Sequence[NDArray[np.int64]]) -> list[int]:
    """`count` of the hosts `free`, which are enough; ascending by island, then by number."""
    chosen = _pick(list(free), count, levels)
    return sorted(
        chosen, key=lambda host: (*(int(level[host]) for level in reversed(levels)), host)
    )


def _pick(free: list[int], count: int, levels: Sequence[NDArray[np.int64]]) -> list[int]:
    if not levels or count == 0:
        return free[:count]
    groups: list[list[int]] = []
    for depth, level in enumerate(levels):
        islands: dict[int, list[int]] = defaultdict(list)
        for host in free:
            islands[int(level[host])].append(host)
        groups = [islands[key] for key in sorted(islands)]
        fitting = [group for group in groups if len(group) >= count]
        if fitting:
            return _pick(min(fitting, key=len), count, levels[:depth])
    largest = max(groups, key=len)
    left = set(largest)
    rest = [host for host in free if host not in left]
    return largest + _pick(rest, count - len(largest), levels)
