"""Latency histograms, as read from the simulator (rules, section 15)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from roce_gym.sim.latency import LINEAR, UNIT_SHIFT
from roce_gym.sim.types import LATENCY_BUCKETS, LATENCY_MESSAGE, LATENCY_PACKET

Ints = NDArray[np.int64]

QUANTILES = {"p50": 0.5, "p99": 0.99, "p99_9": 0.999, "p99_99": 0.9999}
"""By the names they have in results."""

WHAT = {"message": int(LATENCY_MESSAGE), "packet": int(LATENCY_PACKET)}
"""What is measured, and its column in :class:`Latencies`."""


def bucket_tops_ps() -> Ints:
    """Shape (B,), int64: the longest time that each bucket counts; the last one counts all above.

    A bucket's times differ by less than 1/64, the first 128 buckets are 1,024 ps wide.
    """
    half = LINEAR // 2
    index = np.arange(int(LATENCY_BUCKETS), dtype=np.int64)
    shift = np.maximum(index // half - 1, 0)
    tops: Ints = ((index - shift * half + 1) << (shift + UNIT_SHIFT)) - 1
    return tops


TOPS_PS = bucket_tops_ps()


@dataclass(frozen=True)
class Histogram:
    """Times of one kind.

    Attributes:
        counts: shape (B,), int64.
        sum_ps: of all times.
        max_ps: the longest; 0 if there is none.
    """

    counts: Ints
    sum_ps: int
    max_ps: int

    @property
    def count(self) -> int:
        """How many there are."""
        return int(self.counts.sum())

    @property
    def mean_ps(self) -> float:
        """Exact mean; NaN if there is none."""
        return self.sum_ps / self.count if self.count else math.nan

    def quantile_ps(self, share: float) -> float:
        """The time that at least this share of all did not exceed (nearest rank); NaN if no time.

        It is the top of its bucket: never too low, and too high by less than 1/64.
        """
        if not self.count:
            return math.nan
        rank = max(1, math.ceil(share * self.count - 1e-9))
        bucket = int(np.searchsorted(np.cumsum(self.counts), rank))
        if bucket == len(TOPS_PS) - 1:
            return float(self.max_ps)
        return float(min(int(TOPS_PS[bucket]), self.max_ps))


@dataclass(frozen=True)
class Latencies:
    """Histograms of T tenants; the second axis is :data:`WHAT`.

    Attributes:
        counts: shape (T, 2, B), int64.
        sum_ps: shape (T, 2), int64.
        max_ps: shape (T, 2), int64.
    """

    counts: Ints
    sum_ps: Ints
    max_ps: Ints

    def __add__(self, other: Latencies) -> Latencies:
        """Both together."""
        return Latencies(
            self.counts + other.counts,
            self.sum_ps + other.sum_ps,
            np.maximum(self.max_ps, other.max_ps),
        )

    def of(self, what: str, tenants: list[int] | slice = slice(None)) -> Histogram:
        """One kind of times of some tenants together; of all unless given."""
        chosen = WHAT[what]
        return Histogram(
            self.counts[tenants, chosen].sum(axis=0),
            int(self.sum_ps[tenants, chosen].sum()),
            int(self.max_ps[tenants, chosen].max(initial=0)),
        )
