"""TCP's additive increase and multiplicative decrease on loss (rules, section 8.6).

RFC 5681, known as Reno. For lossy classes: storage over TCP beside RoCE.
"""

from __future__ import annotations

from roce_gym.sim.cc.tcp import (
    RENO_PARAMS,
    TCP,
    bound,
    first_window,
    fresh,
    grow,
    hold,
    is_loss,
    newly_acked,
    params_of,
    restart,
    shrink,
    state_of_qp,
)
from roce_gym.sim.jit import rare

__all__ = ["RENO_PARAMS", "TCP", "bound", "first_window", "fresh", "on_ack", "on_timeout"]


@rare
def on_ack(s, qp, p, _now):
    """An ACK lets the window grow, a loss shrinks it."""
    state = state_of_qp(s, qp)
    params = params_of(s, qp)
    count = newly_acked(s, qp, state)
    if is_loss(s, qp, p):
        shrink(s, state, params)
    else:
        grow(s, qp, state, params, count)
    hold(s, qp, state, params)
    return False


@rare
def on_timeout(s, qp, _value, _now):
    """Slow start."""
    state = state_of_qp(s, qp)
    params = params_of(s, qp)
    restart(s, qp, state, params)
    hold(s, qp, state, params)
