"""Shortest-path routing: equal-cost multi-path (ECMP) by a hash of the flow, or a forced path.

A path is a tuple of directed link ids from host to host. Hosts never forward.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roce_gym.errors import TopologyError
from roce_gym.topology.graph import Network

_MASK = 2**64 - 1
_GOLDEN = 0x9E3779B97F4A7C15


def stable_hash(*values: int) -> int:
    """A 64-bit hash of integers, the same in every process.

    Each value is absorbed by a round of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014), so that
    hashes which differ in one value only are independent.
    """
    state = 0
    for value in values:
        z = (state + (int(value) + 1) * _GOLDEN) & _MASK
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
        state = z ^ (z >> 31)
    return state


def stable_hashes(*values: ArrayLike) -> NDArray[np.uint64]:
    """:func:`stable_hash` of many at once.

    Args:
        values: integers from 0 to 2^64 - 1, whose shapes are broadcast against each other.

    Returns:
        At least one dimension.
    """
    state = np.zeros(1, np.uint64)
    for value in values:
        z = np.atleast_1d(np.asarray(value, np.uint64)) + np.uint64(1)
        z = z * np.uint64(_GOLDEN) + state
        z ^= z >> np.uint64(30)
        z *= np.uint64(0xBF58476D1CE4E5B9)
        z ^= z >> np.uint64(27)
        z *= np.uint64(0x94D049BB133111EB)
        state = z ^ (z >> np.uint64(31))
    return state


def _by_switch(
    links: NDArray[np.intp], switch: NDArray[np.int32], network: Network
) -> tuple[NDArray[np.intp], NDArray[np.int64]]:
    """Links sorted by their switch, and where each switch's begin (one more at the end)."""
    counts = np.bincount(switch, minlength=network.num_switches)
    return links[np.argsort(switch, kind="stable")], np.concatenate([[0], np.cumsum(counts)])


class Router:
    """Finds paths; remembers distances per destination switch and next hops per pair of switches.

    Hosts on one switch share everything but their own cable, so a fabric of many hosts costs no
    more than its switches, and only as much of that as flows use.
    """

    def __init__(self, network: Network) -> None:
        """Precondition: `topology.check_network(network)` passed."""
        self._network = network
        self._uplink: list[int] = network.host_link.tolist()
        self._link_dst: list[int] = network.link_dst.tolist()
        self._switch: list[int] = network.link_dst[network.host_link].tolist()
        # Links between switches, sorted by where they start: those of switch s, counted without
        # the hosts, are self._trunk[self._first[s] : self._first[s + 1]].
        base = network.num_hosts
        trunk = np.flatnonzero((network.link_src >= base) & (network.link_dst >= base))
        self._trunk, self._first = _by_switch(trunk, network.link_src[trunk] - base, network)
        if network.link_routed is not None:
            trunk = trunk[network.link_routed[trunk]]
        # Those that routes may take, as above; and the same ones by where they end.
        self._way, self._first_way = _by_switch(trunk, network.link_src[trunk] - base, network)
        self._way_dst = network.link_dst[self._way] - base
        back, self._first_back = _by_switch(trunk, network.link_dst[trunk] - base, network)
        self._back_src = network.link_src[back] - base
        self._distances: dict[int, NDArray[np.int32]] = {}
        self._next_links: dict[tuple[int, int], tuple[int, ...]] = {}
        self._same: dict[tuple[int, ...], tuple[int, ...]] = {}
        self._ways: dict[tuple[int, int], list[tuple[tuple[int, ...], int]]] = {}

    def ecmp_path(self, src: int, dst: int, entropy: int) -> tuple[int, ...]:
        """The shortest path on which switches hash a flow.

        Each switch picks among its links on shortest paths by a hash of (src, dst, entropy, its
        own id), as with a seed of its own: choices of successive switches are independent.

        Args:
            src, dst: hosts.
            entropy: tells flows between the same hosts apart, as the UDP source port does.

        Raises:
            TopologyError: there is no path, or an end is no host; names both.
        """
        self.require_path(src, dst)
        return self.ecmp_paths([src], [dst], [entropy])[0]

    def ecmp_paths(
        self, src: Sequence[int], dst: Sequence[int], entropy: ArrayLike
    ) -> list[tuple[int, ...]]:
        """As :func:`ecmp_path`, of many flows at once. PRECONDITION: :func:`require_path`.

        Args:
            src, dst, entropy: of each flow.
        """
        flow = stable_hashes(src, dst, entropy)
        paths = [[self._uplink[host]] for host in src]
        node, last = ([self._switch[host] for host in hosts] for hosts in (src, dst))
        under_way = [i for i in range(len(paths)) if node[i] != last[i]]
        while under_way:
            picks = stable_hashes(flow[under_way], [node[i] for i in under_way]).tolist()
            for i, pick in zip(under_way, picks, strict=True):
                stretches = self._stretches(node[i], last[i])
                links, node[i] = stretches[pick % len(stretches)]
                paths[i] += links
            under_way = [i for i in under_way if node[i] != last[i]]
        for path, host in zip(paths, dst, strict=True):
            path.append(self._uplink[host] ^ 1)
        return [tuple(path) for path in paths]

    def require_path(self, src: int, dst: int) -> None:
        """Does nothing, or raises the errors of :func:`ecmp_path`."""
        self._require_two_hosts(src, dst)
        node, last = self._switch[src], self._switch[dst]
        if node != last and not self._choices(node, last):
            raise TopologyError(
                f"there is no path from {self._network.describe(src)} to "
                f"{self._network.describe(dst)}{self._why_not()}"
            )

    def next_links(self, node: int, dst: int) -> tuple[int, ...]:
        """Links of a switch on shortest paths to a host on another switch, ascending; node ids."""
        return self._choices(node, self._switch[dst])

    def num_paths(self, src: int, dst: int) -> int:
        """Shortest paths between two hosts, among which ECMP chooses; 0 if there is no way."""
        self._require_two_hosts(src, dst)
        ways, last = {self._switch[src]: 1}, self._switch[dst]
        while ways and last not in ways:  # all nodes of `ways` are equally far from the end
            further: dict[int, int] = {}
            for node, count in ways.items():
                for link in self._choices(node, last):
                    neighbour = self._link_dst[link]
                    further[neighbour] = further.get(neighbour, 0) + count
            ways = further
        return ways.get(last, 0)

    def path_through(
        self, labels: Sequence[int], ends: tuple[int, int] | None = None
    ) -> tuple[int, ...]:
        """The path through given nodes; of parallel cables it takes the first.

        Args:
            labels: node labels (file ids), both hosts included.
            ends: the hosts (node ids) between which the path must lead, if that is known.

        Raises:
            TopologyError: an unknown node, wrong ends, a host on the way, a node passed twice, or
                a hop without a cable; names it.
        """
        net = self._network
        shown = "-".join(str(label) for label in labels)
        nodes = [self._node(label, shown) for label in labels]
        if len(nodes) < 3:
            raise TopologyError(f"path {shown}: at least two hosts and a switch are needed")
        self._require_ends(shown, nodes, ends)
        for label, node in zip(labels[1:-1], nodes[1:-1], strict=True):
            if node < net.num_hosts:
                raise TopologyError(f"path {shown}: node {label} is a host; hosts do not forward")
        if len(set(nodes)) < len(nodes):
            raise TopologyError(f"path {shown}: passes a node twice")
        return tuple(self._link(a, b, shown) for a, b in pairwise(nodes))

    def _require_ends(self, shown: str, nodes: list[int], ends: tuple[int, int] | None) -> None:
        net = self._network
        wanted = ends or (nodes[0], nodes[-1])
        for verb, node, end in zip(("start", "end"), (nodes[0], nodes[-1]), wanted, strict=True):
            if node != end or node >= net.num_hosts:
                place = net.describe(end) if ends else "a host"
                raise TopologyError(
                    f"path {shown}: must {verb} at {place}, not at {net.describe(node)}"
                )

    def _why_not(self) -> str:
        if not self._network.num_servers:
            return ""
        return ": they are on different rails, and no spines join the rails (topology.spines)"

    def _require_two_hosts(self, src: int, dst: int) -> None:
        num_hosts = self._network.num_hosts
        if not (0 <= src < num_hosts and 0 <= dst < num_hosts and src != dst):
            raise TopologyError(
                f"a path leads from one host to another, not from node {src} to node {dst}; "
                f"hosts: 0 … {num_hosts - 1}"
            )

    def _choices(self, node: int, last: int) -> tuple[int, ...]:
        """Links of switch `node` on shortest paths to switch `last`, ascending; node ids."""
        choices = self._next_links.get((node, last))
        if choices is None:
            base = self._network.num_hosts
            distances = self._distances_to(last - base)
            own = slice(self._first_way[node - base], self._first_way[node - base + 1])
            # Switches without a way (-1) lead to such only, so none of their links is chosen.
            nearer = distances[self._way_dst[own]] == distances[node - base] - 1
            choices = tuple(self._way[own][nearer].tolist())
            # A leaf goes up by the same links to all other leaves: kept once, not for each.
            choices = self._same.setdefault(choices, choices)
            self._next_links[node, last] = choices
        return choices

    def _stretches(self, node: int, last: int) -> list[tuple[tuple[int, ...], int]]:
        """For each choice of switch `node` towards `last`: links, and where they lead.

        Namely on, through all switches that have no choice, to the next one that has.
        """
        found = self._ways.get((node, last))
        if found is None:
            found = []
            for link in self._choices(node, last):
                links, end = [link], self._link_dst[link]
                while end != last and len(only := self._choices(end, last)) == 1:
                    links.append(only[0])
                    end = self._link_dst[only[0]]
                found.append((tuple(links), end))
            self._ways[node, last] = found
        return found

    def _distances_to(self, last: int) -> NDArray[np.int32]:
        """Shape (num_switches,), int32: hops from each switch to `last`; -1 where there is no way.

        Breadth first from `last`, against the links' direction. Switches are counted without the
        hosts.
        """
        distances = self._distances.get(last)
        if distances is None:
            distances = np.full(self._network.num_switches, -1, np.int32)
            distances[last] = 0
            frontier, hops = np.array([last]), 0
            while len(frontier):
                hops += 1
                neighbours = self._back_src[self._trunks_into(frontier)]
                frontier = np.unique(neighbours[distances[neighbours] < 0])
                distances[frontier] = hops
            self._distances[last] = distances
        return distances

    def _trunks_into(self, switches: NDArray[np.int64]) -> NDArray[np.int64]:
        """Positions in `_back_src` of all links into some switches."""
        first, count = self._first_back[switches], np.diff(self._first_back)[switches]
        offset = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
        positions: NDArray[np.int64] = np.repeat(first, count) + offset
        return positions

    def _node(self, label: int, shown: str) -> int:
        node = self._network.node_of_label.get(label)
        if node is None:
            raise TopologyError(f"path {shown}: node {label} does not exist")
        return node

    def _link(self, start: int, end: int, shown: str) -> int:
        """The first link between two neighbours of which one at most is a host."""
        net = self._network
        if start < net.num_hosts:
            candidates = [self._uplink[start]]
        elif end < net.num_hosts:
            candidates = [self._uplink[end] ^ 1] if self._switch[end] == start else []
        else:
            base = net.num_hosts
            own = slice(self._first[start - base], self._first[start - base + 1])
            candidates = self._trunk[own].tolist()
        for link in candidates:
            if self._link_dst[link] == end:
                return link
        raise TopologyError(
            f"path {shown}: no cable leads from {net.describe(start)} to {net.describe(end)}"
        )
