"""Each tenant alone: how long its work takes then, and whether that can be trusted."""

from __future__ import annotations

from typing import Any, NamedTuple

from roce_gym.cli.case import Case
from roce_gym.cli.tally import Tally
from roce_gym.cli.text import number, short
from roce_gym.config import FlowList, PoissonJob, Scenario
from roce_gym.fabric import Fabric
from roce_gym.reference import ALONE_PRESET, get_references
from roce_gym.units import PS_PER_US


class AloneRuns(NamedTuple):
    """What is known of the tenants of a case alone.

    Attributes:
        times: by job, mean collective time in us, or the time of each flow; see `tenant_results`.
        dropped_packets: by tenant.
        guessed: jobs of which no round ended, so that their time is a guess.
    """

    times: dict[int, Any]
    dropped_packets: dict[int, int]
    guessed: tuple[int, ...]


def run_alone(case: Case) -> AloneRuns:
    """Runs every tenant alone, or remembers it."""
    out = AloneRuns({}, {}, ())
    if any(job.kind != "flows" for job in case.plan.jobs):
        alone = get_references(case.base, case.seed, case.network, case.plan).alone
        known = [job for job, cct_ps in enumerate(alone.cct_ps) if cct_ps > 0]
        out = AloneRuns(
            times={job: alone.cct_ps[job] / PS_PER_US for job in known},
            dropped_packets=dict(enumerate(alone.dropped_packets)),
            guessed=tuple(job for job in known if alone.rounds[job] == 0),
        )
    if len(case.base.tenants) > 1:
        for index, tenant in enumerate(case.base.tenants):
            if any(isinstance(job, FlowList | PoissonJob) for job in tenant.jobs):
                out.dropped_packets[index] = _run_flows(case, index, out.times)
    return out


def _run_flows(case: Case, tenant: int, times: dict[int, Any]) -> int:
    """Runs a tenant with flows alone.

    Args:
        case, tenant: which one.
        times: of its jobs with flows, the time of each flow by its number [out].

    Returns:
        How many packets were dropped.
    """
    fabric = Fabric(
        case.base,
        case.seed,
        preset=ALONE_PRESET,
        only_tenant=case.base.tenants[tenant].name,
        network=case.network,
    )
    tally = Tally()
    interval = fabric.advance(us=case.base.control.horizon_us)
    tally.add(interval)
    numbers = [i for i, job in enumerate(case.plan.jobs) if job.tenant == tenant]
    for own, job in enumerate(numbers):
        if case.plan.jobs[job].kind == "flows":
            index, flow_us = tally.completions(own)
            times[job] = dict(zip(index.tolist(), flow_us.tolist(), strict=True))
    return interval.all_dropped_packets


def alone_warnings(case: Case, runs: AloneRuns) -> list[dict[str, Any]]:
    """Why numbers that are compared with a tenant alone may mislead, by tenant."""
    out = []
    for index, tenant in enumerate(case.base.tenants):
        if runs.dropped_packets.get(index):
            out.append(drop_warning(case.base, tenant.name, runs.dropped_packets[index]))
        for job in (case.plan.jobs[i] for i in runs.guessed):
            if job.tenant == index:
                out.append(round_warning(case.base, tenant.name, job.label or job.kind))
    return out


def drop_warning(scenario: Scenario, tenant: str, packets: int) -> dict[str, Any]:
    """Of a tenant that loses packets though nobody else is there."""
    timeout_us = scenario.nic.retransmit_timeout_us
    change = "set nic.retransmit_timeout_us, which is 0 (never)"
    if timeout_us:
        change = f"lower nic.retransmit_timeout_us = {short(timeout_us)}"
    return {
        "tenant": tenant,
        "reason": "dropped_alone",
        "job": None,
        "packets": packets,
        "text": f"interference of {tenant} may mislead: {number(packets)} packets were dropped in "
        "its run alone, which waits for them to be sent again, so that it may be slower than the "
        f"shared one. Give its class more buffer, or {change} (docs/queueing.md)",
    }


def round_warning(scenario: Scenario, tenant: str, job: str) -> dict[str, Any]:
    """Of a job whose time alone is a guess."""
    return {
        "tenant": tenant,
        "reason": "no_round_alone",
        "job": job,
        "packets": None,
        "text": f"interference of {tenant} ({job}) is a guess: no round ended in its run alone, "
        "and what it takes is guessed from the bytes delivered. Raise control.horizon_us = "
        f"{short(scenario.control.horizon_us)}, or make its rounds shorter",
    }
