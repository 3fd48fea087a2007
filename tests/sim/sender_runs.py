"""Small fabrics on which senders are compared: what moves if a parameter moves."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from roce_gym.config import validate_scenario
from roce_gym.fabric import Fabric
from roce_gym.telemetry import Interval
from roce_gym.topology import build_network

NO_ECN = {"enabled": False, "kmin_bytes": 0, "kmax_bytes": 0, "pmax": 0.0}


def incast(
    cc: str,
    params: dict[str, Any] | None = None,
    *,
    senders: int = 4,
    size: int = 4_000_000,
    us: float = 1_000.0,
    skip_us: float = 0.0,
    classes: list[dict[str, Any]] | None = None,
    nic: dict[str, Any] | None = None,
    background: list[dict[str, Any]] | None = None,
    dead_link: int | None = None,
    seed: int = 1,
) -> Interval:
    """`senders` hosts send `size` bytes each to one other, on one switch at 100 Gb/s.

    Host i sends on link 2i. Returns what happens from `skip_us` on, for `us`.
    """
    flows = [{"src": i + 1, "dst": 0, "bytes": size} for i in range(senders)]
    tenant = {
        "name": "a",
        "hosts": list(range(senders + 2)),
        "cc": cc,
        cc: params or {},
        "jobs": [{"kind": "flows", "flows": flows}],
    }
    scenario = validate_scenario(
        {
            "name": "incast",
            "topology": {"kind": "star", "hosts": senders + 2},
            "nic": nic or {},
            "classes": classes or [{"ecn": NO_ECN}],
            "tenants": [tenant, *(background or [])],
        }
    )
    network = build_network(scenario.topology)
    if dead_link is not None:
        loss = np.zeros(network.num_links)
        loss[dead_link] = 1.0
        network = replace(network, link_loss=loss)
    fabric = Fabric(scenario, seed, network=network)
    if skip_us:
        fabric.advance(us=skip_us)
    return fabric.advance(us=us)


def delivered(interval: Interval) -> float:
    """Bytes that arrived in order."""
    return float(interval.delivered_bytes.sum())


def mean_queue(interval: Interval) -> float:
    """Bytes, of the queues towards the receiver, on average over time."""
    return float(interval.queue_mean_bytes[1].sum())


def peak_queue(interval: Interval) -> float:
    """Bytes, of the longest queue towards the receiver."""
    return float(interval.queue_max_bytes[1].max())


def total_rate(interval: Interval) -> float:
    """Bit/s, of all senders at the end."""
    return float(interval.rate_bps.sum())


def sent_packets(interval: Interval) -> float:
    """Packets that hosts sent."""
    return float(interval.tx_packets[2::2].sum())


def pauses(interval: Interval) -> float:
    """PAUSE frames."""
    return float(interval.pause_frames.sum())


def last_end_us(interval: Interval) -> float:
    """When the last flow was complete."""
    return float(np.max(interval.completions["end_ps"])) / 1e6
