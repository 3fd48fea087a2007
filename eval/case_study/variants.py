"""The fabric before and after: the same jobs and switches, other classes and settings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from roce_gym.config import MAX_PRIORITIES, Scenario, validate_scenario
from roce_gym.scenario_file import apply_overrides, draw, load_raw

SCENARIO = "case_study_8_tenants"

RESERVED_BYTES = 16_384
"""A choice: at each port and for each class, four payloads of 4,096 B, so that a class in which
little is under way is not paused because others hold the buffer."""

HEADROOM_POOL_BYTES = 8_000_000
"""A choice: headroom of 8 classes at each port would take more than half of a spine's 32 MB, so
that they share a quarter of the buffer for it, as SONiC's `xoff` pool has it."""

TUNED_PRESET = "multi_tenant_tuned"


@dataclass(frozen=True)
class Variant:
    """One column of the table.

    Attributes:
        name: "before" or "after".
        scenario: with `latency_histograms` on.
    """

    name: str
    scenario: Scenario


def variants(seed: int, overrides: Sequence[str] = ()) -> list[Variant]:
    """Before (the scenario as it is shipped), and after.

    Args:
        seed: of draws in the scenario.
        overrides: `dotted.path=value`, of both.

    Raises:
        ConfigError: an override that is not acceptable.
    """
    raw = draw(apply_overrides(load_raw(SCENARIO), overrides), seed)
    raw["simulator"] = (raw.get("simulator") or {}) | {"latency_histograms": True}
    return [
        Variant("before", validate_scenario(raw)),
        Variant("after", validate_scenario(tuned(raw))),
    ]


def tuned(raw: dict[str, Any]) -> dict[str, Any]:
    """A class for each tenant with a buffer of its own reserved, and gentle cuts.

    With more tenants than there are priorities, tenants take turns.
    """
    tenants = [
        {key: value for key, value in tenant.items() if key != "dcqcn"} for tenant in raw["tenants"]
    ]
    owners = tenants[:MAX_PRIORITIES]
    classes = [
        {"name": tenant["name"], "priority": i, "buffer": {"reserved_bytes": RESERVED_BYTES}}
        for i, tenant in enumerate(owners)
    ]
    tenants = [
        tenant | {"traffic_class": owners[i % len(owners)]["name"]}
        for i, tenant in enumerate(tenants)
    ]
    return raw | {
        "switch": (raw.get("switch") or {}) | {"headroom_pool_bytes": HEADROOM_POOL_BYTES},
        "preset": TUNED_PRESET,
        "classes": classes,
        "tenants": tenants,
    }
