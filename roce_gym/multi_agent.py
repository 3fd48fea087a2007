"""One agent a tenant, or a switch, in PettingZoo's parallel form.

The core is the single-agent environment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.spaces import Box
from numpy.typing import NDArray

from roce_gym.action_check import clipped
from roce_gym.env import RoceEnv
from roce_gym.errors import ActionError, ConfigError
from roce_gym.options import check_limit, check_mapping
from roce_gym.roles import Role, switch_roles, tenant_roles
from roce_gym.switch_env import SwitchCore
from roce_gym.tenant_reward import TenantCore

try:
    from pettingzoo import AECEnv, ParallelEnv
    from pettingzoo.utils.conversions import parallel_to_aec
except ImportError as error:
    raise ImportError(
        "roce_gym.parallel_env needs pettingzoo: pip install 'roce-gym[multi-agent]'"
    ) from error

Floats = NDArray[np.float32]
AGENTS = ("tenants", "switches", "both")
REWARDS = ("own", "team")
KNOB_MODES = ("absolute", "delta")
"""Those in which a mean of what several agents ask for has a meaning."""


class RoceParallelEnv(ParallelEnv[str, Floats, Floats]):
    """Tenants, switches or both are agents; all act at once, and an episode ends for all at once.

    * Actions: Box(-1, 1), float32, each entry as in :class:`RoceEnv`; `knob_names(agent)` names
      them. With `knob_mode="delta"`, all of this holds for steps.

      A tenant (`agents="tenants"`) turns the knobs of its traffic class, then its own. A class has
      one setting in all switches; if several tenants share it, it gets the mean of what they ask
      for, which is the geometric mean where a knob is logarithmic. A knob of nobody keeps its
      default.

      A switch (`agents="switches"`) turns ECN and buffer thresholds of every class for its own
      ports and queues (:class:`roce_gym.switch_knobs.SwitchKnobSpace`), as in ACC (SIGCOMM 2021)
      each switch tunes its ECN; NICs keep the scenario's settings. With `agents="both"`, tenants
      turn what is of their NICs beside it, and those with nothing to turn are no agents. Weights,
      pool shares and shapers of classes stay as in the scenario.
    * Observations: Box(0, 1), float32: entries of `state()`; `observation_names(agent)` names them.
      A tenant sees those that are of the tenant, of its class, of the fabric, or of knobs it can
      turn; a switch those of its own ports and queues (:mod:`roce_gym.switch_observation`) and of
      its knobs. `state()` is the single agent's observation: all of it, with switches where these
      are agents.
    * Rewards: with `rewards="own"`, the weighted sum of `completion` of the tenant itself, and of
      `pfc` and `interference` of the fabric, less what they are under the default settings. Their
      mean by the tenants' weights (those without rounds left out) is the single agent's reward.
      With `rewards="team"`, everybody gets the single agent's reward. Where switches are agents,
      there is only the latter: what tenants lose at one switch alone is not measured.
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
        agents: str = "tenants",
        rewards: str | None = None,
        max_cycles: int | None = None,
        **kwargs: Any,
    ) -> None:
        """Builds the spaces; nothing is simulated.

        Args:
            scenario: as of :class:`RoceEnv`.
            agents: who acts: `"tenants"`, `"switches"` or `"both"`. Switches are called as
                `roce-gym describe` calls them, such as `"switch 16"`.
            rewards: `"own"` or `"team"`; None: `"own"` for tenants alone, else `"team"`.
            max_cycles: truncates episodes before the scenario's horizon does.
            **kwargs: other arguments of :class:`RoceEnv`.

        Raises:
            ConfigError: an argument that is not acceptable, such as `knob_mode="multidiscrete"`.
        """
        self._rewards = _rewards_for(agents, rewards)
        self.core: Any = (
            TenantCore(scenario, **kwargs)
            if agents == "tenants"
            else SwitchCore(scenario, with_tenants=agents == "both", **kwargs)
        )
        mode = self.core.scenario.control.knob_mode
        if mode not in KNOB_MODES:
            raise ConfigError(
                f"control.knob_mode = {mode!r} is not allowed with several agents: what they "
                f"choose for a shared class has no mean; allowed: {', '.join(KNOB_MODES)}"
            )
        self.max_cycles = check_limit("max_cycles", max_cycles)
        self.render_mode = self.core.render_mode
        self._roles = self._cast(agents)
        self.possible_agents = list(self._roles)
        self.agents: list[str] = []
        self._owners = {t.name for t in self.core.scenario.tenants}
        self._owners |= {c.name for c in self.core.scenario.classes}
        knobs, eyes = self.core.knobs.names, self.core.observation_names
        self._knobs = {a: _which(role.turns, knobs) for a, role in self._roles.items()}
        self._eyes = {a: _which(role.sees, eyes) for a, role in self._roles.items()}
        self._knob_names = {a: tuple(knobs[i] for i in own) for a, own in self._knobs.items()}
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

    def _cast(self, agents: str) -> dict[str, Role]:
        """Roles of all agents, by name."""
        tenants = tenant_roles(self.core.scenario)
        if agents == "tenants":
            return tenants
        switches = switch_roles(self.core.knobs.switches)
        if agents == "switches":
            return switches
        names = self.core.knobs.names
        tenants = {a: role for a, role in tenants.items() if any(map(role.turns, names))}
        for name in tenants:
            if name in switches:
                raise ConfigError(
                    f"tenants.name = {name!r} is the name of a switch, which is an agent, too; "
                    "allowed: any other"
                )
        return tenants | switches

    def knob_names(self, agent: str) -> tuple[str, ...]:
        """Of the entries of its action."""
        return self._knob_names[agent]

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
        known = check_mapping("reset options", options)
        known.pop("options", None)
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
            ActionError: an agent's action is missing, has a wrong shape, or is not finite; nothing
                has happened then.
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
        return (
            self._seen(),
            self.core.rewards() if self._rewards == "own" else dict.fromkeys(agents, total),
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
            action = clipped(actions[agent], self._knob_names[agent], f"action of {agent}")
            total[self._knobs[agent]] += action
        return np.where(self._voters > 0, total / np.maximum(self._voters, 1.0), self._left_alone)

    def _of_nobody(self) -> NDArray[np.float64]:
        """Entries of the action that leave knobs at their defaults: no step, or those positions."""
        assert self.core.fabric is not None
        if self.core.scenario.control.knob_mode == "delta":
            return np.zeros(len(self._voters))
        kept: NDArray[np.float32] = self.core.knobs.encode(self.core.fabric.settings)
        return kept.astype(np.float64)

    def _seen(self) -> dict[str, Floats]:
        return {agent: self._state[indices] for agent, indices in self._eyes.items()}

    def _told(self, info: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
        return {agent: dict(self._of(agent, info.items())) for agent in self.possible_agents}

    def _of(self, agent: str, items: Iterable[tuple[str, Any]]) -> Iterable[tuple[str, Any]]:
        others = self._owners - set(self._roles[agent].owners)
        return ((key, value) for key, value in items if key.rpartition("/")[2] not in others)

    def state(self) -> Floats:
        """What the single agent would see: shape (m,), float32, entries: `core.observation_names`.

        Raises:
            ResetNeeded: before the first reset.
        """
        if self.core.fabric is None:
            raise ResetNeeded("state() needs reset() first: no episode was started")
        state: Floats = self._state.copy()
        return state

    def render(self) -> Any:
        """As :meth:`RoceEnv.render`."""
        return self.core.render()

    def close(self) -> None:
        """As :meth:`RoceEnv.close`."""
        self.core.close()


def _rewards_for(agents: str, rewards: str | None) -> str:
    """What agents are paid, if they are those that there can be."""
    _check("agents", agents, AGENTS)
    if agents == "tenants":
        return _check("rewards", rewards or "own", REWARDS)
    if rewards == "own":
        raise ConfigError(
            f"rewards = 'own' is not allowed with agents = {agents!r}: what tenants lose at one "
            "switch is not measured, since flows cross several; allowed: team"
        )
    return _check("rewards", rewards or "team", REWARDS)


def _check(field: str, value: str, allowed: tuple[str, ...]) -> str:
    if value not in allowed:
        raise ConfigError(f"{field} = {value!r} is not allowed; allowed: {', '.join(allowed)}")
    return value


def _which(is_own: Callable[[str], bool], names: Iterable[str]) -> NDArray[np.intp]:
    """Positions of names that are an agent's."""
    return np.flatnonzero([is_own(name) for name in names])


def parallel_env(scenario: Any = "noisy_neighbor", **kwargs: Any) -> RoceParallelEnv:
    """The environment; arguments are those of :class:`RoceParallelEnv`."""
    return RoceParallelEnv(scenario, **kwargs)


def env(scenario: Any = "noisy_neighbor", **kwargs: Any) -> AECEnv[str, Floats, Floats]:
    """The same in PettingZoo's turn-taking form."""
    return parallel_to_aec(parallel_env(scenario, **kwargs))
