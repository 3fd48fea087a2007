"""How long the requests of inference jobs take."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roce_gym.units import PS_PER_US
from roce_gym.workload.llm.requests import RequestTimes


def request_results(jobs: Sequence[RequestTimes | None]) -> dict[str, Any] | None:
    """Requests of some jobs together; None if none of them has any.

    Keys: `arrived`; `ttft` (time to first token) and `e2e_latency` (until the last one), each with
    the number of requests that came so far and times in us, None where there are none.
    """
    times = [job for job in jobs if job is not None]
    if not times:
        return None
    return {
        "arrived": sum(job.arrived for job in times),
        "ttft": _numbers(np.concatenate([job.ttft_ps for job in times])),
        "e2e_latency": _numbers(np.concatenate([job.e2e_ps for job in times])),
    }


def _numbers(times_ps: NDArray[np.int64]) -> dict[str, Any]:
    some = len(times_ps) > 0
    times_us = times_ps / PS_PER_US
    return {
        "count": len(times_us),
        "mean_us": float(times_us.mean()) if some else None,
        "p50_us": float(np.percentile(times_us, 50)) if some else None,
        "p99_us": float(np.percentile(times_us, 99)) if some else None,
        "max_us": float(times_us.max()) if some else None,
    }
