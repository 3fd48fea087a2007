"""The rules, one a function: each looks at a :class:`View` and names suspects with evidence.

They use what operators have: counters of switches and NICs, speeds, and who is at the other end.
Thresholds and their reasons stand beside them, and in docs/measurements.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from roce_gym.diagnose.view import MAX_QUANTA, QUANTUM_BITS, View

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Suspect:
    """What may be wrong.

    Attributes:
        rule: name of the rule.
        device, port: where.
        verdict: what is suspected, in a sentence.
        evidence: what was seen, a sentence each.
    """

    rule: str
    device: str
    port: str
    verdict: str
    evidence: tuple[str, ...]


Rule = Callable[[View], Iterator[Suspect]]

# --------------------------------------------------------------------------- storming NIC

STORM_SHARE = 0.9
"""Of an interval: a receiver that is merely slow lets packets through in between."""

STORM_HOLDS = 3
"""Times the longest that one pause frame holds (65,535 quanta): so long in one piece, somebody must
have sent pauses again and again. SONiC's watchdog waits for 200 ms, as it acts on it."""


def storming_nic(view: View) -> Iterator[Suspect]:
    """A NIC that keeps its switch paused.

    A healthy host takes what comes as fast as it comes, and pauses for moments at most (Guo et al.,
    SIGCOMM 2016, section 4.3).
    """
    for port, place in enumerate(view.places):
        if not view.faces_nic(port):
            continue
        hold_us = 1e6 * MAX_QUANTA * QUANTUM_BITS / view.speed_bps[port]
        for priority in view.timeline.priorities:
            shares = view.paused(priority)[:, port]
            longest = _longest_run(shares >= STORM_SHARE)
            time_us = view.total_us(longest)
            if time_us < STORM_HOLDS * hold_us:
                continue
            start_us = view.timeline.time_us[:-1][longest][0]
            evidence = [
                f"{place} was paused {_percent(shares[longest].mean())} of the time for "
                f"{time_us:,.0f} us from {start_us:,.0f} us on, priority {priority}"
            ]
            nic = view.facing[port]
            sent = view.growth(f"tx_prio{priority}_pause")[:, nic] if nic >= 0 else np.zeros(0)
            if np.isfinite(sent).any():
                others = [p for p in range(len(view.places)) if p != nic]
                rest = view.growth(f"tx_prio{priority}_pause")[:, others]
                evidence.append(
                    f"{place.neighbor} sent {np.nansum(sent):,.0f} pause frames, all other NICs "
                    f"together {np.nansum(rest):,.0f}"
                )
            yield Suspect(
                "storming_nic",
                place.neighbor,
                view.places[nic].port if nic >= 0 else "",
                f"the NIC of {place.neighbor} storms: it keeps pausing {place.device}",
                tuple(evidence),
            )


# --------------------------------------------------------------------------- deadlock


def pfc_deadlock(view: View) -> Iterator[Suspect]:
    """Switches that pause each other in a circle, to the end.

    Each waits for the next to take packets, so that none ever will. A port counts if at the end of
    the timeline it has been paused for longer than one pause frame holds, and sent nothing.
    """
    for priority in view.timeline.priorities:
        time_us = {port: _stuck_us(view, port, priority) for port in range(len(view.places))}
        hold_us = 1e6 * MAX_QUANTA * QUANTUM_BITS / view.speed_bps
        circle = _circle(view, [port for port, us in time_us.items() if us >= hold_us[port]])
        if not circle:
            continue
        names = ", ".join(str(view.places[port]) for port in circle)
        yield Suspect(
            "pfc_deadlock",
            view.places[circle[0]].device,
            view.places[circle[0]].port,
            "switches pause each other in a circle (deadlock)",
            (
                f"paused for the last {min(time_us[port] for port in circle):,.0f} us or so, "
                f"priority {priority}, each by the switch of the next: {names}",
            ),
        )


def _stuck_us(view: View, port: int, priority: int) -> float:
    """How long a switch port has been paused at the end; 0 if it sent something lately."""
    if not view.is_switch[port] or view.utilisation[-1, port] > 0:
        return 0.0
    shares = view.paused(priority)[:, port]
    whole = _last_run(shares >= STORM_SHARE)
    if not whole.any():
        return 0.0
    first = int(np.flatnonzero(whole)[0])
    if first > 0:  # the pause may have begun in the middle of the interval before
        whole[first - 1] = True
    return float(np.nansum(shares[whole] * view.dt_us[whole, 0]))


def _circle(view: View, stuck: list[int]) -> list[int]:
    """Ports of which each leads to the switch of the next; empty if there is no such circle."""
    at: dict[str, list[int]] = {}
    for port in stuck:
        at.setdefault(view.places[port].device, []).append(port)
    alive = set(stuck)
    while True:  # what leads nowhere is no part of a circle
        ends = {p for p in alive if not alive & set(at.get(view.places[p].neighbor, []))}
        if not ends:
            break
        alive -= ends
    if not alive:
        return []
    path = [min(alive)]
    while True:
        following = min(alive & set(at[view.places[path[-1]].neighbor]))
        if following in path:
            return path[path.index(following) :]
        path.append(following)


# --------------------------------------------------------------------------- gray links

BIT_ERROR_RATE = 1e-12
"""The worst that IEEE 802.3 allows a link to pass on (after error correction, where there is)."""

CHANCE = 0.01
"""A link that is just good enough is named with this probability."""


def corrupting_link(view: View) -> Iterator[Suspect]:
    """A link with more wrong checksums than the standard allows: a bent or dirty fibre."""
    packets, octets = view.received
    for port, place in enumerate(view.places):
        errors = np.nansum(view.errors[:, port])
        expected = 8.0 * np.nansum(octets[:, port]) * BIT_ERROR_RATE
        if errors < 1 or _poisson_tail(int(errors), expected) >= CHANCE:
            continue
        good = np.nansum(packets[:, port])
        evidence = [
            f"{place} received {errors:,.0f} packets with a wrong checksum and {good:,.0f} good "
            f"ones: 1 in {(good + errors) / errors:,.0f}; a good link has {expected:.2g} of them"
        ]
        naks = np.nansum(view.growth("packet_seq_err"))
        if naks:
            evidence.append(f"NICs counted {naks:,.0f} NAKs for missing packets")
        frames = np.nansum(view.pfc_sent)
        evidence.append(f"the fabric sent {frames:,.0f} PFC frames")
        yield Suspect(
            "corrupting_link",
            place.neighbor,
            _port_at(view, port),
            f"the link from {place.neighbor} to {place.device} corrupts packets: look at its "
            "fibre and optics",
            tuple(evidence),
        )


BACKLOG_US = 5.0
"""At nominal speed: more than a few packets, so that the port had something to send."""

SLOW_SHARE = 0.75
"""Of the nominal speed: 20 % are lost at most when a queue empties for a while in between."""

FREE_SHARE = 0.1
"""Of the time: a port that is paused longer has a reason not to send."""

SLOW_SAMPLES = 3
"""Intervals in a row: a queue that is found filled at both ends of one may have emptied."""


def slow_link(view: View) -> Iterator[Suspect]:
    """A port with a backlog that is not paused and still sends slowly.

    A working port sends at its speed as long as it has something to send. Behind one that does not,
    pauses rise, and throughput does not.
    """
    before, after = view.queue_bytes
    backlog_us = 8e6 * np.minimum(before, after) / view.speed_bps
    slow = (backlog_us >= BACKLOG_US) & (view.utilisation < SLOW_SHARE)
    slow &= view.most_paused < FREE_SHARE
    frames = _by_device(view, view.pfc_sent)
    for port, place in enumerate(view.places):
        longest = _longest_run(slow[:, port])
        if longest.sum() < SLOW_SAMPLES:
            continue
        share = view.utilisation[longest, port].mean()
        rate = np.nansum(frames[place.device][longest]) / (view.total_us(longest) * 1e-6)
        others = ~longest
        before_rate = np.nansum(frames[place.device][others]) / max(
            view.total_us(others) * 1e-6, 1e-12
        )
        evidence = [
            f"{place} sent at {share * place.speed_gbps:,.1f} Gb/s, {_percent(share)} of its "
            f"speed, for {view.total_us(longest):,.0f} us, with "
            f"{np.nanmean(after[longest, port]):,.0f} B waiting and paused "
            f"{_percent(view.most_paused[longest, port].mean())} of the time",
            f"{place.device} sent {rate:,.0f} PFC frames a second meanwhile"
            + (f", {before_rate:,.0f} at other times" if others.any() else ""),
        ]
        yield Suspect(
            "slow_link",
            place.device,
            place.port,
            f"the link from {place.device} to {place.neighbor} is slower than it says (or its "
            "queue is shaped)",
            tuple(evidence),
        )


def silent_loss(view: View) -> Iterator[Suspect]:
    """NICs miss packets that nobody counts: lost without a trace, or overtaken by others."""
    naks = view.growth("packet_seq_err")
    total = np.nansum(naks)
    dropped = sum(np.nansum(view.dropped(p)) for p in view.timeline.priorities)
    watched = np.nansum(view.total("PFC_WD_QUEUE_STATS_TX_DROPPED_PACKETS:{p}"))
    errors = np.nansum(view.errors)
    if not np.isfinite(view.errors).any() or not total or errors or dropped or watched:
        return
    nics = np.flatnonzero(np.nansum(naks, axis=0) > 0)
    worst = int(nics[np.nansum(naks[:, nics], axis=0).argmax()])
    yield Suspect(
        "silent_loss",
        view.places[worst].device,
        view.places[worst].port,
        "packets are lost where nothing counts them (a link that went down, or no route), or "
        "overtaken on other paths",
        (
            f"{len(nics)} NICs were told of {total:,.0f} missing packets, most of them "
            f"{view.places[worst].device}; no port counted a wrong checksum, no switch a drop",
        ),
    )


# --------------------------------------------------------------------------- buffers

FULL_SHARE = 0.9
"""Of the shared buffer: dynamic thresholds have fallen to a tenth of what they are when empty."""


def exhausted_pool(view: View) -> Iterator[Suspect]:
    """A switch whose shared buffer is used up, or that drops packets of a lossless class."""
    used = view.level("SAI_BUFFER_POOL_STAT_CURR_OCCUPANCY_BYTES")
    shared = view.level("SAI_BUFFER_POOL_ATTR_SHARED_SIZE")
    size = np.where(np.isnan(shared), view.level("SAI_BUFFER_POOL_ATTR_SIZE"), shared)
    share = used / np.where(size > 0, size, np.nan)
    for device, ports in _ports_by_device(view).items():
        if not view.is_switch[ports].any():
            continue
        evidence = []
        full = np.asarray((share[:, ports] >= FULL_SHARE).any(axis=1))
        if full.any():
            peak = np.nanmax(share[:, ports])
            evidence.append(
                f"{device} held as much as {_percent(peak)} of its shared buffer, and "
                f"{_percent(FULL_SHARE)} or more in {full.sum()} of {len(full)} samples"
            )
        worst, lost = -1, 0.0
        for priority in view.timeline.priorities:
            _, headroom = view.headroom(priority)
            dropped = np.where(headroom > 0, view.dropped(priority), np.nan)[:, ports]
            if np.nansum(dropped) > 0:
                here = np.nansum(dropped, axis=0)
                if here.max() > lost:
                    worst, lost = ports[int(here.argmax())], here.max()
                evidence.append(
                    f"{device} dropped {here.sum():,.0f} packets of priority {priority}, which is "
                    f"lossless: most of them came in at {view.places[ports[int(here.argmax())]]}"
                )
        if evidence:
            yield Suspect(
                "exhausted_pool",
                device,
                view.places[worst].port if worst >= 0 else "",
                f"the buffer of {device} is exhausted: look at thresholds, reserves and headroom",
                tuple(evidence),
            )


# --------------------------------------------------------------------------- load

SATURATED_SHARE = 0.95
"""Of the nominal speed, overhead included: nothing more fits in than by luck."""

IDLE_SHARE = 0.5
"""Of the nominal speed: half of the other's load would have room there."""

COLLISION_SHARE = 0.1
"""Of the time: less is what bursts do on any fabric with static hashing."""

MIN_SAMPLES = 3
"""Fewer may be one burst that happened to meet the clock."""


def ecmp_collision(view: View) -> Iterator[Suspect]:
    """Equal uplinks of a switch of which one is full while another has room.

    Hashing has put too many large flows on one.
    """
    for device, ports in view.uplinks.items():
        load = view.utilisation[:, ports]
        free = np.where(view.most_paused[:, ports] < FREE_SHARE, load, np.nan)
        is_full, is_free = load >= SATURATED_SHARE, free <= IDLE_SHARE
        uneven: Mask = np.asarray(is_full.any(axis=1) & is_free.any(axis=1))
        count = int(uneven.sum())
        if count < MIN_SAMPLES or count < COLLISION_SHARE * len(uneven):
            continue
        mean = load[uneven].mean(axis=0)
        full, idle = ports[int(mean.argmax())], ports[int(mean.argmin())]
        peak = np.nanmax(view.queue_peak_bytes[uneven][:, full])
        yield Suspect(
            "ecmp_collision",
            device,
            view.places[full].port,
            f"large flows collide on an uplink of {device} while others have room (ECMP hash)",
            (
                f"{view.places[full]} sent at {_percent(mean.max())} of its speed and "
                f"{view.places[idle]} at {_percent(mean.min())}, in {count} of {len(uneven)} "
                f"intervals ({view.total_us(uneven):,.0f} us)",
                f"as much as {peak:,.0f} B waited at the full one",
            ),
        )


INCAST_US = 50.0
"""At nominal speed: ten round trips of a fabric, in which end-to-end control could have acted."""

FEEDING_SHARE = 0.1
"""Of what the port sent, for a port of the switch to count as one that feeds it."""


def incast(view: View) -> Iterator[Suspect]:
    """A port to a NIC that sends all it can with a long queue, fed by several ports.

    More comes for that host than its link carries.
    """
    wait_us = 8e6 * view.queue_peak_bytes / view.speed_bps
    busy = (wait_us >= INCAST_US) & (view.utilisation >= SATURATED_SHARE)
    busy &= view.most_paused < FREE_SHARE
    _, octets = view.received
    frames = _by_device(view, view.pfc_sent)
    for port, place in enumerate(view.places):
        at = busy[:, port]
        if not view.faces_nic(port) or at.sum() < MIN_SAMPLES:
            continue
        others = [p for p in _ports_by_device(view)[place.device] if p != port]
        came = octets[at][:, others].sum(axis=0)
        sent_bytes = (view.utilisation * view.dt_us)[at, port].sum() * view.speed_bps[port] / 8e6
        feeding = int((came >= FEEDING_SHARE * sent_bytes).sum())
        if np.isfinite(octets[:, others]).any() and feeding < 2:
            continue
        yield Suspect(
            "incast",
            place.device,
            place.port,
            f"incast into {place.neighbor}: more is sent to it than its link carries",
            (
                f"{place} was full for {view.total_us(at):,.0f} us ({at.sum()} of {len(at)} "
                f"intervals), with as much as {np.nanmax(view.queue_peak_bytes[at, port]):,.0f} B "
                f"waiting: {wait_us[at, port].max():,.0f} us at its speed",
                f"{feeding} other ports of {place.device} brought traffic meanwhile; it sent "
                f"{np.nansum(frames[place.device][at]):,.0f} PFC frames",
            ),
        )


RULES: dict[str, Rule] = {
    rule.__name__: rule
    for rule in (
        storming_nic,
        pfc_deadlock,
        corrupting_link,
        slow_link,
        silent_loss,
        exhausted_pool,
        ecmp_collision,
        incast,
    )
}
"""By name; what is broken comes before what is only loaded."""

# --------------------------------------------------------------------------- helpers


def _longest_run(mask: Mask) -> Mask:
    """Only the longest run of a mask, the first of those; nothing where there is none."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], mask, [False]]).astype(np.int8)))
    out = np.zeros(len(mask), np.bool_)
    if len(edges):
        starts, stops = edges[::2], edges[1::2]
        best = int((stops - starts).argmax())
        out[starts[best] : stops[best]] = True
    return out


def _last_run(mask: Mask) -> Mask:
    """Only the run of a mask that lasts to its end."""
    out: Mask = np.logical_and.accumulate(mask[::-1])[::-1]
    return out


def _poisson_tail(count: int, expected: float) -> float:
    """Probability of `count` or more where `expected` are to be expected."""
    if expected > count:
        return 1.0
    term, below = math.exp(-expected), 0.0
    for k in range(count):
        below += term
        term *= expected / (k + 1)
    # Where nearly nothing is expected, the difference from 1 drowns in rounding.
    return max(1.0 - below, term) if below > 0.5 else 1.0


def _port_at(view: View, port: int) -> str:
    """The port at the other end, if it is known."""
    facing = view.facing[port]
    return view.places[facing].port if facing >= 0 else ""


def _ports_by_device(view: View) -> dict[str, list[int]]:
    out: dict[str, list[int]] = {}
    for port, place in enumerate(view.places):
        out.setdefault(place.device, []).append(port)
    return out


def _by_device(view: View, values: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
    """Shape (S - 1,) each: sums over a device's ports."""
    return {
        device: np.nansum(values[:, ports], axis=1)
        for device, ports in _ports_by_device(view).items()
    }


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"
