"""Adds up the intervals of a run."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from roce_gym.latency import Latencies
from roce_gym.sim.types import COMPLETION
from roce_gym.telemetry import MARK, Interval
from roce_gym.units import PS_PER_US

_SUMS = (
    "tx_packets",
    "ecn_marked_packets",
    "pause_frames",
    "paused_ps",
    "dropped_packets",
    "dropped_at_egress_packets",
    "egress_dropped_packets",
    "watchdog_storms",
    "watchdog_restored",
    "watchdog_dropped_packets",
    "lost_packets",
    "delivered_bytes",
    "cnps",
)

_PEAKS = ("queue_max_bytes", "ingress_max_bytes", "headroom_max_bytes")


class Tally:
    """Counters of a run so far.

    Attributes:
        sums: of the fields of :class:`Interval` that add up, by name.
        queue_max_bytes, ingress_max_bytes, headroom_max_bytes: shape (L, C), highest so far.
        ingress_max_limit_bytes: shape (L, C), the limit when `ingress_max_bytes` was reached.
        latency: all histograms together; None if none were kept.
        deadlocked: the first interval at whose end there was a deadlock.
        last: the last interval; None before the first.
    """

    def __init__(self) -> None:
        self.sums: dict[str, NDArray[np.int64]] = {}
        self.queue_max_bytes: NDArray[np.int64] = np.zeros(0, np.int64)
        self.ingress_max_bytes: NDArray[np.int64] = np.zeros(0, np.int64)
        self.ingress_max_limit_bytes: NDArray[np.int64] = np.zeros(0, np.int64)
        self.headroom_max_bytes: NDArray[np.int64] = np.zeros(0, np.int64)
        self.deadlocked: Interval | None = None
        self.events = 0
        self.latency: Latencies | None = None
        self.last: Interval | None = None
        self._logs: list[NDArray[Any]] = []
        self._calls: list[NDArray[Any]] = []
        self._marks: list[NDArray[Any]] = []

    def add(self, interval: Interval) -> None:
        """Counts the next interval."""
        if self.last is None:
            self.sums = {name: getattr(interval, name).copy() for name in _SUMS}
            for name in (*_PEAKS, "ingress_max_limit_bytes"):
                setattr(self, name, getattr(interval, name).copy())
        else:
            for name, total in self.sums.items():
                total += getattr(interval, name)
            higher = interval.ingress_max_bytes > self.ingress_max_bytes
            np.copyto(self.ingress_max_limit_bytes, interval.ingress_max_limit_bytes, where=higher)
            for name in _PEAKS:
                peak = getattr(self, name)
                np.maximum(peak, getattr(interval, name), out=peak)
        if interval.deadlock and self.deadlocked is None:
            self.deadlocked = interval
        self.events += interval.events
        if interval.latency is not None:
            known = self.latency
            self.latency = interval.latency if known is None else known + interval.latency
        self.last = interval
        if len(interval.completions):
            self._logs.append(interval.completions)
        if len(interval.collectives):
            self._calls.append(interval.collectives)
        if len(interval.marks):
            self._marks.append(interval.marks)

    @property
    def duration_ps(self) -> int:
        """Simulated time so far."""
        return 0 if self.last is None else self.last.end_ps

    def completions(self, job: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Indices and times in us of a job's rounds or flows that have ended."""
        log = self.log(job)
        return log["index"], (log["end_ps"] - log["start_ps"]) / PS_PER_US

    def log(self, job: int) -> NDArray[Any]:
        """Structured, fields of `sim.types.COMPLETION`: a job's rounds or flows that have ended."""
        logs = [log[log["job"] == job] for log in self._logs]
        return np.concatenate(logs) if logs else np.zeros(0, COMPLETION)

    def collectives(self, job: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Numbers in their job, and times in us, of a graph's collectives that have ended."""
        logs = [log[log["job"] == job] for log in self._calls]
        if not logs:
            return np.zeros(0, np.int64), np.zeros(0)
        log = np.concatenate(logs)
        return log["call"], (log["end_ps"] - log["start_ps"]) / PS_PER_US

    def marks(self, job: int) -> NDArray[Any]:
        """Structured, fields of `telemetry.MARK`: what the graph of a job has marked."""
        logs = [log[log["job"] == job] for log in self._marks]
        return np.concatenate(logs) if logs else np.zeros(0, MARK)
