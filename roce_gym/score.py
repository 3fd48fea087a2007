"""The score of an episode: what evaluation compares, independent of the reward's weights."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from roce_gym.config import Scenario
from roce_gym.progress import Alone, Progress, Work
from roce_gym.reward import pfc_cost
from roce_gym.tail import Tails, late_slowdowns
from roce_gym.units import PS_PER_US

Floats = NDArray[np.float64]

PFC_WEIGHT = 0.1
"""Ten times the pause frames weigh as much as completion times 10.5 % longer."""


class Score:
    """Running `J = Σ w·ln(slowdown) + 0.1·log10(1 + P/30)`; lower is better.

    A job's slowdown is the mean collective time of all its rounds over that of the same job alone.
    A tenant's is the geometric mean over its jobs that have begun, so that a regime of few long
    rounds counts as much as one of many short ones; tenants' weights sum to 1. P is the number of
    pause frames per second and switch port over the whole episode.

    Of a tenant with `score: p95`, a job has the 95th percentile of its rounds instead.

    A round that has not ended counts as soon as it is late (`roce_gym.tail.late_slowdowns`). The
    logarithm of the mean, not the mean of logarithms: a tenant that is starved after many good
    rounds must not hide behind them.
    """

    def __init__(self, scenario: Scenario, progress: Progress, alone: Alone) -> None:
        self._progress = progress
        self._tenants = [tenant.name for tenant in scenario.tenants]
        self._alone_ps = np.array(alone.cct_ps)
        self._known = self._alone_ps > 0
        counted = self._of_tenants(self._known.astype(np.float64)) > 0
        weights = np.array([tenant.weight for tenant in scenario.tenants]) * counted
        self._weights = weights / max(weights.sum(), 1e-12)
        self._ended = np.zeros(len(self._alone_ps))
        self._ended_ps = np.zeros(len(self._alone_ps))
        self._tails = Tails(scenario, progress, self._alone_ps)
        self._time_ps = 0.0
        self._weighted_pfc = 0.0

    def _of_tenants(self, values: Floats) -> Floats:
        return self._progress.of_tenants(values, len(self._tenants))

    def add(self, work: Work, length_ps: int, pfc_frames_per_s: float) -> None:
        """Counts one more interval."""
        self._ended += work.ended
        self._ended_ps += work.ended_ps
        self._tails.add(work)
        self._time_ps += length_ps
        self._weighted_pfc += length_ps * pfc_frames_per_s

    def _slowdowns(self, work: Work | None) -> Floats:
        """Shape (T,): of each tenant so far, 0 while unknown."""
        divisor = np.where(self._known, self._alone_ps, 1.0)
        ratio = self._ended_ps / divisor
        count = self._ended
        late = np.zeros(len(divisor))
        if work is not None:
            late = late_slowdowns(work, self._alone_ps)
            ratio, count = ratio + late, count + (late > 0)
        begun = self._known & (count > 0)
        slow = np.where(begun, ratio, 1.0) / np.where(begun, count, 1.0)
        for job in self._tails.jobs:
            slow[job] = self._tails.slowdown(job, late[job])
        logs = np.log(slow)
        jobs = self._of_tenants(begun.astype(np.float64))
        mean = self._of_tenants(np.where(begun, logs, 0.0)) / np.maximum(jobs, 1.0)
        return np.where(jobs > 0, np.exp(mean), 0.0)

    def entries(self, work: Work | None = None) -> dict[str, float]:
        """For `info`, so far; `work` is that of the last interval.

        Keys: `score`, `episode_pfc_frames_per_s`, and by tenant `slowdown/…`, `interference_of/…`
        (slowdown - 1), `cct_us/…` (mean of ended rounds), `rounds/…` (ended); 0 while unknown.
        """
        slowdown = self._slowdowns(work)
        known = slowdown > 0
        logs = np.log(np.where(known, slowdown, 1.0))
        ended, ended_ps = self._of_tenants(self._ended), self._of_tenants(self._ended_ps)
        pfc = self._weighted_pfc / self._time_ps if self._time_ps else 0.0
        cost = PFC_WEIGHT * pfc_cost(pfc)
        out = {"score": float(self._weights @ logs) + cost, "episode_pfc_frames_per_s": pfc}
        for i, name in enumerate(self._tenants):
            out[f"slowdown/{name}"] = float(slowdown[i])
            out[f"interference_of/{name}"] = float(slowdown[i] - 1.0) if known[i] else 0.0
            out[f"cct_us/{name}"] = float(ended_ps[i] / max(ended[i], 1.0) / PS_PER_US)
            out[f"rounds/{name}"] = float(ended[i])
        return out
