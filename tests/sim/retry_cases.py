"""Tiny cases in which jobs have timeouts, retry limits and traffic classes of their own."""

from __future__ import annotations

import random
from typing import Any

from roce_gym.config import Settings
from roce_gym.topology.graph import Network


class Retries:
    """Gives most jobs NCCL variables."""

    def __init__(self, number: int) -> None:
        self._random = random.Random(f"retries {number}")

    def add(self, raw: dict[str, Any], network: Network) -> None:
        """Changes the scenario in place: a timeout of 8 to 131 us, or never; 0 to 7 retries."""
        r = self._random
        codes = [8 * c["priority"] + r.randrange(8) for c in raw["classes"]]
        raw["nic"]["retransmit_timeout_us"] = r.choice([0, 15, 60])
        for tenant in raw["tenants"]:
            for job in tenant["jobs"]:
                given = {
                    "NCCL_IB_TIMEOUT": r.choice([None, 0, 1, 3, 5]),
                    "NCCL_IB_RETRY_CNT": r.choice([None, 0, 1, 7]),
                    "NCCL_IB_TC": r.choice([None, 4 * r.choice(codes) + r.randrange(4)]),
                }
                if r.random() < 0.8:
                    job["nccl"] = given

    def settings(self, settings: Settings) -> Settings:
        """No change."""
        return settings
