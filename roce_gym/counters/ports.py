"""The ports of a fabric's switches and NICs, called as an operator would find them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from roce_gym.topology.graph import Network


@dataclass(frozen=True)
class Port:
    """One end of a cable.

    Attributes:
        device: kind and label of the node, as everywhere in this package.
        name: `Ethernet<n>` of a switch, in the order of its cables; `eth0` of a NIC.
        neighbor, neighbor_port: the other end, as LLDP tells it.
        speed_gbps: nominal.
        is_switch: else a NIC.
        node: of the device.
        out, into: directed links on which it sends and receives.
    """

    device: str
    name: str
    neighbor: str
    neighbor_port: str
    speed_gbps: float
    is_switch: bool
    node: int
    out: int
    into: int


def ports_of(network: Network) -> list[Port]:
    """All ports of Ethernet: those of switches, then those of NICs; nothing of NVLink."""
    links = [*network.from_switch.tolist(), *network.nic_link.tolist()]
    names = {link: _name(network, link, links) for link in links}
    return [
        Port(
            device=network.describe(int(network.link_src[link])),
            name=names[link],
            neighbor=network.describe(int(network.link_dst[link])),
            neighbor_port=names[link ^ 1],
            speed_gbps=float(network.link_rate_bps[link] / 1e9),
            is_switch=bool(network.link_src[link] >= network.num_hosts),
            node=int(network.link_src[link]),
            out=link,
            into=link ^ 1,
        )
        for link in links
    ]


def _name(network: Network, link: int, links: list[int]) -> str:
    node = int(network.link_src[link])
    if node < network.num_hosts:
        return "eth0"
    before = np.flatnonzero(network.link_src == node)
    return f"Ethernet{int(np.searchsorted(before, link))}"
