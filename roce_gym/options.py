"""Checks what users hand to an environment."""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from roce_gym.config import Scenario
from roce_gym.errors import ConfigError
from roce_gym.presets import PRESETS
from roce_gym.reward import TERMS
from roce_gym.scenario_file import SPLITS, apply_changes

OWN_SETTINGS = "default"
"""Name, in place of a preset's, of the settings that the scenario starts with."""

MAX_SEED = 2**63 - 1


@dataclass(frozen=True)
class ResetOptions:
    """What `reset(options=…)` may ask for, for one episode.

    Attributes:
        episode_seed: layout to use instead of a drawn one.
        preset: settings to hold for the whole episode.
        split: where the episode is from.
        scenario: another one, with the same spaces.
        params: values of the scenario by dotted path.
    """

    episode_seed: int | None = None
    preset: str | None = None
    split: str | None = None
    scenario: Any = None
    params: Mapping[str, Any] = field(default_factory=dict)


def check_options(options: Mapping[str, Any] | None) -> ResetOptions:
    """Parses the options of a reset; None stands for an option that is not given.

    Raises:
        ConfigError: no mapping, unknown key, or a value that is not allowed.
    """
    allowed = [one.name for one in fields(ResetOptions)]
    given = check_mapping("reset options", options)
    unknown = [key for key in given if key not in allowed]
    if unknown:
        raise ConfigError(
            f"reset options: {', '.join(map(repr, unknown))} unknown; allowed: "
            f"{', '.join(map(repr, allowed))}"
        )
    given = {key: value for key, value in given.items() if value is not None}
    seed, preset = given.get("episode_seed"), given.get("preset")
    if seed is not None and not is_whole(seed, 0, MAX_SEED):
        raise ConfigError(
            f"reset options: episode_seed = {seed!r} is not allowed; allowed: 0 … 2^63 - 1"
        )
    if preset is not None and preset not in (OWN_SETTINGS, *PRESETS):
        raise ConfigError(
            f"reset options: preset = {preset!r} is unknown; allowed: "
            f"{', '.join((OWN_SETTINGS, *sorted(PRESETS)))}"
        )
    check_split(given.get("split", SPLITS[0]), "reset options: split")
    params = given.get("params", {})
    if not isinstance(params, Mapping) or not all(isinstance(key, str) for key in params):
        raise ConfigError(
            f"reset options: params = {params!r} is not allowed; allowed: a mapping of dotted "
            "paths to values"
        )
    if seed is not None:
        given["episode_seed"] = int(seed)
    return ResetOptions(**given)


def check_split(split: Any, field_name: str = "split") -> str:
    """The name of a split.

    Raises:
        ConfigError: unknown.
    """
    if not isinstance(split, str) or split not in SPLITS:
        raise ConfigError(f"{field_name} = {split!r} is unknown; allowed: {', '.join(SPLITS)}")
    return split


def with_control(raw: dict[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """A scenario with arguments of an environment written into `control`; None: as it is.

    Raises:
        ConfigError: `control` is no mapping.
    """
    changes = [(f"control.{key}", value) for key, value in given.items() if value is not None]
    return apply_changes(raw, changes)


def check_count(name: str, value: Any) -> int:
    """A whole number above 0.

    Raises:
        ConfigError: anything else.
    """
    if not is_whole(value, 1):
        raise ConfigError(f"{name} = {value!r} is not allowed; allowed: 1 and above")
    return int(value)


def check_limit(name: str, value: Any) -> int | None:
    """A whole number above 0, or None: no limit, or a choice of this package's.

    Raises:
        ConfigError: anything else.
    """
    if value is not None and not is_whole(value, 1):
        raise ConfigError(f"{name} = {value!r} is not allowed; allowed: None, or 1 and above")
    return None if value is None else int(value)


def check_mapping(name: str, value: Any) -> dict[Any, Any]:
    """A copy of a mapping; None: an empty one.

    Raises:
        ConfigError: anything else.
    """
    if value is not None and not isinstance(value, Mapping):
        raise ConfigError(f"{name} = {value!r} is not allowed; allowed: None, or a mapping")
    return dict(value or {})


def check_weights(weights: Mapping[str, float] | None) -> dict[str, float]:
    """Weights of reward terms; those left out stay as the scenario has them.

    Raises:
        ConfigError: no mapping, unknown term, or a weight that is not a finite number of at least
            0.
    """
    out: dict[str, float] = {}
    weight: Any
    for name, weight in check_mapping("reward_weights", weights).items():
        if name not in TERMS:
            raise ConfigError(f"reward_weights: {name!r} is unknown; allowed: {', '.join(TERMS)}")
        is_number = isinstance(weight, int | float | np.number) and not isinstance(weight, bool)
        if not is_number or not math.isfinite(weight) or weight < 0:
            raise ConfigError(
                f"reward_weights.{name} = {weight!r} is not allowed; allowed: 0 and above, finite"
            )
        out[name] = float(weight)
    return out


def check_same_spaces(now: Any, before: Any, seed: int) -> None:
    """As :func:`check_same_parts`, for what is told from names of knobs and of observations.

    Args:
        now, before: with `names` of actions and of observations.
        seed: of the episode.

    Raises:
        ConfigError: this episode has other ones.
    """
    for what, names, first in zip(("knobs", "observation"), now, before, strict=True):
        if names != first:
            other = sorted(set(names) ^ set(first)) or ["their order"]
            raise ConfigError(
                f"{what}: seed {seed} gives {len(names)} entries, the environment has "
                f"{len(first)}; different: {', '.join(other[:4])}; an environment needs the same "
                "in every episode"
            )


def check_same_parts(scenario: Scenario, first: Scenario, seed: int) -> None:
    """Spaces must not change from episode to episode.

    Raises:
        ConfigError: this seed draws other classes or tenants than seed 0.
    """
    for part in ("classes", "tenants"):
        now = [one.name for one in getattr(scenario, part)]
        before = [one.name for one in getattr(first, part)]
        if now != before:
            raise ConfigError(
                f"{part}: seed {seed} draws {now}, seed 0 draws {before}; an environment needs "
                "the same names, in the same order, for every seed"
            )


def is_whole(value: Any, low: int = 0, high: int = MAX_SEED) -> bool:
    """Whether it is a whole number from `low` to `high`; True and False are none."""
    is_whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    return is_whole and low <= int(value) <= high
