"""The window of TCP that `reno` and `dctcp` share: slow start, additive increase, losses.

Allman, Paxson, Blanton, "TCP congestion control", RFC 5681; byte counting and growth of windows in
use only: RFC 3465, RFC 7661. A NACK stands for three duplicate ACKs.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from roce_gym.sim.cc.common import highest, no_timers, window_for
from roce_gym.sim.cc.records import of_qp, params_of_qp, qp_record
from roce_gym.sim.jit import helper
from roce_gym.sim.types import NACK

_MOST_PACKETS = 2
"""That one ACK may add in slow start (RFC 3465, L); least threshold and window after a loss."""

TCP = qp_record(
    [
        ("cwnd", np.float64),  # bytes
        ("alpha", np.float64),  # DCTCP: share of marked bytes, averaged
        ("acked", np.int64),  # snd_una at the last ACK
        ("end", np.int64),  # DCTCP: the observed window is over when this is acknowledged
        ("observed", np.int32),  # DCTCP: bytes acknowledged in it
        ("marked", np.int32),  # thereof marked
        ("ssthresh", np.int32),  # bytes
        ("was_cut", np.int32),  # DCTCP: in the observed window
    ]
)

TCP_FIELDS: list[tuple[str, Any]] = [
    ("initial_window_bytes", np.int64),
    ("initial_ssthresh_bytes", np.int64),  # 0: none
    ("max_window_bytes", np.int64),
    ("additive_packets", np.float64),  # a round trip
    ("loss_factor", np.float64),
    ("max_rate_bps", np.int64),  # 0: line rate
]

RENO_PARAMS = np.dtype(TCP_FIELDS, align=True)

state_of_qp = of_qp(TCP)
params_of = params_of_qp(RENO_PARAMS)


def fresh(records: NDArray[Any], _rates_bps: NDArray[np.int64], params: Any) -> None:
    """Senders in slow start. Called from Python."""
    no_timers(records)
    records["cwnd"] = params["initial_window_bytes"]
    records["ssthresh"] = params["initial_ssthresh_bytes"] or params["max_window_bytes"]
    for field in ("alpha", "acked", "end", "observed", "marked", "was_cut"):
        records[field] = 0


def bound(_records: NDArray[Any], _highest_bps: NDArray[np.int64]) -> None:
    """Nothing but the rate depends on it. Called from Python."""


def first_window(params: Any, mtu: int) -> int:
    """Bytes. Called from Python."""
    return int(max(1, int(params["initial_window_bytes"]) - mtu + 1))


@helper
def newly_acked(s, qp, state):
    """Bytes acknowledged since the last time it was asked."""
    una = s.sender[qp]["snd_una"]
    count = una - state["acked"]
    state["acked"] = una
    return count


@helper
def is_loss(s, qp, p):
    """Whether a packet taken in is a NACK that made the QP go back."""
    return s.packet[p]["kind"] == NACK and s.packet[p]["seq"] == s.sender[qp]["snd_una"]


@helper
def grow(s, qp, state, params, count):
    """After an ACK of `count` bytes, if at least half of the window was in use (RFC 7661)."""
    mtu = s.params[0]["mtu"]
    sender = s.sender[qp]
    cwnd = state["cwnd"]
    if 2 * (sender["snd_nxt"] - (sender["snd_una"] - count)) < cwnd:
        return
    if cwnd < state["ssthresh"]:
        state["cwnd"] = cwnd + min(count, _MOST_PACKETS * mtu)
    else:
        state["cwnd"] = cwnd + params["additive_packets"] * mtu * count / cwnd


@helper
def shrink(s, state, params):
    """After a loss that was not found by a timeout."""
    least = _MOST_PACKETS * s.params[0]["mtu"]
    state["ssthresh"] = max(int(state["cwnd"] * params["loss_factor"]), least)
    state["cwnd"] = float(state["ssthresh"])


@helper
def restart(s, qp, state, params):
    """After a timeout: slow start from one packet; the threshold is that of the first timeout."""
    mtu = s.params[0]["mtu"]
    if s.sender[qp]["retries"] == 1:
        least = _MOST_PACKETS * mtu
        state["ssthresh"] = max(int(state["cwnd"] * params["loss_factor"]), least)
    state["cwnd"] = float(mtu)


@helper
def hold(s, qp, state, params):
    """Sets window and rate."""
    state["cwnd"] = min(state["cwnd"], float(params["max_window_bytes"]))
    s.window[qp] = window_for(state["cwnd"], s.params[0]["mtu"])
    s.sender[qp]["rate_bps"] = highest(params, s.qp[qp]["line_bps"])
