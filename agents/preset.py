"""Settings that stay as they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from agents.policy import Action, Observed
from roce_gym.env import RoceEnv
from roce_gym.errors import ConfigError
from roce_gym.options import OWN_SETTINGS
from roce_gym.presets import PRESETS


def preset_names() -> tuple[str, ...]:
    """`default`, which is what a scenario starts with, then all named presets, sorted."""
    return (OWN_SETTINGS, *sorted(PRESETS))


class StaticPreset:
    """Holds a named preset, or a scenario's own settings, for the whole episode."""

    def __init__(self, preset: str) -> None:
        """Takes one of :func:`preset_names`.

        Raises:
            ConfigError: unknown preset.
        """
        if preset not in preset_names():
            raise ConfigError(
                f"policy: preset {preset!r} is unknown; allowed: {', '.join(preset_names())}"
            )
        self.name = f"preset:{preset}"
        self.fingerprint = self.name
        self.reset_options: Mapping[str, Any] = {"preset": preset}
        self._position: Action = np.zeros(0, np.float32)

    def check(self, env: RoceEnv) -> None:
        """Fits every environment."""

    def reset(self, env: RoceEnv, seed: int) -> None:
        """The environment holds the preset; here is only noted where that is among the knobs."""
        assert env.fabric is not None, "reset the environment first"
        self._position = env.knobs.encode(env.fabric.settings)

    def act(self, observation: Observed) -> Action:
        """The action closest to the preset; the environment does not heed it."""
        return self._position.copy()
