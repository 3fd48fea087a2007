"""Swift: a window for the fabric's delay and one for the receiving host's (rules, section 8.4).

Kumar et al., "Swift: Delay is Simple and Effective for Congestion Control in the Datacenter",
SIGCOMM 2020. Windows are in packets and may be less than one; the QP is paced only then.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roce_gym.sim.cc.common import highest, no_timers, window_for
from roce_gym.sim.cc.records import of_qp, params_of_qp, qp_record
from roce_gym.sim.jit import helper, rare
from roce_gym.sim.types import NACK

_BIT_PS_PER_BYTE = 8e12

SWIFT = qp_record(
    [
        ("fabric_cwnd", np.float64),  # packets
        ("endpoint_cwnd", np.float64),
        ("acked", np.int64),  # snd_una at the last ACK
        ("rtt_ps", np.int64),  # last one measured; 0: none
        ("fabric_cut_ps", np.int64),
        ("endpoint_cut_ps", np.int64),
    ]
)

SWIFT_PARAMS = np.dtype(
    [
        ("base_target_ps", np.int64),
        ("hop_target_ps", np.int64),
        ("endpoint_target_ps", np.int64),
        ("fs_range_ps", np.int64),
        ("fs_min_cwnd", np.float64),
        ("fs_max_cwnd", np.float64),
        ("ai", np.float64),
        ("beta", np.float64),
        ("max_mdf", np.float64),
        ("retransmit_reset", np.int64),
        ("initial_cwnd", np.float64),
        ("min_cwnd", np.float64),
        ("max_cwnd", np.float64),
        ("max_rate_bps", np.int64),  # 0: line rate
    ],
    align=True,
)

state_of_qp = of_qp(SWIFT)
params_of = params_of_qp(SWIFT_PARAMS)


def fresh(records: NDArray[Any], _rates_bps: NDArray[np.int64], params: Any) -> None:
    """Senders that have seen no ACK. Called from Python."""
    no_timers(records)
    records["fabric_cwnd"] = records["endpoint_cwnd"] = params["initial_cwnd"]
    for field in ("acked", "rtt_ps", "fabric_cut_ps", "endpoint_cut_ps"):
        records[field] = 0


def bound(_records: NDArray[Any], _highest_bps: NDArray[np.int64]) -> None:
    """Nothing but the rate depends on it. Called from Python."""


def first_window(params: Any, mtu: int) -> int:
    """Bytes. Called from Python."""
    return int(max(1, int(params["initial_cwnd"] * mtu) - mtu + 1))


@rare
def on_ack(s, qp, p, now):
    """An ACK or NACK: both windows follow their delays; a NACK is a loss in the fabric."""
    state = state_of_qp(s, qp)
    params = params_of(s, qp)
    packet = s.packet[p]
    rtt_ps = now - s.sent[p]
    state["rtt_ps"] = rtt_ps
    acked = (s.sender[qp]["snd_una"] - state["acked"]) / s.params[0]["mtu"]
    state["acked"] = s.sender[qp]["snd_una"]
    before = state["fabric_cwnd"]
    may_cut = now - state["fabric_cut_ps"] >= rtt_ps
    if packet["kind"] == NACK and packet["seq"] == s.sender[qp]["snd_una"]:
        after = before * (1.0 - params["max_mdf"]) if may_cut else before
    else:
        target_ps = _fabric_target(params, before, packet["hop"])
        after = _follow(params, before, acked, rtt_ps - s.waited[p], target_ps, may_cut)
    state["fabric_cwnd"] = _clamped(params, after)
    if state["fabric_cwnd"] < before:
        state["fabric_cut_ps"] = now
    before = state["endpoint_cwnd"]
    may_cut = now - state["endpoint_cut_ps"] >= rtt_ps
    target_ps = float(params["endpoint_target_ps"])
    after = _follow(params, before, acked, s.waited[p], target_ps, may_cut)
    state["endpoint_cwnd"] = _clamped(params, after)
    if state["endpoint_cwnd"] < before:
        state["endpoint_cut_ps"] = now
    _hold(s, qp, state, params)
    return False


@rare
def on_timeout(s, qp, _value, now):
    """The retransmission timer fired: a loss, and after several in a row a fresh start."""
    state = state_of_qp(s, qp)
    params = params_of(s, qp)
    before = state["fabric_cwnd"]
    after = before
    if s.sender[qp]["retries"] >= params["retransmit_reset"]:
        after = params["min_cwnd"]
    elif now - state["fabric_cut_ps"] >= state["rtt_ps"]:
        after = before * (1.0 - params["max_mdf"])
    state["fabric_cwnd"] = _clamped(params, after)
    if state["fabric_cwnd"] < before:
        state["fabric_cut_ps"] = now
    _hold(s, qp, state, params)


@helper
def _fabric_target(params, cwnd, hops):
    """Target delay in ps, longer for small windows and long paths."""
    target_ps = float(params["base_target_ps"] + hops * params["hop_target_ps"])
    if params["fs_range_ps"] == 0:
        return target_ps
    at_most = 1.0 / math.sqrt(params["fs_max_cwnd"])
    slope = params["fs_range_ps"] / (1.0 / math.sqrt(params["fs_min_cwnd"]) - at_most)
    scaling_ps = slope * (1.0 / math.sqrt(cwnd) - at_most)
    return target_ps + max(0.0, min(scaling_ps, float(params["fs_range_ps"])))


@helper
def _follow(params, cwnd, acked, delay_ps, target_ps, may_cut):
    """A window after an ACK of `acked` packets that saw `delay_ps` (algorithm 1)."""
    if delay_ps < target_ps:
        return cwnd + params["ai"] * acked / cwnd if cwnd >= 1.0 else cwnd + params["ai"] * acked
    if not may_cut:
        return cwnd
    kept = 1.0 - params["beta"] * ((delay_ps - target_ps) / delay_ps)
    return cwnd * max(kept, 1.0 - params["max_mdf"])


@helper
def _clamped(params, cwnd):
    return min(max(cwnd, params["min_cwnd"]), params["max_cwnd"])


@helper
def _hold(s, qp, state, params):
    """Sets window and rate: below one packet, packets are rtt / cwnd apart."""
    cwnd = min(state["fabric_cwnd"], state["endpoint_cwnd"])
    mtu = s.params[0]["mtu"]
    s.window[qp] = window_for(cwnd * mtu, mtu)
    rate_bps = highest(params, s.qp[qp]["line_bps"])
    if cwnd < 1.0 and state["rtt_ps"] > 0:
        size = mtu + s.params[0]["header"] + s.params[0]["gap"]
        paced = size * cwnd * _BIT_PS_PER_BYTE / state["rtt_ps"]
        rate_bps = max(1, min(int(paced), rate_bps))
    s.sender[qp]["rate_bps"] = rate_bps
