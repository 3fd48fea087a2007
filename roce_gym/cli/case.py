"""What a command works on: a scenario with its changes, built and checked."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Any

from roce_gym.assembly import build_state
from roce_gym.cli.changes import change_settings, override, split_changes
from roce_gym.config import Scenario, Settings, sender_settings, validate_scenario
from roce_gym.errors import ConfigError
from roce_gym.options import OWN_SETTINGS
from roce_gym.presets import PRESETS, resolve_settings
from roce_gym.scenario_file import draw, load_raw
from roce_gym.topology import build_network
from roce_gym.topology.graph import Network
from roce_gym.tuning import Tuner
from roce_gym.units import BPS_PER_GBPS
from roce_gym.workload.plan import Plan
from roce_gym.workload.planner import make_plan
from roce_gym.workload.trace_jobs import trace_notes


@dataclass(frozen=True)
class Case:
    """A scenario to describe or run.

    Attributes:
        source: name or path, as given.
        base: the scenario; what "alone" is measured on.
        scenario: the same with the settings under test written into it.
        settings: those under test.
        preset: its name, "default" for the scenario's own settings.
        changes: as given.
        network, plan, seed: what it is built of.
    """

    source: str
    base: Scenario
    scenario: Scenario
    settings: Settings
    preset: str
    changes: tuple[str, ...]
    network: Network
    plan: Plan
    seed: int


def load_case(arguments: argparse.Namespace) -> Case:
    """Reads, changes and builds a scenario; nothing is simulated or compiled.

    Raises:
        ConfigError: anything that is not acceptable.
    """
    preset = _check_preset(arguments.preset)
    seed: int = arguments.seed
    overrides, changes = split_changes(arguments.changes)
    duration_us = getattr(arguments, "duration_us", None)
    if duration_us is not None:
        overrides.append(f"control.horizon_us={duration_us!r}")
    base = _load(arguments.scenario, overrides, seed)
    network = build_network(base.topology)
    plan = make_plan(base, network, seed)
    given = None if preset == OWN_SETTINGS else preset
    settings = resolve_settings(base, network.host_rate_bps / BPS_PER_GBPS, given)
    settings = change_settings(settings, changes, base, seed)
    scenario = _with_settings(base, settings)
    Tuner(scenario, network).apply(build_state(scenario, network, plan, seed), settings)
    return Case(
        source=arguments.scenario,
        base=base,
        scenario=scenario,
        settings=settings,
        preset=preset,
        changes=tuple(arguments.changes),
        network=network,
        plan=plan,
        seed=seed,
    )


def left_out_of(case: Case) -> list[dict[str, Any]]:
    """What traces say that is left out or changed, as plain data."""
    return [
        {"job": job, "times": note.times, "text": note.text} for job, note in trace_notes(case.base)
    ]


def _check_preset(name: str | None) -> str:
    if name is None or name == OWN_SETTINGS or name in PRESETS:
        return name or OWN_SETTINGS
    allowed = ", ".join((OWN_SETTINGS, *sorted(PRESETS)))
    raise ConfigError(f"--preset: {name!r} is unknown; allowed: {allowed}")


def _load(source: str, overrides: list[str], seed: int) -> Scenario:
    raw = override(load_raw(source), overrides)
    try:
        return validate_scenario(draw(raw, seed))
    except ConfigError as error:
        lines = str(error).splitlines()
        raise ConfigError("\n".join(f"{source}: {line}" for line in lines)) from None


def _with_settings(base: Scenario, settings: Settings) -> Scenario:
    classes = tuple(
        c.model_copy(
            update={
                field: getattr(settings.classes[c.name], field)
                for field in ("ecn", "buffer", "weight", "shaper")
            }
        )
        for c in base.classes
    )
    tenants = tuple(
        t.model_copy(
            update={
                "dcqcn": settings.tenants[t.name],
                t.cc: sender_settings(t, settings),
                "shaper": settings.shapers.get(t.name),
            }
        )
        for t in base.tenants
    )
    switch = base.switch.model_copy(update={"overrides": settings.switch_overrides})
    return base.model_copy(update={"classes": classes, "tenants": tenants, "switch": switch})
