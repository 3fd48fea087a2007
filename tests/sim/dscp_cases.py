"""Random tiny scenarios in which switches differ about what a packet's DSCP means."""

from __future__ import annotations

import random
from typing import Any

from roce_gym.config import Settings
from roce_gym.topology.graph import NVSWITCH, Network


class Dscp:
    """Adds DSCPs, maps and priorities, by the number of the case; `other` adds its part, too."""

    def __init__(self, number: int, other: Any = None) -> None:
        self.r = random.Random(f"dscp {number}")
        self.other = other

    def add(self, raw: dict[str, Any], network: Network) -> None:
        r = self.r
        names = [c["name"] for c in raw["classes"]]
        for one in (*raw["classes"], *raw["tenants"]):
            if r.random() < 0.5:
                one["dscp"] = r.choice([0, 8, 26, 48, 63])
        dscp = self._map(names, 1.0) | {"overrides": []}
        for _ in range(r.randint(1, 3)):
            dscp["overrides"].append(self._map(names, 0.3) | self._place(network))
            if r.random() < 0.5:
                swapped = dict(zip(names, r.sample(range(8), len(names)), strict=True))
                dscp["overrides"][-1]["priorities"] = swapped
        raw["switch"]["dscp"] = dscp
        if self.other is not None:
            self.other.add(raw, network)

    def _map(self, names: list[str], share: float) -> dict[str, Any]:
        """DSCPs to classes; with a default, so that all lead somewhere, or perhaps without."""
        r = self.r
        codes = [code for code in (0, 8, 26, 48, 63) if r.random() < 0.5]
        default = r.choice(names) if r.random() < share else None
        return {"map": {code: r.choice(names) for code in codes}, "default": default}

    def _place(self, network: Network) -> dict[str, Any]:
        r = self.r
        nodes = range(network.num_hosts + network.num_servers, len(network.node_label))
        if r.random() < 0.3:
            return {"tier": r.choice(sorted({network.tier(n) for n in nodes} - {NVSWITCH}))}
        some = r.sample(nodes, r.randint(1, len(nodes)))
        return {"switches": [int(network.node_label[n]) for n in some]}

    def settings(self, settings: Settings) -> Settings:
        return settings if self.other is None else self.other.settings(settings)
