"""How far our results may be from the reference's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from eval.validate.ns3_params import Parameters

Draws = Literal["none", "same", "own"]
"""Random numbers of a comparison: not used; the reference's generator and seed; our generator."""

Kind = Literal["exact", "rounded", "marked", "repeated", "random"]


@dataclass(frozen=True)
class Limit:
    """Largest error: a share of the reference's value, or an absolute difference if larger."""

    share: float
    absolute: float = 0.0


_RANDOM = {
    "mean_fct_ns": Limit(0.03),
    "max_fct_ns": Limit(0.05),
    "pause_frames": Limit(0.10, 5),
}

LIMITS: dict[Kind, dict[str, Limit]] = {
    # Neither random numbers nor congestion control; the reference's clock counts picoseconds.
    "exact": {
        "mean_fct_ns": Limit(0.002),
        "max_fct_ns": Limit(0.002),
        "pause_frames": Limit(0.01, 2),
        "max_queue_bytes": Limit(0.01),
    },
    # The same with a clock of nanoseconds, to which every transmission time is rounded.
    "rounded": {
        "mean_fct_ns": Limit(0.005),
        "max_fct_ns": Limit(0.005),
        "pause_frames": Limit(0.03, 3),
        "max_queue_bytes": Limit(0.02),
    },
    # Congestion control, but no random numbers: queues are marked beyond a single threshold.
    "marked": {
        "mean_fct_ns": Limit(0.02),
        "max_fct_ns": Limit(0.03),
        "marked_packets": Limit(0.03),
    },
    # The same with a clock of nanoseconds; or marked at random with the reference's own draws.
    "repeated": _RANDOM
    | {
        "max_queue_bytes": Limit(0.02),
        "marked_packets": Limit(0.03),
    },
    # Marked or lost at random: means over seeds.
    "random": _RANDOM,
}


def kind_of(parameters: Parameters, draws: Draws) -> Kind:
    """Which limits hold when a variant is compared with such draws."""
    if draws == "own":
        return "random"
    if draws == "same":
        return "repeated"
    if parameters.algorithm:
        return "marked" if parameters.picoseconds else "repeated"
    return "exact" if parameters.picoseconds else "rounded"
