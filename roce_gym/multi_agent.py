"""One agent a tenant, in PettingZoo's parallel form; the core is the single-agent environment.

There is no agent per switch: the knobs of a class are the same in all switches.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.spaces import Box
from numpy.typing import NDArray

from roce_gym.env import RoceEnv
from roce_gym.errors import ActionError, ConfigError
from roce_gym.tenant_reward import TenantCore

try:
    from pettingzoo import AECEnv, ParallelEnv
    from pettingzoo.utils.conversions import parallel_to_aec
except ImportError as error:
    raise ImportError(
        "roce_gym.parallel_env needs pettingzoo: pip install 'roce-gym[multi-agent]'"
    ) from error

Floats = NDArray[np.float32]
REWARDS = ("own", "team")
KNOB_MODES = ("absolute", "delta")
"""Those in which a mean of what several agents ask for has a meaning."""


class RoceParallelEnv(ParallelEnv[str, Floats, Floats]):
    """Each tenant is an agent; all act at once, and an episode ends for all at once.

    * Actions: Box(-1, 1), float32: the knobs of the tenant's traffic class, then the tenant's own,
      each as in :class:`RoceEnv`; `knob_names(agent)` names them. A class has one setting in all
      switches; if several tenants share it, it gets the mean of what they ask for, which is the
      geometric mean where a knob is logarithmic. A knob of nobody keeps its default. With
      `knob_mode="delta"`, all of this holds for steps.
    * Observations: Box(0, 1), float32: those entries of the single agent's observation that are of
      the tenant, of its class, of the fabric, or of knobs it can turn; `observation_names(agent)`
      names them. `state()` is the single agent's observation: all of it.
    * Rewards: with `rewards="own"`, the weighted sum of `completion` of the tenant itself, and of
      `pfc` and `interference` of the fabric, less what they are under the default settings. Their
      mean by the tenants' weights (those without rounds left out) is the single agent's reward.
      With `rewards="team"`, everybody gets the single agent's reward.
    * Infos: the single agent's, without what is of other tenants or classes.

    Options of `reset` are those of :class:`RoceEnv`.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012
        **RoceEnv.metadata,
        "name": "roce_v0",
        "is_parallelizable": True,
    }

    def __init__(
        self,
        scenario: Any = "noisy_neighbor",
        *,
        rewards: str = "own",
        max_cycles: int | None = None,
        **kwargs: Any,
    ) -> None:
        """Builds the spaces; nothing is simulated.

        Args:
            scenario: as of :class:`RoceEnv`.
            rewards: `"own"` or `"team"`.
            max_cycles: truncates episodes before the scenario's horizon does.
            **kwargs: other arguments of :class:`RoceEnv`.

        Raises:
            ConfigError: an argument that is not acceptable, such as `knob_mode="multidiscrete"`.
        """
        if rewards not in REWARDS:
            raise ConfigError(
                f"rewards = {rewards!r} is not allowed; allowed: {', '.join(REWARDS)}"
            )
        self.core = TenantCore(scenario, **kwargs)
        mode = self.core.scenario.control.knob_mode
        if mode not in KNOB_MODES:
            raise ConfigError(
                f"control.knob_mode = {mode!r} is not allowed with several agents: what they "
                f"choose for a shared class has no mean; allowed: {', '.join(KNOB_MODES)}"
            )
        self.max_cycles = max_cycles
        self.render_mode = self.core.render_mode
        self._rewards = rewards
        tenants = self.core.scenario.tenants
        self.possible_agents = [tenant.name for tenant in tenants]
        self.agents: list[str] = []
        self._class = {tenant.name: tenant.traffic_class for tenant in tenants}
        classes = [c.name for c in self.core.scenario.classes]
        self._owners = {*self.possible_agents, *classes}
        knobs, eyes = self.core.knobs.names, self.core.observation_names
        self._knobs = {a: np.flatnonzero([self._turns(a, k) for k in knobs]) for a in self._class}
        self._eyes = {a: np.flatnonzero([self._sees(a, e) for e in eyes]) for a in self._class}
        self.action_spaces = {
            a: Box(-1.0, 1.0, (len(indices),), np.float32) for a, indices in self._knobs.items()
        }
        self.observation_spaces = {
            a: Box(0.0, 1.0, (len(indices),), np.float32) for a, indices in self._eyes.items()
        }
        self.state_space = self.core.observation_space
        self._voters = np.zeros(len(knobs))
        for indices in self._knobs.values():
            self._voters[indices] += 1

    def _turns(self, agent: str, knob: str) -> bool:
        kind, owner, *_ = knob.split("/")
        return (kind, owner) in (("tenant", agent), ("class", self._class[agent]))

    def _sees(self, agent: str, entry: str) -> bool:
        kind, _, rest = entry.partition("/")
        return kind == "fabric" or self._turns(agent, rest if kind == "knob" else entry)

    def knob_names(self, agent: str) -> tuple[str, ...]:
        """Of the entries of its action."""
        return tuple(self.core.knobs.names[i] for i in self._knobs[agent])

    def observation_names(self, agent: str) -> tuple[str, ...]:
        """Of the entries of its observation."""
        return tuple(self.core.observation_names[i] for i in self._eyes[agent])

    def observation_space(self, agent: str) -> Box:
        """Always the same object for an agent."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> Box:
        """Always the same object for an agent."""
        return self.action_spaces[agent]

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Floats], dict[str, dict[str, Any]]]:
        """Starts an episode for all agents.

        Raises:
            ConfigError: unknown options, or a scenario that cannot be built with this seed.
        """
        # PettingZoo's own test passes {"options": 1}.
        known = {name: value for name, value in (options or {}).items() if name != "options"}
        self._state, info = self.core.reset(seed=seed, options=known)
        self._left_alone = self._of_nobody()
        self._cycle = 0
        self.agents = list(self.possible_agents)
        return self._seen(), self._told(info)

    def step(
        self, actions: Mapping[str, Any]
    ) -> tuple[
        dict[str, Floats],
        dict[str, float],
        dict[str, bool],
        dict[str, bool],
        dict[str, dict[str, Any]],
    ]:
        """Applies all agents' actions and simulates one control interval.

        Raises:
            ActionError: an agent's action is missing, has a wrong shape, or is not finite.
            ResetNeeded: before the first reset, or after the end of an episode.
        """
        if not self.agents:
            raise ResetNeeded("step() needs reset() first: no episode is under way")
        joint = self._joint(actions)
        self._state, total, terminated, truncated, info = self.core.step(joint)
        self._cycle += 1
        truncated = truncated or (self.max_cycles is not None and self._cycle >= self.max_cycles)
        agents = self.agents
        if terminated or truncated:
            self.agents = []
        own = self.core.rewards()
        return (
            self._seen(),
            {a: own[a] if self._rewards == "own" else total for a in agents},
            dict.fromkeys(agents, terminated),
            dict.fromkeys(agents, truncated),
            self._told(info),
        )

    def _joint(self, actions: Mapping[str, Any]) -> Any:
        """The single agent's action: for each knob the mean of those who turn it."""
        missing = [agent for agent in self.agents if agent not in actions]
        if missing:
            raise ActionError(f"actions: none is given for {', '.join(missing)}")
        total = np.zeros(len(self._voters))
        for agent in self.agents:
            indices, action = self._knobs[agent], np.asarray(actions[agent], np.float64)
            if action.shape != indices.shape:
                raise ActionError(
                    f"action of {agent}: shape {action.shape} is not allowed; allowed: "
                    f"{indices.shape}"
                )
            if not np.isfinite(action).all():
                raise ActionError(f"action of {agent}: {action} is not allowed: not finite")
            total[indices] += np.clip(action, -1.0, 1.0)
        return np.where(self._voters > 0, total / np.maximum(self._voters, 1.0), self._left_alone)

    def _of_nobody(self) -> NDArray[np.float64]:
        """Entries of the action that leave knobs at their defaults: no step, or those positions."""
        assert self.core.fabric is not None
        if self.core.scenario.control.knob_mode == "delta":
            return np.zeros(len(self._voters))
        return self.core.knobs.encode(self.core.fabric.settings).astype(np.float64)

    def _seen(self) -> dict[str, Floats]:
        return {agent: self._state[indices] for agent, indices in self._eyes.items()}

    def _told(self, info: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
        return {agent: dict(self._of(agent, info.items())) for agent in self.possible_agents}

    def _of(self, agent: str, items: Iterable[tuple[str, Any]]) -> Iterable[tuple[str, Any]]:
        others = self._owners - {agent, self._class[agent]}
        return ((key, value) for key, value in items if key.rpartition("/")[2] not in others)

    def state(self) -> Floats:
        """What the single agent would see: shape (m,), float32, entries: `core.observation_names`.

        Raises:
            ResetNeeded: before the first reset.
        """
        if self.core.fabric is None:
            raise ResetNeeded("state() needs reset() first: no episode was started")
        return self._state.copy()

    def render(self) -> Any:
        """As :meth:`RoceEnv.render`."""
        return self.core.render()

    def close(self) -> None:
        """As :meth:`RoceEnv.close`."""
        self.core.close()


def parallel_env(scenario: Any = "noisy_neighbor", **kwargs: Any) -> RoceParallelEnv:
    """The environment; arguments are those of :class:`RoceParallelEnv`."""
    return RoceParallelEnv(scenario, **kwargs)


def env(scenario: Any = "noisy_neighbor", **kwargs: Any) -> AECEnv[str, Floats, Floats]:
    """The same in PettingZoo's turn-taking form."""
    return parallel_to_aec(parallel_env(scenario, **kwargs))
