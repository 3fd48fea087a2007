"""The compiled core agrees with the oracle on circles of switches and on three tiers, too."""

from __future__ import annotations

import pytest
import tiny_cases
from side_by_side import SideBySide
from tiny_cases import make_case

from roce_gym import assembly

TOPOLOGIES = {
    "clockwise": {"kind": "triangle", "routing": "clockwise", "host_cable_m": 3},
    "ring": {"kind": "ring", "switches": 4, "trunk_rate_gbps": 40, "link_delay_ns": 150},
    "clos3": {
        "kind": "clos3",
        "pods": 2,
        "leaves_per_pod": 2,
        "hosts_per_leaf": 1,
        "spines_per_pod": 2,
        "core_oversubscription": 2,
        "spine_rate_gbps": 200,
        "core_rate_gbps": 200,
        "core_cable_m": 50,
    },
}


@pytest.mark.parametrize("number", range(200, 204))
@pytest.mark.parametrize("name", TOPOLOGIES)
def test_agrees(name, number, monkeypatch):
    monkeypatch.setattr(assembly.events, "MIN_BUCKETS", 2**17)
    monkeypatch.setattr(tiny_cases, "_topology", lambda _r: TOPOLOGIES[name])
    monkeypatch.setattr(tiny_cases, "_num_hosts", lambda _: 3 if name == "clockwise" else 4)
    both = SideBySide(make_case(number))
    for step in range(1, 6):
        time = both.case.end_ps * step**3 // 125
        assert both.advance(time) == [], time
