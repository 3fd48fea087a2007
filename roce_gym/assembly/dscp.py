"""What every switch makes of a packet's DSCP, and of the priority in a PFC frame."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from roce_gym.config import (
    CODES_PER_PRIORITY,
    Scenario,
    TrafficClass,
    job_class,
    job_dscp,
)
from roce_gym.errors import ConfigError
from roce_gym.sim import types as t
from roce_gym.topology.graph import Network
from roce_gym.topology.selection import ethernet_switches, select_switches
from roce_gym.workload.plan import Plan


class Marking(NamedTuple):
    """How a NIC sends packets: in which class, and with which DSCP."""

    traffic_class: str
    dscp: int


class SwitchMap(NamedTuple):
    """What holds at one switch.

    Attributes:
        classes: DSCP → class, of the DSCPs in use.
        priorities: class → priority in PFC frames.
    """

    classes: Mapping[int, str]
    priorities: Mapping[str, int]


def markings(scenario: Scenario) -> dict[tuple[int, int], tuple[Marking, Marking, Marking]]:
    """Of data, ACKs (and NACKs), and CNPs; by indices of tenant, and of job in the tenant."""
    named = {c.name: c for c in scenario.classes}
    nic, found = scenario.nic, {}
    for i, tenant in enumerate(scenario.tenants):
        for j, job in enumerate(tenant.jobs):
            own, code = job_class(scenario, tenant, job), job_dscp(tenant, job)
            data = Marking(own, _code(named[own]) if code is None else code)
            others = [
                data if name is None else Marking(name, _code(named[name]))
                for name in (nic.ack_class, nic.cnp_class)
            ]
            found[i, j] = (data, others[0], others[1])
    return found


def _code(chosen: TrafficClass) -> int:
    return CODES_PER_PRIORITY * chosen.priority if chosen.dscp is None else chosen.dscp


def switch_maps(scenario: Scenario, network: Network) -> list[SwitchMap]:
    """Of every Ethernet switch, in order of nodes; NVSwitches know no DSCP.

    PRECONDITION: `switch.dscp` is given.

    Raises:
        ConfigError: an override is for a switch or tier that does not exist, a DSCP in use leads
            to no class, or a switch gives two classes one priority.
    """
    dscp = scenario.switch.dscp
    assert dscp is not None
    codes = {marking.dscp for kinds in markings(scenario).values() for marking in kinds}
    by_priority = {c.priority: c.name for c in scenario.classes}
    concerned = [
        select_switches(one, f"switch.dscp.overrides.{i}", network)
        for i, one in enumerate(dscp.overrides)
    ]
    maps = []
    for node in ethernet_switches(network):
        chosen, default = dict(dscp.map), dscp.default
        priorities = {c.name: c.priority for c in scenario.classes}
        for one, nodes in zip(dscp.overrides, concerned, strict=True):
            if node not in nodes:
                continue
            if not one.inherit:
                chosen, default = {}, None
            chosen |= one.map
            default = default if one.default is None else one.default
            priorities |= one.priorities
        _require_unique(network.describe(node), priorities)
        classes = {}
        for code in sorted(codes):
            name = chosen.get(code, default) or by_priority.get(code // CODES_PER_PRIORITY)
            if name is None:
                raise ConfigError(
                    f"switch.dscp: DSCP {code} leads to no class at {network.describe(node)}: it "
                    "is in no map, there is no default, and no class has priority "
                    f"{code // CODES_PER_PRIORITY}; give it a place in switch.dscp.map"
                )
            classes[code] = name
        maps.append(SwitchMap(classes, priorities))
    return maps


def _require_unique(switch: str, priorities: Mapping[str, int]) -> None:
    owner: dict[int, str] = {}
    for name, priority in priorities.items():
        if priority in owner:
            raise ConfigError(
                f"switch.dscp.overrides: at {switch}, classes {owner[priority]!r} and {name!r} "
                f"both have priority {priority}; allowed: one class each"
            )
        owner[priority] = name


def mismatches(scenario: Scenario, network: Network) -> list[dict[str, Any]]:
    """Where packets are taken in another class than their sender's, or pauses mean another one.

    Keys `switch`, `dscp`, `class`, `taken_as`; or `switch`, `class`, `priority`, `pfc_priority`.
    """
    if scenario.switch.dscp is None:
        return []
    used = sorted({marking for kinds in markings(scenario).values() for marking in kinds})
    usual = {c.name: c.priority for c in scenario.classes}
    first, found = network.num_hosts + network.num_servers, []
    for node, one in enumerate(switch_maps(scenario, network), first):
        switch = network.describe(node)
        found += [
            {"switch": switch, "dscp": code, "class": name, "taken_as": one.classes[code]}
            for name, code in used
            if one.classes[code] != name
        ]
        found += [
            {"switch": switch, "class": name, "priority": usual[name], "pfc_priority": priority}
            for name, priority in one.priorities.items()
            if priority != usual[name]
        ]
    return found


def make_dscp(
    scenario: Scenario, network: Network, plan: Plan, internal: Mapping[str, int]
) -> dict[str, NDArray[np.int64]]:
    """Kinds of marking of every queue pair, and their classes at every switch.

    Empty where no switch differs from what senders mean: then maps change nothing.
    """
    nothing = {name: np.zeros(0, np.int64) for name in ("mark", "class_at", "heard")}
    differing = mismatches(scenario, network)
    if not differing:
        return nothing
    maps = switch_maps(scenario, network)
    arrays = dict(nothing)
    if any("taken_as" in one for one in differing):
        kinds = markings(scenario)
        used = sorted({one for row in kinds.values() for one in row})
        columns = {one: i for i, one in enumerate(used)}
        marks = [[columns[m] for m in kinds[pair.tenant, pair.job]] for pair in plan.qps]
        own = [[internal[m.traffic_class] for m in columns]] * network.num_servers
        seen = [[internal[one.classes[m.dscp]] for m in columns] for one in maps]
        arrays["mark"] = np.array(marks, np.int64).reshape(-1)
        arrays["class_at"] = np.array(own + seen, np.int64).reshape(-1)
    if any("pfc_priority" in one for one in differing):
        arrays["heard"] = _heard(scenario, network, maps, internal)
    return arrays


def _heard(
    scenario: Scenario, network: Network, maps: list[SwitchMap], internal: Mapping[str, int]
) -> NDArray[np.int64]:
    """By link and class of a PFC frame: the class that the link's destination pauses, or NONE."""
    usual = {c.name: c.priority for c in scenario.classes}
    lossless = {c.name for c in scenario.classes if c.lossless}
    first = network.num_hosts + network.num_servers
    heard = np.full((network.num_links, len(scenario.classes) + 1), t.NONE, np.int64)
    for link in range(network.num_links):
        ends = (int(network.link_src[link]), int(network.link_dst[link]))
        sent, taken = (usual if node < first else maps[node - first].priorities for node in ends)
        by_priority = {priority: name for name, priority in taken.items() if name in lossless}
        for name, priority in sent.items():
            if priority in by_priority:
                heard[link, internal[name]] = internal[by_priority[priority]]
    return heard.reshape(-1)
