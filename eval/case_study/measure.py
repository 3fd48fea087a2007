"""One run of the case study, and what it is judged by."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from roce_gym.cli.bandwidth import add_bandwidth
from roce_gym.cli.fabric_results import fabric_results
from roce_gym.cli.latency_results import add_latency
from roce_gym.cli.tally import Tally
from roce_gym.cli.tenant_results import tenant_results
from roce_gym.config import Scenario
from roce_gym.fabric import Fabric
from roce_gym.reference import ALONE_PRESET
from roce_gym.topology.graph import Network
from roce_gym.units import PS_PER_S

Tick = Callable[[float], None]
"""Is told the share of a run that is done."""


@dataclass(frozen=True)
class Measured:
    """What a run gave; None where nothing ended.

    Attributes:
        pfc_frames_per_s: of the port that sends most.
        neighbour_slowdown: CCT / CCT alone - 1, mean of all tenants but the noisy one.
        tail_latency_us: of packets, 99.99th percentile.
        message_latency_us: of messages, 99th percentile.
        effective_bandwidth: time that what ended needs alone over the time that it took.
        detail: all results, as `roce-gym run --json` has them.
    """

    pfc_frames_per_s: float
    neighbour_slowdown: float | None
    tail_latency_us: float | None
    message_latency_us: float | None
    effective_bandwidth: float | None
    detail: dict[str, Any]


def alone_us(scenario: Scenario, seed: int, network: Network, tick: Tick) -> dict[int, float]:
    """Mean collective time in us of each job when its tenant has the fabric to itself.

    As in `roce_gym.reference`: settings are fixed, so that both variants are held against the same.
    """
    out: dict[int, float] = {}
    first = 0
    for index, tenant in enumerate(scenario.tenants):
        fabric = Fabric(
            scenario, seed, preset=ALONE_PRESET, only_tenant=tenant.name, network=network
        )
        tally = _run(fabric, lambda done, i=index: tick((i + done) / len(scenario.tenants)))
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
    harms = [
        found["interference"]
        for name, found in tenants.items()
        if name != noisy and found["interference"] is not None
    ]
    seconds = tally.duration_ps / PS_PER_S
    return Measured(
        pfc_frames_per_s=whole["pause_frames_of_worst_port"] / seconds,
        neighbour_slowdown=sum(harms) / len(harms) if harms else None,
        tail_latency_us=whole["latency"]["packet"]["p99_99_us"],
        message_latency_us=whole["latency"]["message"]["p99_us"],
        effective_bandwidth=whole["effective_bandwidth_share"],
        detail={"tenants": tenants, "fabric": whole},
    )


def _run(fabric: Fabric, tick: Tick) -> Tally:
    control, tally = fabric.scenario.control, Tally()
    while fabric.now_ps < control.horizon_us * 1e6 and not fabric.is_deadlocked:
        left_us = control.horizon_us - fabric.now_ps / 1e6
        tally.add(fabric.advance(us=min(control.interval_us, left_us)))
        tick(fabric.now_ps / 1e6 / control.horizon_us)
    return tally
