"""Where the nodes of a network are in a picture."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from roce_gym.topology.graph import Network

Area = tuple[float, float, float, float]
"""Left, top, right, bottom."""

SWITCH_HEIGHT = 46.0

NAME_WIDTH, WITH_NAME = 44.0, 120.0
"""Of a switch's name, in boxes that are at least so wide."""


@dataclass(frozen=True)
class Layout:
    """Places of everything that is drawn; NVLink is not.

    Attributes:
        host: centre of each NIC by host.
        host_size: edge of a host's square.
        switch: area of each switch by node.
        port: where link `l` touches the switch it leaves or enters, by (link, switch).
        slot: width of a port's bar, by switch.
        level: 0 for hosts, then distance from them, by node.
    """

    host: dict[int, tuple[float, float]]
    host_size: float
    switch: dict[int, Area]
    port: dict[tuple[int, int], tuple[float, float]]
    slot: dict[int, float]
    level: dict[int, int]


def make_layout(network: Network, area: Area) -> Layout:
    """Hosts in the lowest row, switches above them by distance."""
    left, top, right, bottom = area
    links = np.flatnonzero(~network.is_nvlink).tolist()
    ends = [(int(network.link_src[k]), int(network.link_dst[k])) for k in links]
    beside: dict[int, list[int]] = {}
    for src, dst in ends:
        beside.setdefault(src, []).append(dst)
    hosts = list(range(network.num_places))
    level = _levels(hosts, beside)
    hosts.sort(key=lambda host: (beside[host][0], host))
    spacing = (right - left) / len(hosts)
    size = min(24.0, 0.8 * spacing)
    x = {host: left + (i + 0.5) * spacing for i, host in enumerate(hosts)}
    top_level = max(level.values())
    step = (bottom - top - size / 2 - SWITCH_HEIGHT) / max(top_level, 1)
    switch: dict[int, Area] = {}
    for depth in range(1, top_level + 1):
        nodes = sorted(node for node, at in level.items() if at == depth)
        room = (right - left) / len(nodes)
        y = bottom - size / 2 - depth * step
        for i, node in enumerate(nodes):
            below = [x[end] for end in beside[node] if level[end] < depth]
            x[node] = float(np.mean(below)) if depth == 1 else left + (i + 0.5) * room
            half = min(80.0, 0.42 * room)
            tall = SWITCH_HEIGHT / 2
            switch[node] = (x[node] - half, y - tall, x[node] + half, y + tall)
    port, slot = _ports(links, ends, level, x, switch)
    places = {host: (x[host], bottom - size / 2) for host in hosts}
    return Layout(places, size, switch, port, slot, level)


def _levels(hosts: list[int], beside: dict[int, list[int]]) -> dict[int, int]:
    level = dict.fromkeys(hosts, 0)
    row, depth = hosts, 0
    while row:
        depth += 1
        row = list(dict.fromkeys(n for node in row for n in beside[node] if n not in level))
        level |= dict.fromkeys(row, depth)
    return level


def _ports(
    links: list[int],
    ends: list[tuple[int, int]],
    level: dict[int, int],
    x: dict[int, float],
    switch: dict[int, Area],
) -> tuple[dict[tuple[int, int], tuple[float, float]], dict[int, float]]:
    """Cables downwards leave at a box's lower edge, others at its upper edge, ordered by place."""
    port: dict[tuple[int, int], tuple[float, float]] = {}
    slot: dict[int, float] = {}
    for node, (edge, top, right, bottom) in switch.items():
        left = edge + (NAME_WIDTH if right - edge >= WITH_NAME else 0.0)
        sides: tuple[list[tuple[float, int]], list[tuple[float, int]]] = ([], [])
        for link, (src, dst) in zip(links, ends, strict=True):
            if src == node:
                sides[level[dst] < level[node]].append((x[dst], link))
        slot[node] = (right - left) / max(1, *map(len, sides))
        for cables, y in zip(sides, (top, bottom), strict=True):
            width = (right - left) / max(1, len(cables))
            for i, (_, link) in enumerate(sorted(cables)):
                place = (left + (i + 0.5) * width, y)
                port[link, node] = port[link ^ 1, node] = place
    return port, slot
