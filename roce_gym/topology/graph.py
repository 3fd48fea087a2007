"""The network as plain arrays: nodes, directed links, and nothing about traffic."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roce_gym.errors import TopologyError


class Tier(NamedTuple):
    """Switches of one kind, which follow each other.

    Attributes:
        name: of one of them.
        size: how many there are.
    """

    name: str
    size: int


NVSWITCH = "NVSwitch"
"""Name of the first tier where there are servers."""

NVLINK_CREDIT_BYTES = 2**20
"""What an NVSwitch takes from a GPU in a class before the GPU has to wait. Sizes are not published;
this one is chosen to be many times rate x delay, so that nothing but the rate is felt."""


@dataclass(frozen=True)
class Network:
    """Hosts `0 … num_hosts - 1`, then switches; links `2k` and `2k + 1` are one cable's directions.

    Where there are servers, a GPU has two hosts, since a host has one cable only: `g`, its NIC, and
    `num_places + g`, its end on the NVLink of its server. Tenants are placed on the former.

    Attributes:
        num_hosts: number of hosts; each has exactly one cable.
        num_switches: number of switches.
        link_src, link_dst: shape (num_links,), int32, node ids.
        link_rate_bps: shape (num_links,), int64.
        link_delay_ps: shape (num_links,), int64, one way.
        link_loss: shape (num_links,), float64, probability that a packet is lost.
        node_label: shape (num_hosts + num_switches,), int32, the node's id in the file it came
            from, or its own id. Both hosts of a GPU have one label.
        tiers: kinds of switches, in order; empty if nothing is known about them.
        num_servers: servers with NVLink; their NVSwitches come first among the switches.
        link_routed: shape (num_links,), bool, links between switches that routes may take; None:
            all. PFC frames take all.
    """

    num_hosts: int
    num_switches: int
    link_src: NDArray[np.int32]
    link_dst: NDArray[np.int32]
    link_rate_bps: NDArray[np.int64]
    link_delay_ps: NDArray[np.int64]
    link_loss: NDArray[np.float64]
    node_label: NDArray[np.int32]
    tiers: tuple[Tier, ...] = ()
    num_servers: int = 0
    link_routed: NDArray[np.bool_] | None = None

    @property
    def num_places(self) -> int:
        """Hosts that tenants may be placed on: all, or, where there are servers, one a GPU."""
        return self.num_hosts // 2 if self.num_servers else self.num_hosts

    @property
    def num_links(self) -> int:
        """Directed links."""
        return len(self.link_src)

    @cached_property
    def host_link(self) -> NDArray[np.int32]:
        """Shape (num_hosts,), int32: the link on which each host sends."""
        out = np.full(self.num_hosts, -1, np.int32)
        from_host = np.flatnonzero(self.link_src < self.num_hosts)
        out[self.link_src[from_host]] = from_host
        out.flags.writeable = False
        return out

    @cached_property
    def nic_link(self) -> NDArray[np.int32]:
        """Shape (num_places,), int32: the link on which each NIC sends."""
        return self.host_link[: self.num_places]

    @cached_property
    def host_rate_bps(self) -> int:
        """Link rate of the NICs (the highest, where they differ)."""
        return int(self.link_rate_bps[self.nic_link].max())

    @cached_property
    def cable_kinds(self) -> tuple[list[tuple[int, int]], NDArray[np.intp]]:
        """Pairs of rate (bit/s) and delay (ps) that there are, and the number of each link's."""
        cables = np.stack([self.link_rate_bps, self.link_delay_ps], axis=1)
        kinds, kind_of = np.unique(cables, axis=0, return_inverse=True)
        return [(int(rate), int(delay)) for rate, delay in kinds], kind_of.reshape(-1)

    @cached_property
    def rate_kinds(self) -> tuple[NDArray[np.int64], NDArray[np.intp]]:
        """Rates that there are, bit/s, ascending, and the number of each link's."""
        rates, index = np.unique(self.link_rate_bps, return_inverse=True)
        return rates, index

    @cached_property
    def is_nvlink(self) -> NDArray[np.bool_]:
        """Shape (num_links,), bool: links inside a server."""
        low, high = self.num_hosts, self.num_hosts + self.num_servers
        is_inside = [(low <= end) & (end < high) for end in (self.link_src, self.link_dst)]
        return np.asarray(is_inside[0] | is_inside[1])

    @cached_property
    def from_switch(self) -> NDArray[np.intp]:
        """Links that leave a port of an Ethernet switch, ascending."""
        return np.flatnonzero((self.link_src >= self.num_hosts) & ~self.is_nvlink)

    @cached_property
    def into_switch(self) -> NDArray[np.intp]:
        """Links that enter a port of an Ethernet switch, ascending."""
        return np.flatnonzero((self.link_dst >= self.num_hosts) & ~self.is_nvlink)

    def ends(self, src: int, dst: int) -> tuple[int, int]:
        """The hosts between which two places talk: those on NVLink if it joins them, or NICs."""
        if self.num_servers:
            per_server = self.num_places // self.num_servers
            if src // per_server == dst // per_server:
                return self.num_places + src, self.num_places + dst
        return src, dst

    @cached_property
    def node_of_label(self) -> dict[int, int]:
        """Node id by label; the NIC of a GPU."""
        nodes = reversed(list(enumerate(self.node_label.tolist())))
        return {label: node for node, label in nodes}

    def describe(self, node: int) -> str:
        """Kind and label of a node, for messages."""
        if self.num_places <= node < self.num_hosts + self.num_servers:
            kind = "NVLink of host" if node < self.num_hosts else NVSWITCH
        else:
            kind = "host" if node < self.num_hosts else "switch"
        return f"{kind} {self.node_label[node]}"

    def tier(self, node: int) -> str:
        """What a node is: "host", the name of its tier, or "switch"."""
        if node < self.num_hosts:
            return "host"
        index = node - self.num_hosts
        for tier in self.tiers:
            if index < tier.size:
                return tier.name
            index -= tier.size
        return "switch"

    def host_of_label(self, label: int) -> int:
        """The host that a scenario or a file calls `label`.

        Raises:
            TopologyError: there is no such node, or it is a switch.
        """
        node = self.node_of_label.get(label)
        if node is not None and node < self.num_hosts:
            return node
        labels = self.node_label[: self.num_places]
        problem = "does not exist" if node is None else "is a switch, not a host"
        raise TopologyError(
            f"node {label} {problem}; the {self.num_places} hosts are within "
            f"{labels.min()} … {labels.max()}"
        )


def network_from_cables(
    num_hosts: int,
    num_switches: int,
    ends: ArrayLike,
    rate_bps: ArrayLike,
    delay_ps: ArrayLike,
    loss: ArrayLike = 0.0,
    node_label: ArrayLike | None = None,
    tiers: tuple[Tier, ...] = (),
    num_servers: int = 0,
    routed: ArrayLike | None = None,
) -> Network:
    """A network from cables, each of which becomes two directed links.

    Args:
        num_hosts, num_switches: as in :class:`Network`.
        ends: shape (num_cables, 2), node ids; link 2k leads from the first to the second.
        rate_bps, delay_ps, loss: one value, or shape (num_cables,).
        node_label: shape (num_hosts + num_switches,); None: a node's label is its id.
        tiers, num_servers: as in :class:`Network`.
        routed: shape (num_links,), as `link_routed`.
    """
    pairs = np.asarray(ends, np.int32).reshape(-1, 2)
    num_nodes = num_hosts + num_switches

    def per_link(values: ArrayLike) -> NDArray[np.generic]:
        return np.repeat(np.broadcast_to(np.asarray(values), len(pairs)), 2)

    return Network(
        num_hosts=num_hosts,
        num_switches=num_switches,
        link_src=np.ascontiguousarray(pairs.ravel()),
        link_dst=np.ascontiguousarray(pairs[:, ::-1].ravel()),
        link_rate_bps=per_link(rate_bps).astype(np.int64),
        link_delay_ps=per_link(delay_ps).astype(np.int64),
        link_loss=per_link(loss).astype(np.float64),
        node_label=np.asarray(
            np.arange(num_nodes) if node_label is None else node_label, dtype=np.int32
        ),
        tiers=tiers,
        num_servers=num_servers,
        link_routed=None if routed is None else np.asarray(routed, np.bool_),
    )
