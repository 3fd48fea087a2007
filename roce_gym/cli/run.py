"""`roce-gym run`: simulates a scenario and reports."""

from __future__ import annotations

import argparse
import sys
import time
from contextlib import nullcontext
from typing import Any

from roce_gym.cli.case import Case, left_out_of, load_case
from roce_gym.cli.fabric_results import fabric_results
from roce_gym.cli.report import report
from roce_gym.cli.tally import Tally
from roce_gym.cli.tenant_results import tenant_results
from roce_gym.cli.terminal import Interrupts, Ticker, wait_for
from roce_gym.cli.text import to_json
from roce_gym.cli.trace import Trace
from roce_gym.config import FlowList, PoissonJob
from roce_gym.fabric import Fabric
from roce_gym.reference import ALONE_PRESET, get_references
from roce_gym.units import PS_PER_US, us_to_ps

_INTERRUPTED = 130


def run(arguments: argparse.Namespace) -> int:
    """Runs a scenario; the exit code."""
    case = load_case(arguments)
    ticker = Ticker()
    tally, wall_s, status = _simulate(case, arguments, ticker)
    interrupted = status == "interrupted"
    alone = None
    if not interrupted:
        try:
            alone = wait_for(lambda: _alone(case), ticker, "each tenant alone")
        except KeyboardInterrupt:
            status = "interrupted"
            interrupted = True
    ticker.clear()
    found = _results(case, tally, alone, wall_s, status)
    print(to_json(found) if arguments.json else report(found))
    if interrupted:
        print("interrupted: these results are partial", file=sys.stderr)
    elif status == "deadlock":
        print("deadlock: these results are partial", file=sys.stderr)
    return _INTERRUPTED if interrupted else 0


def _simulate(
    case: Case, arguments: argparse.Namespace, ticker: Ticker
) -> tuple[Tally, float, str]:
    """Counters of the run, wall-clock seconds, and how it ended; see `_results`."""
    tally = Tally()
    horizon_ps = us_to_ps(case.base.control.horizon_us)
    step_ps = us_to_ps(case.base.control.interval_us)
    trace: Any = nullcontext()
    if arguments.trace is not None:
        parts = (case.scenario, case.network, case.plan)
        trace = Trace(arguments.trace, arguments.force, *parts)
    with trace as rows, Interrupts() as interrupts:
        fabric = Fabric(case.scenario, case.seed, network=case.network, plan=case.plan)
        began = time.perf_counter()
        while fabric.now_ps < horizon_ps and not interrupts.hit and not fabric.is_deadlocked:
            interval = fabric.advance(ps=min(step_ps, horizon_ps - fabric.now_ps))
            tally.add(interval)
            if rows is not None:
                rows.add(interval)
            interrupts.armed = True
            ticker.show(f"{100 * fabric.now_ps / horizon_ps:.0f} % simulated")
        wall_s = time.perf_counter() - began
    status = "deadlock" if fabric.is_deadlocked else "completed"
    return tally, wall_s, "interrupted" if interrupts.hit else status


def _alone(case: Case) -> dict[int, Any]:
    """By job: mean collective time in us, or the time of each flow; see `tenant_results`."""
    out: dict[int, Any] = {}
    has_rounds = any(job.kind != "flows" for job in case.plan.jobs)
    if has_rounds:
        references = get_references(case.base, case.seed, case.network, case.plan)
        times = enumerate(references.alone.cct_ps)
        out = {job: cct_ps / PS_PER_US for job, cct_ps in times if cct_ps > 0}
    if len(case.base.tenants) > 1:
        for index, tenant in enumerate(case.base.tenants):
            if any(isinstance(job, FlowList | PoissonJob) for job in tenant.jobs):
                out |= _flows_alone(case, index)
    return out


def _flows_alone(case: Case, tenant: int) -> dict[int, dict[int, float]]:
    """By job, the time of each flow when its tenant is alone."""
    fabric = Fabric(
        case.base,
        case.seed,
        preset=ALONE_PRESET,
        only_tenant=case.base.tenants[tenant].name,
        network=case.network,
    )
    tally = Tally()
    tally.add(fabric.advance(us=case.base.control.horizon_us))
    numbers = [i for i, job in enumerate(case.plan.jobs) if job.tenant == tenant]
    out = {}
    for own, number in enumerate(numbers):
        if case.plan.jobs[number].kind == "flows":
            index, times = tally.completions(own)
            out[number] = dict(zip(index.tolist(), times.tolist(), strict=True))
    return out


def _results(
    case: Case, tally: Tally, alone: dict[int, Any] | None, wall_s: float, status: str
) -> dict[str, Any]:
    """What is printed; `status` is "completed", "interrupted", or "deadlock" if that ended it."""
    return {
        "scenario": case.base.name,
        "source": case.source,
        "seed": case.seed,
        "preset": case.preset,
        "changes": list(case.changes),
        "duration_us": tally.duration_ps / PS_PER_US,
        "horizon_us": case.base.control.horizon_us,
        "status": status,
        "interrupted": status == "interrupted",
        "wall_time_s": wall_s,
        "tenants": tenant_results(tally, case.base, case.plan, alone),
        "fabric": fabric_results(tally, case.base, case.settings, case.network),
        "settings": case.settings.model_dump(mode="json"),
        "left_out": left_out_of(case),
    }
