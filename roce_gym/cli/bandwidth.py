"""Effective bandwidth: what tenants get while they communicate, and what share of it is left.

A tenant's is the payload of its completed rounds (or flows) over the time that they took, over all
its hosts together. The share is CCT alone / CCT: of the bandwidth that the same rounds have when
the tenant is alone. The fabric's share weighs tenants by that time: time needed alone / time taken.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from roce_gym.cli.tally import Tally
from roce_gym.progress import round_bytes
from roce_gym.workload.plan import Plan


def add_bandwidth(
    tenants: dict[str, Any], fabric: dict[str, Any], tally: Tally, plan: Plan
) -> None:
    """Adds `effective_bandwidth_gbps` and `effective_bandwidth_share`; None where not known.

    Args:
        tenants: results by name, in the scenario's order [in/out].
        fabric: results [in/out].
        tally, plan: of the run.
    """
    taken_us = needed_us = 0.0
    for index, results in enumerate(tenants.values()):
        numbers = [i for i, job in enumerate(plan.jobs) if job.tenant == index]
        bits = time_us = 0.0
        for number, found in zip(numbers, results["jobs"], strict=True):
            payload, elapsed_us = _done(tally, plan, number)
            bits += 8.0 * payload
            time_us += elapsed_us
            if found["slowdown"]:
                taken_us += elapsed_us
                needed_us += elapsed_us / found["slowdown"]
        results["effective_bandwidth_gbps"] = bits / time_us / 1e3 if time_us else None
        slowdown = results["slowdown"]
        results["effective_bandwidth_share"] = 1.0 / slowdown if slowdown else None
    fabric["goodput_gbps"] = sum(results["goodput_gbps"] for results in tenants.values())
    fabric["effective_bandwidth_share"] = needed_us / taken_us if taken_us else None


def _done(tally: Tally, plan: Plan, number: int) -> tuple[int, float]:
    """Payload of what a job completed, and the time in us that it took."""
    index, times_us = tally.completions(number)
    job = plan.jobs[number]
    if job.kind == "flows":
        return int(np.array(job.flow_bytes, np.int64)[index].sum()), float(times_us.sum())
    return round_bytes(job) * len(index), float(times_us.sum())
