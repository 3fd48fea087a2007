"""Cables that are alike, by the bundle."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from roce_gym.topology.graph import Network, Tier, network_from_cables
from roce_gym.units import gbps_to_bps, ns_to_ps


class Bundle(NamedTuple):
    """Cables of one rate and delay.

    Attributes:
        ends: shape (num_cables, 2), node ids.
        rate_gbps: of each.
        delay_ns: of each, one way.
    """

    ends: NDArray[Any]
    rate_gbps: float
    delay_ns: float


def network_from_bundles(
    num_hosts: int, tiers: tuple[Tier, ...], bundles: Sequence[Bundle], **more: Any
) -> Network:
    """A network of all bundles' cables in their order.

    Args:
        num_hosts, tiers: as in :class:`Network`; the tiers hold all switches.
        bundles: the first holds the hosts' cables.
        more: for :func:`network_from_cables`.
    """
    counts = [len(bundle.ends) for bundle in bundles]
    return network_from_cables(
        num_hosts=num_hosts,
        num_switches=sum(tier.size for tier in tiers),
        ends=np.concatenate([bundle.ends for bundle in bundles]),
        rate_bps=np.repeat([gbps_to_bps(bundle.rate_gbps) for bundle in bundles], counts),
        delay_ps=np.repeat([ns_to_ps(bundle.delay_ns) for bundle in bundles], counts),
        tiers=tiers,
        **more,
    )


def host_cables(leaves: int, hosts_per_leaf: int) -> NDArray[np.int64]:
    """Shape (num_hosts, 2): each host and its leaf, where leaves follow the hosts."""
    host = np.arange(leaves * hosts_per_leaf)
    return np.stack([host, len(host) + host // hosts_per_leaf], axis=1)


def all_to_all(low: NDArray[np.int64], high: NDArray[np.int64]) -> NDArray[np.int64]:
    """Shape (len(low) * len(high), 2): a cable from each lower switch to each higher one."""
    return np.stack([np.repeat(low, len(high)), np.tile(high, len(low))], axis=1)
