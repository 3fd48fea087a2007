"""What every policy offers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from roce_gym.env import RoceEnv

Observed = NDArray[np.float32]
"""Shape of the environment's observation space."""

Action = NDArray[np.float32]
"""Shape of the environment's action space, in [-1, 1]."""


class Policy(Protocol):
    """Chooses the knobs. One episode goes

        observation, info = env.reset(seed=seed, options=dict(policy.reset_options))
        policy.reset(env, seed)
        while ...:
            observation, ... = env.step(policy.act(observation))

    Policies that turn nothing are held by the environment: `reset_options` is then
    `{"preset": name}`, so that all parameters of a preset count, also those that are no knobs and
    those outside of the knobs' ranges. What `act` returns makes no difference in that case.

    Attributes:
        name: for tables and file names, also of what it was made from: `preset:dcqcn_paper`.
        fingerprint: differs between policies that act differently.
        reset_options: what to pass to `env.reset(options=…)`.
    """  # noqa: D415

    name: str
    fingerprint: str
    reset_options: Mapping[str, Any]

    def check(self, env: RoceEnv) -> None:
        """Whether it can act in this environment, which need not have been reset.

        Raises:
            CheckpointError: a learned policy that does not fit the environment.
        """
        ...

    def reset(self, env: RoceEnv, seed: int) -> None:
        """Begins an episode of an environment that was just reset with this seed."""
        ...

    def act(self, observation: Observed) -> Action:
        """The action after an observation; the same in every process for the same episode."""
        ...
