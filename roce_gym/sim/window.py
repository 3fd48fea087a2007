"""Windows: how many bytes a QP may have outstanding (rules, section 6)."""

from __future__ import annotations

from roce_gym.sim.jit import helper, rare
from roce_gym.sim.types import RATE_WINDOW

_HALF_BITS = 16
_LOW_HALF = (1 << _HALF_BITS) - 1


@rare
def window_of(s, qp):
    """Bytes; PRECONDITION: the QP has a window. One that follows the rate is exact to the byte."""
    window = s.window[qp]
    if s.sender[qp]["traits"] & RATE_WINDOW == 0:
        return window
    return max(
        s.params[0]["least_window"], _share(window, s.sender[qp]["rate_bps"], s.qp[qp]["line_bps"])
    )


@helper
def _share(window, rate_bps, line_bps):
    """`window * rate // line` in two steps, as the product may need more than 64 bits."""
    high = (window >> _HALF_BITS) * rate_bps
    low = ((high % line_bps) << _HALF_BITS) + (window & _LOW_HALF) * rate_bps
    return ((high // line_bps) << _HALF_BITS) + low // line_bps
