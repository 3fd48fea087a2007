"""DCQCN at the sender (reaction point), as ConnectX-4 and later do it (rules, section 8).

Zhu et al., "Congestion Control for Large-Scale RDMA Deployments", SIGCOMM 2015, with the firmware's
timers: alpha every `alpha_interval`, a cut at most every `decrease_interval`, increases by timer
and by byte counter. Timers are no events: they are worked off, in order of time, whenever the QP
sends or hears a CNP, which gives the same result because nothing else reads what they change.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from roce_gym.sim.cc.records import of_qp, params_of_qp, qp_record
from roce_gym.sim.jit import helper, rare
from roce_gym.sim.types import FOREVER

_PS_PER_NS = 1_000
_MANY_STAGES = np.int64(1_000)
"""More increases than any `fast_recovery_times` (31): beyond, stages need not be told apart."""

DCQCN = qp_record(
    [
        ("alpha_due_ps", np.int64),
        ("cut_due_ps", np.int64),
        ("target_bps", np.int64),
        ("alpha", np.float64),
        ("bytes", np.int64),  # sent since the last byte-counter increase
        ("time_stage", np.int16),  # increases since the last cut, up to _MANY_STAGES
        ("byte_stage", np.int16),
        ("alpha_cnp", np.int8),
        ("cut_cnp", np.int8),
        ("was_cut", np.int8),
        ("started", np.int8),
    ]
)

DCQCN_PARAMS = np.dtype(
    [
        ("alpha_interval_ps", np.int64),
        ("decrease_interval_ps", np.int64),
        ("increase_timer_ps", np.int64),
        ("byte_counter_bytes", np.int64),
        ("fast_recovery_times", np.int64),
        ("rate_ai_bps", np.int64),
        ("rate_hai_bps", np.int64),
        ("min_rate_bps", np.int64),
        ("max_rate_bps", np.int64),  # 0: line rate
        ("first_cnp_rate_bps", np.int64),  # 0: unchanged
        ("g", np.float64),
        ("initial_alpha", np.float64),
        ("alpha_cap", np.float64),
        ("cut_divisor", np.float64),
        ("min_decrease_factor", np.float64),
        ("clamp_target_rate", np.int32),
        ("clamp_target_rate_after_time_inc", np.int32),
    ],
    align=True,
)

state_of_qp = of_qp(DCQCN)
params_of = params_of_qp(DCQCN_PARAMS)


def fresh(records: NDArray[Any], rates_bps: NDArray[np.int64], params: Any) -> None:
    """Senders that have not heard a CNP: no timer runs. Called from Python."""
    for field in ("alpha_due_ps", "cut_due_ps", "increase_due_ps"):
        records[field] = FOREVER
    for field in ("started", "was_cut", "time_stage", "byte_stage", "bytes", "owed"):
        records[field] = 0
    records["target_bps"] = rates_bps
    records["alpha"] = min(params["initial_alpha"], params["alpha_cap"])


def bound(records: NDArray[Any], highest_bps: NDArray[np.int64]) -> None:
    """A lower `max_rate` holds for targets, too. Called from Python."""
    records["target_bps"] = np.minimum(records["target_bps"], highest_bps)


@helper
def on_cnp(s, qp, _value, now):
    """A congestion notification has reached the sender."""
    state = state_of_qp(s, qp)
    sender = s.sender[qp]
    params = params_of(s, qp)
    if sender["cc_due_ps"] < now:
        run_timers(state, sender, params, s.qp[qp]["line_bps"], now - 1)
    if state["started"] == 1:
        state["alpha_cnp"] = 1
        state["cut_cnp"] = 1
    else:
        _start(state, sender, params, now)


@helper
def catch_up(s, qp, _value, now):
    """Works off the timers due up to and including `now`; PRECONDITION: there are some."""
    state = state_of_qp(s, qp)
    run_timers(state, s.sender[qp], params_of(s, qp), s.qp[qp]["line_bps"], now)


@rare
def _start(state, sender, params, now):
    state["started"] = 1
    state["alpha"] = min(params["initial_alpha"], params["alpha_cap"])
    state["alpha_cnp"] = 0
    state["cut_cnp"] = 1
    state["alpha_due_ps"] = now + params["alpha_interval_ps"]
    state["cut_due_ps"] = now + params["decrease_interval_ps"] + _PS_PER_NS
    if 0 < params["first_cnp_rate_bps"] < sender["rate_bps"]:
        sender["rate_bps"] = params["first_cnp_rate_bps"]
        state["target_bps"] = params["first_cnp_rate_bps"]
    sender["cc_due_ps"] = min(state["alpha_due_ps"], state["cut_due_ps"])


@rare
def run_timers(state, sender, params, line_bps, until_ps):
    """Works off the timers due up to and including `until_ps`: alpha, increase, cut at a tie."""
    due_ps = sender["cc_due_ps"]
    while due_ps <= until_ps:
        others_ps = min(state["increase_due_ps"], state["cut_due_ps"])
        if state["alpha_due_ps"] <= others_ps:
            _update_alpha(state, params, min(others_ps, until_ps))
        elif state["increase_due_ps"] == others_ps:
            _increase(state, sender, params, line_bps)
            state["time_stage"] = min(state["time_stage"] + 1, _MANY_STAGES)
            state["increase_due_ps"] = others_ps + params["increase_timer_ps"]
        else:
            if state["cut_cnp"] == 1:
                _cut(state, sender, params, line_bps)
                state["increase_due_ps"] = others_ps + params["increase_timer_ps"]
            state["cut_due_ps"] = others_ps + params["decrease_interval_ps"]
        due_ps = min(state["alpha_due_ps"], state["increase_due_ps"], state["cut_due_ps"])
    sender["cc_due_ps"] = due_ps


@helper
def _update_alpha(state, params, until_ps):
    """All updates of alpha due up to and including `until_ps`; a CNP counts in the first."""
    kept = 1.0 - params["g"]
    alpha = state["alpha"]
    due_ps = state["alpha_due_ps"]
    if state["alpha_cnp"] == 1:
        alpha = min(kept * alpha + params["g"], params["alpha_cap"])
        state["alpha_cnp"] = 0
        due_ps += params["alpha_interval_ps"]
    while due_ps <= until_ps:
        alpha = min(kept * alpha, params["alpha_cap"])
        due_ps += params["alpha_interval_ps"]
    state["alpha"] = alpha
    state["alpha_due_ps"] = due_ps


@helper
def highest_rate(params, line_bps):
    """Upper bound of the rate in bit/s: the line, or `max_rate` where lower."""
    return params["max_rate_bps"] if 0 < params["max_rate_bps"] < line_bps else line_bps


@helper
def _cut(state, sender, params, line_bps):
    after_time = state["time_stage"] > 0 and params["clamp_target_rate_after_time_inc"] == 1
    if params["clamp_target_rate"] == 1 or state["byte_stage"] > 0 or after_time:
        state["target_bps"] = sender["rate_bps"]
    rate = sender["rate_bps"]
    kept = max(
        rate * (1.0 - state["alpha"] / params["cut_divisor"]),
        rate * params["min_decrease_factor"],
    )
    highest = highest_rate(params, line_bps)
    sender["rate_bps"] = int(min(max(kept, float(params["min_rate_bps"])), float(highest)))
    state["time_stage"] = 0
    state["byte_stage"] = 0
    state["bytes"] = 0
    state["cut_cnp"] = 0
    state["was_cut"] = 1


@helper
def _increase(state, sender, params, line_bps):
    """Fast recovery, additive or hyper increase, by the stages reached before."""
    times = params["fast_recovery_times"]
    low = high = state["time_stage"]
    if params["byte_counter_bytes"] > 0:
        low = min(low, state["byte_stage"])
        high = max(high, state["byte_stage"])
    if high >= times:
        step = params["rate_hai_bps"] if low > times else params["rate_ai_bps"]
        highest = highest_rate(params, line_bps)
        state["target_bps"] = min(highest, state["target_bps"] + step)
    sender["rate_bps"] = int((sender["rate_bps"] + state["target_bps"]) / 2)


@helper
def on_send(s, qp, size, _now):
    """Byte counter: an increase each `byte_counter_bytes` bytes sent after a cut."""
    if s.sender[qp]["cc_due_ps"] == FOREVER:
        return
    params = params_of(s, qp)
    state = state_of_qp(s, qp)
    if params["byte_counter_bytes"] == 0 or state["was_cut"] == 0:
        return
    sent = state["bytes"] + size
    while sent >= params["byte_counter_bytes"]:
        sent -= params["byte_counter_bytes"]
        _increase(state, s.sender[qp], params, s.qp[qp]["line_bps"])
        state["byte_stage"] = min(state["byte_stage"] + 1, _MANY_STAGES)
    state["bytes"] = sent
