"""Scenarios from YAML: packaged ones by name, others by path; random values; overrides.

    load_raw ─► apply_overrides ─► draw(seed, and so its split) ─► validate_scenario

:func:`load_scenario` does all four; an environment keeps the result of the second and repeats the
rest for every seed.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from roce_gym.config import Scenario, validate_scenario
from roce_gym.errors import ConfigError
from roce_gym.scenario_file.distributions import Drawer, draw
from roce_gym.scenario_file.overrides import apply_changes, apply_overrides
from roce_gym.scenario_file.read import available_scenarios, load_raw
from roce_gym.scenario_file.source import Source, read_source
from roce_gym.scenario_file.splits import SPLIT_SIZE, SPLITS, changes_of, seed_in, split_of

__all__ = [
    "SPLITS",
    "SPLIT_SIZE",
    "Drawer",
    "Source",
    "apply_changes",
    "apply_overrides",
    "available_scenarios",
    "changes_of",
    "draw",
    "load_raw",
    "load_scenario",
    "read_source",
    "seed_in",
    "split_of",
]


def load_scenario(
    path_or_name: str | os.PathLike[str], seed: int = 0, overrides: Sequence[str] = ()
) -> Scenario:
    """Reads a scenario, with the values that a seed draws.

    Args:
        path_or_name: see :func:`load_raw`.
        seed: see :func:`draw`.
        overrides: see :func:`apply_overrides`.

    Raises:
        ConfigError: the file cannot be read, or its content is not acceptable; names field, value
            and what is allowed.
    """
    raw = apply_overrides(load_raw(path_or_name), overrides)
    try:
        return validate_scenario(draw(raw, seed))
    except ConfigError as error:
        lines = str(error).splitlines()
        shown = os.fspath(path_or_name)
        raise ConfigError("\n".join(f"{shown}: {line}" for line in lines)) from None
