"""What several sender algorithms have in common."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from roce_gym.sim.jit import helper
from roce_gym.sim.types import FOREVER


def no_timers(records: NDArray[Any]) -> None:
    """QPs of an algorithm without timers start. Called from Python."""
    records["owed"] = 0
    records["increase_due_ps"] = FOREVER


@helper
def highest(params, line_bps):
    """Upper bound of the rate in bit/s: the line, or `max_rate` where lower."""
    return params["max_rate_bps"] if 0 < params["max_rate_bps"] < line_bps else line_bps


@helper
def window_for(size, mtu):
    """The window in which packets of `size` bytes in all fit whole, and one fits in any case."""
    return max(1, int(size) - mtu + 1)
