"""PFC, watchdogs, storms, cables that change, and routing around them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bites import (
    NO_ECN,
    Bite,
    Raw,
    delivered,
    flow,
    incast,
    last_end_us,
    lost,
    nacks,
    pauses,
    share_of_first,
    star,
    tenant,
    watchdog_drops,
)

_SMALL = {"buffer_bytes": 1_500_000}

_DOG = {
    "enabled": True,
    "detection_us": 200,
    "restoration_us": 200,
    "poll_us": 100,
}


def _storm(dog: Raw | None = None, stop_us: float | None = None, quanta: int = 65_535) -> Raw:
    """Host 0, to which two others send, pauses from the beginning."""
    storm = {"host": 0, "traffic_class": "roce", "stop_us": stop_us}
    pfc = {"quanta": quanta, "watchdog": dog or {}}
    return incast(senders=2, pfc=pfc, faults={"storms": [storm]}, switch=_SMALL)


PFC = [
    Bite("pfc.quanta", 1_000, 65_535, pauses, False, _storm()),
    Bite("pfc.refresh_fraction", 0.2, 0.9, pauses, False, _storm(quanta=5_000)),
    Bite("pfc.watchdog.enabled", False, True, watchdog_drops, True, _storm(_DOG)),
    Bite("pfc.watchdog.action", "drop", "forward", watchdog_drops, False, _storm(_DOG)),
    Bite("pfc.watchdog.detection_us", 100, 600, watchdog_drops, False, _storm(_DOG)),
    Bite("pfc.watchdog.restoration_us", 100, 1_000, delivered, False, _storm(_DOG, 400), us=2_000),
    # Two polls see the pause begin and last: the first one at 100 or 400 us.
    Bite(
        "pfc.watchdog.poll_us",
        100,
        400,
        watchdog_drops,
        False,
        _storm(_DOG | {"detection_us": 400, "restoration_us": 400}),
    ),
]


def _ring(**sections: Any) -> Raw:
    """Eight hosts on two leaves; every step of the ring crosses one of four spines."""
    job = {"kind": "ring_all_reduce", "bytes": 2_000_000, "rounds": 1}
    training = {
        "name": "ring",
        "hosts": [0, 4, 1, 5, 2, 6, 3, 7],
        "dcqcn": {"enabled": False},
        "jobs": [job],
    }
    topology = {"kind": "leaf_spine", "leaves": 2, "hosts_per_leaf": 4, "spines": 4}
    base = star(training, topology=topology, nic={"out_of_order": True})
    return base | sections


def _cut() -> Raw:
    """The spine between two leaves loses one of its cables; there is another spine."""
    topology = {"kind": "leaf_spine", "leaves": 2, "hosts_per_leaf": 2, "spines": 2}
    cut = {"kind": "down", "between": [4, 6], "start_us": 50}
    flows = [flow(a, b) for a, b in ((0, 2), (1, 3), (2, 0), (3, 1))]
    nic = {"retransmit_timeout_us": 30}
    return star(tenant(flows), topology=topology, link_events=[cut], nic=nic)


ROUTING = [
    Bite("routing.policy", "ecmp", "spray_random", last_end_us, False, _ring(), us=5_000),
    # Without gaps a flowlet stays where it is: nothing is overtaken.
    Bite(
        "routing.flowlet_gap_us",
        0.01,
        1_000,
        nacks,
        False,
        _ring(routing={"policy": "flowlet"}, nic={"out_of_order": False}),
        us=5_000,
    ),
    Bite("routing.reroute_delay_us", 20, 400, lost, True, _cut()),
]


def _storm_in(traffic_class: str) -> Raw:
    """Host 0 pauses one of the two classes in which others send to it."""
    classes = [{"name": name, "priority": i, "ecn": NO_ECN} for i, name in enumerate("xy")]
    own = [tenant([flow(i, 0)], name, traffic_class=name) for i, name in enumerate("xy", 1)]
    storm = {"host": 0, "traffic_class": traffic_class}
    return star(*own, classes=classes, faults={"storms": [storm]})


STORMS = [
    Bite("faults.storms.0.host", 0, 3, delivered, True, _storm()),
    Bite("faults.storms.0.traffic_class", "x", "y", share_of_first, True, _storm_in("x")),
    Bite("faults.storms.0.start_us", 100, 500, delivered, True, _storm()),
    Bite("faults.storms.0.stop_us", 100, 500, delivered, False, _storm()),
]


def _event(kind: str, **fields: Any) -> Raw:
    """On the cable of host 0, to which four others send; host 5 is idle, the switch is 6."""
    event = {"kind": kind, "between": [6, 0]} | fields
    return incast(link_events=[event], nic={"mtu_bytes": 1_024, "ack_every": 1})


_BENT = _event("lossy", loss=0.01)


def _two_cables() -> Raw:
    """Hosts 0 and 1 on switches 2 and 3, which two cables join; the flow takes the first one."""
    topology = {"kind": "hpcc_file", "path": str(Path(__file__).with_name("two_cables.txt"))}
    bent = {"kind": "lossy", "between": [2, 3], "loss": 0.01}
    return star(tenant([flow(0, 1)]), topology=topology, link_events=[bent])


CABLES = [
    Bite("link_events.0.between", [6, 5], [6, 0], lost, True, _BENT),
    Bite("link_events.0.cable", 0, 1, lost, False, _two_cables()),
    Bite("link_events.0.start_us", 100, 900, lost, False, _BENT),
    Bite("link_events.0.stop_us", 100, 900, lost, True, _BENT),
    Bite("link_events.0.loss", 0.001, 0.01, lost, True, _BENT),
    Bite("link_events.0.direction", "forward", "both", lost, True, _BENT),
    Bite("link_events.0.rate_gbps", 10, 50, delivered, True, _event("slow", rate_gbps=10)),
]
