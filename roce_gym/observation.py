"""What an agent sees: counters that switches and NICs export, scaled by fixed constants.

Nothing here knows reward, collectives or the future. Every entry lies in [0, 1]; those that span
orders of magnitude are `log(1 + x / unit) / log(1 + top / unit)`, clipped. The constants are the
same for every scenario, so that a policy carries over.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium.spaces import Box
from numpy.typing import ArrayLike, NDArray

from roce_gym.config import Scenario
from roce_gym.telemetry import Interval, highest, port_sums
from roce_gym.topology.graph import Network
from roce_gym.units import PS_PER_S
from roce_gym.workload.plan import Plan

Floats = NDArray[np.float64]

QUEUE_UNIT = 0.01
"""Share of a switch's buffer; top: all of it."""

PAUSE_UNIT_PER_S, PAUSE_TOP_PER_S = 30.0, 100_000.0
"""Pause frames per second and port, averaged over ports."""

DROP_UNIT_PER_S, DROP_TOP_PER_S = 1_000.0, 100_000_000.0
"""Packets dropped per second in all switches."""

CNP_UNIT_PER_US, CNP_TOP_PER_US = 0.001, 1.0
"""Congestion notifications per microsecond and sending host."""

RATE_UNIT = 0.01
"""Share of the line rate; top: all of it."""

# Signal: (unit, top) where it is logarithmic.
_CLASS_SCALES: dict[str, tuple[float, float] | None] = {
    "queue_max": (QUEUE_UNIT, 1.0),
    "queue_mean": (QUEUE_UNIT, 1.0),
    "marked_fraction": None,
    "pause_frames": (PAUSE_UNIT_PER_S, PAUSE_TOP_PER_S),
    "paused_max": None,
    "paused_mean": None,
    "drops": (DROP_UNIT_PER_S, DROP_TOP_PER_S),
}
_TENANT_SCALES: dict[str, tuple[float, float] | None] = {
    "throughput": None,
    "cnps": (CNP_UNIT_PER_US, CNP_TOP_PER_US),
    "rate_mean": (RATE_UNIT, 1.0),
    "rate_min": (RATE_UNIT, 1.0),
    "active_qps": None,
}
CLASS_SIGNALS = tuple(_CLASS_SCALES)
TENANT_SIGNALS = tuple(_TENANT_SCALES)


class Observation:
    """Telemetry of the last interval, then the knobs' positions.

    Per class: `queue_max` and `queue_mean` (highest queue, and highest average queue, of any switch
    port, over the buffer; log), `marked_fraction` of packets sent by switches, `pause_frames` (per
    second and port; log), `paused_max` and `paused_mean` (share of time that ports were paused),
    `drops` (per second; log). Per tenant: `throughput` (delivered, over the line rate of its
    senders or of its receivers, whichever is less), `cnps` (per microsecond and sending host; log),
    `rate_mean` and `rate_min` (over line rate; log) of its queue pairs with outstanding data, or of
    all if none has any, `active_qps` (share of queue pairs with outstanding data). Fabric:
    `buffer` (bytes held by the fullest switch at the end of the interval, over its buffer). NVLink
    of servers is not seen: neither its ports nor its queue pairs count.

    Attributes:
        space: Box(0, 1), shape (n,), float32.
        names: `class/<class>/…`, `tenant/<tenant>/…`, `fabric/buffer`, `knob/…`.
        num_measured: entries before those of knobs.
    """

    def __init__(
        self, scenario: Scenario, network: Network, plan: Plan, knob_names: tuple[str, ...] = ()
    ) -> None:
        self.names = (
            *(f"class/{c.name}/{signal}" for c in scenario.classes for signal in CLASS_SIGNALS),
            *(f"tenant/{t.name}/{signal}" for t in scenario.tenants for signal in TENANT_SIGNALS),
            "fabric/buffer",
            *(f"knob/{name}" for name in knob_names),
        )
        self.space: Box[np.float32] = Box(0.0, 1.0, (len(self.names),), np.float32)
        self._buffer = float(scenario.switch.buffer_bytes)
        self._network = network
        self._from_switch = network.from_switch
        self._into_switch = network.into_switch
        self._switch = network.link_dst[self._into_switch] - network.num_hosts
        self._num_switches = network.num_switches
        line_bps = network.link_rate_bps[network.host_link].astype(np.float64)
        on_nic = [pair for pair in plan.qps if not pair.is_local]
        self._qps: Any = slice(None)
        if len(on_nic) < len(plan.qps):
            self._qps = np.flatnonzero([not pair.is_local for pair in plan.qps])
        self._tenant = np.array([pair.tenant for pair in on_nic], np.int64)
        src = np.array([pair.src for pair in on_nic], np.int64)
        dst = np.array([pair.dst for pair in on_nic], np.int64)
        self._qp_line_bps = line_bps[src]
        self._num_tenants = len(scenario.tenants)
        self._num_qps = np.maximum(np.bincount(self._tenant, minlength=self._num_tenants), 1)
        takes_part = np.zeros((2, self._num_tenants, network.num_hosts), bool)
        takes_part[0, self._tenant, src] = takes_part[1, self._tenant, dst] = True
        self._num_senders = np.maximum(takes_part[0].sum(axis=1), 1)
        self._capacity_bps = np.maximum((takes_part * line_bps).sum(axis=2).min(axis=0), 1.0)
        self.num_measured = len(self.names) - len(knob_names)
        scales = [
            *(len(scenario.classes) * list(_CLASS_SCALES.values())),
            *(self._num_tenants * list(_TENANT_SCALES.values())),
            *((1 + len(knob_names)) * [None]),
        ]
        self._scaled = Scaler(scales)

    def __call__(
        self, interval: Interval, knobs: ArrayLike = (), errors: ArrayLike = 1.0
    ) -> NDArray[np.float32]:
        """The observation after an interval.

        Args:
            interval: what happened.
            knobs: shape (number of knobs,), positions in [-1, 1].
            errors: factors by which measured values are off, before scaling; one, or one each.
        """
        seconds = (interval.end_ps - interval.start_ps) / PS_PER_S
        held = np.add.reduce(interval.ingress_bytes.take(self._into_switch, axis=0), axis=1)
        fullest = np.bincount(self._switch, held, self._num_switches).max()
        measured = np.concatenate(
            (
                self._classes(interval, seconds).ravel(),
                self._tenants(interval, seconds).ravel(),
                [fullest / self._buffer],
            )
        )
        return self._scaled(measured * errors, positions(knobs))

    def at_start(self, knobs: ArrayLike = ()) -> NDArray[np.float32]:
        """The observation before the first interval: nothing was measured, all counters are 0."""
        return self._scaled(np.zeros(self.num_measured), positions(knobs))

    def _classes(self, interval: Interval, seconds: float) -> Floats:
        """Shape (C, len(CLASS_SIGNALS)), before scaling."""
        sums = port_sums(interval, self._network)
        paused = interval.paused_ps.take(self._into_switch, axis=0) / (seconds * PS_PER_S)
        num_ports = len(self._into_switch)
        rows = (
            sums.queue_max_bytes / self._buffer,
            highest(interval.queue_mean_bytes, self._from_switch) / self._buffer,
            sums.marked_packets / np.maximum(sums.sent_packets, 1),
            sums.pause_frames / (seconds * num_ports),
            np.maximum.reduce(paused),
            np.add.reduce(paused) / num_ports,
            sums.dropped_packets / seconds,
        )
        return np.array(rows).T

    def _tenants(self, interval: Interval, seconds: float) -> Floats:
        """Shape (T, len(TENANT_SIGNALS)), before scaling."""
        rates = interval.rate_bps[self._qps] / self._qp_line_bps
        is_active = interval.outstanding_bytes[self._qps] > 0
        active = self._sum(is_active)
        counts = is_active | (active == 0)[self._tenant]
        lowest = np.full(self._num_tenants, np.inf)
        np.minimum.at(lowest, self._tenant[counts], rates[counts])
        rows = (
            8.0 * self._sum(interval.delivered_bytes[self._qps]) / (seconds * self._capacity_bps),
            self._sum(interval.cnps[self._qps]) / (seconds * 1e6 * self._num_senders),
            self._sum(rates * counts) / np.maximum(self._sum(counts), 1.0),
            np.where(np.isfinite(lowest), lowest, 0.0),
            active / self._num_qps,
        )
        return np.array(rows).T

    def _sum(self, values: ArrayLike) -> Floats:
        return np.bincount(self._tenant, values, self._num_tenants).astype(np.float64)


def positions(knobs: ArrayLike) -> Floats:
    """Positions of knobs as observations show them, in [0, 1]."""
    return (np.asarray(knobs, np.float64) + 1.0) / 2.0


class Scaler:
    """Brings quantities into [0, 1], each by its unit and top; see the module."""

    def __init__(self, scales: Sequence[tuple[float, float] | None]) -> None:
        """Takes (unit, top) of each entry, None where it is a share already."""
        self._is_log = np.array([scale is not None for scale in scales])
        self._unit, top = np.array([scale or (1.0, 1.0) for scale in scales]).T
        self._span = np.log1p(top / self._unit)

    def __call__(self, *parts: ArrayLike) -> NDArray[np.float32]:
        """All entries, in order."""
        raw = np.concatenate(parts)
        logs = np.log1p(raw / self._unit) / self._span
        scaled = np.where(self._is_log, logs, raw)
        return np.minimum(np.maximum(scaled, 0.0), 1.0).astype(np.float32)
