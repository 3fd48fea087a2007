"""Episodes to train on, episodes kept back, and harder ones: three ranges of seeds.

A split is a range of episode seeds, so that no episode is in two of them, and an episode's seed is
all that has to be noted. A scenario file may say what else is different in a split:

    splits:
      held_out:
        tenants.training.hosts: { choice: [[0, 1, 2], [3, 4, 5]] }
      stress:
        tenants.checkpoint.jobs.0.degree: 8
"""

from __future__ import annotations

from typing import Any

from roce_gym.errors import ConfigError

SPLITS = ("train", "held_out", "stress")

SPLIT_SIZE = 10**12
"""Seeds of a split: more than 2^32, below which other libraries draw theirs."""

KEY = "splits"
"""In a scenario file."""


def split_of(seed: int) -> str:
    """The split that an episode seed belongs to."""
    return SPLITS[min(seed // SPLIT_SIZE, len(SPLITS) - 1)]


def seed_in(split: str, number: int) -> int:
    """The episode seed with a number in a split.

    Args:
        split: one of :data:`SPLITS`.
        number: from 0 on; or an episode seed of that split, which is returned as it is.

    Raises:
        ConfigError: unknown split, or a seed of another one.
    """
    if split not in SPLITS:
        raise ConfigError(f"split = {split!r} is unknown; allowed: {', '.join(SPLITS)}")
    if number >= SPLIT_SIZE and split_of(number) != split:
        raise ConfigError(
            f"episode_seed = {number} is of split {split_of(number)!r}, not {split!r}; allowed: "
            f"0 … {SPLIT_SIZE - 1}, or a seed of that split"
        )
    return number if number >= SPLIT_SIZE else SPLITS.index(split) * SPLIT_SIZE + number


def changes_of(raw: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Changes by split, as a scenario file has them: value by dotted path.

    Raises:
        ConfigError: unknown split, or not of this form.
    """
    given = raw.get(KEY)
    if given is None:
        return {}
    if not isinstance(given, dict):
        raise ConfigError(f"{KEY}: a mapping is expected, found {type(given).__name__}")
    for split, changes in given.items():
        if split not in SPLITS:
            raise ConfigError(f"{KEY}: {split!r} is unknown; allowed: {', '.join(SPLITS)}")
        if not isinstance(changes, dict) or not all(isinstance(key, str) for key in changes):
            raise ConfigError(f"{KEY}.{split}: a mapping of dotted paths to values is expected")
    return given
