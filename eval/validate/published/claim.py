"""What a publication claims, and what this simulator gives for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from roce_gym.config import Scenario, validate_scenario
from roce_gym.fabric import Fabric
from roce_gym.telemetry import Interval

BULK_BYTES = 10**10
"""A flow of this size is not over when a run ends."""


@dataclass(frozen=True)
class Verdict:
    """One line of the table.

    Attributes:
        claimed, ours: what was published, what we get.
        limit: what still counts as the same.
        ok: whether it does.
        binding: whether a difference fails the validation; where it does not, `note` says why.
        note: what to know about the comparison.
    """

    claimed: str
    ours: str
    limit: str
    ok: bool
    binding: bool = True
    note: str = ""


@dataclass(frozen=True)
class Claim:
    """A published result.

    Attributes:
        name: short.
        source: publication and place in it.
        check: runs it; one verdict for each figure.
    """

    name: str
    source: str
    check: Callable[[], list[Verdict]]


def bulk(pairs: list[tuple[int, int]]) -> list[dict[str, object]]:
    """Jobs of a tenant: flows without end between (source, destination) hosts, a QP each."""
    flows = [{"src": src, "dst": dst, "bytes": BULK_BYTES} for src, dst in pairs]
    return [{"kind": "flows", "flows": flows}]


def scenario_of(
    hosts: int, pairs: list[tuple[int, int]], preset: str, **fields: object
) -> Scenario:
    """A scenario with one tenant on all hosts and flows without end."""
    tenant = {"name": "all", "hosts": list(range(hosts)), "jobs": bulk(pairs)}
    return validate_scenario({"name": "claim", "preset": preset, "tenants": [tenant], **fields})


def steady(scenario: Scenario, seed: int, warm_us: float, us: float) -> tuple[Fabric, Interval]:
    """What happens in `us` after `warm_us`."""
    fabric = Fabric(scenario, seed)
    fabric.advance(us=warm_us)
    return fabric, fabric.advance(us=us)


def goodput_gbps(fabric: Fabric, interval: Interval) -> dict[tuple[int, int], float]:
    """Goodput in Gb/s by (source, destination) host, summed over QPs."""
    duration_ns = (interval.end_ps - interval.start_ps) / 1000
    out: dict[tuple[int, int], float] = {}
    for pair, acked in zip(fabric.plan.qps, interval.acked_bytes, strict=True):
        key = (pair.src, pair.dst)
        out[key] = out.get(key, 0.0) + 8 * float(acked) / duration_ns
    return out
