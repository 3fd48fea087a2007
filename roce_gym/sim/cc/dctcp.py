"""DCTCP: a window cut by the share of its bytes that were marked (rules, section 8.7).

Alizadeh et al., "Data Center TCP (DCTCP)", SIGCOMM 2010; Bensley et al., RFC 8257.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from roce_gym.sim.cc import tcp
from roce_gym.sim.cc.records import params_of_qp
from roce_gym.sim.cc.tcp import (
    TCP,
    TCP_FIELDS,
    bound,
    first_window,
    grow,
    hold,
    is_loss,
    newly_acked,
    restart,
    shrink,
    state_of_qp,
)
from roce_gym.sim.jit import helper, rare
from roce_gym.sim.types import ECHO

__all__ = ["DCTCP_PARAMS", "TCP", "bound", "first_window", "fresh", "on_ack", "on_timeout"]

_LEAST_PACKETS = 2
"""Window that a cut leaves."""

# Its own fields come first: else Numba takes it for a subtype of Reno's record, and warns.
DCTCP_PARAMS = np.dtype([("g", np.float64), ("initial_alpha", np.float64), *TCP_FIELDS], align=True)

params_of = params_of_qp(DCTCP_PARAMS)


def fresh(records: NDArray[Any], rates_bps: NDArray[np.int64], params: Any) -> None:
    """Senders in slow start. Called from Python."""
    tcp.fresh(records, rates_bps, params)
    records["alpha"] = params["initial_alpha"]


@rare
def on_ack(s, qp, p, _now):
    """An ACK, whose ECHO flag says that its packet was marked; or a NACK."""
    state = state_of_qp(s, qp)
    params = params_of(s, qp)
    count = newly_acked(s, qp, state)
    echo = int(s.packet[p]["flags"]) & ECHO != 0
    state["observed"] += count
    if echo:
        state["marked"] += count
    if s.sender[qp]["snd_una"] >= state["end"]:
        _end_window(s.sender[qp], state, params)
    if is_loss(s, qp, p):
        shrink(s, state, params)
    elif state["was_cut"] == 0:
        if echo:
            least = float(_LEAST_PACKETS * s.params[0]["mtu"])
            state["cwnd"] = max(state["cwnd"] * (1.0 - state["alpha"] / 2.0), least)
            state["ssthresh"] = int(state["cwnd"])
            state["was_cut"] = 1
        else:
            grow(s, qp, state, params, count)
    hold(s, qp, state, params)
    return False


@helper
def _end_window(sender, state, params):
    """All that was sent when the observed window began is acknowledged (RFC 8257)."""
    if state["observed"] > 0:
        share = state["marked"] / state["observed"]
        state["alpha"] = state["alpha"] * (1.0 - params["g"]) + params["g"] * share
    state["observed"] = 0
    state["marked"] = 0
    state["was_cut"] = 0
    state["end"] = sender["snd_nxt"]


@rare
def on_timeout(s, qp, _value, _now):
    """Slow start."""
    state = state_of_qp(s, qp)
    params = params_of(s, qp)
    restart(s, qp, state, params)
    hold(s, qp, state, params)
