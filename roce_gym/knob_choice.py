"""Which of the knobs that a scenario could have there are, and how far they go."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from roce_gym.config import MAX_WEIGHT, KnobRange
from roce_gym.errors import ConfigError


@dataclass(frozen=True)
class Knob:
    """One entry of the action.

    Attributes:
        name: `class/<class>/<setting>` or `tenant/<tenant>/<setting>`.
        low, high: values at -1 and 1.
        unit: of both; empty for ratios.
        is_log: whether the value is interpolated geometrically (else linearly).
    """

    name: str
    low: float
    high: float
    unit: str
    is_log: bool = True

    @property
    def setting(self) -> str:
        """Last part of the name."""
        return self.name.rpartition("/")[2]


_GROWING = ("kmin", "rate_ai", "shaper_rate")
"""Settings whose ranges scale with the hosts' link rate."""

_LIMITS = {
    "kmin": (64.0, 1e8),
    "kmax_ratio": (1.0, 1000.0),
    "pmax": (1e-4, 1.0),
    "buffer_alpha": (1 / 128, 128.0),
    "buffer_split": (-20.0, 20.0),
    "initial_alpha": (1e-3, 1.0),
    "alpha_cap": (1e-3, 1.0),
    "g": (1e-5, 1.0),
    "increase_timer": (1.0, 1e5),
    "rate_ai": (0.1, 1e5),
    "weight": (1.0, float(MAX_WEIGHT)),
    "pool_share": (1e-3, 1.0),
    "shaper_rate": (0.1, 3200.0),
}
"""No range goes beyond: what the settings themselves allow, and what makes sense."""

_ALL_OR_NONE = "buffer_split"
"""Reserves of all classes are shares of one budget."""


def choose_knobs(
    every: list[Knob], wanted: Mapping[str, KnobRange | None] | None, scale: float
) -> tuple[list[Knob], NDArray[np.bool_]]:
    """Applies `control.knobs`.

    Args:
        every: all knobs that the scenario could have.
        wanted: ranges by setting or by full name, which wins; None: all with their default ranges.
        scale: hosts' link rate over 100 Gb/s.

    Returns:
        The knobs with their ranges, and shape (len(every),), whether each is wanted.

    Raises:
        ConfigError: an unknown name, a range that is not allowed, or no knob at all.
    """
    if wanted is None:
        return every, np.ones(len(every), bool)
    settings = list(dict.fromkeys(knob.setting for knob in every))
    names = [knob.name for knob in every]
    for key in wanted:
        if key not in settings and key not in names:
            raise ConfigError(
                f"control.knobs: {key!r} is unknown; allowed: {', '.join(settings)}, "
                f"or one owner's knob, such as {names[0]}"
            )
    chosen = np.array([k.name in wanted or k.setting in wanted for k in every], bool)
    if not chosen.any():
        raise ConfigError("control.knobs: there is none; allowed: at least one, or no such entry")
    split = [bool(c) for k, c in zip(every, chosen, strict=True) if k.setting == _ALL_OR_NONE]
    if any(split) and not all(split):
        raise ConfigError(
            f"control.knobs: {_ALL_OR_NONE} is shared out among all classes; allowed: "
            f"{_ALL_OR_NONE!r} for all of them, or for none"
        )
    return [_ranged(knob, wanted, scale) for knob in every], chosen


def _ranged(knob: Knob, wanted: Mapping[str, KnobRange | None], scale: float) -> Knob:
    key = knob.name if knob.name in wanted else knob.setting
    given = wanted.get(key)
    if given is None:
        return knob
    factor = scale if knob.setting in _GROWING else 1.0
    least, most = _LIMITS[knob.setting]
    bounds = {}
    for field in ("low", "high"):
        value = getattr(given, field)
        if value is not None:
            if not least <= value <= most:
                raise ConfigError(
                    f"control.knobs.{key}.{field} = {value:g} is not allowed; allowed: "
                    f"{least:g} … {most:g} {knob.unit}".rstrip()
                )
            bounds[field] = value * factor
    out = replace(knob, **bounds)
    if out.low >= out.high:
        raise ConfigError(
            f"control.knobs.{key}: low = {out.low / factor:g} must be below high = "
            f"{out.high / factor:g} {knob.unit}".rstrip()
        )
    return out
