"""Which environment to train or evaluate in, and on which seeds.

Training draws its episodes from the *layouts* 0 … `layouts` - 1; evaluation uses seeds from
`EVALUATION_SEEDS_FROM` on. So nothing is ever evaluated on an episode it was trained on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np
from gymnasium.envs.registration import EnvSpec, load_env_creator
from numpy.typing import NDArray

from roce_gym.config import Scenario, validate_scenario
from roce_gym.env import RoceEnv
from roce_gym.errors import ConfigError
from roce_gym.fabric import Fabric
from roce_gym.presets import resolve_settings
from roce_gym.registration import ENVIRONMENTS
from roce_gym.scenario_file import apply_overrides, draw, load_raw
from roce_gym.topology import build_network
from roce_gym.units import BPS_PER_GBPS

EVALUATION_SEEDS_FROM = 10_000


@dataclass(frozen=True)
class EnvChoice:
    """An environment by name.

    Attributes:
        env: an environment id, a packaged scenario's name or the path of a scenario file.
        overrides: `dotted.path=value` changes to the scenario.
    """

    env: str
    overrides: tuple[str, ...] = ()

    def make(self, layouts: int | None = None) -> RoceEnv:
        """Builds the environment; nothing is simulated.

        Raises:
            ConfigError: unknown id or scenario, or an override that is not acceptable.
        """
        kwargs = self._kwargs()
        return RoceEnv(**kwargs) if layouts is None else RoceEnv(**kwargs | {"layouts": layouts})

    def scenario(self, seed: int) -> Scenario:
        """What the environment simulates with this seed."""
        kwargs = self._kwargs()
        scenario = kwargs["scenario"]
        raw = dict(scenario) if isinstance(scenario, Mapping) else load_raw(scenario)
        return validate_scenario(draw(apply_overrides(raw, kwargs["overrides"]), seed))

    def describe_episode(self, policy: str, seed: int) -> str:
        """For messages, in one line."""
        return f"{policy}, scenario {' '.join((self.env, *self.overrides))}, seed {seed}"

    def _kwargs(self) -> dict[str, Any]:
        """Arguments of :class:`RoceEnv`."""
        if self.env in gymnasium.registry:
            spec = gymnasium.spec(self.env)
            if not _is_roce_env(spec):
                raise ConfigError(f"env: {self.env!r} is no environment of roce_gym; {_allowed()}")
            kwargs: dict[str, Any] = {"scenario": "noisy_neighbor"} | dict(spec.kwargs)
            kwargs["overrides"] = (*kwargs.get("overrides", ()), *self.overrides)
            return kwargs
        if _looks_like_id(self.env):
            raise ConfigError(f"env: {self.env!r} is unknown; {_allowed()}")
        return {"scenario": self.env, "overrides": self.overrides}


def default_action(env: RoceEnv) -> NDArray[np.float32]:
    """The action that comes closest to the settings a scenario starts with."""
    rate_gbps = build_network(env.scenario.topology).host_rate_bps / BPS_PER_GBPS
    return env.knobs.encode(resolve_settings(env.scenario, rate_gbps))


def warm_up(choice: EnvChoice) -> None:
    """Compiles the simulator, if need be, before several processes would do so at once."""
    Fabric(choice.scenario(0)).advance(us=1.0)


def _is_roce_env(spec: EnvSpec) -> bool:
    entry = spec.entry_point
    creator: Any = load_env_creator(entry) if isinstance(entry, str) else entry
    return isinstance(creator, type) and issubclass(creator, RoceEnv)


def _looks_like_id(text: str) -> bool:
    name = text.rpartition("/")[2]
    return "-v" in name and name.rpartition("-v")[2].isdigit()


def _allowed() -> str:
    return (
        f"allowed: {', '.join(sorted(ENVIRONMENTS))}, a packaged scenario's name, "
        "or the path of a scenario file"
    )
