"""What happened so far in an episode, as far as pictures show it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from roce_gym.config import Scenario
from roce_gym.telemetry import Interval
from roce_gym.units import PS_PER_US

MAX_POINTS = 4096
"""Of each curve; older ones are forgotten."""


class Trail:
    """Collective times and pause frames of past intervals.

    Attributes:
        pauses: (end of the interval in us, pause frames per second and switch port).
        rounds: by tenant, (end in us, collective time in us) of each round, burst or flow.
        horizon_us: of the episode.
    """

    def __init__(self, scenario: Scenario) -> None:
        self.pauses: list[tuple[float, float]] = []
        self.rounds: list[list[tuple[float, float]]] = [[] for _ in scenario.tenants]
        self.horizon_us = scenario.control.horizon_us

    def add(
        self, info: dict[str, Any], interval: Interval | None, job_tenant: NDArray[np.int64]
    ) -> None:
        """Notes one more interval; None: the episode begins."""
        if interval is None:
            return
        self.pauses.append((info["time_us"], info["pfc_frames_per_s"]))
        del self.pauses[:-MAX_POINTS]
        for entry in interval.completions:
            rows = self.rounds[job_tenant[entry["job"]]]
            end_us = int(entry["end_ps"]) / PS_PER_US
            rows.append((end_us, end_us - int(entry["start_ps"]) / PS_PER_US))
            del rows[:-MAX_POINTS]
