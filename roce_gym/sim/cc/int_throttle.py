"""Backs off before buffers are so full that PFC pauses (rules, section 8.10).

Switches write into each data packet how full the fullest buffer on its way is: of the port and
priority that it came in on, as a share of the threshold at which that port pauses. Between two
shares the rate falls in proportion, from a reference that changes once an interval, as in HPCC (Li
et al., SIGCOMM 2019): every ACK tells at once, but several of one interval do not add up.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from roce_gym.sim.cc.common import highest, no_timers
from roce_gym.sim.cc.records import of_qp, params_of_qp, qp_record
from roce_gym.sim.jit import rare

INT_THROTTLE = qp_record(
    [
        ("reference_bps", np.int64),  # the rate that changes once an interval
        ("updated_ps", np.int64),  # when it did last
    ]
)

INT_THROTTLE_PARAMS = np.dtype(
    [
        ("start_fraction", np.float64),
        ("full_fraction", np.float64),
        ("gain", np.float64),
        ("rate_ai_bps", np.int64),
        ("min_rate_bps", np.int64),
        ("max_rate_bps", np.int64),  # 0: line rate
        ("update_interval_ps", np.int64),
    ],
    align=True,
)

state_of_qp = of_qp(INT_THROTTLE)
params_of = params_of_qp(INT_THROTTLE_PARAMS)


def fresh(records: NDArray[Any], rates_bps: NDArray[np.int64], _params: Any) -> None:
    """Senders that have seen no telemetry. Called from Python."""
    no_timers(records)
    records["reference_bps"] = rates_bps
    records["updated_ps"] = 0


def bound(records: NDArray[Any], highest_bps: NDArray[np.int64]) -> None:
    """A lower `max_rate` holds for the reference rate, too. Called from Python."""
    records["reference_bps"] = np.minimum(records["reference_bps"], highest_bps)


@rare
def on_ack(s, qp, p, now):
    """An ACK or NACK has arrived; `p` brings the level that its data packet met."""
    state = state_of_qp(s, qp)
    params = params_of(s, qp)
    level, start = s.level[p], params["start_fraction"]
    rate_bps = state["reference_bps"] + params["rate_ai_bps"]
    if level >= start:
        excess = min(1.0, (level - start) / (params["full_fraction"] - start))
        rate_bps = int(state["reference_bps"] * (1.0 - params["gain"] * excess))
    rate_bps = max(rate_bps, params["min_rate_bps"])
    rate_bps = min(rate_bps, highest(params, s.qp[qp]["line_bps"]))
    s.sender[qp]["rate_bps"] = rate_bps
    if now - state["updated_ps"] >= params["update_interval_ps"]:
        state["reference_bps"] = rate_bps
        state["updated_ps"] = now
    return False
