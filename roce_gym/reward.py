"""The reward: three named terms, each compared with the default settings on the same seed.

All terms are felt in every interval and are bounded. Starving a tenant costs at once, by its
weight.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from roce_gym.config import Scenario
from roce_gym.progress import Alone, Pace, Progress, Work
from roce_gym.tail import Tails, late_slowdowns
from roce_gym.telemetry import Interval, port_sums
from roce_gym.topology.graph import Network
from roce_gym.units import PS_PER_S

Floats = NDArray[np.float64]

TERMS = ("completion", "pfc", "interference")

SMOOTHING = 0.1
"""Share of an interval added to both sides of the slowdown, so that a few packets do not decide."""

MAX_INTERFERENCE = 3.0
MIN_SHARE = 0.05
"""Least share of time for which a job counts as under way, or as served."""

RESERVE = 0.05
"""Share of an episode at the default pace that is added, so that logarithms stay bounded."""

PFC_SCALE_PER_S = 30.0
"""Pause frames per second and port that count as noticeable."""


class Judge(Protocol):
    """What turns intervals into rewards; see :class:`Reward`."""

    def __call__(self, interval: Interval, work: Work) -> tuple[float, dict[str, float]]: ...  # noqa: D102
    def at_start(self) -> dict[str, float]: ...  # noqa: D102


class RewardTerms:
    """The raw terms of the intervals of one episode: about 0 if nobody is in anybody's way.

    For a job, T is the time with a round under way, W the time that what was delivered takes alone
    (rounds' worth of bytes, times the collective time alone): T / W is its slowdown. P is the
    number of pause frames per second, averaged over switch ports. Tenants' weights w sum to 1, jobs
    of a tenant share its weight; tenants without rounds (flow lists) do not count.

    * completion: `-Σ w·ln(T / W)` over jobs.
    * pfc: `-log10(1 + P/30)`.
    * interference: `-Σ w·b·min(s - 1, 3)` over tenants that are slower than alone, by T and W of
      the interval alone: `s = (T + c) / (W + c)` and `b = T / (Δ·f)`, where Δ is its length,
      `c = 0.1 Δ`, and f the share of time that the tenant is busy alone.

    Of the first two, what counts is their value for the whole episode, as in the score. An interval
    gets its part of it: the value under the default settings, plus what the interval changes. The
    change is that of the value, times the number of intervals, with what happened so far, and the
    default settings' pace for the rest of the episode. So every interval counts at once; the mean
    over an episode is its value, but for a small reserve that bounds it; under the default settings
    all changes sum to 0. Logarithms of each interval by itself would not do: they take uneven
    progress for slow progress, and a few pauses all the time for more than many at once.

    Where the score takes a tenant's slow rounds (`score: p95`), completion does, too: in place of
    T / W, a job has the 95th percentile of the slowdowns of its rounds so far, of the one under
    way if it is late, and of the rounds that the default settings have in the rest of the episode.
    At the end these are the score's, so that the mean over an episode is, without a reserve.

    A job that is starved stays busy (T grows) and delivers nothing (W does not), so starving never
    pays, and a round that is stuck counts at once, not when (or if) it ends.
    """

    def __init__(
        self,
        scenario: Scenario,
        network: Network,
        progress: Progress,
        alone: Alone,
        pace: Pace,
    ) -> None:
        self._progress = progress
        self._num_tenants = len(scenario.tenants)
        self._alone_ps = np.array(alone.cct_ps)
        known = (self._alone_ps > 0).astype(np.float64)
        jobs = self._of_tenants(known)
        weights = np.array([tenant.weight for tenant in scenario.tenants]) * (jobs > 0)
        self._weights = weights / max(weights.sum(), 1e-12)
        self._job_weights = (self._weights / np.maximum(jobs, 1.0))[progress.job_tenant] * known
        self._busy_fraction = np.maximum(alone.busy_fraction, MIN_SHARE)
        self._pace = pace
        self._default_busy_ps = np.maximum(pace.busy_ps, MIN_SHARE * pace.length_ps)
        self._default_needed_ps = np.maximum(pace.needed_ps, MIN_SHARE * pace.length_ps)
        self._tails = Tails(scenario, progress, self._alone_ps)
        self._default_rounds = np.array(pace.rounds, np.float64).reshape(-1, 3)
        self._time_ps = 0.0
        self._busy_ps = np.zeros(len(known))
        self._needed_ps = np.zeros(len(known))
        self._frames = 0.0  # per port, in (frames per second) x ps
        none_late = np.zeros(len(known))
        self._default_logs = self._logs(none_late, self._default_busy_ps, self._default_needed_ps)
        self._level = self._levels(none_late)
        self._network = network

    def pfc_frames_per_s(self, interval: Interval) -> float:
        """Pause frames per second, averaged over the ports of all switches."""
        seconds = (interval.end_ps - interval.start_ps) / PS_PER_S
        frames = int(port_sums(interval, self._network).pause_frames.sum())
        return frames / (seconds * len(self._network.into_switch))

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
        """The three raw terms of the next interval."""
        length = interval.end_ps - interval.start_ps
        self._time_ps += length
        self._busy_ps += work.busy_ps
        self._needed_ps += work.rounds * self._alone_ps
        self._frames += self.pfc_frames_per_s(interval) * length
        self._tails.add(work)
        before, self._level = self._level, self._levels(late_slowdowns(work, self._alone_ps))
        change = (self._level - before) * (self._pace.length_ps / length)
        slowdown, busyness = self.slowdowns(interval, work)
        hurt = np.clip(slowdown - 1.0, 0.0, MAX_INTERFERENCE) * busyness
        return {
            "completion": -float(self._job_weights @ self._default_logs + change[0]),
            "pfc": -float(pfc_cost(self._pace.pfc_frames_per_s) + change[1]),
            "interference": -float(self._weights @ hurt),
        }

    @property
    def default_completion(self) -> float:
        """The completion term of the default settings' whole episode."""
        return -float(self._job_weights @ self._default_logs)

    def _levels(self, late: Floats) -> Floats:
        """Shape (2,): costs of the episode as expected now, but for a constant."""
        rest = max(0.0, 1.0 - self._time_ps / self._pace.length_ps) + RESERVE
        busy = self._busy_ps / self._default_busy_ps + rest
        needed = self._needed_ps / self._default_needed_ps + rest
        pfc = self._frames / self._pace.length_ps + rest * self._pace.pfc_frames_per_s
        return np.array([self._job_weights @ self._logs(late, busy, needed), pfc_cost(pfc)])

    def _logs(self, late: Floats, busy: Floats, needed: Floats) -> Floats:
        """Shape (J,): logarithms of slowdowns, by slow rounds or else by time."""
        logs: Floats = np.log(busy / needed)
        job_of, end_ps, time_ps = self._default_rounds.T
        for job in self._tails.jobs:
            to_come = time_ps[(job_of == job) & (end_ps > self._time_ps)]
            logs[job] = math.log(self._tails.slowdown(job, late[job], to_come))
        return logs


def pfc_cost(frames_per_s: float) -> float:
    """`log10(1 + P/30)`; of reward and score alike."""
    return math.log10(1.0 + frames_per_s / PFC_SCALE_PER_S)


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
