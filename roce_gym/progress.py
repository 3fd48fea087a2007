"""How far the tenants' collectives have come: the one place that reads jobs from intervals.

A *round* is one collective or one burst. A job is *busy* while a round is under way: from the
moment the last member entered it to the moment the last one finished. Flow lists have no rounds.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roce_gym.config import Scenario
from roce_gym.telemetry import Interval
from roce_gym.workload.plan import JobPlan, Plan

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Work:
    """What J jobs did in an interval; shape (J,), float64 each.

    Attributes:
        busy_ps: time with a round under way.
        rounds: bytes delivered in order, in units of one round's bytes.
        elapsed_ps: age of the round under way at the end, 0 between rounds.
        fraction: share of that round that was delivered.
        ended: rounds that ended.
        ended_ps: sum of their collective times.
        times: job and collective time in ps of each of them, shape (2, number of rounds), int64.
    """

    busy_ps: Floats
    rounds: Floats
    elapsed_ps: Floats
    fraction: Floats
    ended: Floats
    ended_ps: Floats
    times: NDArray[np.int64] = field(default_factory=lambda: np.zeros((2, 0), np.int64))


@dataclass(frozen=True)
class Alone:
    """What each tenant does when it has the fabric to itself, under fixed settings.

    Attributes:
        cct_ps: mean collective time, one a job; 0 if it has no rounds or none began.
        busy_fraction: share of time with a round under way, summed over jobs; one a tenant.
        rounds: that ended, one a job; where none did, `cct_ps` is a guess from bytes delivered.
        dropped_packets: by switches, one a tenant; where there are any, `cct_ps` has
            retransmissions in it.
    """

    cct_ps: tuple[float, ...]
    busy_fraction: tuple[float, ...]
    rounds: tuple[int, ...] = ()
    dropped_packets: tuple[int, ...] = ()


@dataclass(frozen=True)
class Pace:
    """What happens under the default settings in an episode.

    Attributes:
        length_ps: of the episode.
        pfc_frames_per_s: pause frames per second and switch port.
        busy_ps: time with a round under way; one a job.
        needed_ps: time that what was delivered takes alone; one a job.
        rounds: of jobs judged by their slow rounds (`roce_gym.tail`), for each round: job, end
            of the interval in which it ended, in ps, and collective time in ps. A round that is
            late when the episode ends is the last one.
    """

    length_ps: float
    pfc_frames_per_s: float
    busy_ps: tuple[float, ...]
    needed_ps: tuple[float, ...]
    rounds: tuple[tuple[float, ...], ...] = ()


def round_bytes(job: JobPlan) -> int:
    """Bytes that one round delivers, over all queue pairs; 0 for flow lists."""
    if job.kind == "ring_all_reduce":
        return job.message_bytes * job.messages_per_round * len(job.hosts) * len(job.qps)
    if job.kind == "all_to_all":
        return job.message_bytes * job.messages_per_round * len(job.hosts)
    if job.graph is not None:
        return job.graph.round_bytes
    return job.message_bytes * job.messages_per_round


class Progress:
    """Turns the intervals of one run, in order and without gaps, into :class:`Work`.

    Attributes:
        job_tenant: shape (J,), index into `Scenario.tenants`.
        has_rounds: shape (T,), bool, tenants of which progress can be told.
    """

    def __init__(self, scenario: Scenario, plan: Plan) -> None:
        num_jobs = len(plan.jobs)
        self.job_tenant = np.array([job.tenant for job in plan.jobs], np.int64)
        self._bytes = np.array([round_bytes(job) for job in plan.jobs], np.float64)
        self._qp_job = np.zeros(len(plan.qps), np.int64)
        for index, job in enumerate(plan.jobs):
            self._qp_job[[qp for row in job.qps for qp in row]] = index
        self.has_rounds = np.zeros(len(scenario.tenants), bool)
        self.has_rounds[self.job_tenant[self._bytes > 0]] = True
        self._elapsed = np.zeros(num_jobs)
        self._delivered = np.zeros(num_jobs)
        self._ended = np.zeros(num_jobs)

    def __call__(self, interval: Interval) -> Work:
        """The work of the next interval."""
        num_jobs = len(self._bytes)
        begun = interval.job_begun_ps
        elapsed = np.where(begun >= 0, interval.end_ps - begun, 0).astype(np.float64)
        busy = interval.job_busy_ps + elapsed - self._elapsed
        delivered = np.bincount(self._qp_job, interval.delivered_bytes, num_jobs)
        times = self._endings(interval.completions)
        ended = np.bincount(times[0], minlength=num_jobs).astype(np.float64)
        ended_ps = np.bincount(times[0], times[1], num_jobs).astype(np.float64)
        self._elapsed = elapsed
        self._delivered += delivered
        self._ended += ended
        size = np.maximum(self._bytes, 1.0)
        known = self._bytes > 0
        fraction = np.clip(self._delivered / size - self._ended, 0.0, 1.0)
        return Work(
            busy_ps=busy,
            rounds=np.where(known, delivered / size, 0.0),
            elapsed_ps=elapsed,
            fraction=np.where(elapsed > 0, fraction, 0.0),
            ended=ended,
            ended_ps=ended_ps,
            times=times,
        )

    def _endings(self, log: NDArray[Any]) -> NDArray[np.int64]:
        """Shape (2, number of rounds that ended): job and time."""
        log = log[self._bytes[log["job"]] > 0] if len(log) else log
        return np.array([log["job"], log["end_ps"] - log["start_ps"]], np.int64)

    def of_tenants(self, values: Floats, num_tenants: int) -> Floats:
        """Shape (T,): sums over each tenant's jobs."""
        return np.bincount(self.job_tenant, values, num_tenants).astype(np.float64)
