"""Checks what users hand to an environment."""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from roce_gym.config import Scenario
from roce_gym.errors import ConfigError
from roce_gym.presets import PRESETS
from roce_gym.reward import TERMS

OWN_SETTINGS = "default"
"""Name, in place of a preset's, of the settings that the scenario starts with."""

MAX_SEED = 2**63 - 1


@dataclass(frozen=True)
class ResetOptions:
    """What `reset(options=…)` may ask for.

    Attributes:
        episode_seed: layout to use instead of a drawn one.
        preset: settings to hold for the whole episode.
    """

    episode_seed: int | None = None
    preset: str | None = None


def check_options(options: Mapping[str, Any] | None) -> ResetOptions:
    """Parses the options of a reset.

    Raises:
        ConfigError: unknown key, or a value that is not allowed.
    """
    options = dict(options or {})
    seed = options.pop("episode_seed", None)
    preset = options.pop("preset", None)
    if options:
        raise ConfigError(
            f"reset options: {', '.join(map(repr, options))} unknown; allowed: "
            "'episode_seed', 'preset'"
        )
    if seed is not None and not _is_whole(seed, 0, MAX_SEED):
        raise ConfigError(
            f"reset options: episode_seed = {seed!r} is not allowed; allowed: 0 … 2^63 - 1"
        )
    if preset is not None and preset not in (OWN_SETTINGS, *PRESETS):
        raise ConfigError(
            f"reset options: preset = {preset!r} is unknown; allowed: "
            f"{', '.join((OWN_SETTINGS, *sorted(PRESETS)))}"
        )
    return ResetOptions(None if seed is None else int(seed), preset)


def check_layouts(layouts: int | None) -> int | None:
    """Number of different episodes to draw from.

    Raises:
        ConfigError: neither None nor a whole number above 0.
    """
    if layouts is not None and not _is_whole(layouts, 1, MAX_SEED):
        raise ConfigError(f"layouts = {layouts!r} is not allowed; allowed: None, or 1 and above")
    return None if layouts is None else int(layouts)


def check_weights(weights: Mapping[str, float] | None) -> dict[str, float]:
    """Weights of reward terms; those left out stay as the scenario has them.

    Raises:
        ConfigError: unknown term, or a weight that is not a finite number of at least 0.
    """
    out: dict[str, float] = {}
    weight: Any
    for name, weight in (weights or {}).items():
        if name not in TERMS:
            raise ConfigError(f"reward_weights: {name!r} is unknown; allowed: {', '.join(TERMS)}")
        is_number = isinstance(weight, int | float | np.number) and not isinstance(weight, bool)
        if not is_number or not math.isfinite(weight) or weight < 0:
            raise ConfigError(
                f"reward_weights.{name} = {weight!r} is not allowed; allowed: 0 and above, finite"
            )
        out[name] = float(weight)
    return out


def check_same_parts(scenario: Scenario, first: Scenario, seed: int) -> None:
    """Spaces must not change from episode to episode.

    Raises:
        ConfigError: this seed draws other classes or tenants than seed 0.
    """
    for field in ("classes", "tenants"):
        now = [part.name for part in getattr(scenario, field)]
        before = [part.name for part in getattr(first, field)]
        if now != before:
            raise ConfigError(
                f"{field}: seed {seed} draws {now}, seed 0 draws {before}; an environment needs "
                "the same names, in the same order, for every seed"
            )


def _is_whole(value: Any, low: int, high: int) -> bool:
    is_whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    return is_whole and low <= int(value) <= high
