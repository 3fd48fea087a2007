"""TIMELY: the rate follows the gradient of round-trip times (rules, section 8.2).

Mittal et al., "TIMELY: RTT-based Congestion Control for the Datacenter", SIGCOMM 2015, algorithm 1,
once a round trip: the round trip of the first ACK beyond what was sent at the last update counts.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from roce_gym.sim.cc.records import of_qp, params_of_qp, qp_record
from roce_gym.sim.jit import helper, rare
from roce_gym.sim.types import FOREVER

_PS_PER_NS = 1_000

TIMELY = qp_record(
    [
        ("update_seq", np.int64),  # snd_nxt at the last update; 0: none yet
        ("last_rtt_ps", np.int64),  # of the last update
        ("rtt_diff_ns", np.float64),  # moving average of differences between round trips
        ("increases", np.int64),  # in a row
    ]
)

TIMELY_PARAMS = np.dtype(
    [
        ("t_low_ps", np.int64),
        ("t_high_ps", np.int64),
        ("min_rtt_ps", np.int64),
        ("rate_ai_bps", np.int64),
        ("rate_hai_bps", np.int64),
        ("hai_after", np.int64),
        ("min_rate_bps", np.int64),
        ("max_rate_bps", np.int64),  # 0: line rate
        ("ewma_weight", np.float64),
        ("beta", np.float64),
    ],
    align=True,
)

state_of_qp = of_qp(TIMELY)
params_of = params_of_qp(TIMELY_PARAMS)


def fresh(records: NDArray[Any], _rates_bps: NDArray[np.int64], _params: Any) -> None:
    """Senders that have not measured a round trip. Called from Python."""
    records[:] = np.zeros((), TIMELY)
    records["increase_due_ps"] = FOREVER


def bound(_records: NDArray[Any], _highest_bps: NDArray[np.int64]) -> None:
    """Nothing but the rate itself is bounded. Called from Python."""


@helper
def on_ack(s, qp, p, now):
    """An ACK or NACK has arrived; `p` brings the time its data packet was sent."""
    state = state_of_qp(s, qp)
    if s.packet[p]["seq"] <= state["update_seq"]:
        return False
    rtt_ps = now - s.sent[p]
    if state["update_seq"] != 0:
        _update(s, qp, state, params_of(s, qp), rtt_ps)
    if s.sender[qp]["snd_nxt"] > state["update_seq"]:
        state["update_seq"] = s.sender[qp]["snd_nxt"]
        state["last_rtt_ps"] = rtt_ps
    return False


@rare
def _update(s, qp, state, params, rtt_ps):
    weight = params["ewma_weight"]
    new_diff_ns = (rtt_ps - state["last_rtt_ps"]) / _PS_PER_NS
    rtt_diff_ns = (1 - weight) * state["rtt_diff_ns"] + weight * new_diff_ns
    gradient = rtt_diff_ns / (params["min_rtt_ps"] / _PS_PER_NS)
    state["rtt_diff_ns"] = rtt_diff_ns
    kept = 1.0
    if rtt_ps >= params["t_low_ps"]:
        if rtt_ps > params["t_high_ps"]:
            kept = 1 - params["beta"] * (1 - params["t_high_ps"] / rtt_ps)
        elif gradient > 0:
            kept = max(0.0, 1 - params["beta"] * gradient)
    sender = s.sender[qp]
    line_bps = s.qp[qp]["line_bps"]
    highest = params["max_rate_bps"] if 0 < params["max_rate_bps"] < line_bps else line_bps
    if _is_increase(params, rtt_ps, gradient):
        additive = state["increases"] < params["hai_after"]
        step = params["rate_ai_bps"] if additive else params["rate_hai_bps"]
        sender["rate_bps"] = min(highest, sender["rate_bps"] + step)
        state["increases"] += 1
    else:
        least = min(highest, params["min_rate_bps"])
        sender["rate_bps"] = max(least, int(sender["rate_bps"] * kept))
        state["increases"] = 0


@helper
def _is_increase(params, rtt_ps, gradient):
    return rtt_ps < params["t_low_ps"] or (rtt_ps <= params["t_high_ps"] and gradient <= 0)
