"""Environments for Stable-Baselines3, stepped by threads.

Nothing else in this package imports Stable-Baselines3; this module needs it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import gymnasium

from roce_gym.batch import Batch

try:
    from stable_baselines3.common.vec_env import DummyVecEnv
except ImportError as error:
    raise ImportError("roce_gym.sb3 needs stable-baselines3: pip install 'roce-gym[train]'") from (
        error
    )


class ThreadVecEnv(DummyVecEnv):
    """In place of `DummyVecEnv` or `SubprocVecEnv`, with the same results and the same arguments.

    The simulator releases the GIL, so threads use all cores without the cost of processes. For
    `make_vec_env(id, n_envs=N, vec_env_cls=ThreadVecEnv)`; wrappers such as `Monitor` are inside.
    """

    def __init__(
        self,
        env_fns: Sequence[Callable[[], gymnasium.Env[Any, Any]]],
        threads: int | None = None,
    ) -> None:
        """Takes what makes the environments, and how many threads step them (None: all cores)."""
        super().__init__(list(env_fns))
        self._batch = Batch(self.envs, threads)

    def step_wait(self) -> Any:
        """Steps all environments; those whose episode ends are reset."""
        self._batch.each(self._step_one)
        return (
            self._obs_from_buf(),
            self.buf_rews.copy(),
            self.buf_dones.copy(),
            [dict(info) for info in self.buf_infos],
        )

    def _step_one(self, i: int) -> None:
        env = self.envs[i]
        observation, self.buf_rews[i], terminated, truncated, info = env.step(self.actions[i])
        self.buf_dones[i] = terminated or truncated
        info["TimeLimit.truncated"] = truncated and not terminated
        if self.buf_dones[i]:
            info["terminal_observation"] = observation
            observation, self.reset_infos[i] = env.reset()
        self.buf_infos[i] = info
        self._save_obs(i, observation)

    def reset(self) -> Any:
        """Starts an episode in each environment, with seeds and options that were set before."""
        self._batch.each(self._reset_one)
        self._reset_seeds()
        self._reset_options()
        return self._obs_from_buf()

    def _reset_one(self, i: int) -> None:
        options = {"options": self._options[i]} if self._options[i] else {}
        observation, self.reset_infos[i] = self.envs[i].reset(seed=self._seeds[i], **options)
        self._save_obs(i, observation)

    def close(self) -> None:
        """Closes the environments and ends the threads."""
        self._batch.close()
