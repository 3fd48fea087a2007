"""How long the iterations of a job take, and how much of that the network is to blame for."""

from __future__ import annotations

from typing import Any

from roce_gym.cli.tally import Tally
from roce_gym.units import PS_PER_US
from roce_gym.workload.ideal import ideal_round_ps
from roce_gym.workload.plan import JobPlan


def iteration_results(tally: Tally, job: JobPlan, number: int) -> dict[str, Any]:
    """Mean iteration time in us and share of it exposed to communication; docs/measurements.md.

    An iteration lasts from the end of a round, at first from the start of the job, to the end of
    the next. None where no round has ended, and of jobs without rounds: flows and bursts.
    """
    log = tally.log(number)
    if job.kind in ("flows", "incast") or not len(log):
        return {"iteration_mean_us": None, "exposed_share": None}
    spent_ps = int(log["end_ps"].max()) - job.start_ps
    in_rounds_ps = int((log["end_ps"] - log["start_ps"]).sum())
    exposed_ps = max(0, in_rounds_ps - len(log) * ideal_round_ps(job))
    return {
        "iteration_mean_us": spent_ps / len(log) / PS_PER_US,
        "exposed_share": exposed_ps / spent_ps,
    }
