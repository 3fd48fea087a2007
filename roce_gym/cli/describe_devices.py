"""Classes, buffers, PFC, shapers and NICs of a scenario as text."""

from __future__ import annotations

from typing import Any

from roce_gym.asics import ASICS
from roce_gym.cli.case import Case
from roce_gym.cli.catalogue import describe_asic
from roce_gym.cli.text import number, percent, short, table
from roce_gym.config import BufferConfig, ClassOverride, NicConfig


def shaper_rows(case: Case) -> list[tuple[str, str]]:
    """Rates that a class or tenant is held to."""
    settings = case.settings
    found = [(f"class {name}", "switch port", c.shaper) for name, c in settings.classes.items()]
    found += [(f"tenant {name}", "host", shaper) for name, shaper in settings.shapers.items()]
    return [
        (
            name,
            f"{short(s.rate_gbps)} Gb/s a {place}, bursts of {number(s.burst_bytes)} B"
            if s.rate_gbps
            else "no limit",
        )
        for name, place, s in found
        if s is not None
    ]


def class_table(case: Case, buffer: dict[str, Any]) -> str:
    """A row for each class; `buffer` is what `describe` found about the buffers."""
    rows = []
    for c in case.base.classes:
        chosen, room = case.settings.classes[c.name], buffer["classes"][c.name]
        low, high = room["headroom_per_port_min_bytes"], room["headroom_per_port_max_bytes"]
        static = chosen.buffer.static_threshold_bytes
        ecn = chosen.ecn
        rows.append(
            [
                c.name,
                "lossless" if c.lossless else "lossy",
                c.scheduling if c.scheduling != "dwrr" else f"dwrr {chosen.weight}",
                str(c.priority),
                number(ecn.kmin_bytes) if ecn.enabled else "off",
                number(ecn.kmax_bytes) if ecn.enabled else "off",
                short(ecn.pmax) if ecn.enabled and ecn.pmax else "-",
                short(chosen.buffer.alpha) if static is None else f"{number(static)} B",
                _queue_limit(chosen.buffer),
                number(chosen.buffer.reserved_bytes),
                number(c.xon_offset_bytes) if c.lossless else "-",
                number(low) if low == high else f"{number(low)}…{number(high)}",
                number(room["headroom_total_bytes"]),
                percent(room["headroom_share"], 1),
            ]
        )
    head = (
        "class,kind,scheduling,prio,ECN kmin B,kmax B,pmax,alpha,queue limit,reserve B/port,"
        "XON below B,headroom B/port,total B,of buffer"
    ).split(",")
    return table(head, rows, text_columns=3)


def override_rows(case: Case) -> list[tuple[str, str]]:
    """What some switches have in place of the above; a later row holds over an earlier one."""
    rows = []
    for one in case.settings.switch_overrides:
        labels = " ".join(map(str, one.switches))
        named = f"switch{'es' if len(one.switches) > 1 else ''} {labels}"
        which = f"all of tier {one.tier}" if one.tier else named
        for name, chosen in one.classes.items():
            rows.append((which, f"{name}: {_override(chosen)}"))
    return rows


def _override(chosen: ClassOverride) -> str:
    parts, ecn = [], chosen.ecn
    if ecn is not None:
        line = f"{number(ecn.kmin_bytes)} … {number(ecn.kmax_bytes)} B, pmax {ecn.pmax:g}"
        parts.append(f"ECN {line if ecn.enabled else 'off'}")
    if chosen.alpha is not None:
        parts.append(f"alpha {short(chosen.alpha)}")
    if chosen.static_threshold_bytes is not None:
        parts.append(f"threshold {number(chosen.static_threshold_bytes)} B")
    if chosen.reserved_bytes is not None:
        parts.append(f"reserve {number(chosen.reserved_bytes)} B/port")
    return ", ".join(parts) or "as the others"


def _queue_limit(buffer: BufferConfig) -> str:
    """Of a lossy class at a port."""
    if buffer.egress_limit_bytes is not None:
        return f"{number(buffer.egress_limit_bytes)} B"
    return "-" if buffer.egress_alpha is None else f"alpha {short(buffer.egress_alpha)}"


def buffer_rows(case: Case, buffer: dict[str, Any]) -> list[tuple[str, str]]:
    """How the buffer of a switch is split, and what depends on port rates."""
    whole, switch = buffer["buffer_bytes"], case.base.switch
    scaled = {"kmin, kmax": switch.ecn_scales_with_rate, "alpha": switch.alpha_scales_with_rate}
    growing = [name for name, grows in scaled.items() if grows]
    quantum = switch.dwrr_quantum_bytes
    return [
        *([("ASIC", _asic(buffer["asic"]))] if buffer["asic"] else []),
        ("total", f"{number(whole)} B a switch"),
        *(
            (name, f"{number(buffer[f'{name}_bytes'])} B, {percent(share, 1)}")
            for name in ("headroom", "reserved", "shared")
            for share in [buffer[f"{name}_bytes"] / whole]
        ),
        *(
            (f"  {' + '.join(pool['classes'])}", f"{number(pool['bytes'])} B")
            for pool in buffer["pools"]
            if len(buffer["pools"]) > 1
        ),
        ("grow with port rate", " and ".join(growing) or "nothing"),
        *([("DWRR", f"{number(quantum)} B of weight 1 a turn")] if quantum else []),
        ("at", f"{buffer['switch']}, {buffer['ports']} ports: the one with the least shared"),
    ]


def _asic(name: Any) -> str:
    return f"{name}: {describe_asic(ASICS[name])}"


def pfc_rows(case: Case) -> list[tuple[str, str]]:
    """Pauses, the watchdog, and storms."""
    pfc, dog = case.base.pfc, case.base.pfc.watchdog
    pause = "holds until resumed"
    if pfc.quanta:
        hold_us = pfc.quanta * 512 / case.network.host_rate_bps * 1e6
        pause = f"{number(pfc.quanta)} quanta, {short(hold_us)} us at host rate, sent again after "
        pause += percent(pfc.refresh_fraction, 0)
    watchdog = (
        f"{dog.action}, after {short(dog.detection_us)} us, until {short(dog.restoration_us)} us "
        f"without pauses; looks every {short(dog.poll_us)} us"
    )
    rows = [("pause", pause), ("watchdog", watchdog if dog.enabled else "off")]
    for storm in case.base.faults.storms:
        end = "for ever" if storm.stop_us is None else f"to {short(storm.stop_us)} us"
        text = f"host {storm.host} pauses class {storm.traffic_class} from "
        rows.append(("storm", f"{text}{short(storm.start_us)} us {end}"))
    return rows


def nic_rows(nic: NicConfig) -> list[tuple[str, str]]:
    """Frames, ACKs, CNPs, and what is done about losses."""
    cnp = "packets" if nic.cnp_mode == "packet" else "echoed in ACKs"
    window_bytes = nic.sender_window_bytes
    window = f"{number(window_bytes)} B" if window_bytes else "none"
    order = f"any, gaps count after {short(nic.reorder_wait_us)} us" if nic.out_of_order else "kept"
    return [
        ("MTU", f"{number(nic.mtu_bytes)} B, headers {nic.header_bytes} B"),
        (
            "ACK",
            f"every {nic.ack_every} packets, {nic.ack_bytes} B, "
            f"class {nic.ack_class or 'of the data'}"
            + (", whatever is paused" if nic.ack_ignores_pause else ""),
        ),
        (
            "CNP",
            f"{cnp}, at most one in {short(nic.cnp_interval_us)} us, "
            f"{nic.cnp_bytes} B, class {nic.cnp_class or 'of the data'}",
        ),
        ("window", window),
        ("order of data", order),
        ("recovery", f"{nic.recovery}, a gap is reported each {short(nic.nack_interval_us)} us"),
        (
            "timeout",
            f"{short(nic.retransmit_timeout_us)} us, {nic.retry_limit} retries"
            if nic.retransmit_timeout_us
            else "never",
        ),
    ]
