"""One run with or without a tenant, remembered on disk."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roce_gym.cache import cache_folder, write_whole
from roce_gym.config import Scenario
from roce_gym.fabric import Fabric
from roce_gym.progress import Progress
from roce_gym.reference import cache_key
from roce_gym.units import us_to_ps


@dataclass(frozen=True)
class Task:
    """A run up to the scenario's horizon.

    Attributes:
        scenario, seed: as for :class:`Fabric`.
        only, without: a tenant's name: run it alone, or all but it. At most one of both.
        preset: settings instead of the scenario's own.
    """

    scenario: Scenario
    seed: int
    only: str | None = None
    without: str | None = None
    preset: str | None = None

    @property
    def can_be_named(self) -> bool:
        """Whether a file can tell it from others: not where a sender is a function in memory."""
        return not any(
            tenant.cc == "user" and tenant.user is not None and tenant.user.file is None
            for tenant in self.scenario.tenants
        )

    @cached_property
    def key(self) -> str:
        """Changes with the resolved scenario, the set of tenants, the seed and the code."""
        what = f"{cache_key(self.scenario, self.seed)} {self.only} {self.without} {self.preset}"
        return hashlib.sha256(what.encode()).hexdigest()[:40]

    @property
    def tenants(self) -> list[int]:
        """Indices of those that take part."""
        return [
            index
            for index, tenant in enumerate(self.scenario.tenants)
            if self.only in (None, tenant.name) and self.without != tenant.name
        ]


@dataclass(frozen=True)
class JobTimes:
    """What one job did.

    Attributes:
        has_flows: it is a list of flows; else a loop of rounds, one at a time.
        index: rounds or flows that ended, ascending.
        time_ps: how long each of them took.
        open: (round or flow, how long it had been under way) of what had not ended at the end.
        guess_ps: time with a round under way per round's worth of bytes delivered, for jobs of
            which no round ended; 0 if none began.
    """

    has_flows: bool
    index: tuple[int, ...]
    time_ps: tuple[int, ...]
    open: tuple[tuple[int, int], ...]
    guess_ps: float

    def means_with(self, other: JobTimes) -> tuple[float, float] | None:
        """Mean times, ps, of the rounds or flows that ended in both runs; else both guesses.

        What ended in one run only counts, too, if it had been under way for longer in the other.
        Where both runs hang in a round, these two rounds count as one, whichever they are.
        """
        mine, theirs = self._times(), other._times()
        pairs = [(mine[i], theirs[i]) for i in mine.keys() & theirs.keys()]
        if self._hangs_ps and other._hangs_ps:
            pairs.append((self._hangs_ps, other._hangs_ps))
        else:
            pairs += [(age, theirs[i]) for i, age in self.open if age > theirs.get(i, age)]
            pairs += [(mine[i], age) for i, age in other.open if age > mine.get(i, age)]
        if pairs:
            here, there = np.array(pairs, np.int64).sum(axis=0) / len(pairs)
            return float(here), float(there)
        guesses = self.guess(), other.guess()
        return guesses if min(guesses) > 0 else None

    @property
    def _hangs_ps(self) -> int:
        """Age of the round under way if no round took so long; else 0."""
        if self.has_flows or not self.open:
            return 0
        age = self.open[0][1]
        return age if age > max(self.time_ps, default=0) else 0

    def _times(self) -> dict[int, int]:
        return dict(zip(self.index, self.time_ps, strict=True))

    def guess(self) -> float:
        """Mean time of what ended, or what can be told of a round that did not; 0: nothing."""
        return float(np.mean(self.time_ps)) if self.time_ps else self.guess_ps


@dataclass(frozen=True)
class Times:
    """What one run did.

    Attributes:
        jobs: by the index of their tenant, in the tenant's order.
        dropped_packets: by switches.
    """

    jobs: dict[int, tuple[JobTimes, ...]]
    dropped_packets: int


def run_task(task: Task, is_stopped: Callable[[], bool] = lambda: False) -> Times | None:
    """Simulates; None if it was stopped. A deadlock ends the run, as nothing would follow.

    Args:
        task: what to run.
        is_stopped: asked after every control interval.
    """
    control = task.scenario.control
    fabric = Fabric(
        task.scenario,
        task.seed,
        preset=task.preset,
        only_tenant=task.only,
        without_tenant=task.without,
    )
    progress = Progress(task.scenario, fabric.plan)
    count = len(fabric.plan.jobs)
    busy_ps, rounds = np.zeros(count), np.zeros(count)
    logs: list[NDArray[Any]] = []
    begun_ps = rounds_now = np.zeros(count, np.int64)
    dropped_packets = 0
    horizon_ps, step_ps = us_to_ps(control.horizon_us), us_to_ps(control.interval_us)
    while fabric.now_ps < horizon_ps and not fabric.is_deadlocked:
        if is_stopped():
            return None
        interval = fabric.advance(ps=min(step_ps, horizon_ps - fabric.now_ps))
        work = progress(interval)
        busy_ps += work.busy_ps
        rounds += work.rounds
        logs.append(interval.completions)
        begun_ps, rounds_now = interval.job_begun_ps, interval.job_round
        dropped_packets += interval.all_dropped_packets
    log = np.sort(np.concatenate(logs), order=["job", "index"])
    guesses = np.where(rounds > 0, busy_ps / np.maximum(rounds, 1e-12), 0.0)
    out: dict[int, list[JobTimes]] = {tenant: [] for tenant in task.tenants}
    for number, job in enumerate(fabric.plan.jobs):
        own = log[log["job"] == number]
        index = own["index"].tolist()
        if job.kind == "flows":
            begun = dict(enumerate(job.flow_start_ps))
        else:
            begun = {int(rounds_now[number]): int(begun_ps[number])}
        ages = {i: fabric.now_ps - start_ps for i, start_ps in begun.items() if start_ps >= 0}
        for i in index:
            ages.pop(i, None)
        times = tuple((own["end_ps"] - own["start_ps"]).tolist())
        waiting = tuple((i, age) for i, age in ages.items() if age > 0)
        guess = float(guesses[number])
        has_flows = job.kind == "flows"
        out[job.tenant].append(JobTimes(has_flows, tuple(index), times, waiting, guess))
    return Times({tenant: tuple(jobs) for tenant, jobs in out.items()}, dropped_packets)


# --------------------------------------------------------------------------- on disk


def load_times(task: Task) -> Times | None:
    """What an earlier run left; None if there is nothing, or nothing that fits."""
    path = _path(task)
    if path is None:
        return None
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
        if raw["key"] != task.key:
            return None
        jobs = {
            int(tenant): tuple(
                JobTimes(
                    bool(job["has_flows"]),
                    tuple(int(i) for i in job["index"]),
                    tuple(int(time) for time in job["time_ps"]),
                    tuple((int(i), int(age)) for i, age in job["open"]),
                    float(job["guess_ps"]),
                )
                for job in own
            )
            for tenant, own in raw["tenants"].items()
        }
        times = Times(jobs, int(raw["dropped_packets"]))
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None
    return times if _fits(times, task) else None


def _fits(times: Times, task: Task) -> bool:
    """Whether the jobs are those of the task, with as many times as indices."""
    tenants = task.scenario.tenants
    return sorted(times.jobs) == task.tenants and all(
        len(jobs) == len(tenants[index].jobs)
        and all(len(job.index) == len(job.time_ps) for job in jobs)
        and all(np.isfinite(job.guess_ps) and min(job.time_ps, default=0) >= 0 for job in jobs)
        for index, jobs in times.jobs.items()
    )


def save_times(task: Task, times: Times) -> None:
    """Leaves them for later runs, where that is possible."""
    path = _path(task)
    if path is None:
        return
    tenants = {str(tenant): [asdict(job) for job in jobs] for tenant, jobs in times.jobs.items()}
    whole = {"key": task.key, "tenants": tenants, "dropped_packets": times.dropped_packets}
    write_whole(path, json.dumps(whole))


def _path(task: Task) -> Path | None:
    folder = cache_folder()
    if folder is None or not task.can_be_named:
        return None
    return folder / "runs" / f"{task.key}.json"
