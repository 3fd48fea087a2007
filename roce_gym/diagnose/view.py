"""What the rules look at: shares, rates and neighbours, made of counters once.

Arrays have the shape (S - 1, P): by interval between two samples and port. Counters that a port or
a file does not have are NaN, for which no comparison holds.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from roce_gym.diagnose.timeline import Floats, Timeline

FRAME_OVERHEAD_BYTES = 20
"""Preamble and least interframe gap, which no counter has (IEEE 802.3)."""

MAX_QUANTA = 65_535
QUANTUM_BITS = 512
"""Of a pause frame (IEEE 802.3 annex 31B)."""

_PG = "SAI_INGRESS_PRIORITY_GROUP_STAT"


class View:
    """A timeline, seen as the rules need it."""

    def __init__(self, timeline: Timeline) -> None:
        self.timeline = timeline
        self.places = timeline.places
        self.dt_us = timeline.interval_us[:, None]
        self.speed_bps = np.array([place.speed_gbps * 1e9 for place in self.places])
        self._shape = len(timeline.time_us) - 1, len(self.places)

    def growth(self, name: str) -> Floats:
        """Growth of a counter; NaN where there is none."""
        grown = self.timeline.growth(name)
        return np.full(self._shape, np.nan) if grown is None else grown

    def level(self, name: str) -> Floats:
        """A gauge at the end of each interval; NaN where there is none."""
        values = self.timeline.gauge(name)
        return np.full(self._shape, np.nan) if values is None else values[1:]

    def level_before(self, name: str) -> Floats:
        """A gauge at the start of each interval."""
        values = self.timeline.gauge(name)
        return np.full(self._shape, np.nan) if values is None else values[:-1]

    def total(self, switch: str, nic: str = "") -> Floats:
        """Growth summed over priorities, for which `{p}` stands; a port has one of both names."""
        names = [
            name.format(p=priority)
            for priority in self.timeline.priorities
            for name in (switch, nic)
            if name
        ]
        grown = [self.growth(name) for name in names]
        return _sum(grown, self._shape)

    @cached_property
    def is_switch(self) -> NDArray[np.bool_]:
        """Shape (P,): ports with counters of switches."""
        names = [name for name in self.timeline.values if name.startswith("SAI_")]
        found = np.zeros(len(self.places), np.bool_)
        for name in names:
            found |= ~np.isnan(self.timeline.values[name]).all(axis=0)
        return found

    @cached_property
    def utilisation(self) -> Floats:
        """Share of the nominal speed that a port sent with, overhead included."""
        sent = self.total("SAI_QUEUE_STAT_BYTES:{p}", "tx_prio{p}_bytes")
        packets = self.total("SAI_QUEUE_STAT_PACKETS:{p}", "tx_prio{p}_packets")
        bits = 8.0 * (sent + FRAME_OVERHEAD_BYTES * packets)
        return bits / (self.speed_bps * self.dt_us * 1e-6)

    def paused(self, priority: int) -> Floats:
        """Share of time that a port could not send a priority."""
        switch = self.growth(f"SAI_PORT_STAT_PFC_{priority}_RX_PAUSE_DURATION_US")
        nic = self.growth(f"rx_prio{priority}_pause_duration")
        return np.where(np.isnan(switch), nic, switch) / self.dt_us

    @cached_property
    def most_paused(self) -> Floats:
        """Share of time that a port was paused, in the priority that was paused most."""
        return _most([self.paused(p) for p in self.timeline.priorities], self._shape)

    @cached_property
    def pfc_sent(self) -> Floats:
        """PFC frames that a switch port sent to what is at its other end."""
        return self.total("SAI_PORT_STAT_PFC_{p}_TX_PKTS")

    @cached_property
    def queue_bytes(self) -> tuple[Floats, Floats]:
        """In a port's egress queues, at the start and at the end of each interval."""
        names = [f"SAI_QUEUE_STAT_CURR_OCCUPANCY_BYTES:{p}" for p in self.timeline.priorities]
        before = _sum([self.level_before(name) for name in names], self._shape)
        return before, _sum([self.level(name) for name in names], self._shape)

    @cached_property
    def queue_peak_bytes(self) -> Floats:
        """Most in one of a port's egress queues."""
        names = [f"SAI_QUEUE_STAT_SHARED_WATERMARK_BYTES:{p}" for p in self.timeline.priorities]
        return _most([self.level(name) for name in names], self._shape)

    @cached_property
    def errors(self) -> Floats:
        """Packets with a wrong checksum that a port received."""
        names = ("SAI_PORT_STAT_IF_IN_ERRORS", "rx_crc_errors_phy")
        return _sum([self.growth(name) for name in names], self._shape)

    @cached_property
    def received(self) -> tuple[Floats, Floats]:
        """Packets and bytes that a port received."""
        packets = [
            self.growth("SAI_PORT_STAT_IF_IN_UCAST_PKTS"),
            self.total("", "rx_prio{p}_packets"),
        ]
        octets = [self.growth("SAI_PORT_STAT_IF_IN_OCTETS"), self.total("", "rx_prio{p}_bytes")]
        return _sum(packets, self._shape), _sum(octets, self._shape)

    def dropped(self, priority: int) -> Floats:
        """Packets that found no room behind a port."""
        return self.growth(f"{_PG}_DROPPED_PACKETS:{priority}")

    def headroom(self, priority: int) -> tuple[Floats, Floats]:
        """Most of a port's headroom in use, and its size."""
        size = self.level(f"SAI_BUFFER_PROFILE_ATTR_XOFF_TH:{priority}")
        return self.level(f"{_PG}_XOFF_ROOM_WATERMARK_BYTES:{priority}"), size

    @cached_property
    def facing(self) -> NDArray[np.int64]:
        """Shape (P,): the port at the other end; -1: not known, or more than one may be meant."""
        ends: dict[tuple[str, str], list[int]] = {}
        for i, place in enumerate(self.places):
            ends.setdefault((place.device, place.neighbor), []).append(i)
        out = np.full(len(self.places), -1, np.int64)
        for (device, neighbor), mine in ends.items():
            theirs = ends.get((neighbor, device), [])
            if len(mine) == len(theirs):  # parallel cables have the same order at both ends
                out[mine] = theirs
        return out

    @cached_property
    def tier(self) -> dict[str, int]:
        """By device: 0 for NICs, else cables to the nearest NIC.

        What has no counters of a switch counts as a NIC.
        """
        switches = {p.device for p, s in zip(self.places, self.is_switch, strict=True) if s}
        near: dict[str, set[str]] = {}
        for place in self.places:
            near.setdefault(place.device, set()).add(place.neighbor)
            near.setdefault(place.neighbor, set()).add(place.device)
        tier = {device: 0 for device in near if device not in switches}
        edge = set(tier)
        while edge:
            edge = {other for one in edge for other in near[one] if other not in tier}
            tier |= dict.fromkeys(edge, max(tier.values()) + 1)
        return tier

    @cached_property
    def uplinks(self) -> dict[str, list[int]]:
        """By switch: its ports towards switches farther from NICs; two or more of one speed."""
        out: dict[str, list[int]] = {}
        for i, place in enumerate(self.places):
            here, there = self.tier.get(place.device), self.tier.get(place.neighbor)
            if self.is_switch[i] and here is not None and there is not None and here < there:
                out.setdefault(place.device, []).append(i)
        return {
            device: ports
            for device, ports in out.items()
            if len(ports) > 1 and len({self.places[i].speed_gbps for i in ports}) == 1
        }

    def faces_nic(self, port: int) -> bool:
        """Whether a switch port leads to a NIC."""
        return bool(self.is_switch[port]) and self.tier.get(self.places[port].neighbor) == 0

    def total_us(self, where: NDArray[np.bool_]) -> float:
        """Time of the intervals chosen by a mask of shape (S - 1,)."""
        return float(self.dt_us[where, 0].sum())


def _sum(parts: list[Floats], shape: tuple[int, int]) -> Floats:
    """NaN only where all are."""
    if not parts:
        return np.full(shape, np.nan)
    stack = np.stack(parts)
    total: Floats = np.where(np.isnan(stack).all(axis=0), np.nan, np.nansum(stack, axis=0))
    return total


def _most(parts: list[Floats], shape: tuple[int, int]) -> Floats:
    """NaN only where all are."""
    out = np.full(shape, np.nan)
    for part in parts:
        out = np.fmax(out, part)
    return out
