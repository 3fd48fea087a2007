"""From the intervals of a run to samples of counters, such as a collector would take."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roce_gym.assembly.devices import headroom_bytes
from roce_gym.assembly.link_events import corrupting_links
from roce_gym.config import Scenario
from roce_gym.counters.columns import Column, columns_of
from roce_gym.counters.ports import ports_of
from roce_gym.presets import resolve_settings
from roce_gym.telemetry import Interval
from roce_gym.topology.graph import Network
from roce_gym.units import BPS_PER_GBPS, PS_PER_US
from roce_gym.workload.plan import Plan

Values = NDArray[Any]


@dataclass(frozen=True)
class Sample:
    """All counters at one moment.

    Attributes:
        time_us: simulated time.
        values: shape (num_ports,) by a column's name, int64 or float64; what a port does not have
            is 0 there, see :attr:`Column.owner`.
    """

    time_us: float
    values: dict[str, Values]


class Sampler:
    """Adds up intervals; every call of :meth:`sample` reads all counters as they stand.

    Attributes:
        ports: see :func:`ports_of`.
        columns: see :func:`columns_of`.
    """

    def __init__(self, scenario: Scenario, network: Network, plan: Plan) -> None:
        self._scenario, self._network = scenario, network
        self.ports = ports_of(network)
        self._class_of = {c.priority: i for i, c in enumerate(scenario.classes)}
        self.columns = columns_of(list(self._class_of), scenario.pfc.watchdog.enabled)
        self._out = np.array([port.out for port in self.ports], np.int64)
        self._into = np.array([port.into for port in self.ports], np.int64)
        self._node = np.array([port.node for port in self.ports], np.int64)
        self._is_switch = np.array([port.is_switch for port in self.ports], np.bool_)
        # Queue pairs on NVLink are not seen by any NIC.
        self._qp_node = np.array([-1 if q.is_local else q.src for q in plan.qps], np.int64)
        shape = len(self.ports), len(scenario.classes)
        headroom = np.stack(
            [headroom_bytes(scenario, network, c)[self._into] for c in range(shape[1])], axis=1
        )
        self._sums: dict[str, Values] = {}
        size = np.full(shape[0], scenario.switch.buffer_bytes, np.int64)
        self._fixed = {
            "headroom_size_bytes": headroom,
            "buffer_size_bytes": size,
            "shared_size_bytes": size - self._private_bytes(headroom),
        }
        self._last: dict[str, Values] = {}
        self._time_us = 0.0

    def _private_bytes(self, headroom: Values) -> Values:
        """Shape (num_ports,): headroom and reserve of all ports of a port's switch."""
        scenario, network = self._scenario, self._network
        settings = resolve_settings(scenario, network.host_rate_bps / BPS_PER_GBPS, None)
        reserved = sum(settings.classes[c.name].buffer.reserved_bytes for c in scenario.classes)
        by_port = headroom.sum(axis=1) + reserved
        if scenario.switch.headroom_pool_bytes is not None:
            by_port = np.full(len(by_port), reserved, np.int64)
        by_node = np.bincount(self._node, by_port).astype(np.int64)
        return by_node[self._node] + (scenario.switch.headroom_pool_bytes or 0)

    def add(self, interval: Interval) -> None:
        """Counts the next interval."""
        for name, values in self._counted(interval).items():
            self._sums[name] = self._sums.get(name, 0) + values
        self._last = self._of_the_moment(interval)
        self._time_us = interval.end_ps / PS_PER_US

    def sample(self) -> Sample:
        """All counters now; zeros before the first interval."""
        known = self._sums | self._last | self._fixed
        values = {column.name: self._column(column, known) for column in self.columns}
        return Sample(self._time_us, values)

    def _column(self, column: Column, known: dict[str, Values]) -> Values:
        values = known.get(column.field)
        if values is None:
            return np.zeros(len(self.ports), np.int64)
        if column.priority is not None:
            values = values[:, self._class_of[column.priority]]
        is_owner = self._is_switch == (column.owner == "switch")
        return np.where(is_owner, values, 0)

    def _counted(self, interval: Interval) -> dict[str, Values]:
        """By field: shape (num_ports,), or (num_ports, num_classes)."""
        out, into = self._out, self._into
        errors = self._errors(interval)
        frames = interval.pause_frames + interval.resume_frames  # a resume is a frame of time 0
        unbuffered = interval.dropped_packets - interval.dropped_at_egress_packets
        octets, packets = interval.tx_bytes[into], interval.tx_packets[into]
        return {
            "tx_packets": interval.tx_packets[out],
            "tx_bytes": interval.tx_bytes[out],
            "ecn_marked_packets": interval.ecn_marked_packets[out],
            "dropped_packets": unbuffered[into],
            "egress_dropped_packets": interval.egress_dropped_packets[out],
            "pfc_sent": frames[into],
            "pfc_received": frames[out],
            "paused_us": interval.paused_ps[out] / PS_PER_US,
            "watchdog_storms": interval.watchdog_storms[out],
            "watchdog_restored": interval.watchdog_restored[out],
            "watchdog_dropped_packets": interval.watchdog_dropped_packets[out],
            "rx_octets": octets.sum(axis=1),
            "rx_packets": packets.sum(axis=1) - errors,
            "rx_errors": errors,
            "rx_bytes": octets,
            "rx_prio_packets": packets,
            "pauses_sent": interval.pause_frames[into],
            "pauses_received": interval.pause_frames[out],
            "rp_cnp_handled": self._by_nic(interval.cnps),
            "packet_seq_err": self._by_nic(interval.nacks),
        }

    def _of_the_moment(self, interval: Interval) -> dict[str, Values]:
        out, into = self._out, self._into
        held = np.zeros(self._network.num_hosts + self._network.num_switches, np.int64)
        at_switch = self._network.into_switch
        by_link = interval.ingress_bytes.sum(axis=1)
        np.add.at(held, self._network.link_dst[at_switch], by_link[at_switch])
        return {
            "queue_bytes": interval.queue_bytes[out],
            "queue_max_bytes": interval.queue_max_bytes[out],
            "ingress_max_bytes": interval.ingress_max_bytes[into],
            "headroom_max_bytes": interval.headroom_max_bytes[into],
            "buffer_bytes": held[self._node],
        }

    def _errors(self, interval: Interval) -> Values:
        bad = corrupting_links(self._scenario, self._network, interval.start_ps, interval.end_ps)
        return np.where(bad, interval.lost_packets, 0)[self._into]

    def _by_nic(self, of_qps: Values) -> Values:
        """Shape (num_ports,): sums over the queue pairs that send there."""
        on_nic = self._qp_node >= 0
        count = self._network.num_hosts + self._network.num_switches
        by_node = np.bincount(self._qp_node[on_nic], of_qps[on_nic], count).astype(np.int64)
        return by_node[self._node]
