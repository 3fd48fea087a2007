"""Completion times and bandwidths of collectives."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from roce_gym.cli.tally import Tally
from roce_gym.units import BPS_PER_GBPS, PS_PER_US
from roce_gym.workload.bandwidth import (
    CollectiveKind,
    algorithm_bandwidth_bps,
    bus_factor,
    kind_of_rounds,
    kinds_of_calls,
)
from roce_gym.workload.plan import JobPlan


def collective_results(tally: Tally, job: JobPlan, number: int) -> list[dict[str, Any]]:
    """A row for each kind of collective (operation, algorithm, ranks, bytes) of a job.

    Bandwidths are those at the mean completion time; None where none was completed.
    """
    times: dict[CollectiveKind, list[NDArray[np.float64]]] = {}
    whole = kind_of_rounds(job)
    if whole is not None:
        times[whole] = [tally.completions(number)[1]]
    call, call_us = tally.collectives(number)
    for index, kind in enumerate(kinds_of_calls(job)):
        times.setdefault(kind, []).append(call_us[call == index])
    return [_row(kind, np.concatenate(parts)) for kind, parts in times.items()]


def _row(kind: CollectiveKind, times_us: NDArray[np.float64]) -> dict[str, Any]:
    some = len(times_us) > 0
    mean_us = float(times_us.mean()) if some else None
    algbw = None
    if mean_us:
        algbw = algorithm_bandwidth_bps(kind.bytes, mean_us * PS_PER_US) / BPS_PER_GBPS
    return {
        **kind._asdict(),
        "completed": len(times_us),
        "cct_mean_us": mean_us,
        "cct_p99_us": float(np.percentile(times_us, 99)) if some else None,
        "cct_max_us": float(times_us.max()) if some else None,
        "algbw_gbps": algbw,
        "busbw_gbps": None if algbw is None else algbw * bus_factor(kind.operation, kind.ranks),
    }
