"""Turns every knob at random, all the time: what a policy has to beat at the least."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium.spaces import MultiDiscrete

from agents.policy import Action, Observed
from roce_gym.env import RoceEnv

_STREAM = 0x52AD
"""Keeps its draws apart from others that are made from the same seed."""


class RandomPolicy:
    """Uniform over the action space in every interval; its draws follow from the episode's seed."""

    def __init__(self) -> None:
        self.name = "random"
        self.fingerprint = "random"
        self.reset_options: Mapping[str, Any] = {}
        self._rng = np.random.default_rng(_STREAM)
        self._num_knobs = 0
        self._choices: Any = None

    def check(self, env: RoceEnv) -> None:
        """Fits every environment."""

    def reset(self, env: RoceEnv, seed: int) -> None:
        """Begins the draws of this seed."""
        self._rng = np.random.default_rng([_STREAM, seed])
        self._num_knobs = len(env.knobs.names)
        space = env.action_space
        self._choices = space.nvec if isinstance(space, MultiDiscrete) else None

    def act(self, observation: Observed) -> Action:
        """A new draw."""
        if self._choices is not None:
            return self._rng.integers(self._choices)
        return self._rng.uniform(-1.0, 1.0, self._num_knobs).astype(np.float32)
