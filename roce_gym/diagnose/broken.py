"""Rules for what is broken, one a function: NICs, circles of pauses, links.

Rules use what operators have: counters of switches and NICs, speeds, and who is at the other end.
Thresholds and their reasons stand beside them, and in docs/measurements.md.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from roce_gym.diagnose.suspect import (
    FREE_SHARE,
    Suspect,
    by_device,
    last_run,
    longest_run,
    percent,
    poisson_tail,
    port_at,
)
from roce_gym.diagnose.view import MAX_QUANTA, QUANTUM_BITS, View

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
            longest = longest_run(shares >= STORM_SHARE)
            time_us = view.total_us(longest)
            if time_us < STORM_HOLDS * hold_us:
                continue
            start_us = view.timeline.time_us[:-1][longest][0]
            evidence = [
                f"{place} was paused {percent(shares[longest].mean())} of the time for "
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
    the timeline it has been paused for longer than one pause frame holds, and sent nothing. Where
    ports to NICs are stuck as well, these are the reason, and there is no deadlock.
    """
    for priority in view.timeline.priorities:
        time_us = {port: _stuck_us(view, port, priority) for port in range(len(view.places))}
        hold_us = 1e6 * MAX_QUANTA * QUANTUM_BITS / view.speed_bps
        stuck = [port for port, us in time_us.items() if us >= hold_us[port]]
        circle = _circle(view, stuck)
        if not circle or any(view.faces_nic(port) for port in stuck):
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
    whole = last_run(shares >= STORM_SHARE)
    if not whole.any():
        return 0.0
    first = int(np.flatnonzero(whole)[0])
    if first > 0:  # the pause may have begun in the middle of the interval before
        whole[first - 1] = True
    return float(np.nansum(shares[whole] * view.dt_us[whole, 0]))


def _circle(view: View, stuck: list[int]) -> list[int]:
    """Ports of which each leads to the switch of the next; empty if there is no such circle.

    No packet goes back where it came from, so that two ports facing each other are no circle.
    """
    alive = set(stuck)

    def following(port: int) -> list[int]:
        here, there = view.places[port].device, view.places[port].neighbor
        after = ((other, view.places[other]) for other in sorted(alive))
        return [i for i, place in after if place.device == there and place.neighbor != here]

    while True:  # what leads nowhere is no part of a circle
        ends = {port for port in alive if not following(port)}
        if not ends:
            break
        alive -= ends
    if not alive:
        return []
    path = [min(alive)]
    while (step := following(path[-1])[0]) not in path:
        path.append(step)
    return path[path.index(step) :]


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
        if errors < 1 or poisson_tail(int(errors), expected) >= CHANCE:
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
            port_at(view, port),
            f"the link from {place.neighbor} to {place.device} corrupts packets: look at its "
            "fibre and optics",
            tuple(evidence),
        )


BACKLOG_US = 5.0
"""At nominal speed: more than a few packets, so that the port had something to send."""

SLOW_SHARE = 0.75
"""Of the nominal speed: 20 % are lost at most when a queue empties for a while in between."""

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
    frames = by_device(view, view.pfc_sent)
    for port, place in enumerate(view.places):
        longest = longest_run(slow[:, port])
        if longest.sum() < SLOW_SAMPLES:
            continue
        share = view.utilisation[longest, port].mean()
        rate = np.nansum(frames[place.device][longest]) / (view.total_us(longest) * 1e-6)
        others = ~longest
        before_rate = np.nansum(frames[place.device][others]) / max(
            view.total_us(others) * 1e-6, 1e-12
        )
        evidence = [
            f"{place} sent at {share * place.speed_gbps:,.1f} Gb/s, {percent(share)} of its "
            f"speed, for {view.total_us(longest):,.0f} us, with "
            f"{np.nanmean(after[longest, port]):,.0f} B waiting and paused "
            f"{percent(view.most_paused[longest, port].mean())} of the time",
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
    dropped += np.nansum(view.total("SAI_QUEUE_STAT_DROPPED_PACKETS:{p}"))
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
