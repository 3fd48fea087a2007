"""One run of the case study, and what it is judged by."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from roce_gym.cli.bandwidth import add_bandwidth
from roce_gym.cli.fabric_results import fabric_results
from roce_gym.cli.latency_results import add_latency
from roce_gym.cli.tally import Tally
from roce_gym.cli.tenant_results import tenant_results
from roce_gym.config import Scenario
from roce_gym.fabric import Fabric
from roce_gym.latency import QUANTILES
from roce_gym.reference import ALONE_PRESET
from roce_gym.topology.graph import Network
from roce_gym.units import PS_PER_S, PS_PER_US, us_to_ps

Tick = Callable[[], None]
"""Is called after each control interval."""


@dataclass(frozen=True)
class Measured:
    """What a run gave; NaN where nothing ended.

    Attributes:
        values: by the `key` of each row of the table, see `table.ROWS`.
        detail: all results, as `roce-gym run --json` has them.
    """

    values: dict[str, float]
    detail: dict[str, Any]


def alone_us(scenario: Scenario, seed: int, network: Network, tick: Tick) -> dict[int, float]:
    """Mean collective time in us of each job when its tenant has the fabric to itself.

    As in `roce_gym.reference`: settings are fixed, so that both variants are held against the same.
    """
    out: dict[int, float] = {}
    first = 0
    for tenant in scenario.tenants:
        fabric = Fabric(
            scenario, seed, preset=ALONE_PRESET, only_tenant=tenant.name, network=network
        )
        tally = _run(fabric, tick)
        for own in range(len(tenant.jobs)):
            _, times = tally.completions(own)
            if len(times):
                out[first + own] = float(times.mean())
        first += len(tenant.jobs)
    return out


def measure(
    scenario: Scenario,
    seed: int,
    network: Network,
    alone: dict[int, float],
    noisy: str,
    tick: Tick,
) -> Measured:
    """Runs all tenants together.

    Args:
        scenario, seed: what to run.
        network: of it.
        alone: of :func:`alone_us`.
        noisy: the tenant that is not anybody's victim.
        tick: see :data:`Tick`.
    """
    fabric = Fabric(scenario, seed, network=network)
    tally = _run(fabric, tick)
    tenants = tenant_results(tally, scenario, fabric.plan, dict(alone))
    whole = fabric_results(tally, scenario, fabric.settings, network)
    add_bandwidth(tenants, whole, tally, fabric.plan)
    add_latency(tenants, whole, tally.latency)
    others = [index for index, tenant in enumerate(scenario.tenants) if tenant.name != noisy]
    harms = [list(tenants.values())[index]["interference"] for index in others]
    known = [harm for harm in harms if harm is not None]
    latency = whole["latency"]
    assert tally.latency is not None
    felt = tally.latency.of("packet", others).quantile_ps(QUANTILES["p99_99"]) / PS_PER_US
    seconds = tally.duration_ps / PS_PER_S
    values = {
        "pfc_frames_per_s": whole["pause_frames_of_worst_port"] / seconds,
        "neighbour_pfc_frames_per_s": _frames(tally, scenario, others) / seconds,
        "neighbour_slowdown": float(np.mean(known)) if known else math.nan,
        "worst_neighbour_slowdown": max(known, default=math.nan),
        "packet_p99_us": latency["packet"]["p99_us"],
        "packet_p99_99_us": latency["packet"]["p99_99_us"],
        "neighbour_packet_p99_99_us": felt,
        "message_p99_us": latency["message"]["p99_us"],
        "effective_bandwidth": whole["effective_bandwidth_share"],
        "goodput_gbps": whole["goodput_gbps"],
        "dropped_packets": whole["dropped_packets"],
    }
    filled = {key: math.nan if value is None else float(value) for key, value in values.items()}
    return Measured(filled, {"tenants": tenants, "fabric": whole})


def _frames(tally: Tally, scenario: Scenario, tenants: list[int]) -> int:
    """Pause frames of the worst port in the classes of some tenants."""
    used = {scenario.tenants[index].traffic_class for index in tenants}
    columns = [i for i, one in enumerate(scenario.classes) if one.name in used]
    return int(tally.sums["pause_frames"][:, columns].sum(axis=1).max())


def _run(fabric: Fabric, tick: Tick) -> Tally:
    control, tally = fabric.scenario.control, Tally()
    end_ps, step_ps = us_to_ps(control.horizon_us), us_to_ps(control.interval_us)
    while fabric.now_ps < end_ps and not fabric.is_deadlocked:
        tally.add(fabric.advance(ps=min(step_ps, end_ps - fabric.now_ps)))
        tick()
    return tally
