"""A sender that sends what its receiver grants (rules, section 8.9); the receiver: `sim/credit.py`.

Olteanu et al., "An edge-queued datagram service for all datacenter traffic" (EQDS), NSDI 2022.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from roce_gym.sim.cc.common import highest, no_timers
from roce_gym.sim.cc.records import of_qp, params_of_qp, qp_record
from roce_gym.sim.jit import rare

CREDIT = qp_record([("limit", np.int64)])  # end of the bytes that may be sent

CREDIT_PARAMS = np.dtype(
    [
        ("initial_window_bytes", np.int64),
        ("credit_bytes", np.int64),
        ("host_window_bytes", np.int64),
        ("pace", np.float64),  # share of line rate
        ("max_rate_bps", np.int64),  # 0: line rate
    ],
    align=True,
)

state_of_qp = of_qp(CREDIT)
params_of = params_of_qp(CREDIT_PARAMS)


def fresh(records: NDArray[Any], _rates_bps: NDArray[np.int64], params: Any) -> None:
    """Senders without a credit. Called from Python."""
    no_timers(records)
    records["limit"] = params["initial_window_bytes"]


def bound(_records: NDArray[Any], _highest_bps: NDArray[np.int64]) -> None:
    """Nothing but the rate depends on it. Called from Python."""


def first_window(params: Any, _mtu: int) -> int:
    """Bytes. Called from Python."""
    return int(params["initial_window_bytes"])


@rare
def on_ack(s, qp, p, _now):
    """An ACK brings the limit; what is posted after all else has arrived may begin without credit.

    With nothing outstanding one packet may go in any case: it tells the receiver of the demand.
    """
    state = state_of_qp(s, qp)
    params = params_of(s, qp)
    sender = s.sender[qp]
    limit = max(state["limit"], s.credit[2 * p])
    if sender["snd_una"] == s.qp[qp]["posted"]:
        limit = max(limit, sender["snd_una"] + params["initial_window_bytes"])
    state["limit"] = limit
    s.window[qp] = max(1, limit - sender["snd_una"])
    sender["rate_bps"] = highest(params, s.qp[qp]["line_bps"])
    return False
