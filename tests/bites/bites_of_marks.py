"""DSCP: in which class switches take packets, and what their PFC frames mean to others."""

from __future__ import annotations

from typing import Any

from bites import NO_ECN, Bite, Raw, drops, flow, incast, queue_of_first, star, tenant

_DSCP = 26  # divided by 8: priority 3, that of class x

_CLASSES = [{"name": name, "priority": 3 + i, "ecn": NO_ECN} for i, name in enumerate("xy")]


def _marked(maps: Raw, dscp_of_class: int | None = _DSCP, **own: Any) -> Raw:
    """Everything is sent in the first class; switches may take it in the second."""
    classes = [_CLASSES[0] | {"dscp": dscp_of_class}, _CLASSES[1]]
    return incast(classes=classes, switch={"dscp": maps}, tenant={"traffic_class": "x", **own})


_CLOS_LEAVES = [8, 9]


def _crossing(maps: Raw, **override: Any) -> Raw:
    """Hosts on leaf 8 send to one on leaf 9; the queue is at leaf 8, before the only spine, 10."""
    topology = {
        "kind": "leaf_spine",
        "leaves": 2,
        "hosts_per_leaf": 4,
        "spines": 1,
        "spine_rate_gbps": 100,
    }
    own = tenant([flow(i, 4) for i in range(4)], traffic_class="x", dscp=_DSCP)
    switch = {"dscp": maps | {"overrides": [{"switches": _CLOS_LEAVES} | override]}}
    return star(own, topology=topology, classes=_CLASSES, switch=switch)


def _override(name: str, *rest: Any, base: Raw, **more: Any) -> Bite:
    return Bite(f"switch.dscp.overrides.0.{name}", *rest, base, **more)


_TO_Y = {"map": {_DSCP: "y"}}
_RENAMED = _crossing({}, priorities={"x": 5})
_RENAMED["switch"]["buffer_bytes"] = 1_500_000

DSCP = [
    Bite("switch.dscp.map", {_DSCP: "y"}, {_DSCP: "x"}, queue_of_first, True, _marked({})),
    Bite("switch.dscp.default", "y", "x", queue_of_first, True, _marked({})),
    Bite("classes.0.dscp", 26, 27, queue_of_first, True, _marked(_TO_Y)),
    Bite("tenants.0.dscp", 26, 27, queue_of_first, True, _marked(_TO_Y)),
    _override("switches", [8], [9], queue_of_first, True, base=_crossing({}, **_TO_Y)),
    Bite(
        "switch.dscp.overrides.0",
        {"tier": "leaf", **_TO_Y},
        {"tier": "spine", **_TO_Y},
        queue_of_first,
        True,
        _crossing({}),
        of="switch.dscp.overrides.tier",
    ),
    # Without what holds elsewhere: the class with priority DSCP / 8.
    _override("inherit", True, False, queue_of_first, True, base=_crossing(_TO_Y)),
    _override("map", {_DSCP: "y"}, {_DSCP: "x"}, queue_of_first, True, base=_crossing({})),
    _override("default", "y", "x", queue_of_first, True, base=_crossing({})),
    # Hosts do not heed pauses of a priority that is not their class's.
    _override("priorities", {"x": 3}, {"x": 5}, drops, True, base=_RENAMED),
]
