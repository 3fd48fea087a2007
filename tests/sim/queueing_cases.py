"""Random tiny scenarios with DWRR, shapers, pools, shared headroom and egress bounds."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
from tiny_cases import Case, make_case

from roce_gym.assembly.devices import headroom_bytes
from roce_gym.config import Scenario, Settings, validate_scenario
from roce_gym.topology.graph import Network


class Queueing:
    """Adds some of it, by the number of the case."""

    def __init__(self, number: int) -> None:
        self.r = random.Random(-number - 1)
        self.classes: dict[str, list[str]] = {}
        self.tenants: list[str] = []
        self.least_burst = 0

    def add(self, raw: dict[str, Any], network: Network) -> None:
        r = self.r
        scheduling = r.choice(["round_robin", "dwrr", "dwrr", "dwrr"])
        for c in raw["classes"]:
            if c["scheduling"] != "strict" or r.random() < 0.5:
                c["scheduling"] = scheduling
            features = [name for name in ("shaper", "share", "egress") if r.random() < 0.5]
            self.classes[c["name"]] = features + (["weight"] if c["scheduling"] == "dwrr" else [])
            if c["lossless"] and "egress" in features:
                self.classes[c["name"]].remove("egress")
            if "share" in features and r.random() < 0.4:
                c["pool"] = "common"
        shared = all("share" in features for features in self.classes.values())
        self.highest_share = 1.0 if shared else 0.9
        scenario = validate_scenario(_without_pools(raw))
        self.least_burst = scenario.nic.largest_packet_bytes
        self.fastest = float(network.link_rate_bps.min()) / 1e9
        self._declare(raw)
        if r.random() < 0.5:
            raw["switch"]["headroom_pool_bytes"] = _shared_headroom(r, scenario, network)
        raw["switch"]["dwrr_quantum_bytes"] = r.choice([None, None, 64, 700, 10_000])

    def _declare(self, raw: dict[str, Any]) -> None:
        """Shapers have to be in the scenario; which, is decided here."""
        for c in raw["classes"]:
            if "shaper" in self.classes[c["name"]]:
                c["shaper"] = self._shaper()
            if "share" in self.classes[c["name"]]:
                c["buffer"] = {"pool_share": 0.1}
        for tenant in raw["tenants"]:
            if self.r.random() < 0.5:
                tenant["shaper"] = self._shaper()
                self.tenants.append(tenant["name"])

    def _shaper(self) -> dict[str, Any]:
        r = self.r
        rate = r.choice([0, 0.1, 0.3, 0.7, 1.0]) * min(self.fastest, 40)
        burst = self.least_burst + r.choice([0, 0, 1, 5_000, 60_000])
        return {"rate_gbps": round(rate, 3), "burst_bytes": burst}

    def settings(self, settings: Settings) -> Settings:
        tree = settings.model_dump()
        r = self.r
        parts = {name: r.uniform(0.1, 1) for name, has in self.classes.items() if "share" in has}
        total = sum(parts.values()) / (self.highest_share * r.uniform(0.3, 0.99))
        for name, features in self.classes.items():
            chosen = tree["classes"][name]
            if "weight" in features:
                chosen["weight"] = r.choice([1, 1, 2, 3, 15])
            if "shaper" in features:
                chosen["shaper"] = self._shaper()
            if name in parts:
                chosen["buffer"]["pool_share"] = parts[name] / total
            if "egress" in features:
                field = r.choice(["egress_alpha", "egress_limit_bytes", None])
                chosen["buffer"] |= {"egress_alpha": None, "egress_limit_bytes": None}
                if field == "egress_alpha":
                    chosen["buffer"][field] = r.choice([0.1, 0.5, 2])
                elif field:
                    chosen["buffer"][field] = r.choice([0, 5_000, 30_000])
        tree["shapers"] = {name: self._shaper() for name in self.tenants}
        return Settings.model_validate(tree)


def _without_pools(raw: dict[str, Any]) -> dict[str, Any]:
    classes = [{key: c[key] for key in c if key != "pool"} for c in raw["classes"]]
    return raw | {"classes": classes}


def make_queueing_case(number: int) -> Case:
    """The case of that number, always the same."""
    return make_case(number, extra=Queueing(number))


def _shared_headroom(r: random.Random, scenario: Scenario, network: Network) -> int:
    """From what one port and class needs to what all ports of a switch have without sharing."""
    count = range(len(scenario.classes))
    own = np.stack([headroom_bytes(scenario, network, i) for i in count], axis=1)
    at_switch = network.link_dst >= network.num_hosts
    totals = np.bincount(network.link_dst[at_switch], own[at_switch].sum(axis=1))
    most = int(own[at_switch].max())
    return min(int(most * r.choice([1, 1.5, 4])), int(totals.max()))
