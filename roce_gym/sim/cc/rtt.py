"""A plain controller of round-trip times (rules, section 8.5).

Above a target the rate falls in proportion to the excess, below it rises by a constant, once a
round trip: only a packet sent at the rate as it is tells anything about it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from roce_gym.sim.cc.common import highest, no_timers
from roce_gym.sim.cc.records import of_qp, params_of_qp, qp_record
from roce_gym.sim.jit import rare

RTT = qp_record([("changed_ps", np.int64)])  # when the rate was set last

RTT_PARAMS = np.dtype(
    [
        ("target_ps", np.int64),
        ("gain", np.float64),
        ("rate_ai_bps", np.int64),
        ("min_rate_bps", np.int64),
        ("max_rate_bps", np.int64),  # 0: line rate
    ],
    align=True,
)

state_of_qp = of_qp(RTT)
params_of = params_of_qp(RTT_PARAMS)


def fresh(records: NDArray[Any], _rates_bps: NDArray[np.int64], _params: Any) -> None:
    """Senders that have seen no ACK. Called from Python."""
    no_timers(records)
    records["changed_ps"] = 0


def bound(_records: NDArray[Any], _highest_bps: NDArray[np.int64]) -> None:
    """Nothing but the rate depends on it. Called from Python."""


@rare
def on_ack(s, qp, p, now):
    """An ACK or NACK of a packet that was sent since the rate was set moves it."""
    state = state_of_qp(s, qp)
    if s.sent[p] < state["changed_ps"]:
        return False
    params = params_of(s, qp)
    before = s.sender[qp]["rate_bps"]
    rtt_ps = now - s.sent[p]
    most = highest(params, s.qp[qp]["line_bps"])
    if rtt_ps > params["target_ps"]:
        kept = 1.0 - params["gain"] * ((rtt_ps - params["target_ps"]) / rtt_ps)
        rate_bps = max(int(before * kept), params["min_rate_bps"])
    else:
        rate_bps = before + params["rate_ai_bps"]
    rate_bps = min(rate_bps, most)
    if rate_bps != before:
        s.sender[qp]["rate_bps"] = rate_bps
        state["changed_ps"] = now
    return False
