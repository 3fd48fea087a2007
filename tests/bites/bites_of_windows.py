"""Senders that set a window: Swift, Reno, DCTCP, credits; and windows given by hand."""

from __future__ import annotations

from typing import Any

from bites import (
    NO_ECN,
    RED,
    Bite,
    Raw,
    delivered,
    drops,
    flow,
    incast,
    mean_queue,
    packets_sent,
    peak_queue,
    tenant,
    total_rate,
)

_SIZE = 4_000_000
_SWIFT = incast("swift", size=_SIZE)
_DEEP = {"initial_cwnd": 100, "base_target_us": 5}


def _swift(name: str, *rest: Any, base: Raw = _SWIFT, **more: Any) -> Bite:
    return Bite(f"tenants.0.swift.{name}", *rest, base, least=0.01, **more)


def _busy_receiver() -> Raw:
    """The receiver sends, too: an ACK waits for the packet under way and for its turn."""
    classes = [
        {"name": "roce", "priority": 3, "ecn": NO_ECN},
        {"name": "other", "priority": 5, "ecn": NO_ECN},
    ]
    talker = tenant([flow(0, 5, _SIZE)], "b", traffic_class="other")
    base = incast("swift", size=_SIZE, classes=classes)
    return base | {"tenants": [*base["tenants"], talker]}


def _dead_end() -> Raw:
    """Nothing arrives."""
    dead = {"kind": "lossy", "between": [3, 0], "loss": 1.0}
    nic = {"retransmit_timeout_us": 60}
    own = {"swift": {"initial_cwnd": 100}}
    return incast("swift", senders=1, tenant=own, nic=nic, link_events=[dead])


SWIFT = [
    _swift("enabled", False, True, mean_queue, False),
    _swift("base_target_us", 8, 40, mean_queue, True),
    _swift("hop_target_us", 0, 20, mean_queue, True),
    _swift("endpoint_target_us", 0.05, 20, delivered, True, base=_busy_receiver(), us=300),
    _swift("fs_range_us", 0, 100, mean_queue, True),
    _swift("fs_min_cwnd", 0.01, 1, mean_queue, True),
    _swift("fs_max_cwnd", 10, 1_000, mean_queue, True),
    _swift("ai", 0.1, 10, mean_queue, True),
    _swift("beta", 0.1, 1, mean_queue, False),
    _swift("max_mdf", 0.05, 0.9, mean_queue, False, base=incast("swift", tenant={"swift": _DEEP})),
    _swift("retransmit_reset", 1, 5, packets_sent, True, base=_dead_end(), us=190),
    _swift("initial_cwnd", 1, 100, peak_queue, True),
    _swift(
        "min_cwnd",
        0.01,
        4,
        mean_queue,
        True,
        base=incast("swift", senders=40, tenant={"swift": _DEEP | {"initial_cwnd": 5}}),
    ),
    _swift("max_cwnd", 10, 1_000, mean_queue, True),
    _swift("max_rate_mbps", 10_000, 90_000, total_rate, True),
]

_SHALLOW = {
    "lossless": False,
    "ecn": NO_ECN,
    "buffer": {"static_threshold_bytes": 50_000, "reserved_bytes": 0},
}
_LOSSY: Raw = {"classes": [_SHALLOW], "nic": {"retransmit_timeout_us": 200}}
_MARKED: Raw = {"classes": [{"ecn": {"kmin_bytes": 100_000, "kmax_bytes": 100_000, "pmax": 1.0}}]}


def _tcp(cc: str, sections: Raw) -> list[Bite]:
    """What Reno and DCTCP have in common."""
    base, path = incast(cc, size=_SIZE, **sections), f"tenants.0.{cc}."
    lossy = incast(cc, size=_SIZE, **_LOSSY)
    return [
        Bite(path + "enabled", False, True, mean_queue, False, incast(cc, size=_SIZE), us=200),
        Bite(path + "initial_window_bytes", 4_096, 1_000_000, peak_queue, True, base),
        Bite(
            path + "initial_ssthresh_bytes",
            10_000,
            4_194_304,
            mean_queue,
            True,
            base,
            us=300,
            least=0.02,
        ),
        Bite(path + "max_window_bytes", 20_000, 4_194_304, mean_queue, True, base),
        Bite(path + "additive_packets", 0.1, 10, mean_queue, True, base),
        Bite(path + "loss_factor", 0.2, 0.9, drops, True, lossy, least=0.02),
        Bite(path + "max_rate_mbps", 10_000, 90_000, total_rate, True, base),
    ]


_OF_DCTCP = incast("dctcp", size=_SIZE, **_MARKED)

TCP = [
    *_tcp("reno", _LOSSY),
    *_tcp("dctcp", _MARKED),
    Bite("tenants.0.dctcp.g", 0.002, 0.1, mean_queue, True, _OF_DCTCP, least=0.02),
    Bite("tenants.0.dctcp.initial_alpha", 0, 1, mean_queue, False, _OF_DCTCP, us=300, least=0.02),
]


def _credit(name: str, *rest: Any, **more: Any) -> Bite:
    return Bite(f"tenants.0.credit.{name}", *rest, incast("credit", size=_SIZE), **more)


CREDIT = [
    _credit("enabled", False, True, mean_queue, False, us=200),
    _credit("initial_window_bytes", 4_096, 500_000, peak_queue, True),
    _credit("credit_bytes", 1_000, 40_000, delivered, True),
    _credit("host_window_bytes", 10_000, 150_000, delivered, True),
    _credit("pace", 0.5, 1.0, mean_queue, True),
    _credit("max_rate_mbps", 10_000, 90_000, total_rate, True),
]


def _window(name: str, *rest: Any, bytes_: Any = "bdp", **more: Any) -> Bite:
    own = {"dcqcn": {}, "window": {"bytes": bytes_}}
    nic = {"mtu_bytes": 1_024, "ack_every": 1}
    base = incast("dcqcn", tenant=own, classes=[{"ecn": RED}], nic=nic)
    return Bite(f"tenants.0.window.{name}", *rest, base, **more)


WINDOW = [
    _window("bytes", 10_000, 200_000, peak_queue, True),
    _window("follows_rate", False, True, peak_queue, False, bytes_=200_000),
    _window("base_rtt_us", 4, 20, peak_queue, True),
]
