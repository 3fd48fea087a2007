"""The environment with a reward vector, for multi-objective algorithms (MO-Gymnasium)."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium.spaces import Box
from numpy.typing import NDArray

from roce_gym.env import RoceEnv
from roce_gym.errors import ConfigError
from roce_gym.parts import Parts
from roce_gym.reward import TERMS
from roce_gym.vector_env import RoceVectorEnv


class MoRoceEnv(RoceEnv):
    """:class:`RoceEnv` whose reward is the vector of its terms.

    Objectives, all to be maximised, in this order: `completion`, `pfc`, `interference`, each less
    its episode mean under the scenario's default settings on the same seed (`roce_gym.reward`). The
    scalar reward is their sum weighted by `scenario.control.reward_weights`; MO-Gymnasium's
    `LinearReward` wrapper with those weights gives it.

    Attributes:
        reward_space: Box, shape (3,), float32, without bounds: there is no worst case.
    """

    def __init__(self, scenario: Any = "noisy_neighbor", **kwargs: Any) -> None:
        """Takes the arguments of :class:`RoceEnv`, except `reward_weights`.

        Raises:
            ConfigError: an argument that is not acceptable.
        """
        if kwargs.get("reward_weights") is not None:
            raise ConfigError("reward_weights: a reward vector has none; weigh it afterwards")
        super().__init__(scenario, **kwargs)
        self.reward_space: Box[np.float32] = Box(-np.inf, np.inf, (len(TERMS),), np.float32)
        self.reward_dim = len(TERMS)

    def step_in_parts(self, action: Any) -> Parts[tuple[Any, Any, bool, bool, dict[str, Any]]]:
        """As that of :class:`RoceEnv`, with a reward of shape (3,), float32."""
        observation, _, terminated, truncated, info = yield from super().step_in_parts(action)
        reward: NDArray[np.float32] = np.array([info[term] for term in TERMS], np.float32)
        return observation, reward, terminated, truncated, info


class MoRoceVectorEnv(RoceVectorEnv):
    """:class:`RoceVectorEnv` of :class:`MoRoceEnv`: rewards of shape (N, 3), float32."""

    env_class = MoRoceEnv
    no_reward = np.zeros(len(TERMS), np.float32)

    def __init__(self, num_envs: int = 1, **kwargs: Any) -> None:
        """Takes the arguments of :class:`RoceVectorEnv`."""
        super().__init__(num_envs, **kwargs)
        first: Any = self.envs[0]
        self.reward_space = first.reward_space
