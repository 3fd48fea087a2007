"""Who the agents of a fabric are: what each of them turns, sees and is told."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from roce_gym.config import Scenario


@dataclass(frozen=True)
class Role:
    """An agent's part of what there is, by how names begin.

    Attributes:
        knobs: beginnings of the names of knobs that it turns.
        entries: beginnings of the names of observation entries that it sees; it also sees the
            positions of its knobs.
        owners: tenants and classes whose entries of `info` it gets.
    """

    knobs: tuple[str, ...]
    entries: tuple[str, ...]
    owners: Collection[str] = ()

    def turns(self, knob: str) -> bool:
        """Whether a knob is the agent's."""
        return knob.startswith(self.knobs)

    def sees(self, entry: str) -> bool:
        """Whether an entry of the single agent's observation is shown to it."""
        if entry.startswith("knob/"):
            return self.turns(entry.removeprefix("knob/"))
        return entry.startswith(self.entries)


def tenant_roles(scenario: Scenario) -> dict[str, Role]:
    """By tenant: its own NICs, its class in all switches, and the fabric as a whole."""
    roles = {}
    for tenant in scenario.tenants:
        own, of_class = tenant.name, tenant.traffic_class
        knobs = (f"tenant/{own}/", f"class/{of_class}/")
        polled = (f"nic/{own}/", f"switch/{of_class}/", "poll/")
        roles[own] = Role(knobs, (*knobs, *polled, "fabric/"), (own, of_class))
    return roles


def switch_roles(switches: Iterable[str]) -> dict[str, Role]:
    """By switch: its own ports and queues, and how old its counters are."""
    return {name: Role((f"{name}/",), (f"{name}/", "poll/switch")) for name in switches}
