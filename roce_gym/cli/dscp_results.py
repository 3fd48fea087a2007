"""What DSCPs mean at NICs and switches, and where that is not what the sender meant."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from roce_gym.assembly.dscp import markings, mismatches, switch_maps
from roce_gym.config import Scenario
from roce_gym.topology.graph import Network

_KINDS = ("data", "ack", "cnp")
_MOST_LABELS = 8


def describe_dscp(scenario: Scenario, network: Network) -> dict[str, Any] | None:
    """Markings by tenant, the map of every switch, and mismatches; None without `switch.dscp`."""
    if scenario.switch.dscp is None:
        return None
    first = network.num_hosts + network.num_servers
    return {
        "tenants": {
            _name(scenario, *place): {
                kind: {"class": one.traffic_class, "dscp": one.dscp}
                for kind, one in zip(_KINDS, marked, strict=True)
            }
            for place, marked in markings(scenario).items()
        },
        "switches": {
            network.describe(node): {
                "classes": {str(code): name for code, name in one.classes.items()},
                "priorities": dict(one.priorities),
            }
            for node, one in enumerate(switch_maps(scenario, network), first)
        },
        "mismatches": mismatches(scenario, network),
    }


def _name(scenario: Scenario, tenant: int, job: int) -> str:
    """Of the tenant, and of the job where it is not the only one."""
    chosen = scenario.tenants[tenant]
    return chosen.name if len(chosen.jobs) == 1 else f"{chosen.name}.jobs.{job}"


def dscp_rows(found: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """For a terminal: what NICs write, what switches make of it (alike ones together)."""
    for tenant, marked in found["tenants"].items():
        sent = (f"{kind} {one['dscp']} ({one['class']})" for kind, one in marked.items())
        yield tenant, ", ".join(sent)
    alike: dict[str, list[str]] = {}
    for switch, one in found["switches"].items():
        alike.setdefault(_of_switch(one), []).append(switch)
    for text, switches in alike.items():
        yield _together(switches, len(found["switches"])), text
    if found["mismatches"]:
        yield "MISMATCH", mismatch_text(found["mismatches"])


def _of_switch(one: dict[str, Any]) -> str:
    priorities = one["priorities"]
    return ", ".join(
        f"{code} -> {name} (priority {priorities[name]})" for code, name in one["classes"].items()
    )


def _together(switches: list[str], total: int) -> str:
    if len(switches) == total > 1:
        return "all switches"
    labels, more = [name.split()[-1] for name in switches], len(switches) - _MOST_LABELS
    text = " ".join(labels[:_MOST_LABELS]) + (f" and {more} more" if more > 0 else "")
    return f"switch{'es' if len(labels) > 1 else ''} {text}"


def mismatch_text(found: list[dict[str, Any]], most: int = 5) -> str:
    """One line of :func:`roce_gym.assembly.dscp.mismatches`."""
    shown = [
        f"{one['switch']} takes DSCP {one['dscp']} ({one['class']}) as {one['taken_as']}"
        if "taken_as" in one
        else f"PFC of {one['switch']} has priority {one['pfc_priority']} for {one['class']}, "
        f"not {one['priority']}"
        for one in found[:most]
    ]
    more = len(found) - len(shown)
    return "; ".join(shown) + (f"; {more} more" if more else "")
