"""Random tiny scenarios in which some switches have settings of their own."""

from __future__ import annotations

import random
from typing import Any

from tiny_cases import MOST_RESERVED

from roce_gym.config import Settings, SwitchOverride
from roce_gym.topology.graph import Network
from roce_gym.topology.selection import ethernet_switches


class Overrides:
    """Adds some, others each time that settings change; `other` adds its part, too."""

    def __init__(self, number: int, other: Any = None) -> None:
        self.r = random.Random(f"overrides {number}")
        self.other = other
        self.next: list[dict[str, Any]] | None = None

    def add(self, raw: dict[str, Any], network: Network) -> None:
        self.names, self.network = [c["name"] for c in raw["classes"]], network
        self.next = raw["switch"]["overrides"] = self._some()
        if self.other is not None:
            self.other.add(raw, network)

    def settings(self, settings: Settings) -> Settings:
        if self.other is not None:
            settings = self.other.settings(settings)
        given, self.next = self._some() if self.next is None else self.next, None
        overrides = tuple(SwitchOverride.model_validate(one) for one in given)
        return settings.model_copy(update={"switch_overrides": overrides})

    def _some(self) -> list[dict[str, Any]]:
        r = self.r
        return [
            self._place() | {"classes": {n: self._class() for n in self.names if r.random() < 0.7}}
            for _ in range(r.randint(1, 3))
        ]

    def _place(self) -> dict[str, Any]:
        r, nodes = self.r, ethernet_switches(self.network)
        if r.random() < 0.3:
            return {"tier": r.choice(sorted({self.network.tier(node) for node in nodes}))}
        some = r.sample(nodes, r.randint(1, len(nodes)))
        return {"switches": [int(self.network.node_label[node]) for node in some]}

    def _class(self) -> dict[str, Any]:
        """Parts of what a class may have otherwise."""
        r = self.r
        kmin = r.choice([0, 2_000, 20_000])
        ecn = {
            "enabled": r.random() < 0.8,
            "kmin_bytes": kmin,
            "kmax_bytes": kmin + r.choice([0, 5_000, 60_000]),
            "pmax": r.choice([0.05, 0.5, 1.0]),
        }
        threshold = r.choice(
            [{}, {"alpha": r.choice([0.03, 0.5, 4.0])}, {"static_threshold_bytes": 9_000}]
        )
        reserved = r.choice([{}, {"reserved_bytes": r.choice([0, 1_500, MOST_RESERVED])}])
        return r.choice([{}, {"ecn": ecn}]) | threshold | reserved
