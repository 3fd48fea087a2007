"""What the tenants of a run got."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from roce_gym.cli.collective_results import collective_results
from roce_gym.cli.iteration_results import iteration_results
from roce_gym.cli.request_results import request_results
from roce_gym.cli.tally import Tally
from roce_gym.config import Scenario
from roce_gym.units import PS_PER_S, PS_PER_US, us_to_ps
from roce_gym.workload.llm.requests import request_times
from roce_gym.workload.plan import JobPlan, Plan


def tenant_results(
    tally: Tally, scenario: Scenario, plan: Plan, alone: dict[int, Any] | None
) -> dict[str, Any]:
    """What the tenants got.

    Precondition: one interval or more were added.

    Args:
        tally: of the run.
        scenario, plan: what was run.
        alone: by job, a mean collective time in us, or for lists of flows a time by flow; jobs of
            which nothing is known are left out. None: nothing is known.
    """
    seconds = tally.duration_ps / PS_PER_S
    owner = np.array([pair.tenant for pair in plan.qps], np.int64)
    count = len(scenario.tenants)
    horizon_ps = us_to_ps(scenario.control.horizon_us)
    is_local = np.array([pair.is_local for pair in plan.qps], np.bool_)
    delivered = np.bincount(owner, tally.sums["delivered_bytes"] * ~is_local, count)
    inside = np.bincount(owner, tally.sums["delivered_bytes"] * is_local, count)
    cnps = np.bincount(owner, tally.sums["cnps"], count)
    assert tally.last is not None
    failed = np.bincount(owner[tally.last.qp_failed], None, count)
    cut_off = np.bincount(owner[tally.last.qp_unreachable], None, count)
    results: dict[str, Any] = {}
    for index, tenant in enumerate(scenario.tenants):
        numbers = [i for i, job in enumerate(plan.jobs) if job.tenant == index]
        jobs = [_job_results(tally, plan, i, (alone or {}).get(i)) for i in numbers]
        results[tenant.name] = {
            "traffic_class": tenant.traffic_class,
            **_times([job for job in jobs if job["flows"] is None], "cct", "rounds_completed"),
            **_times([job for job in jobs if job["flows"] is not None], "fct", "flows_completed"),
            **_compared(jobs),
            "requests": request_results([job["_requests"] for job in jobs]),
            "flows": sum(job["flows"] or 0 for job in jobs),
            "goodput_gbps": float(8.0 * delivered[index] / seconds / 1e9),
            **(
                {"nvlink_goodput_gbps": float(8.0 * inside[index] / seconds / 1e9)}
                if is_local.any()
                else {}
            ),
            "cnps": int(cnps[index]),
            "failed_queue_pairs": int(failed[index]),
            "unreachable_queue_pairs": int(cut_off[index]),
            "jobs": [
                _public(job) | {"starts_after_end": _starts_after(plan.jobs[i], horizon_ps)}
                for i, job in zip(numbers, jobs, strict=True)
            ],
        }
    return results


def _job_results(tally: Tally, plan: Plan, number: int, alone: Any) -> dict[str, Any]:
    """Numbers of one job, and under `_` what tenants' numbers are made of."""
    job = plan.jobs[number]
    index, times = tally.completions(number)
    if alone is None:
        base, known = np.zeros(0), np.zeros(len(times), bool)
    elif isinstance(alone, dict):
        known = np.array([int(i) in alone for i in index], bool)
        base = np.array([alone[int(i)] for i in index[known]])
    else:
        base, known = np.full(len(times), float(alone)), np.ones(len(times), bool)
    begun = -1 if tally.last is None else int(tally.last.job_begun_ps[number])
    is_flows = job.kind == "flows"
    out: dict[str, Any] = {"kind": job.label or job.kind, "_times": times}
    out |= {"_shared": times[known], "_alone": base}
    out["flows"] = len(job.flow_bytes) if is_flows else None
    out |= _times([] if is_flows else [out], "cct", "rounds_completed")
    out |= _times([out] if is_flows else [], "fct", "flows_completed")
    out |= _compared([out])
    if not is_flows and alone is not None and not len(times):
        out["cct_alone_us"] = float(alone)
    out |= iteration_results(tally, job, number)
    out["collectives"] = collective_results(tally, job, number)
    graph = job.graph
    out["_requests"] = None if graph is None else request_times(graph.graph, tally.marks(number))
    out["requests"] = request_results([out["_requests"]])
    out["round_under_way_us"] = None if begun < 0 else (tally.duration_ps - begun) / PS_PER_US
    return out


def _starts_after(job: JobPlan, horizon_ps: int) -> dict[str, Any] | None:
    """How many flows start from then on, and when; of other jobs, whether they begin then."""
    starts = np.array(job.flow_start_ps, np.int64)
    if job.kind != "flows":
        shortest_ps = round(job.compute_ps * (1 - job.jitter))
        starts = np.array([job.start_ps + shortest_ps])
    late = starts[starts >= horizon_ps] / PS_PER_US
    if not late.size:
        return None
    first, last = float(late.min()), float(late.max())
    return {"count": late.size, "first_us": first, "last_us": last}


def _public(job: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in job.items() if not key.startswith("_")}


def _times(jobs: list[dict[str, Any]], name: str, count: str) -> dict[str, Any]:
    """Statistics of completion times; None where there are none."""
    times = np.concatenate([np.zeros(0), *(job["_times"] for job in jobs)])
    some = len(times) > 0
    return {
        count: len(times),
        f"{name}_mean_us": float(times.mean()) if some else None,
        f"{name}_p99_us": float(np.percentile(times, 99)) if some else None,
        f"{name}_max_us": float(times.max()) if some else None,
    }


def _compared(jobs: list[dict[str, Any]]) -> dict[str, Any]:
    """Completed rounds (or flows) against the same ones alone."""
    shared = np.concatenate([np.zeros(0), *(job["_shared"] for job in jobs)])
    alone = np.concatenate([np.zeros(0), *(job["_alone"] for job in jobs)])
    some = len(alone) > 0 and alone.mean() > 0
    rounds = [job["_alone"] for job in jobs if job["flows"] is None]
    flows = [job["_alone"] for job in jobs if job["flows"] is not None]
    slowdown = float(shared.mean() / alone.mean()) if some else None
    return {
        "cct_alone_us": _mean(rounds),
        "fct_alone_us": _mean(flows),
        "slowdown": slowdown,
        "interference": None if slowdown is None else slowdown - 1.0,
    }


def _mean(parts: list[NDArray[np.float64]]) -> float | None:
    values = np.concatenate([np.zeros(0), *parts])
    return float(values.mean()) if len(values) else None
