"""Makes the packaged environments known to Gymnasium."""

from __future__ import annotations

import gymnasium

ENVIRONMENTS = {
    "RoCE/NoisyNeighbor-v0": "noisy_neighbor",
    "RoCE/NoisyNeighborFast-v0": "noisy_neighbor_fast",
    "RoCE/RegimeShift-v0": "regime_shift",
    "RoCE/EightTenants-v0": "eight_tenants",
    "RoCE/LatencyTenant-v0": "latency_tenant",
    "RoCE/WeightedTenants-v0": "weighted_tenants",
    "RoCE/MoEAllToAll-v0": "moe_all_to_all",
    "RoCE/LatencyVsBulk-v0": "latency_vs_bulk",
    "RoCE/IncastWaves-v0": "incast_waves",
    "RoCE/GrayFailure-v0": "failing_fibre",
}
"""Environment id -> packaged scenario."""

OWN_SCENARIO = "RoCE/Scenario-v0"
"""Id for scenarios of a user's own: `gymnasium.make(OWN_SCENARIO, scenario="my.yaml")`."""

MULTI_OBJECTIVE = "mo-"
"""Before an id: the same environment with a reward vector."""


def register_environments() -> None:
    """Registers every id that is not registered yet; safe to call again."""
    for env_id, scenario in (*ENVIRONMENTS.items(), (OWN_SCENARIO, None)):
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


def _register(env_id: str, scenario: str | None, single: str, vector: str, unchecked: bool) -> None:
    if env_id not in gymnasium.registry:
        gymnasium.register(
            id=env_id,
            entry_point=single,
            vector_entry_point=vector,
            disable_env_checker=unchecked,
            kwargs={"scenario": scenario},
        )
