"""Many environments as one, in Gymnasium's form: what `gymnasium.make_vec` builds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space, concatenate, create_empty_array, iterate
from numpy.typing import NDArray

from roce_gym.batch import Batch
from roce_gym.env import RoceEnv
from roce_gym.errors import ActionError, ConfigError
from roce_gym.infos import Info, batch_infos
from roce_gym.options import check_count, check_limit, check_mapping, is_whole
from roce_gym.parts import Parts

Bools = NDArray[np.bool_]


class _Step(NamedTuple):
    """What one environment answers; `final_…`: of an episode that ended before a reset."""

    observation: Any
    reward: Any
    terminated: bool
    truncated: bool
    info: Info
    final_observation: Any = None
    final_info: Info | None = None


class RoceVectorEnv(VectorEnv[Any, Any, NDArray[Any]]):
    """N environments of one scenario, a fabric each, simulated by threads.

    Environment `i` gives, bit for bit, what :class:`RoceEnv` gives with the same seeds and actions,
    whatever the number of threads. `reset(seed=s)` starts environment `i` with seed `s + i`; a list
    gives each its own seed.

    `info` is a dictionary of arrays of shape (N,), with a mask `_key` for each `key`. Its keys are
    always the same, but for `final_obs` (object array) and `final_info` (a dictionary like `info`):
    under SAME_STEP they are there when an episode has ended, as libraries expect.

    Modes of autoreset, as Gymnasium defines them:

    * NEXT_STEP: the step after an episode's end resets; its action is ignored, its reward is 0.
    * SAME_STEP: the step that ends an episode also resets.
    * DISABLED: the caller resets, with `reset(options={"reset_mask": mask})`, `mask` of shape (N,)
      and dtype bool; other environments stay as they are, their observations are repeated.

    Attributes:
        envs: the N environments.
    """

    env_class: type[RoceEnv] = RoceEnv
    """Of which `step_in_parts` is called, not `step`."""

    no_reward: Any = 0.0
    """Of a step that only resets."""

    def __init__(
        self,
        num_envs: int = 1,
        *,
        threads: int | None = None,
        autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
        max_episode_steps: int | None = None,
        **kwargs: Any,
    ) -> None:
        """Builds the environments; nothing is simulated.

        Args:
            num_envs: how many.
            threads: that step them; None: as many as this process has cores.
            autoreset_mode: or its value: `"NextStep"`, `"SameStep"`, `"Disabled"`.
            max_episode_steps: truncates episodes before the scenario's horizon does.
            **kwargs: arguments of :class:`RoceEnv`.

        Raises:
            ConfigError: an argument that is not acceptable.
        """
        self.num_envs = check_count("num_envs", num_envs)
        self.autoreset_mode = _mode(autoreset_mode)
        self._max_steps = check_limit("max_episode_steps", max_episode_steps)
        self.envs = [self.env_class(**kwargs) for _ in range(self.num_envs)]
        self._batch = Batch(self.envs, threads)
        first = self.envs[0]
        self.metadata = {**first.metadata, "autoreset_mode": self.autoreset_mode}
        self.render_mode = first.render_mode
        self.single_observation_space = first.observation_space
        self.single_action_space = first.action_space
        self.observation_space = batch_space(first.observation_space, self.num_envs)
        self.action_space = batch_space(first.action_space, self.num_envs)
        self._observations: list[Any] = [None] * self.num_envs
        self._steps = np.zeros(self.num_envs, np.int64)
        self._is_over = np.zeros(self.num_envs, bool)
        self._has_begun = np.zeros(self.num_envs, bool)
        self._like: Info = {}

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Any, dict[str, Any]]:
        """Starts an episode in all environments, or in those of `options["reset_mask"]`.

        Returns:
            Observations, shape (N, …), and infos; those of other environments are masked out.

        Raises:
            ConfigError: seeds, options or a mask that are not acceptable.
        """
        options = check_mapping("reset options", options)
        chosen = _check_mask(options.pop("reset_mask", None), self.num_envs)
        seeds = _check_seeds(seed, self.num_envs)
        which = np.flatnonzero(chosen)
        self._has_begun[which] = False  # in case one of them fails
        answers = self._batch.each(
            lambda i: self.envs[i].reset(seed=seeds[i], options=dict(options)), which
        )
        infos: list[Info | None] = [None] * self.num_envs
        for i, (observation, info) in zip(which, answers, strict=True):
            self._observations[i], infos[i], self._like = observation, info, info
        self._steps[which] = 0
        self._is_over[which] = False
        self._has_begun[which] = True
        return self._stacked(), batch_infos(infos, self._like)

    def step(self, actions: Any) -> tuple[Any, NDArray[Any], Bools, Bools, dict[str, Any]]:
        """Takes one action in each environment.

        Args:
            actions: shape (N, …), a row an environment.

        Returns:
            Observations, rewards (float64), terminated, truncated, shape (N, …) each, and infos.

        Raises:
            ActionError: a wrong shape, NaN or infinity; nothing was simulated then.
            ResetNeeded: before the first reset, after a fault, or, without autoreset, after the end
                of an episode.
            SimulationError: one environment failed; says which one, its scenario and seed.
        """
        rows = self._checked(actions)
        self._has_begun[:] = False  # until all are done: after a fault, they are not in step
        answers = self._batch.each_in_parts(lambda i: self._advance(i, rows[i]))
        self._has_begun[:] = True
        self._observations = [answer.observation for answer in answers]
        terminated = np.array([answer.terminated for answer in answers], bool)
        truncated = np.array([answer.truncated for answer in answers], bool)
        self._is_over = terminated | truncated
        rewards = np.array([answer.reward for answer in answers])
        return self._stacked(), rewards, terminated, truncated, self._infos(answers)

    def _checked(self, actions: Any) -> list[Any]:
        if not self._has_begun.all():
            raise ResetNeeded("step() needs reset() first: no episode was started, or one failed")
        if self.autoreset_mode == AutoresetMode.DISABLED and self._is_over.any():
            over = np.flatnonzero(self._is_over).tolist()
            raise ResetNeeded(
                f"step() needs reset(options={{'reset_mask': …}}) first: the episodes of "
                f"environments {over} are over"
            )
        try:
            rows = list(iterate(self.action_space, actions))
        except TypeError:
            rows = []
        if len(rows) != self.num_envs:
            raise ActionError(
                f"actions: shape {np.shape(actions)} is not allowed; allowed: "
                f"{self.action_space.shape}"
            )
        for i, row in enumerate(rows):
            try:
                self.envs[i].check_action(row)
            except ActionError as error:
                raise self._batch.located(i, error) from None
        return rows

    def _advance(self, i: int, action: Any) -> Parts[_Step]:
        """One step of one environment, with the reset that belongs to it."""
        env = self.envs[i]
        if self._is_over[i] and self.autoreset_mode == AutoresetMode.NEXT_STEP:
            self._steps[i] = 0
            observation, info = yield env.reset
            return _Step(observation, self.no_reward, False, False, info)
        step = yield from env.step_in_parts(action)
        observation, reward, terminated, truncated, info = step
        self._steps[i] += 1
        truncated = truncated or self._steps[i] == self._max_steps
        answer = _Step(observation, reward, terminated, truncated, info)
        if not (terminated or truncated) or self.autoreset_mode != AutoresetMode.SAME_STEP:
            return answer
        self._steps[i] = 0
        first, first_info = yield env.reset
        return answer._replace(
            observation=first, info=first_info, final_observation=observation, final_info=info
        )

    def _stacked(self) -> Any:
        space = self.single_observation_space
        empty: Any = create_empty_array(space, self.num_envs)
        return concatenate(space, self._observations, empty)

    def _infos(self, answers: list[_Step]) -> dict[str, Any]:
        out: dict[str, Any] = {}
        if self.autoreset_mode == AutoresetMode.SAME_STEP and self._is_over.any():
            finals = np.empty(self.num_envs, object)
            for i, answer in enumerate(answers):
                finals[i] = answer.final_observation
            out["final_obs"] = finals
            out["_final_obs"] = self._is_over.copy()
            out["final_info"] = batch_infos([a.final_info for a in answers], self._like)
            out["_final_info"] = self._is_over.copy()
        return out | batch_infos([answer.info for answer in answers], self._like)

    def render(self) -> tuple[Any, ...] | None:
        """One frame an environment; None without a render mode."""
        return None if self.render_mode is None else tuple(env.render() for env in self.envs)

    def call(self, name: str, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Calls a method of each environment, or reads an attribute."""
        found = [env.get_wrapper_attr(name) for env in self.envs]
        return tuple(x(*args, **kwargs) if callable(x) else x for x in found)

    def get_attr(self, name: str) -> tuple[Any, ...]:
        """An attribute of each environment."""
        return tuple(env.get_wrapper_attr(name) for env in self.envs)

    def set_attr(self, name: str, values: Any) -> None:
        """Sets an attribute of each environment: to one value, or to a list's or tuple's items."""
        each = values if isinstance(values, list | tuple) else [values] * self.num_envs
        for env, value in zip(self.envs, each, strict=True):
            setattr(env, name, value)

    @property  # type: ignore[misc]
    def np_random(self) -> Any:
        """The generators of all environments."""
        return self.get_attr("np_random")

    @property
    def np_random_seed(self) -> Any:
        """The seeds of those generators."""
        return self.get_attr("np_random_seed")

    def close_extras(self, **kwargs: Any) -> None:
        """Ends the threads; older Gymnasium calls this even if the constructor raised."""
        if hasattr(self, "_batch"):
            self._batch.close()


def _mode(value: str | AutoresetMode) -> AutoresetMode:
    try:
        return AutoresetMode(value)
    except ValueError:
        allowed = ", ".join(repr(mode.value) for mode in AutoresetMode)
        raise ConfigError(
            f"autoreset_mode = {value!r} is not allowed; allowed: {allowed}"
        ) from None


def _check_mask(mask: Any, num_envs: int) -> Bools:
    if mask is None:
        return np.ones(num_envs, bool)
    is_mask = isinstance(mask, np.ndarray) and mask.dtype == bool and mask.shape == (num_envs,)
    if not is_mask or not mask.any():
        raise ConfigError(
            f"reset options: reset_mask = {mask!r} is not allowed; allowed: an array of shape "
            f"({num_envs},) and dtype bool with at least one True"
        )
    return np.array(mask)


def _check_seeds(seed: Any, num_envs: int) -> list[int | None]:
    if seed is None:
        return [None] * num_envs
    if isinstance(seed, np.ndarray):
        seed = seed.tolist()
    if is_whole(seed):
        return [int(seed) + i for i in range(num_envs)]
    seeds = list(seed) if isinstance(seed, Sequence) else []
    if len(seeds) != num_envs or not all(one is None or is_whole(one) for one in seeds):
        raise ConfigError(
            f"seed = {seed!r} is not allowed; allowed: None, a whole number, or {num_envs} of "
            "them, 0 and above"
        )
    return [None if one is None else int(one) for one in seeds]
