"""No congestion control: line rate, or a fixed one below (rules, section 8.11)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from roce_gym.sim.cc.common import no_timers
from roce_gym.sim.cc.records import qp_record

NONE = qp_record([])

NONE_PARAMS = np.dtype([("max_rate_bps", np.int64)], align=True)  # 0: line rate


def fresh(records: NDArray[Any], _rates_bps: NDArray[np.int64], _params: Any) -> None:
    """Senders at their rate. Called from Python."""
    no_timers(records)


def bound(_records: NDArray[Any], _highest_bps: NDArray[np.int64]) -> None:
    """Nothing but the rate depends on it. Called from Python."""
