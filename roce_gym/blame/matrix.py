"""The blame matrix: how much longer a tenant's work takes because another one is there."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from roce_gym.blame.runs import JobTimes, Task, Times
from roce_gym.blame.workers import Report, run_tasks
from roce_gym.config import Scenario
from roce_gym.errors import ConfigError
from roce_gym.reference import ALONE_PRESET
from roce_gym.units import PS_PER_US

NOISE = 0.07
"""What is not told from chance in one run: the order of simultaneous events alone moves DCQCN's
completion times by up to so much (measured with this simulator). In the mean of n runs: / sqrt(n).
"""


@dataclass(frozen=True)
class Effect:
    """A tenant's times in one run against those in another, means over seeds.

    Attributes:
        longer: mean of `shared / other - 1` over seeds; NaN if no seed can tell.
        by_seed: that of each seed; NaN where neither run finished anything.
        shared_us, other_us: mean times of rounds, or flows where there are no rounds.
    """

    longer: float
    by_seed: tuple[float, ...]
    shared_us: float
    other_us: float

    @property
    def is_clear(self) -> bool:
        """Whether it is more than chance."""
        known = sum(not math.isnan(value) for value in self.by_seed)
        return known > 0 and self.longer > NOISE / math.sqrt(known)


@dataclass(frozen=True)
class Blame:
    """Who slows whom.

    Attributes:
        tenants: their names, in the scenario's order.
        seeds: of the runs.
        effect: by (victim, culprit): all together against all but the culprit.
        interference: by victim: all together against the victim alone, whose settings then are
            fixed ones: :data:`roce_gym.reference.ALONE_PRESET`.
        dropped_alone: by tenant, packets that switches dropped in its runs alone, all seeds.
        guessed_alone: by tenant, its jobs with rounds of which none ended in a run alone, although
            one had begun; interference with them is a guess, or counts what hangs.
    """

    tenants: tuple[str, ...]
    seeds: tuple[int, ...]
    effect: dict[tuple[str, str], Effect]
    interference: dict[str, Effect]
    dropped_alone: dict[str, int]
    guessed_alone: dict[str, tuple[int, ...]]

    def worst(self, victim: str) -> str | None:
        """The tenant that slows `victim` most; None if none does so by more than chance."""
        clear = [
            culprit
            for culprit in self.tenants
            if culprit != victim and self.effect[victim, culprit].is_clear
        ]
        return max(clear, key=lambda c: self.effect[victim, c].longer, default=None)

    def sentence(self, victim: str) -> str:
        """The worst culprit of a tenant, in words."""
        worst = self.worst(victim)
        if worst is None:
            others = [self.effect[victim, c] for c in self.tenants if c != victim]
            if all(math.isnan(one.longer) for one in others):
                return f"{victim}: nothing it began came to an end, so nothing can be told."
            return f"{victim} is slowed by nobody beyond what chance does."
        one = self.effect[victim, worst]
        return (
            f"{victim} is slowed most by {worst}: {one.shared_us:,.0f} us, and "
            f"{one.other_us:,.0f} us without it ({100 * one.longer:+.0f} %)."
        )


def blame(
    scenarios: Sequence[tuple[int, Scenario, Scenario]],
    processes: int = 1,
    report: Report = lambda done, total: None,
) -> Blame:
    """Runs every seed with all tenants, without each of them, and each alone.

    Args:
        scenarios: (seed, scenario under test, scenario of the runs alone); all have the same
            tenants.
        processes: at a time; the result does not depend on it.
        report: see :data:`Report`.

    Raises:
        ConfigError: there are fewer than two tenants, or no seeds.
        SimulationError: see :func:`run_tasks`.
    """
    if not scenarios:
        raise ConfigError("seeds: none are given; allowed: at least 1")
    names = tuple(tenant.name for tenant in scenarios[0][1].tenants)
    if len(names) < 2:
        raise ConfigError(f"tenants: there is only {names[0]!r}; blame needs at least 2")
    tasks: list[Task] = []
    for seed, scenario, base in scenarios:
        tasks.append(Task(scenario, seed))
        tasks += [Task(scenario, seed, without=name) for name in names]
        tasks += [Task(base, seed, only=name, preset=ALONE_PRESET) for name in names]
    times = run_tasks(tasks, processes, report)
    runs = [times[i : i + 1 + 2 * len(names)] for i in range(0, len(times), 1 + 2 * len(names))]
    count = len(names)
    alone = {name: [run[1 + count + i] for run in runs] for i, name in enumerate(names)}
    return Blame(
        tenants=names,
        seeds=tuple(seed for seed, *_ in scenarios),
        effect={
            (names[i], names[j]): _effect([(run[0], run[1 + j]) for run in runs], i)
            for i in range(count)
            for j in range(count)
            if i != j
        },
        interference={
            names[i]: _effect([(run[0], run[1 + count + i]) for run in runs], i)
            for i in range(count)
        },
        dropped_alone={
            name: sum(times.dropped_packets for times in own) for name, own in alone.items()
        },
        guessed_alone={
            name: _guessed([times.jobs[i] for times in own])
            for i, (name, own) in enumerate(alone.items())
        },
    )


def _guessed(runs: list[tuple[JobTimes, ...]]) -> tuple[int, ...]:
    """Jobs of a tenant that ended no round in one of its runs, although one had begun."""
    return tuple(
        number
        for number, jobs in enumerate(zip(*runs, strict=True))
        if any(not job.has_flows and not job.index and job.guess_ps > 0 for job in jobs)
    )


def _effect(pairs: list[tuple[Times, Times]], tenant: int) -> Effect:
    means = np.array([_means(shared.jobs[tenant], other.jobs[tenant]) for shared, other in pairs])
    by_seed = means[:, 0] / means[:, 1] - 1.0
    known = ~np.isnan(by_seed)
    if not known.any():
        return Effect(math.nan, tuple(by_seed.tolist()), math.nan, math.nan)
    shared_ps, other_ps = means[known].mean(axis=0)
    return Effect(
        longer=float(by_seed[known].mean()),
        by_seed=tuple(by_seed.tolist()),
        shared_us=float(shared_ps / PS_PER_US),
        other_us=float(other_ps / PS_PER_US),
    )


def _means(shared: tuple[JobTimes, ...], other: tuple[JobTimes, ...]) -> tuple[float, float]:
    """Mean times of a tenant, ps: of its jobs, each of which counts once; NaN: not known."""
    pairs = [one.means_with(same) for one, same in zip(shared, other, strict=True)]
    known = [pair for pair in pairs if pair is not None and pair[1] > 0]
    if not known:
        return math.nan, math.nan
    mine, theirs = np.mean(known, axis=0)
    return float(mine), float(theirs)
