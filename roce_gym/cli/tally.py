"""Adds up the intervals of a run."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from roce_gym.telemetry import Interval
from roce_gym.units import PS_PER_US

_SUMS = (
    "tx_packets",
    "ecn_marked_packets",
    "pause_frames",
    "paused_ps",
    "dropped_packets",
    "lost_packets",
    "delivered_bytes",
    "cnps",
)


class Tally:
    """Counters of a run so far.

    Attributes:
        sums: of the fields of :class:`Interval` that add up, by name.
        queue_max_bytes: shape (L, C), highest so far.
        last: the last interval; None before the first.
    """

    def __init__(self) -> None:
        self.sums: dict[str, NDArray[np.int64]] = {}
        self.queue_max_bytes: NDArray[np.int64] = np.zeros(0, np.int64)
        self.events = 0
        self.last: Interval | None = None
        self._logs: list[NDArray[Any]] = []

    def add(self, interval: Interval) -> None:
        """Counts the next interval."""
        if self.last is None:
            self.sums = {name: getattr(interval, name).copy() for name in _SUMS}
            self.queue_max_bytes = interval.queue_max_bytes.copy()
        else:
            for name, total in self.sums.items():
                total += getattr(interval, name)
            np.maximum(self.queue_max_bytes, interval.queue_max_bytes, out=self.queue_max_bytes)
        self.events += interval.events
        self.last = interval
        if len(interval.completions):
            self._logs.append(interval.completions)

    @property
    def duration_ps(self) -> int:
        """Simulated time so far."""
        return 0 if self.last is None else self.last.end_ps

    def completions(self, job: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Indices and times in us of a job's rounds or flows that have ended."""
        logs = [log[log["job"] == job] for log in self._logs]
        if not logs:
            return np.zeros(0, np.int64), np.zeros(0)
        log = np.concatenate(logs)
        return log["index"], (log["end_ps"] - log["start_ps"]) / PS_PER_US
