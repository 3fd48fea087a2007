"""The network as plain arrays: nodes, directed links, and nothing about traffic."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roce_gym.errors import TopologyError


@dataclass(frozen=True)
class Network:
    """Hosts `0 … num_hosts - 1`, then switches; links `2k` and `2k + 1` are one cable's directions.

    Attributes:
        num_hosts: number of hosts; each has exactly one cable.
        num_switches: number of switches.
        link_src, link_dst: shape (num_links,), int32, node ids.
        link_rate_bps: shape (num_links,), int64.
        link_delay_ps: shape (num_links,), int64, one way.
        link_loss: shape (num_links,), float64, probability that a packet is lost.
        node_label: shape (num_hosts + num_switches,), int32, the node's id in the file it came
            from, or its own id.
    """

    num_hosts: int
    num_switches: int
    link_src: NDArray[np.int32]
    link_dst: NDArray[np.int32]
    link_rate_bps: NDArray[np.int64]
    link_delay_ps: NDArray[np.int64]
    link_loss: NDArray[np.float64]
    node_label: NDArray[np.int32]

    @property
    def num_links(self) -> int:
        """Directed links."""
        return len(self.link_src)

    @property
    def host_link(self) -> NDArray[np.int32]:
        """Shape (num_hosts,), int32: the link on which each host sends."""
        out = np.full(self.num_hosts, -1, np.int32)
        from_host = np.flatnonzero(self.link_src < self.num_hosts)
        out[self.link_src[from_host]] = from_host
        return out

    @property
    def host_rate_bps(self) -> int:
        """Link rate of the hosts (the highest, where they differ)."""
        return int(self.link_rate_bps[self.host_link].max())

    @cached_property
    def node_of_label(self) -> dict[int, int]:
        """Node id by label."""
        return {label: node for node, label in enumerate(self.node_label.tolist())}

    def describe(self, node: int) -> str:
        """Kind and label of a node, for messages."""
        kind = "host" if node < self.num_hosts else "switch"
        return f"{kind} {self.node_label[node]}"

    def host_of_label(self, label: int) -> int:
        """The host that a scenario or a file calls `label`.

        Raises:
            TopologyError: there is no such node, or it is a switch.
        """
        node = self.node_of_label.get(label)
        if node is not None and node < self.num_hosts:
            return node
        labels = self.node_label[: self.num_hosts]
        problem = "does not exist" if node is None else "is a switch, not a host"
        raise TopologyError(
            f"node {label} {problem}; the {self.num_hosts} hosts are within "
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
) -> Network:
    """A network from cables, each of which becomes two directed links.

    Args:
        num_hosts, num_switches: as in :class:`Network`.
        ends: shape (num_cables, 2), node ids; link 2k leads from the first to the second.
        rate_bps, delay_ps, loss: one value, or shape (num_cables,).
        node_label: shape (num_hosts + num_switches,); None: a node's label is its id.
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
    )
