"""The reward: three named terms, each compared with the default settings on the same seed.

All terms are felt in every interval, are bounded, and cannot be improved by hurting a tenant.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from roce_gym.config import Scenario
from roce_gym.progress import Alone, Progress, Work
from roce_gym.telemetry import Interval
from roce_gym.topology.graph import Network
from roce_gym.units import PS_PER_S

Floats = NDArray[np.float64]

TERMS = ("completion", "pfc", "interference")

SMOOTHING = 0.1
"""Share of an interval added to both sides of the slowdown, so that a few packets do not decide."""

LOG_SLOWDOWN_RANGE = (-1.0, 3.0)
MAX_INTERFERENCE = 3.0
MIN_BUSY_FRACTION = 0.05
PFC_SCALE_PER_S = 30.0
"""Pause frames per second and port that count as noticeable."""


class RewardTerms:
    """The raw terms of one interval: about 0 if nobody is in anybody's way, else negative.

    For a tenant in an interval of length Δ, summed over its jobs: T is the time with a round under
    way, P the number of rounds' worth of bytes delivered, C the time of a round alone, f the share
    of time with a round under way alone. Its slowdown is `s = (T + c) / (P·C + c)`, `c = 0.1 Δ`,
    and its busyness `b = T / (Δ·f)`.

    * completion: `-Σ w·b·clip(ln s, -1, 3)` over tenants, their weights summing to 1.
    * pfc: `-log10(1 + P/30)`, P = pause frames per second, averaged over switch ports.
    * interference: `-b·min(s - 1, 3)` of the tenant with the most of it, at most 0.

    Why busyness is a factor: averaged over time, `b·ln s` grows with the slowdown, as a slower
    tenant is also busy for longer. So starving a tenant never pays, and a round that is stuck
    counts at once, not when (or if) it ends. Tenants without rounds (flow lists) do not count.
    """

    def __init__(
        self, scenario: Scenario, network: Network, progress: Progress, alone: Alone
    ) -> None:
        self._progress = progress
        self._num_tenants = len(scenario.tenants)
        weights = np.array([tenant.weight for tenant in scenario.tenants]) * progress.has_rounds
        self._weights = weights / max(weights.sum(), 1e-12)
        self._alone_ps = np.array(alone.cct_ps)
        self._busy_fraction = np.maximum(alone.busy_fraction, MIN_BUSY_FRACTION)
        self._into_switch = np.flatnonzero(network.link_dst >= network.num_hosts)

    def pfc_frames_per_s(self, interval: Interval) -> float:
        """Pause frames per second, averaged over the ports of all switches."""
        seconds = (interval.end_ps - interval.start_ps) / PS_PER_S
        frames = int(interval.pause_frames[self._into_switch].sum())
        return frames / (seconds * len(self._into_switch))

    def slowdowns(self, interval: Interval, work: Work) -> tuple[Floats, Floats]:
        """Shape (T,) each: slowdown and busyness of every tenant."""
        length = float(interval.end_ps - interval.start_ps)
        known = self._alone_ps > 0
        spent = self._of_tenants(np.where(known, work.busy_ps, 0.0))
        needed = self._of_tenants(work.rounds * self._alone_ps)
        smoothing = SMOOTHING * length
        slowdown = (spent + smoothing) / (needed + smoothing)
        return slowdown, spent / (length * self._busy_fraction)

    def _of_tenants(self, values: Floats) -> Floats:
        return self._progress.of_tenants(values, self._num_tenants)

    def __call__(self, interval: Interval, work: Work) -> dict[str, float]:
        """The three raw terms."""
        slowdown, busyness = self.slowdowns(interval, work)
        logs = np.clip(np.log(slowdown), *LOG_SLOWDOWN_RANGE)
        hurt = np.minimum(slowdown - 1.0, MAX_INTERFERENCE) * busyness
        return {
            "completion": -float(self._weights @ (busyness * logs)),
            "pfc": -float(np.log10(1.0 + self.pfc_frames_per_s(interval) / PFC_SCALE_PER_S)),
            "interference": -max(0.0, float(hurt.max())),
        }


class Reward:
    """Weighted sum of the terms, each less its episode mean under the default settings.

    So 0 is as good as the default settings on the same seed, and their sum over an episode held at
    the default settings is 0.
    """

    def __init__(
        self, terms: RewardTerms, baseline: Mapping[str, float], weights: Mapping[str, float]
    ) -> None:
        """Takes episode means of raw terms under the default settings, and weights (absent: 0)."""
        self._terms = terms
        self._baseline = {name: baseline[name] for name in TERMS}
        self._weights = {name: float(weights.get(name, 0.0)) for name in TERMS}

    def __call__(self, interval: Interval, work: Work) -> tuple[float, dict[str, float]]:
        """Reward, and for `info`: terms as they enter it, raw terms, baseline."""
        raw = self._terms(interval, work)
        gain = {name: raw[name] - self._baseline[name] for name in TERMS}
        total = sum(self._weights[name] * gain[name] for name in TERMS)
        return float(total), self._entries(gain, raw)

    def at_start(self) -> dict[str, float]:
        """The entries of `info` before the first interval: nothing has happened."""
        zero = dict.fromkeys(TERMS, 0.0)
        return self._entries(zero, zero)

    def _entries(self, gain: dict[str, float], raw: dict[str, float]) -> dict[str, float]:
        return (
            gain
            | {f"raw/{name}": value for name, value in raw.items()}
            | {f"baseline/{name}": value for name, value in self._baseline.items()}
        )
