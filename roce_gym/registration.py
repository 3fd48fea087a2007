"""Makes the packaged environments known to Gymnasium."""

from __future__ import annotations

import gymnasium

ENVIRONMENTS = {
    "RoCE/NoisyNeighbor-v0": "noisy_neighbor",
    "RoCE/RegimeShift-v0": "regime_shift",
}
"""Environment id -> packaged scenario."""


def register_environments() -> None:
    """Registers every id that is not registered yet; safe to call again."""
    for env_id, scenario in ENVIRONMENTS.items():
        if env_id not in gymnasium.registry:
            gymnasium.register(
                id=env_id, entry_point="roce_gym.env:RoceEnv", kwargs={"scenario": scenario}
            )
