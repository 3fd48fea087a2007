"""Slow rounds: what tenants with `score: p95` are judged by, in score and reward alike."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from roce_gym.config import Scenario
from roce_gym.progress import Progress, Work

Floats = NDArray[np.float64]

PERCENTILE = 95


def late_slowdowns(work: Work, alone_ps: Floats) -> Floats:
    """Shape (J,): of rounds under way that are late already, 0 where none is.

    A round is late when `elapsed / C + 1 - fraction delivered`, the slowdown it has if the rest
    goes as fast as alone, exceeds 1.
    """
    known = alone_ps > 0
    late = work.elapsed_ps / np.where(known, alone_ps, 1.0) + 1.0 - work.fraction
    return np.where(known & (work.elapsed_ps > 0) & (late > 1.0), late, 0.0)


class Tails:
    """The rounds so far, one by one, of jobs whose tenant is judged by its slow ones.

    Attributes:
        jobs: indices of these jobs, in order.
    """

    def __init__(self, scenario: Scenario, progress: Progress, alone_ps: Floats) -> None:
        """Takes collective times alone, shape (J,), 0 while unknown."""
        by_tail = np.array([tenant.score == "p95" for tenant in scenario.tenants])
        self.jobs = np.flatnonzero(by_tail[progress.job_tenant] & (alone_ps > 0)).tolist()
        self._alone_ps = alone_ps
        self._times_ps: dict[int, list[int]] = {job: [] for job in self.jobs}

    def add(self, work: Work) -> None:
        """Counts the rounds that ended in one more interval."""
        for job, times in self._times_ps.items():
            times += work.times[1, work.times[0] == job].tolist()

    def slowdown(self, job: int, late: float, to_come_ps: Floats | None = None) -> float:
        """The 95th percentile of a job's rounds; 1 without any.

        Args:
            job: one of `jobs`.
            late: entry of :func:`late_slowdowns`, counted as one more round unless 0.
            to_come_ps: collective times of rounds to count as well.
        """
        rounds = np.array(self._times_ps[job], np.float64)
        if to_come_ps is not None:
            rounds = np.append(rounds, to_come_ps)
        slowdowns = rounds / self._alone_ps[job]
        if late > 0:
            slowdowns = np.append(slowdowns, late)
        return float(np.percentile(slowdowns, PERCENTILE)) if len(slowdowns) else 1.0
