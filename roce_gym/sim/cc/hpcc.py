"""HPCC: the rate follows the utilisation that switches write into packets (rules, section 8.3).

Li et al., "HPCC: High Precision Congestion Control", SIGCOMM 2019, algorithm 1, in terms of rates
as in its authors' simulator: rate = window / base round trip, window = BDP x rate / line rate.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from roce_gym.sim.cc.records import of_qp, params_of_qp, qp_record
from roce_gym.sim.jit import helper, rare
from roce_gym.sim.port import on_clock
from roce_gym.sim.types import FOREVER, NONE

_BIT_PS_PER_BYTE = 8 * 10**12
_PS_PER_NS = 1_000

HPCC = qp_record(
    [
        ("reference_bps", np.int64),  # the rate that changes once a round trip, R_c
        ("update_seq", np.int64),  # snd_nxt at its last update; 0: no telemetry yet
        ("stage", np.int64),  # additive increases in a row
        ("utilisation", np.float64),  # moving average, U
        ("next_ps", np.int64),  # when the next packet may go
        ("last_owed", np.int64),  # what the last packet had to wait for, 1e-12 bit
    ]
)

HPCC_PARAMS = np.dtype(
    [
        ("rate_ai_bps", np.int64),
        ("max_stage", np.int64),
        ("min_rate_bps", np.int64),
        ("max_rate_bps", np.int64),  # 0: line rate
        ("tx_unit_bytes", np.int64),
        ("queue_unit_bytes", np.int64),
        ("target_utilisation", np.float64),
    ],
    align=True,
)

state_of_qp = of_qp(HPCC)
params_of = params_of_qp(HPCC_PARAMS)


def fresh(records: NDArray[Any], rates_bps: NDArray[np.int64], _params: Any) -> None:
    """Senders that have not seen telemetry. Called from Python."""
    records[:] = np.zeros((), HPCC)
    records["increase_due_ps"] = FOREVER
    records["utilisation"] = 1.0
    records["reference_bps"] = rates_bps


def bound(records: NDArray[Any], highest_bps: NDArray[np.int64]) -> None:
    """A lower `max_rate` holds for the reference rate, too. Called from Python."""
    records["reference_bps"] = np.minimum(records["reference_bps"], highest_bps)


@helper
def on_send(s, qp, size, _now):
    """Remembers when the QP may go on, and at which size: a new rate moves that time."""
    state = state_of_qp(s, qp)
    state["last_owed"] = (size + s.params[0]["gap"]) * _BIT_PS_PER_BYTE
    if s.sender[qp]["rate_bps"] < s.qp[qp]["line_bps"]:
        state["next_ps"] = s.qp[qp]["next_send_ps"]
    else:
        state["next_ps"] = s.link[s.host_link[s.qp[qp]["src"]]]["free_ps"]


@rare
def on_ack(s, qp, p, _now):
    """An ACK or NACK has arrived; `p` brings what switches wrote into its data packet."""
    state = state_of_qp(s, qp)
    next_seq = s.sender[qp]["snd_nxt"]
    is_update = s.packet[p]["seq"] > state["update_seq"]
    if state["update_seq"] == 0:
        _take_in(s, qp, p, params_of(s, qp))
        state["update_seq"] = next_seq
        return False
    moved = _react(s, qp, p, state, params_of(s, qp), is_update)
    if is_update and next_seq > state["update_seq"]:
        state["update_seq"] = next_seq
    return moved


@helper
def _take_in(s, qp, p, params):
    """Utilisation and age of the most utilised hop since the last telemetry, which it replaces.

    The age is 0 ps where there was no hop to learn from.
    """
    max_hops = s.params[0]["max_hops"]
    line_bps = s.qp[qp]["line_bps"]
    most, age_ps = 0.0, 0
    for i in range(1, max_hops):
        link = s.path[2 * qp * max_hops + i]
        if link == NONE:
            break
        new, old = s.seen[p * max_hops + i], s.last_seen[qp * max_hops + i]
        sent = new["tx_bytes"] // params["tx_unit_bytes"] * params["tx_unit_bytes"]
        queue = new["queue_bytes"] // params["queue_unit_bytes"] * params["queue_unit_bytes"]
        passed_ps = new["time_ps"] - old["time_ps"]
        if passed_ps > 0:
            rate = (sent - old["tx_bytes"]) * 8 / (passed_ps / _PS_PER_NS * 1e-9)
            shortest = float(min(queue, old["queue_bytes"]))
            link_bps = s.link_bps[link]
            here = rate / link_bps + shortest * line_bps / link_bps / s.window[qp]
            if here > most:
                most, age_ps = here, passed_ps
        old["time_ps"] = new["time_ps"]
        old["tx_bytes"] = sent
        old["queue_bytes"] = queue
    return most, age_ps


@helper
def _react(s, qp, p, state, params, is_update):
    """Algorithm 1: the rate from the reference rate; the latter only once a round trip."""
    most, age_ps = _take_in(s, qp, p, params)
    base_ps = s.base_rtt[s.qp[qp]["tenant"]]
    age_ns, base_ns = min(age_ps, base_ps) / _PS_PER_NS, base_ps / _PS_PER_NS
    average = (state["utilisation"] * (base_ns - age_ns) + most * age_ns) / base_ns
    state["utilisation"] = average
    excess = average / params["target_utilisation"]
    stage = state["stage"]
    line_bps = s.qp[qp]["line_bps"]
    highest = params["max_rate_bps"] if 0 < params["max_rate_bps"] < line_bps else line_bps
    if excess >= 1 or stage >= params["max_stage"]:
        rate_bps = int(min(state["reference_bps"] / excess, float(highest))) + params["rate_ai_bps"]
        stage = 0
    else:
        rate_bps = state["reference_bps"] + params["rate_ai_bps"]
        stage += 1
    rate_bps = min(max(rate_bps, params["min_rate_bps"]), highest)
    if is_update:
        state["reference_bps"] = rate_bps
        state["stage"] = stage
    return _set_rate(s, qp, state, rate_bps)


@helper
def _set_rate(s, qp, state, rate_bps):
    """The time of the next packet moves as if the last one had been paced at the new rate.

    Returns whether it did.
    """
    sender = s.sender[qp]
    owed = state["last_owed"]
    if rate_bps == sender["rate_bps"] or owed == 0:
        sender["rate_bps"] = rate_bps
        return False
    before, after = on_clock(s, owed // sender["rate_bps"]), on_clock(s, owed // rate_bps)
    state["next_ps"] += after - before
    s.qp[qp]["next_send_ps"] = state["next_ps"]
    sender["rate_bps"] = rate_bps
    return True
