"""Empty histograms of latencies."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from roce_gym.config import Scenario
from roce_gym.sim import types as t
from roce_gym.workload.plan import Plan


def make_latency(scenario: Scenario, plan: Plan) -> dict[str, NDArray[Any]]:
    """Histograms of each tenant, and whose each queue pair's are; empty unless asked for.

    What stays inside a server does not meet the fabric, and is not measured.
    """
    on = scenario.simulator.latency_histograms
    slots = 2 * len(scenario.tenants) if on else 0
    rows = [t.NONE if pair.is_local else pair.tenant for pair in plan.qps]
    return {
        "latency": np.zeros(slots * int(t.LATENCY_BUCKETS), np.int64),
        "latency_total": np.zeros(slots, t.LATENCY),
        "latency_row": np.array(rows if on else [], np.int32),
    }
