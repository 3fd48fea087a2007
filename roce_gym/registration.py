"""Makes the packaged environments known to Gymnasium."""

from __future__ import annotations

import gymnasium

ENVIRONMENTS = {
    "RoCE/NoisyNeighbor-v0": "noisy_neighbor",
    "RoCE/RegimeShift-v0": "regime_shift",
}
"""Environment id -> packaged scenario."""

MULTI_OBJECTIVE = "mo-"
"""Before an id: the same environment with a reward vector."""


def register_environments() -> None:
    """Registers every id that is not registered yet; safe to call again."""
    for env_id, scenario in ENVIRONMENTS.items():
        _register(
            env_id, scenario, "roce_gym.env:RoceEnv", "roce_gym.vector_env:RoceVectorEnv", False
        )
        _register(
            MULTI_OBJECTIVE + env_id,
            scenario,
            "roce_gym.mo_env:MoRoceEnv",
            "roce_gym.mo_env:MoRoceVectorEnv",
            True,  # Gymnasium's checker insists on a reward that is a number
        )


def _register(env_id: str, scenario: str, single: str, vector: str, unchecked: bool) -> None:
    if env_id not in gymnasium.registry:
        gymnasium.register(
            id=env_id,
            entry_point=single,
            vector_entry_point=vector,
            disable_env_checker=unchecked,
            kwargs={"scenario": scenario},
        )
