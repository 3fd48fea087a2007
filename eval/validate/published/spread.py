"""PFC carries the trouble of one cable or one NIC to those who have nothing to do with it.

Guo et al., "RDMA over Commodity Ethernet at Scale", SIGCOMM 2016, section 4.3: a NIC that sent more
than 2,000 pause frames a second stopped half of the servers; watchdogs end that. A cable that is
slow does the same on a smaller scale.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from eval.validate.published.claim import BULK_BYTES, Claim, Verdict
from roce_gym.config import validate_scenario
from roce_gym.fabric import Fabric
from roce_gym.scenario_file import load_scenario
from roce_gym.telemetry import Interval

WATCHED = "pfc.watchdog.enabled=true"
_SLOW = {"kind": "slow", "between": [9, 8], "rate_gbps": 10, "direction": "forward"}
_HOSTS_THAT_NEED_HOST_0 = {0, 1, 4, 5}  # of the scenario: the tenant with the broken host


def senders(fabric: Fabric, interval: Interval) -> set[int]:
    """Hosts that got something delivered in the interval."""
    sources = np.array([pair.src for pair in fabric.plan.qps])
    return set(sources[interval.delivered_bytes > 0].tolist())


def stormy_fabric(*changes: str, seed: int = 0) -> Fabric:
    """The shipped scenario: host 0 begins to pause after 2 ms."""
    return Fabric(load_scenario("pfc_storm", seed, overrides=changes), seed)


def storm() -> list[Verdict]:
    """Who sends before the storm, in it, and when watchdogs have acted."""
    fabric = stormy_fabric()
    before = senders(fabric, fabric.advance(us=2_000))
    fabric.advance(us=1_000)  # the pause spreads
    during = fabric.advance(us=2_000)
    frozen = before - senders(fabric, during)
    from_host_0 = int(fabric.network.host_link[0]) ^ 1
    per_s = float(during.pause_frames[from_host_0, 0]) / 2e-3

    watched = stormy_fabric(WATCHED)
    watched.advance(us=6_000)  # detected at 4 ms
    cured = senders(watched, watched.advance(us=2_000))
    innocent = before - _HOSTS_THAT_NEED_HOST_0
    return [
        Verdict(
            "a NIC that pauses > 2,000 times a second freezes half of the hosts",
            f"{per_s:,.0f}/s: {len(frozen)} of {len(before)}",
            "> 2,000/s, half",
            per_s > 2_000 and 2 * len(frozen) == len(before),
        ),
        Verdict(
            "watchdogs free all that do not need the broken host",
            f"{len(innocent & cured)} of {len(innocent)} send",
            "all",
            innocent <= cured,
        ),
    ]


def around_a_slow_cable(
    policy: str = "ecmp", events: tuple[dict[str, Any], ...] = (_SLOW,)
) -> tuple[NDArray[np.float64], int]:
    """Goodput in Gb/s of three flows, and pause frames.

    Flow 0 crosses the slow cable. Flow 1 shares with it a cable before that, and its leaf; flow 2
    only a leaf after it. All paths are given, so that the routing policy makes no difference.
    """
    paths = ((0, 6, 9, 8, 4), (1, 6, 9, 7, 2), (3, 7, 10, 8, 5))
    flows = [
        {"src": path[0], "dst": path[-1], "bytes": BULK_BYTES, "data_path": path} for path in paths
    ]
    scenario = {
        "name": "victims",
        "topology": {"kind": "leaf_spine", "leaves": 3, "hosts_per_leaf": 2, "spines": 2},
        "switch": {"buffer_bytes": 2_000_000},
        "routing": {"policy": policy},
        "preset": "pfc_only",
        "link_events": events,
        "tenants": [
            {"name": "flows", "hosts": list(range(6)), "jobs": [{"kind": "flows", "flows": flows}]}
        ],
    }
    fabric = Fabric(validate_scenario(scenario))
    fabric.advance(us=2_000)
    interval = fabric.advance(us=4_000)
    order = np.argsort([pair.src for pair in fabric.plan.qps])
    return interval.acked_bytes[order] * 8 / 4e6, int(interval.pause_frames.sum())


def bad_cable() -> list[Verdict]:
    """Goodput of who crosses it, of who shares a cable with that one, and of who does not."""
    before, _ = around_a_slow_cable(events=())
    after, pauses = around_a_slow_cable()
    return [
        Verdict(
            "a flow that never crosses the slow cable falls with the one that does",
            f"{before[1]:.0f} -> {after[1]:.0f} Gb/s, {pauses} pauses",
            "to a third at most",
            bool(after[1] < before[1] / 3) and pauses > 0,
        ),
        Verdict(
            "a flow with nothing in common keeps its rate",
            f"{before[2]:.0f} -> {after[2]:.0f} Gb/s",
            "+- 1 %",
            bool(abs(after[2] / before[2] - 1) < 0.01),
        ),
    ]


CLAIMS = [
    Claim("NIC storm", "Guo et al., SIGCOMM 2016, section 4.3", storm),
    Claim("one bad cable", "Guo et al., SIGCOMM 2016, section 4", bad_cable),
]
