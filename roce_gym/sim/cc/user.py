"""A sender that a user has written: calls a compiled function, by its address (rules, section 8.8).

The function gets the event, `USER_STATE_WORDS` numbers of the QP and `USER_PARAM_WORDS` of the
tenant, and returns a rate; `roce_gym.user_sender` compiles it. As the address is data, the
simulator itself need not be compiled for it. The events are those of NVIDIA's DOCA PCC.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic
from numpy import int64
from numpy.typing import NDArray

from roce_gym.sim.cc.common import highest, no_timers
from roce_gym.sim.cc.records import of_qp, params_of_qp, qp_record
from roce_gym.sim.jit import helper, rare
from roce_gym.sim.types import (
    FOREVER,
    NACK,
    USER_ACK,
    USER_CNP,
    USER_NACK,
    USER_TIMER,
    USER_TX,
    ZERO,
)

USER_STATE_WORDS = 6
USER_PARAM_WORDS = 8
_SHORTEST_TIMER_PS = np.int64(1_000)
"""So that a run comes to an end."""

USER = qp_record([("words", np.float64, (USER_STATE_WORDS,))])

USER_PARAMS = np.dtype(
    [
        ("min_rate_bps", np.int64),
        ("max_rate_bps", np.int64),  # 0: line rate
        ("words", np.float64, (USER_PARAM_WORDS,)),
    ],
    align=True,
)

state_of_qp = of_qp(USER)
params_of = params_of_qp(USER_PARAMS)

FUNCTIONS: dict[int, Callable[..., float]] = {}
"""Without JIT: the functions, by what stands for their address."""


def _offset(dtype: np.dtype[Any]) -> int:
    assert dtype.fields is not None
    return dtype.fields["words"][1]


@intrinsic
def _call_compiled(_typing: Any, code: Any, event: Any, state: Any, params: Any) -> Any:
    def codegen(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        bytes_at = cgutils.voidptr_t
        kind = ir.FunctionType(ir.DoubleType(), [bytes_at, bytes_at, bytes_at])
        function = builder.inttoptr(args[0], kind.as_pointer())
        pointers = []
        for record, offset in zip(args[1:], (0, _offset(USER), _offset(USER_PARAMS)), strict=True):
            start = builder.bitcast(record, bytes_at)
            pointers.append(builder.gep(start, [ir.Constant(ir.IntType(64), offset)]))
        return builder.call(function, pointers, attrs=("nounwind",))

    return types.float64(code, event, state, params), codegen


def _call_plain(code: int, event: Any, state: Any, params: Any) -> float:
    return float(FUNCTIONS[int(code)](event, state["words"], params["words"]))


_call = _call_plain if numba.config.DISABLE_JIT else _call_compiled


def fresh(records: NDArray[Any], _rates_bps: NDArray[np.int64], _params: Any) -> None:
    """Senders that nothing has happened to. Called from Python."""
    no_timers(records)
    records["words"] = 0.0


def bound(_records: NDArray[Any], _highest_bps: NDArray[np.int64]) -> None:
    """Nothing but the rate depends on it. Called from Python."""


@rare
def _tell(s, qp, kind, rtt_ps, size, acked, now):
    """Calls the function; takes over its rate and timer."""
    sender = s.sender[qp]
    state = state_of_qp(s, qp)
    params = params_of(s, qp)
    line_bps = s.qp[qp]["line_bps"]
    event = s.user_event[0]
    event["kind"] = kind
    event["now_ps"] = now
    event["rtt_ps"] = rtt_ps
    event["bytes"] = size
    event["acked_bytes"] = acked
    event["line_bps"] = line_bps
    event["rate"] = sender["rate_bps"] / line_bps
    event["timer_ps"] = 0
    wanted = _call(s.user_code[s.qp[qp]["tenant"]], event, state, params) * line_bps
    most = highest(params, line_bps)
    if wanted >= most:
        sender["rate_bps"] = most
    elif wanted > params["min_rate_bps"]:
        sender["rate_bps"] = int(wanted)
    else:  # NaN, too
        sender["rate_bps"] = min(params["min_rate_bps"], most)
    if event["timer_ps"] != 0:
        due_ps = FOREVER
        if event["timer_ps"] > 0:
            due_ps = now + max(event["timer_ps"], _SHORTEST_TIMER_PS)
        sender["cc_due_ps"] = due_ps
        state["increase_due_ps"] = due_ps


@helper
def _run_timers(s, qp, until_ps):
    """Timers due up to and including `until_ps`."""
    sender = s.sender[qp]
    while sender["cc_due_ps"] <= until_ps:
        due_ps = sender["cc_due_ps"]
        sender["cc_due_ps"] = FOREVER
        state_of_qp(s, qp)["increase_due_ps"] = FOREVER
        _tell(s, qp, USER_TIMER, ZERO, ZERO, ZERO, due_ps)


@rare
def catch_up(s, qp, _value, now):
    """Works off the timers due up to and including `now`."""
    _run_timers(s, qp, now)


@rare
def on_cnp(s, qp, _value, now):
    """A congestion notification has reached the sender."""
    _run_timers(s, qp, now - 1)
    _tell(s, qp, USER_CNP, ZERO, ZERO, ZERO, now)


@rare
def on_ack(s, qp, p, now):
    """An ACK or NACK was taken in."""
    _run_timers(s, qp, now - 1)
    kind = USER_NACK if s.packet[p]["kind"] == NACK else USER_ACK
    _tell(s, qp, kind, now - s.sent[p], ZERO, s.sender[qp]["snd_una"], now)
    return False


@rare
def on_send(s, qp, size, now):
    """A packet was put on the wire."""
    _tell(s, qp, USER_TX, ZERO, int64(size), ZERO, now)
