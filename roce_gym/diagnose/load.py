"""Rules for what is only loaded, one a function: buffers, uplinks, ports to hosts.

See :mod:`roce_gym.diagnose.broken` for what they may use.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from roce_gym.diagnose.suspect import FREE_SHARE, Mask, Suspect, by_device, percent, ports_by_device
from roce_gym.diagnose.view import View

# --------------------------------------------------------------------------- buffers

FULL_SHARE = 0.9
"""Of the shared buffer: dynamic thresholds have fallen to a tenth of what they are when empty."""


def exhausted_pool(view: View) -> Iterator[Suspect]:
    """A switch whose shared buffer is used up, or that drops packets of a lossless class."""
    used = view.level("SAI_BUFFER_POOL_STAT_CURR_OCCUPANCY_BYTES")
    shared = view.level("SAI_BUFFER_POOL_ATTR_SHARED_SIZE")
    size = np.where(np.isnan(shared), view.level("SAI_BUFFER_POOL_ATTR_SIZE"), shared)
    share = used / np.where(size > 0, size, np.nan)
    for device, ports in ports_by_device(view).items():
        if not view.is_switch[ports].any():
            continue
        evidence = []
        full = np.asarray((share[:, ports] >= FULL_SHARE).any(axis=1))
        if full.any():
            peak = np.nanmax(share[:, ports])
            evidence.append(
                f"{device} held as much as {percent(peak)} of its shared buffer, and "
                f"{percent(FULL_SHARE)} or more in {full.sum()} of {len(full)} samples"
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

COLLISION_WAIT_US = 10.0
"""At nominal speed, two round trips of a fabric: one flow alone fills a link without a queue."""

MIN_SAMPLES = 3
"""Fewer may be one burst that happened to meet the clock."""


def ecmp_collision(view: View) -> Iterator[Suspect]:
    """Equal uplinks of a switch of which one is full, with a queue, while another has room.

    Hashing has put too many large flows on one.
    """
    wait_us = 8e6 * view.queue_peak_bytes / view.speed_bps
    for device, ports in view.uplinks.items():
        load = view.utilisation[:, ports]
        free = np.where(view.most_paused[:, ports] < FREE_SHARE, load, np.nan)
        is_full = (load >= SATURATED_SHARE) & (wait_us[:, ports] >= COLLISION_WAIT_US)
        is_free = free <= IDLE_SHARE
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
                f"{view.places[full]} sent at {percent(mean.max())} of its speed and "
                f"{view.places[idle]} at {percent(mean.min())}, in {count} of {len(uneven)} "
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
    frames = by_device(view, view.pfc_sent)
    for port, place in enumerate(view.places):
        at = busy[:, port]
        if not view.faces_nic(port) or at.sum() < MIN_SAMPLES:
            continue
        others = [p for p in ports_by_device(view)[place.device] if p != port]
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
