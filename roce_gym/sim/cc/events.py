"""Hands what happens to a QP to its tenant's algorithm.

The hooks of one kind are chained to one function, `if cc == 1: … elif cc == 2: …`, when this module
is imported; algorithms without that hook are not in the chain.
"""

from __future__ import annotations

from typing import Any

from numpy import int8

from roce_gym.sim.cc.registry import ALGORITHMS
from roce_gym.sim.jit import helper
from roce_gym.sim.types import ZERO


@helper
def _nothing(_s, _qp, _value, _now):
    """The end of a chain: no algorithm, or one without this hook."""


@helper
def _not_moved(_s, _qp, _value, _now):
    return False


def _chain(name: str, end: Any = _nothing) -> Any:
    chained = end
    for code in range(len(ALGORITHMS), 0, -1):
        hook = getattr(ALGORITHMS[code - 1].module, name, None)
        if hook is not None:
            chained = _either(int8(code), hook, chained)
    return chained


def _either(code: int8, hook: Any, otherwise: Any) -> Any:
    is_plain = ALGORITHMS[int(code) - 1].name == "dcqcn"  # see kernels.is_plain

    @helper
    def dispatch(s, qp, value, now):
        if (is_plain or not s.plain) and s.sender[qp]["cc"] == code:
            return hook(s, qp, value, now)
        return otherwise(s, qp, value, now)

    return dispatch


_on_cnp = _chain("on_cnp")
_catch_up = _chain("catch_up")
on_send = _chain("on_send")
on_ack = _chain("on_ack", _not_moved)
on_timeout = _chain("on_timeout")


@helper
def on_cnp(s, qp, now):
    """A congestion notification has reached the sender."""
    _on_cnp(s, qp, ZERO, now)


@helper
def catch_up(s, qp, now):
    """Works off the timers due up to and including `now`."""
    if s.sender[qp]["cc_due_ps"] <= now:
        _catch_up(s, qp, ZERO, now)
