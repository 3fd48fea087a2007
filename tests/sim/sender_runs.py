"""A small fabric on which senders are compared."""

from __future__ import annotations

from typing import Any

from roce_gym.config import validate_scenario
from roce_gym.fabric import Fabric
from roce_gym.telemetry import Interval

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
            "tenants": [tenant],
        }
    )
    fabric = Fabric(scenario, seed)
    if skip_us:
        fabric.advance(us=skip_us)
    return fabric.advance(us=us)


def delivered(interval: Interval) -> float:
    """Bytes that arrived in order."""
    return float(interval.delivered_bytes.sum())


def mean_queue(interval: Interval) -> float:
    """Bytes, of the queues towards the receiver, on average over time."""
    return float(interval.queue_mean_bytes[1].sum())


def pauses(interval: Interval) -> float:
    """PAUSE frames."""
    return float(interval.pause_frames.sum())
