"""When an episode changes: what tenants do, or what the fabric is. For policies that are told."""

from __future__ import annotations

from dataclasses import dataclass

from roce_gym.config import Scenario

USUAL = "usual"
"""Name of a regime in which nothing that comes and goes is there."""


@dataclass(frozen=True)
class Regime:
    """A stretch of an episode, until the next one begins.

    Attributes:
        start_us: when it begins.
        name: what is there, for a while only: `shifting ring_all_reduce`, `link slow`. The same in
            every episode, whatever its order and sizes.
    """

    start_us: float
    name: str


def find_regimes(scenario: Scenario) -> tuple[Regime, ...]:
    """Regimes of an episode in order, the first one from 0; one only if nothing comes and goes.

    Windows are those of jobs with `stop_us`, of tenants that arrive or leave, and of link events.
    Bursts of an incast are no regimes: they end when they are done, which depends on settings.

    Args:
        scenario: as drawn for the episode's seed.
    """
    horizon_us = scenario.control.horizon_us
    windows = [*_windows_of_jobs(scenario), *_windows_of_links(scenario)]
    edges = {time for start, stop, _ in windows for time in (start, stop) if 0 < time < horizon_us}
    found: list[Regime] = []
    for time in sorted({0.0, *edges}):
        there = sorted({name for start, stop, name in windows if start <= time < stop})
        name = " + ".join(there) or USUAL
        if not found or found[-1].name != name:
            found.append(Regime(time, name))
    return tuple(found)


def regime_at(regimes: tuple[Regime, ...], time_us: float) -> Regime:
    """The one under way at a time of 0 or later."""
    return next(regime for regime in reversed(regimes) if regime.start_us <= time_us)


def _windows_of_jobs(scenario: Scenario) -> list[tuple[float, float, str]]:
    """Start, stop and name."""
    windows = []
    for tenant in scenario.tenants:
        leaves_us = float("inf") if tenant.leave_us is None else tenant.leave_us
        for job in tenant.jobs:
            if job.stop_us is None and tenant.leave_us is None and tenant.arrive_us == 0:
                continue
            stop_us = float("inf") if job.stop_us is None else tenant.arrive_us + job.stop_us
            degree = getattr(job, "degree", None)
            name = f"{tenant.name} {job.kind}" + ("" if degree is None else f" of {degree}")
            windows.append((tenant.arrive_us + job.start_us, min(stop_us, leaves_us), name))
    return windows


def _windows_of_links(scenario: Scenario) -> list[tuple[float, float, str]]:
    return [
        (event.start_us, float("inf") if event.stop_us is None else event.stop_us, what)
        for event in scenario.link_events
        for what in (f"link {event.kind}",)
    ]
