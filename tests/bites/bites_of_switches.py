"""Switches, traffic classes, buffers and shapers."""

from __future__ import annotations

from typing import Any

from bites import (
    FOREVER,
    NO_ECN,
    RED,
    Bite,
    Raw,
    cnps,
    delivered,
    drops,
    flow,
    incast,
    pauses,
    pauses_first,
    share_of_first,
    star,
    tenant,
)

_SMALL = {"buffer_bytes": 1_500_000}


def _two_classes(first: Raw, second: Raw, sections: Raw | None = None, size: int = FOREVER) -> Raw:
    """Hosts 1 and 2 send to host 0, each in a class of its own."""
    classes = [
        {"name": "x", "priority": 3, "ecn": NO_ECN} | first,
        {"name": "y", "priority": 4, "ecn": NO_ECN} | second,
    ]
    own = [
        tenant([flow(1, 0, size)], "x", traffic_class="x"),
        tenant([flow(2, 0)], "y", traffic_class="y"),
    ]
    return star(*own, classes=classes, **(sections or {}))


def _trunk(rate_gbps: float, **sections: Any) -> Raw:
    """Six hosts to six others, over a cable of another rate."""
    topology = {"kind": "dumbbell", "hosts_per_side": 6, "trunk_rate_gbps": rate_gbps}
    flows = [flow(i, 6 + i) for i in range(6)]
    return star(tenant(flows), **({"topology": topology} | sections))


def _into_one(rate_gbps: float, **sections: Any) -> Raw:
    """Five hosts to one other, over a cable of another rate: the ingress of that is filled."""
    topology = {"kind": "dumbbell", "hosts_per_side": 5, "trunk_rate_gbps": rate_gbps}
    flows = [flow(i, 5) for i in range(5)]
    return star(tenant(flows), **({"topology": topology} | sections))


def _between_leaves(override: Raw) -> Raw:
    """Two hosts to two others over one cable: the queue is in the first leaf, node 4."""
    sizes = {"leaves": 2, "hosts_per_leaf": 2, "spines": 1, "spine_rate_gbps": 100}
    flows = [flow(0, 2), flow(1, 3)]
    topology = {"kind": "leaf_spine"} | sizes
    return star(tenant(flows), topology=topology, switch={"overrides": [override]})


def _with_override(size: int = FOREVER) -> Raw:
    """Four hosts to one, at a switch that may have something of its own."""
    override = {"switches": [6], "classes": {"roce": {}}}
    return incast(
        size=size,
        switch={"overrides": [override]},
        classes=[{"ecn": NO_ECN, "buffer": {"alpha": 1 / 128}}],
    )


_OVERRIDE, _OF_OVERRIDE = "switch.overrides.0.classes.roce", "switch.overrides.classes"
_SMALL_POOL = {"buffer_bytes": 1_500_000, "headroom_pool_bytes": 300_000}
_DWRR = {"scheduling": "dwrr"}

SWITCH = [
    Bite(
        "switch.overrides.0.switches",
        [5],
        [4],
        cnps,
        True,
        _between_leaves({"classes": {"roce": {"ecn": RED}}}),
    ),
    Bite(
        "switch.overrides.0.tier",
        "spine",
        "leaf",
        cnps,
        True,
        _between_leaves({"classes": {"roce": {"ecn": RED}}}),
    ),
    Bite(f"{_OVERRIDE}.ecn", NO_ECN, RED, cnps, True, _with_override(), of=_OF_OVERRIDE),
    *(
        Bite(
            f"{_OVERRIDE}.{field}", low, high, pauses, False, _with_override(size), of=_OF_OVERRIDE
        )
        for field, low, high, size in (
            ("alpha", 1 / 64, 1.0, 500_000),
            ("static_threshold_bytes", 20_000, 500_000, 300_000),
            ("reserved_bytes", 4_096, 200_000, 250_000),
        )
    ),
    Bite("switch.asic", "trident3", "tomahawk5", pauses, False, incast(senders=16)),
    Bite("switch.buffer_bytes", 1_000_000, 64_000_000, pauses, False, incast()),
    Bite(
        "switch.ecn_scales_with_rate",
        False,
        True,
        cnps,
        False,
        _trunk(400, classes=[{"ecn": RED}]),
        us=60,
    ),
    Bite(
        "switch.alpha_scales_with_rate",
        False,
        True,
        pauses,
        False,
        _into_one(400, switch={"buffer_bytes": 2_000_000}),
    ),
    Bite(
        "switch.headroom_pool_bytes",
        40_000,
        300_000,
        drops,
        False,
        incast(senders=8, switch=_SMALL_POOL),
    ),
    # Larger turns: for some time one class has all of the port.
    Bite(
        "switch.dwrr_quantum_bytes",
        4_158,
        1_000_000,
        share_of_first,
        True,
        _two_classes(_DWRR, _DWRR),
        us=60,
    ),
]

_RIVAL: Raw = {"scheduling": "strict"}
_SHAPED = {"rate_gbps": 20, "burst_bytes": 10_000}

CLASSES = [
    Bite("classes.0.priority", 2, 5, share_of_first, True, _two_classes(_RIVAL, _RIVAL)),
    Bite(
        "classes.0.lossless",
        False,
        True,
        drops,
        False,
        incast(switch=_SMALL),
    ),
    Bite(
        "classes.0.scheduling", "round_robin", "strict", share_of_first, True, _two_classes({}, {})
    ),
    Bite("classes.0.weight", 1, 4, share_of_first, True, _two_classes(_DWRR, _DWRR)),
    Bite(
        "classes.0.shaper.rate_gbps", 10, 40, delivered, True, incast(classes=[{"shaper": _SHAPED}])
    ),
    Bite(
        "classes.0.shaper.burst_bytes",
        10_000,
        400_000,
        delivered,
        True,
        incast(classes=[{"shaper": _SHAPED}]),
        us=100,
    ),
    # In the pool of the first class, the second one fills that.
    Bite(
        "classes.1.pool",
        None,
        "p",
        pauses_first,
        True,
        _two_classes(
            {"pool": "p", "buffer": {"alpha": 1, "pool_share": 0.5}},
            {"buffer": {"alpha": 64}},
            {"switch": _SMALL},
        ),
    ),
    Bite(
        "classes.0.headroom_bytes",
        5_000,
        "auto",
        drops,
        False,
        incast(switch=_SMALL),
    ),
    Bite("classes.0.headroom_rate_delays", 0, 8, drops, False, incast(switch=_SMALL)),
    Bite("classes.0.xon_offset_bytes", 3_072, 60_000, pauses, False, incast(switch=_SMALL)),
]

_MARKING = incast(classes=[{"ecn": RED}], tenant={"dcqcn": {}})

ECN = [
    Bite("classes.0.ecn.enabled", False, True, cnps, True, _MARKING),
    Bite("classes.0.ecn.kmin_bytes", 20_000, 400_000, cnps, False, _MARKING),
    Bite("classes.0.ecn.kmax_bytes", 100_000, 4_000_000, cnps, False, _MARKING),
    Bite("classes.0.ecn.pmax", 0.01, 1, cnps, True, _MARKING),
]

_LOSSY = incast(classes=[{"ecn": NO_ECN, "lossless": False, "buffer": {"alpha": 8}}])

BUFFER = [
    Bite("classes.0.buffer.alpha", 1 / 64, 1, pauses, False, incast(size=500_000)),
    Bite(
        "classes.0.buffer.static_threshold_bytes",
        20_000,
        500_000,
        pauses,
        False,
        incast(size=300_000),
    ),
    Bite(
        "classes.0.buffer.reserved_bytes",
        4_096,
        200_000,
        pauses,
        False,
        incast(size=250_000, classes=[{"ecn": NO_ECN, "buffer": {"alpha": 1 / 128}}]),
    ),
    Bite(
        "classes.0.buffer.pool_share",
        0.05,
        0.9,
        pauses_first,
        False,
        _two_classes(
            {"buffer": {"alpha": 1}}, {"buffer": {"alpha": 1}}, {"switch": _SMALL}, size=500_000
        ),
    ),
    Bite("classes.0.buffer.egress_alpha", 1 / 64, 1, drops, False, _LOSSY),
    Bite("classes.0.buffer.egress_limit_bytes", 50_000, 4_000_000, drops, False, _LOSSY),
]

SHAPERS = [
    Bite("tenants.0.shaper.rate_gbps", 2, 10, delivered, True, incast(tenant={"shaper": _SHAPED})),
    Bite(
        "tenants.0.shaper.burst_bytes",
        10_000,
        100_000,
        delivered,
        True,
        incast(tenant={"shaper": _SHAPED | {"rate_gbps": 5}}),
        us=50,
    ),
]
