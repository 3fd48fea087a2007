"""The vectorised environment of a training run."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv, VecEnv

from roce_gym.processes import interrupts_ignored
from training.args import Args
from training.environment import EnvChoice


class LayoutPool(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Plays episodes of a pool only, in an order that can be taken up again.

    Seeds given to `reset` are ignored: none can lead out of the pool.
    """

    def __init__(self, env: gymnasium.Env[Any, Any], layouts: int, seed: tuple[int, ...]) -> None:
        """Takes the size of the pool and what the order follows from."""
        super().__init__(env)
        self._layouts = layouts
        self._rng = np.random.default_rng(seed)
        self._before = self._rng.bit_generator.state

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Starts the next episode of the pool."""
        self._before = self._rng.bit_generator.state
        layout = int(self._rng.integers(self._layouts))
        return self.env.reset(options=(options or {}) | {"episode_seed": layout})

    def get_order(self) -> dict[str, Any]:
        """Where in its order the pool was when the present episode began."""
        return dict(self._before)

    def set_order(self, state: dict[str, Any]) -> None:
        """The next reset starts the episode that was under way at :meth:`get_order`."""
        self._rng.bit_generator.state = state


def make_env(choice: EnvChoice, layouts: int, seed: int, rank: int) -> Monitor[Any, Any]:
    """One environment; `rank` is its number in the vector."""
    pool = LayoutPool(choice.make(layouts), layouts, (seed, rank))
    return Monitor(pool, info_keywords=("score",))


def make_vec_env(args: Args) -> VecEnv:
    """All environments of a run, in processes of their own or in this one."""
    makers: list[Callable[[], gymnasium.Env[Any, Any]]] = [
        functools.partial(make_env, args.choice, args.layouts, args.seed, rank)
        for rank in range(args.num_envs)
    ]
    if not args.parallel:
        return DummyVecEnv(makers)
    with interrupts_ignored():
        return SubprocVecEnv(makers, start_method="spawn")
