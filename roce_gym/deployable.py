"""What a controller outside of the simulator could see: exported counters, at their polling rates.

No rate, alpha or backlog of a queue pair, which no counter shows; NICs count by port and priority,
whoever's traffic it is; nothing is known between two polls. Names of the counters: SONiC's
COUNTERS_DB, and ethtool and hw_counters of the mlx5 driver (Linux, counters.rst).

| Entry                            | Counter                                                     |
|----------------------------------|-------------------------------------------------------------|
| `switch/<class>/queue_watermark` | SAI_QUEUE_STAT_SHARED_WATERMARK_BYTES, largest of any queue |
| `switch/<class>/marked_fraction` | SAI_QUEUE_STAT_WRED_ECN_MARKED_PACKETS over STAT_PACKETS    |
| `switch/<class>/pause_frames`    | SAI_PORT_STAT_PFC_n_TX_PKTS                                 |
| `switch/<class>/paused`          | SAI_PORT_STAT_PFC_n_RX_PAUSE_DURATION_US                    |
| `switch/<class>/drops`           | SAI_INGRESS_PRIORITY_GROUP_STAT_DROPPED_PACKETS and         |
|                                  | SAI_QUEUE_STAT_DROPPED_PACKETS                              |
| `nic/<tenant>/sent`              | tx_prio<n>_bytes of the tenant's hosts                      |
| `nic/<tenant>/received`          | rx_prio<n>_bytes                                            |
| `nic/<tenant>/paused`            | rx_prio<n>_pause_duration                                   |
| `nic/<tenant>/pauses_received`   | rx_prio<n>_pause                                            |
| `nic/<tenant>/cnps_handled`      | rp_cnp_handled, of the port, all priorities                 |
| `nic/<tenant>/out_of_sequence`   | packet_seq_err, likewise                                    |
| `poll/switch`, `poll/nic`        | share of a polling period since the last poll               |
"""

from __future__ import annotations

import numpy as np
from gymnasium.spaces import Box
from numpy.typing import ArrayLike, NDArray

from roce_gym.config import Scenario
from roce_gym.observation import (
    CNP_TOP_PER_US,
    CNP_UNIT_PER_US,
    DROP_TOP_PER_S,
    DROP_UNIT_PER_S,
    PAUSE_TOP_PER_S,
    PAUSE_UNIT_PER_S,
    QUEUE_UNIT,
    Scaler,
    positions,
)
from roce_gym.telemetry import Interval
from roce_gym.topology.graph import Network
from roce_gym.units import PS_PER_S, us_to_ps
from roce_gym.workload.plan import Plan

Floats = NDArray[np.float64]

_PAUSES = (PAUSE_UNIT_PER_S, PAUSE_TOP_PER_S)
_DROPS = (DROP_UNIT_PER_S, DROP_TOP_PER_S)
_SWITCH: dict[str, tuple[float, float] | None] = {
    "queue_watermark": (QUEUE_UNIT, 1.0),
    "marked_fraction": None,
    "pause_frames": _PAUSES,
    "paused": None,
    "drops": _DROPS,
}
_NIC: dict[str, tuple[float, float] | None] = {
    "sent": None,
    "received": None,
    "paused": None,
    "pauses_received": _PAUSES,
    "cnps_handled": (CNP_UNIT_PER_US, CNP_TOP_PER_US),
    "out_of_sequence": _DROPS,
}


class Poll:
    """Counters that are added up and read now and then."""

    def __init__(self, period_ps: int, num_sums: int, num_peaks: int) -> None:
        self._period_ps = period_ps
        self._last_ps = 0
        self._due_ps = period_ps
        self._sums = np.zeros(num_sums)
        self._peaks = np.zeros(num_peaks)
        self.shown = np.zeros(num_peaks + num_sums)
        self.age = 0.0

    def add(self, sums: Floats, peaks: Floats, now_ps: int) -> float:
        """Counts an interval; returns the seconds since the poll before if one is due, else 0."""
        self._sums += sums
        self._peaks = np.maximum(self._peaks, peaks)
        seconds = 0.0
        if now_ps >= self._due_ps:
            seconds = (now_ps - self._last_ps) / PS_PER_S
            self.shown = np.concatenate((self._peaks, self._sums))
            self._sums, self._peaks = np.zeros_like(self._sums), np.zeros_like(self._peaks)
            self._last_ps = now_ps
            while self._due_ps <= now_ps:
                self._due_ps += self._period_ps
        self.age = min((now_ps - self._last_ps) / self._period_ps, 1.0)
        return seconds


class DeployableObservation:
    """Counters as last polled (rates over the time between two polls), then the knobs' positions.

    Before the first poll, all are 0. Polls come at multiples of `control.polling`'s periods, or at
    the end of the interval in which these fall.

    Attributes:
        space: Box(0, 1), shape (n,), float32.
        names: see the module; then `knob/…`.
        num_measured: entries before those of knobs.
    """

    def __init__(
        self, scenario: Scenario, network: Network, plan: Plan, knob_names: tuple[str, ...] = ()
    ) -> None:
        classes, tenants = scenario.classes, scenario.tenants
        self.names = (
            *(f"switch/{c.name}/{signal}" for c in classes for signal in _SWITCH),
            *(f"nic/{t.name}/{signal}" for t in tenants for signal in _NIC),
            *("poll/switch", "poll/nic"),
            *(f"knob/{name}" for name in knob_names),
        )
        self.num_measured = len(self.names) - len(knob_names)
        self.space: Box[np.float32] = Box(0.0, 1.0, (len(self.names),), np.float32)
        self._scaled = Scaler(
            [
                *(len(classes) * list(_SWITCH.values())),
                *(len(tenants) * list(_NIC.values())),
                *((2 + len(knob_names)) * [None]),
            ]
        )
        self._buffer = float(scenario.switch.buffer_bytes)
        self._out, self._into = network.from_switch, network.into_switch
        self._host_link = network.host_link
        self._num_hosts = network.num_hosts
        names = [c.name for c in classes]
        self._class = np.array([names.index(t.traffic_class) for t in tenants])
        ends = [
            {end for pair in plan.qps if pair.tenant == i for end in (pair.src, pair.dst)}
            for i in range(len(tenants))
        ]
        self._hosts = [np.array(sorted(one), np.int64) for one in ends]
        self._line_bps = [
            max(1.0, float(network.link_rate_bps[self._host_link[hosts]].sum()))
            for hosts in self._hosts
        ]
        self._qp_src = np.array([pair.src for pair in plan.qps], np.int64)
        self._shape = (len(classes), len(tenants))
        polling = scenario.control.polling
        self._periods = (us_to_ps(polling.switch_us), us_to_ps(polling.nic_us))
        self._forget()

    def _forget(self) -> None:
        num_classes, num_tenants = self._shape
        self._switch = Poll(self._periods[0], 5 * num_classes, num_classes)
        self._nic = Poll(self._periods[1], len(_NIC) * num_tenants, 0)
        self._switch_rows = np.zeros((num_classes, len(_SWITCH)))
        self._nic_rows = np.zeros((num_tenants, len(_NIC)))

    def at_start(self, knobs: ArrayLike = ()) -> NDArray[np.float32]:
        """The observation before the first interval; what was polled before is forgotten."""
        self._forget()
        return self._scaled(np.zeros(self.num_measured), positions(knobs))

    def __call__(
        self, interval: Interval, knobs: ArrayLike = (), errors: ArrayLike = 1.0
    ) -> NDArray[np.float32]:
        """As :class:`roce_gym.observation.Observation`; errors act on what a poll brings."""
        factors = np.broadcast_to(np.asarray(errors, np.float64), self.num_measured)
        split = self._switch_rows.size
        seconds = self._switch.add(*self._of_switches(interval), interval.end_ps)
        if seconds:
            rows = self._switch_counters(seconds)
            self._switch_rows = rows * factors[:split].reshape(rows.shape)
        seconds = self._nic.add(self._of_nics(interval), np.zeros(0), interval.end_ps)
        if seconds:
            rows = self._nic_counters(seconds)
            self._nic_rows = rows * factors[split:-2].reshape(rows.shape)
        return self._scaled(
            self._switch_rows.ravel(),
            self._nic_rows.ravel(),
            [self._switch.age, self._nic.age],
            positions(knobs),
        )

    def _of_switches(self, interval: Interval) -> tuple[Floats, Floats]:
        out, into = self._out, self._into
        sums = (
            interval.ecn_marked_packets[out].sum(axis=0),
            interval.tx_packets[out].sum(axis=0),
            interval.pause_frames[into].sum(axis=0),
            interval.paused_ps[out].sum(axis=0),
            interval.dropped_packets[into].sum(axis=0),
        )
        peaks = interval.queue_max_bytes[out].max(axis=0)
        return np.concatenate(sums).astype(np.float64), peaks.astype(np.float64)

    def _switch_counters(self, seconds: float) -> Floats:
        """Shape (C, len(_SWITCH)), before scaling."""
        peaks, *sums = self._switch.shown.reshape(6, -1)
        marks, packets, pauses, paused_ps, drops = sums
        ports = len(self._out)
        rows = (
            peaks / self._buffer,
            marks / np.maximum(packets, 1.0),
            pauses / (seconds * len(self._into)),
            paused_ps / (seconds * PS_PER_S * ports),
            drops / seconds,
        )
        return np.array(rows).T

    def _of_nics(self, interval: Interval) -> Floats:
        """Shape (T · len(_NIC),): sums over the hosts of each tenant."""
        cnps = np.bincount(self._qp_src, interval.cnps, self._num_hosts)
        errors = np.bincount(self._qp_src, interval.nacks, self._num_hosts)
        rows = []
        for hosts, cls in zip(self._hosts, self._class, strict=True):
            up = self._host_link[hosts]
            down = up ^ 1  # the other direction of the cable
            rows.append(
                (
                    interval.tx_bytes[up, cls].sum(),
                    interval.tx_bytes[down, cls].sum(),
                    interval.paused_ps[up, cls].sum(),
                    interval.pause_frames[up, cls].sum(),
                    cnps[hosts].sum(),
                    errors[hosts].sum(),
                )
            )
        return np.array(rows, np.float64).ravel()

    def _nic_counters(self, seconds: float) -> Floats:
        """Shape (T, len(_NIC)), before scaling."""
        table = self._nic.shown.reshape(-1, len(_NIC))
        count = np.array([max(1, len(hosts)) for hosts in self._hosts])
        line = np.array(self._line_bps) * seconds / 8.0
        sent, received, paused_ps, pauses, cnps, errors = table.T
        rows = (
            sent / line,
            received / line,
            paused_ps / (seconds * PS_PER_S * count),
            pauses / (seconds * count),
            cnps / (seconds * 1e6 * count),
            errors / seconds,
        )
        return np.array(rows).T
