"""Physical quantities of an interval for `info`, each with its unit in the key."""

from __future__ import annotations

import math

import numpy as np

from roce_gym.config import Scenario
from roce_gym.latency import QUANTILES, WHAT
from roce_gym.telemetry import Interval, port_sums, total
from roce_gym.topology.graph import Network
from roce_gym.units import PS_PER_S, PS_PER_US
from roce_gym.workload.plan import Plan


class Measures:
    """Keys: `time_us`, `pfc_frames_per_s` (a switch port), `failed_qps`, `deadlocked`; by class
    `queue_max_bytes/…` (any switch port), `marked_fraction/…`, `paused_fraction/…` (mean of ports),
    `dropped_packets/…` (by watchdogs, too); by tenant `goodput_gbps/…` (over NICs), `cnps_per_s/…`;
    where latencies are measured, also `message_latency_p99_us/…` and `packet_latency_p99_us/…` of
    what ended in the interval, 0 if nothing did.
    """  # noqa: D205

    def __init__(self, scenario: Scenario, network: Network, plan: Plan) -> None:
        self._classes = [c.name for c in scenario.classes]
        self._tenants = [t.name for t in scenario.tenants]
        self._qp_tenant = np.array([pair.tenant for pair in plan.qps], np.int64)
        self._is_on_nic = np.array([not pair.is_local for pair in plan.qps], np.float64)
        self._has_latency = scenario.simulator.latency_histograms
        self._network = network

    def __call__(self, interval: Interval) -> dict[str, float]:
        """The quantities of one interval."""
        seconds = (interval.end_ps - interval.start_ps) / PS_PER_S
        out, into = self._network.from_switch, self._network.into_switch
        sums = port_sums(interval, self._network)
        by_class = {
            "queue_max_bytes": sums.queue_max_bytes,
            "marked_fraction": sums.marked_packets / np.maximum(sums.sent_packets, 1),
            "paused_fraction": total(interval.paused_ps, into) / len(into) / (seconds * PS_PER_S),
            "dropped_packets": sums.dropped_packets + total(interval.watchdog_dropped_packets, out),
        }
        count = len(self._tenants)
        delivered = np.bincount(self._qp_tenant, interval.delivered_bytes * self._is_on_nic, count)
        by_tenant = {
            "goodput_gbps": 8.0 * delivered / (seconds * 1e9),
            "cnps_per_s": np.bincount(self._qp_tenant, interval.cnps, count) / seconds,
        }
        frames = sums.pause_frames.sum() / (seconds * len(into))
        return {
            "time_us": interval.end_ps / PS_PER_US,
            "pfc_frames_per_s": float(frames),
            "failed_qps": float(interval.failed_qps),
            "deadlocked": float(bool(interval.deadlock)),
            **_flat(by_class, self._classes),
            **_flat(by_tenant, self._tenants),
            **self._latencies(interval),
        }

    def _latencies(self, interval: Interval) -> dict[str, float]:
        if interval.latency is None:
            return {}
        out = {}
        for what in WHAT:
            for index, tenant in enumerate(self._tenants):
                p99_ps = interval.latency.of(what, [index]).quantile_ps(QUANTILES["p99"])
                key = f"{what}_latency_p99_us/{tenant}"
                out[key] = 0.0 if math.isnan(p99_ps) else p99_ps / PS_PER_US
        return out

    def at_start(self) -> dict[str, float]:
        """The same keys at time 0."""
        by_class = ("queue_max_bytes", "marked_fraction", "paused_fraction", "dropped_packets")
        names = ["time_us", "pfc_frames_per_s", "failed_qps", "deadlocked"]
        names += [f"{quantity}/{c}" for quantity in by_class for c in self._classes]
        names += [f"{q}/{t}" for q in ("goodput_gbps", "cnps_per_s") for t in self._tenants]
        if self._has_latency:
            names += [f"{what}_latency_p99_us/{t}" for what in WHAT for t in self._tenants]
        return dict.fromkeys(names, 0.0)


def _flat(table: dict[str, np.ndarray], owners: list[str]) -> dict[str, float]:
    return {
        f"{quantity}/{owner}": float(value)
        for quantity, values in table.items()
        for owner, value in zip(owners, values, strict=True)
    }
