"""NICs: frames, ACKs, CNPs, windows, losses and what is sent again."""

from __future__ import annotations

from typing import Any

from bites import (
    NO_ECN,
    RED,
    Bite,
    Raw,
    back_in_second_class,
    bytes_back,
    cnps,
    completed,
    delivered,
    delivered_most,
    flow,
    incast,
    nacks,
    packets_back,
    packets_sent,
    peak_headroom,
    peak_queue,
    star,
    tenant,
)

_MARKING = incast(classes=[{"ecn": RED}], tenant={"dcqcn": {}})
_TWO_CLASSES = [
    {"name": "roce", "priority": 3, "ecn": RED},
    {"name": "control", "priority": 6, "ecn": NO_ECN, "scheduling": "strict"},
]
_SMALL = {"buffer_bytes": 1_500_000}


def _lossy(loss: float = 0.01, size: int = 100_000, **nic: Any) -> Raw:
    """Messages of a host to another one, on a cable that loses packets."""
    bad = {"kind": "lossy", "between": [3, 0], "direction": "forward", "loss": loss}
    job = {"kind": "incast", "bytes": size, "degree": 1, "period_us": 1}
    quiet = {"enabled": False}
    pair = {"name": "a", "hosts": [0, 1], "dcqcn": quiet, "jobs": [job]}
    topology = {"kind": "star", "hosts": 3}
    settings = {"mtu_bytes": 1_024, "ack_every": 1, "retransmit_timeout_us": 100} | nic
    return star(pair, topology=topology, link_events=[bad], nic=settings)


def _sprayed(**nic: Any) -> Raw:
    """Packets of four queue pairs on four ways: they overtake each other."""
    topology = {"kind": "leaf_spine", "leaves": 2, "hosts_per_leaf": 4, "spines": 4}
    flows = [flow(i, 4 + i) for i in range(4)] + [flow(4 + i, (i + 1) % 4) for i in range(4)]
    routing = {"policy": "spray_random"}
    settings = {"mtu_bytes": 1_024, "out_of_order": True} | nic
    return star(tenant(flows), topology=topology, routing=routing, nic=settings)


def _both_ways() -> Raw:
    """Host 0 acknowledges what host 1 sends, and is paused for what it sends itself."""
    window = {"bytes": 70_000, "follows_rate": False}
    others = [flow(src, 5) for src in (0, 2, 3, 4)]
    return star(tenant([flow(1, 0)], window=window), tenant(others, "b"), switch=_SMALL)


def _nic(name: str, *rest: Any, **more: Any) -> Bite:
    return Bite(f"nic.{name}", *rest, **more)


NIC = [
    _nic("mtu_bytes", 1_024, 4_096, packets_sent, False, incast(size=500_000)),
    _nic("header_bytes", 62, 500, delivered, False, incast()),
    _nic("ack_bytes", 66, 1_000, bytes_back, True, incast()),
    _nic("cnp_bytes", 78, 1_000, bytes_back, True, _MARKING),
    # Late pauses leave more in the headroom.
    _nic(
        "pfc_bytes", 64, 4_096, peak_headroom, True, incast(switch=_SMALL, nic={"mtu_bytes": 512})
    ),
    _nic("interframe_gap_bytes", 0, 64, delivered, False, incast(nic={"mtu_bytes": 512})),
    _nic("ack_every", 1, 64, packets_back, False, incast()),
    _nic("ack_class", None, "control", back_in_second_class, True, incast(classes=_TWO_CLASSES)),
    _nic(
        "cnp_class",
        None,
        "control",
        back_in_second_class,
        True,
        incast(classes=_TWO_CLASSES, tenant={"dcqcn": {}}),
    ),
    _nic("cnp_mode", "ack_echo", "packet", packets_back, True, _MARKING),
    _nic("cnp_interval_us", 1, 50, cnps, False, _MARKING),
    _nic("window_bytes", 70_000, 500_000, peak_queue, True, incast()),
    _nic("retransmit_timeout_us", 50, 300, packets_sent, False, _lossy(1.0, 4_000), us=1_000),
    _nic("retry_limit", 1, 7, packets_sent, True, _lossy(1.0, 4_000), us=1_500),
    _nic("nack_interval_us", 5, 500, nacks, False, _lossy(0.05)),
    _nic("out_of_order", False, True, delivered, True, _sprayed()),
    _nic("reorder_window_packets", 16, 512, delivered, True, _sprayed()),
    _nic("reorder_wait_us", 0, 100, nacks, False, _sprayed()),
    _nic("recovery", "go_back_0", "go_back_n", completed, True, _lossy(0.02)),
    _nic("ack_ignores_pause", False, True, delivered_most, True, _both_ways()),
]
