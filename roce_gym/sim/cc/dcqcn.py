"""DCQCN at the sender (reaction point), as ConnectX-4 and later do it (rules, section 8).

Zhu et al., "Congestion Control for Large-Scale RDMA Deployments", SIGCOMM 2015, with the firmware's
timers: alpha every `alpha_interval`, a cut at most every `decrease_interval`, increases by timer
and by byte counter. Timers are no events: they are worked off, in order of time, whenever the QP
sends or hears a CNP, which gives the same result because nothing else reads what they change.
"""

from __future__ import annotations

from roce_gym.sim.jit import helper, rare
from roce_gym.sim.types import FOREVER, MANY_STAGES

_PS_PER_NS = 1_000


@helper
def on_cnp(s, qp, now):
    """A congestion notification has reached the sender."""
    state = s.dcqcn[qp]
    sender = s.sender[qp]
    params = s.dcqcn_params[s.qp[qp]["tenant"]]
    if sender["cc_due_ps"] < now:
        run_timers(state, sender, params, s.qp[qp]["line_bps"], now - 1)
    if state["started"] == 1:
        state["alpha_cnp"] = 1
        state["cut_cnp"] = 1
    else:
        _start(state, sender, params, now)


@helper
def catch_up(s, qp, now):
    """Works off the timers due up to and including `now`."""
    if s.sender[qp]["cc_due_ps"] <= now:
        params = s.dcqcn_params[s.qp[qp]["tenant"]]
        run_timers(s.dcqcn[qp], s.sender[qp], params, s.qp[qp]["line_bps"], now)


@rare
def _start(state, sender, params, now):
    state["started"] = 1
    state["alpha"] = min(params["initial_alpha"], params["alpha_cap"])
    state["alpha_cnp"] = 0
    state["cut_cnp"] = 1
    state["alpha_due_ps"] = now + params["alpha_interval_ps"]
    state["cut_due_ps"] = now + params["decrease_interval_ps"] + _PS_PER_NS
    if 0 < params["first_cnp_bps"] < sender["rate_bps"]:
        sender["rate_bps"] = params["first_cnp_bps"]
        state["target_bps"] = params["first_cnp_bps"]
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
            state["time_stage"] = min(state["time_stage"] + 1, MANY_STAGES)
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
    return params["max_bps"] if 0 < params["max_bps"] < line_bps else line_bps


@helper
def _cut(state, sender, params, line_bps):
    after_time = state["time_stage"] > 0 and params["clamp_after_time"] == 1
    if params["clamp"] == 1 or state["byte_stage"] > 0 or after_time:
        state["target_bps"] = sender["rate_bps"]
    rate = sender["rate_bps"]
    kept = max(
        rate * (1.0 - state["alpha"] / params["cut_divisor"]),
        rate * params["min_decrease_factor"],
    )
    highest = highest_rate(params, line_bps)
    sender["rate_bps"] = int(min(max(kept, float(params["min_bps"])), float(highest)))
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
    if params["byte_counter"] > 0:
        low = min(low, state["byte_stage"])
        high = max(high, state["byte_stage"])
    if high >= times:
        step = params["hai_bps"] if low > times else params["ai_bps"]
        highest = highest_rate(params, line_bps)
        state["target_bps"] = min(highest, state["target_bps"] + step)
    sender["rate_bps"] = int((sender["rate_bps"] + state["target_bps"]) / 2)


@helper
def count_bytes(s, qp, size):
    """Byte counter: an increase each `byte_counter` bytes sent after a cut."""
    if s.sender[qp]["cc_due_ps"] == FOREVER:
        return
    params = s.dcqcn_params[s.qp[qp]["tenant"]]
    state = s.dcqcn[qp]
    if params["byte_counter"] == 0 or state["was_cut"] == 0:
        return
    sent = state["bytes"] + size
    while sent >= params["byte_counter"]:
        sent -= params["byte_counter"]
        _increase(state, s.sender[qp], params, s.qp[qp]["line_bps"])
        state["byte_stage"] = min(state["byte_stage"] + 1, MANY_STAGES)
    state["bytes"] = sent
