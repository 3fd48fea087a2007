"""Senders that set a rate: DCQCN, TIMELY, HPCC, the RTT controller, users' own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bites import (
    NO_ECN,
    RED,
    Bite,
    Raw,
    delivered,
    flow,
    incast,
    mean_queue,
    peak_queue,
    star,
    tenant,
    total_rate,
    unfairness,
)

_SMALL_PACKETS = {"mtu_bytes": 1_024, "ack_every": 1}


def _staggered(cc: str, ecn: Raw = NO_ECN, **params: Any) -> Raw:
    """Four senders, one after the other."""
    flows = [flow(i + 1, 0, start_us=20 * i) for i in range(4)]
    own = {cc: params} if params or cc == "dcqcn" else {}
    nic = {"mtu_bytes": 1_024, "ack_every": 1}
    return star(tenant(flows, cc=cc, **own), classes=[{"ecn": ecn}], nic=nic)


_DCQCN = _staggered("dcqcn", RED)
_LATE = {"skip_us": 1_000.0}


def _dcqcn(name: str, *rest: Any, base: Raw = _DCQCN, **more: Any) -> Bite:
    return Bite(f"tenants.0.dcqcn.{name}", *rest, base, **more)


def _climbing(**params: Any) -> Raw:
    """One sender that was cut while another one was there for 100 us."""
    fast = {"increase_timer_us": 20, "rate_ai_mbps": 100, "rate_hai_mbps": 1_000} | params
    flows = [flow(1, 0), flow(2, 0, 1_000_000)]
    return star(tenant(flows, dcqcn=fast), classes=[{"ecn": RED}], nic=_SMALL_PACKETS)


_ALL_THE_WAY = _climbing(clamp_target_rate=True)  # the target does not lie at line rate
_BY_TIMER = _climbing(clamp_target_rate=True, byte_counter_bytes=10_000_000)  # mostly additive

DCQCN = [
    _dcqcn("enabled", False, True, peak_queue, False),
    _dcqcn("alpha_interval_us", 1, 55, delivered, False, **_LATE),
    _dcqcn("decrease_interval_us", 4, 100, mean_queue, True),
    _dcqcn("increase_timer_us", 20, 300, delivered, False, base=_climbing()),
    _dcqcn("byte_counter_bytes", 20_000, 2_000_000, delivered, False, base=_ALL_THE_WAY),
    _dcqcn("fast_recovery_times", 1, 20, delivered, False, base=_BY_TIMER),
    _dcqcn("rate_ai_mbps", 10, 1_000, delivered, True, base=_BY_TIMER),
    _dcqcn("rate_hai_mbps", 100, 10_000, delivered, True, base=_climbing()),
    _dcqcn("min_rate_mbps", 100, 40_000, mean_queue, True, **_LATE),
    _dcqcn("max_rate_mbps", 10_000, 90_000, total_rate, True, us=10),
    _dcqcn("g", 0.001, 0.1, delivered, True, base=_climbing(), us=150),
    _dcqcn("initial_alpha", 0.05, 1, mean_queue, False),
    _dcqcn("alpha_cap", 0.05, 1, mean_queue, False),
    _dcqcn("cut_divisor", 1, 2, mean_queue, True),
    _dcqcn("min_decrease_factor", 0.1, 0.95, mean_queue, True),
    _dcqcn("first_cnp_rate_mbps", 1_000, 50_000, mean_queue, True),
    _dcqcn("clamp_target_rate", False, True, delivered, False, base=_climbing()),
    _dcqcn(
        "clamp_target_rate_after_time_inc", False, True, total_rate, False, base=_climbing(), us=200
    ),
]

_TIMELY = _staggered("timely")


def _timely(name: str, *rest: Any, base: Raw = _TIMELY, **more: Any) -> Bite:
    return Bite(f"tenants.0.timely.{name}", *rest, base, least=0.1, **more)


TIMELY = [
    _timely("enabled", False, True, peak_queue, False),
    _timely("t_low_us", 10, 200, peak_queue, True),
    # With so large a minRTT gradients do not count: the queue grows to where PFC holds it.
    _timely(
        "t_high_us",
        100,
        1_000,
        mean_queue,
        True,
        base=_staggered("timely", min_rtt_us=1e6),
        **_LATE,
    ),
    _timely("min_rtt_us", 20, 100, peak_queue, True),
    _timely("ewma_weight", 0.1, 0.875, peak_queue, False),
    _timely("beta", 0.1, 0.8, peak_queue, False),
    _timely("rate_ai_mbps", 10, 1_000, delivered, True, **_LATE),
    _timely("rate_hai_mbps", 50, 500, delivered, True, **_LATE),
    _timely("hai_after", 0, 50, delivered, False, **_LATE),
    _timely("min_rate_mbps", 100, 5_000, delivered, True, **_LATE),
    _timely("max_rate_mbps", 5_000, 20_000, delivered, True, **_LATE),
]

_HPCC = _staggered("hpcc")


def _hpcc(name: str, *rest: Any, base: Raw = _HPCC, **more: Any) -> Bite:
    return Bite(f"tenants.0.hpcc.{name}", *rest, base, least=0.1, **more)


def _left_alone() -> Raw:
    """A sender whose rate climbs after another one has gone."""
    flows = [flow(1, 0), flow(2, 0, 2_000_000)]
    return star(tenant(flows, cc="hpcc"), nic={"ack_every": 1})


HPCC = [
    _hpcc("enabled", False, True, peak_queue, False),
    _hpcc("target_utilisation", 0.5, 0.95, delivered, True, **_LATE),
    _hpcc("max_stage", 0, 1_000_000, total_rate, False, base=_left_alone(), us=400),
    _hpcc("rate_ai_mbps", 10, 1_000, unfairness, False, **_LATE),
    _hpcc("rate_ai_mbps", 10, 1_000, mean_queue, True, **_LATE),
    _hpcc("min_rate_mbps", 100, 40_000, mean_queue, True, **_LATE),
    _hpcc("max_rate_mbps", 5_000, 20_000, delivered, True, **_LATE),
    _hpcc(
        "tx_unit_bytes", 1, 8_192, delivered, False, **_LATE
    ),  # a packet counts as eight, or none
    _hpcc("queue_unit_bytes", 1, 65_536, peak_queue, True),  # shorter ones are not seen
]


def _rtt(name: str, *rest: Any, **more: Any) -> Bite:
    return Bite(f"tenants.0.rtt.{name}", *rest, incast("rtt"), **more)


RTT = [
    _rtt("enabled", False, True, mean_queue, False),
    _rtt("target_us", 8, 40, mean_queue, True),
    _rtt("gain", 0.1, 1, mean_queue, False),
    _rtt("rate_ai_mbps", 10, 1_000, delivered, True, **_LATE),
    _rtt("min_rate_mbps", 10, 40_000, total_rate, True),
    _rtt("max_rate_mbps", 10_000, 90_000, mean_queue, True),
]

_FOLDER = Path(__file__).parent
_EXAMPLE = str(_FOLDER.parents[1] / "docs" / "examples" / "my_sender.py")
_CONSTANT = str(_FOLDER / "constant_senders.py")


def _user(name: str, *rest: Any, **more: Any) -> Bite:
    sender = {"file": _EXAMPLE, "function": "delay_and_cnp", "params": [12.0, 0.8, 0.01]}
    base = incast("user", tenant={"user": sender | more.pop("sender", {})})
    return Bite(f"tenants.0.user.{name}", *rest, base, **more)


USER = [
    _user("enabled", False, True, mean_queue, False),
    _user("file", _CONSTANT, _EXAMPLE, total_rate, True),  # always a tenth; what delays allow
    _user("function", "a_fifth", "a_half", total_rate, True, sender={"file": _CONSTANT}),
    _user("params", [6.0, 0.8, 0.01], [60.0, 0.8, 0.01], mean_queue, True),
    _user("min_rate_mbps", 10, 40_000, total_rate, True),
    _user("max_rate_mbps", 10_000, 90_000, mean_queue, True),
]

_THROTTLED = incast("int_throttle", nic=_SMALL_PACKETS)
_TIGHT = incast("int_throttle", 2, nic=_SMALL_PACKETS, switch={"buffer_bytes": 1_500_000})


def _throttle(name: str, *rest: Any, base: Raw = _THROTTLED, **more: Any) -> Bite:
    return Bite(f"tenants.0.int_throttle.{name}", *rest, base, **more)


INT_THROTTLE = [
    _throttle("enabled", False, True, mean_queue, False),
    _throttle("start_fraction", 0.1, 0.6, mean_queue, True),
    _throttle("full_fraction", 0.65, 1.0, peak_queue, True),
    _throttle("gain", 0.1, 1.0, peak_queue, False),
    _throttle("rate_ai_mbps", 10, 1_000, delivered, True),
    _throttle("min_rate_mbps", 10, 40_000, mean_queue, True),
    _throttle("max_rate_mbps", 10_000, 90_000, mean_queue, True),
    # The reference is old: from a high one rates swing.
    _throttle("update_interval_us", 5, 100, delivered, False, base=_TIGHT),
]

_SLOW = incast("none", tenant={"none": {"max_rate_mbps": 5_000}})

NONE = [
    # Off, the limit does not hold either.
    Bite("tenants.0.none.enabled", False, True, delivered, False, _SLOW),
    Bite("tenants.0.none.max_rate_mbps", 5_000, 20_000, delivered, True, _SLOW),
]
