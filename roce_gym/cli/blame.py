"""`roce-gym blame`: who slows whom."""

from __future__ import annotations

import argparse
import math
import os
from typing import Any

from roce_gym.blame import Blame, Effect, blame
from roce_gym.cli.alone import drop_warning, round_warning
from roce_gym.cli.case import Case, load_case
from roce_gym.cli.terminal import Ticker
from roce_gym.cli.text import UNKNOWN, percent, table, to_json


def blame_command(arguments: argparse.Namespace) -> int:
    """Runs, prints; the exit code."""
    cases = [
        load_case(argparse.Namespace(**{**vars(arguments), "seed": arguments.seed + i}))
        for i in range(arguments.seeds)
    ]
    ticker = Ticker()
    try:
        found = blame(
            [(case.seed, case.scenario, case.base) for case in cases],
            arguments.processes or _cores(),
            lambda done, total: ticker.show(f"{done} of {total} runs"),
        )
    finally:
        ticker.clear()
    print(to_json(_results(cases[0], found)) if arguments.json else _text(cases[0], found))
    return 0


def _cores() -> int:
    """Those that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _results(case: Case, found: Blame) -> dict[str, Any]:
    return {
        "scenario": case.base.name,
        "source": case.source,
        "seeds": list(found.seeds),
        "preset": case.preset,
        "changes": list(case.changes),
        "tenants": {
            victim: {
                "interference": _effect(found.interference[victim], "alone"),
                "slowed_by": {
                    culprit: _effect(found.effect[victim, culprit], "without")
                    for culprit in found.tenants
                    if culprit != victim
                },
                "worst": found.worst(victim),
                "sentence": found.sentence(victim),
            }
            for victim in found.tenants
        },
        "warnings": _warnings(case, found),
    }


def _warnings(case: Case, found: Blame) -> list[dict[str, Any]]:
    """As those of `roce-gym run`, over all seeds."""
    out = []
    for name, tenant in zip(found.tenants, case.base.tenants, strict=True):
        if found.dropped_alone[name]:
            out.append(drop_warning(case.base, name, found.dropped_alone[name]))
        for job in found.guessed_alone[name]:
            out.append(round_warning(case.base, name, tenant.jobs[job].kind))
    return out


def _effect(one: Effect, other: str) -> dict[str, Any]:
    return {
        "mean": _or_none(one.longer),
        "by_seed": [_or_none(value) for value in one.by_seed],
        "shared_us": _or_none(one.shared_us),
        f"{other}_us": _or_none(one.other_us),
    }


def _or_none(value: float) -> float | None:
    return None if math.isnan(value) else value


def _text(case: Case, found: Blame) -> str:
    first, last = found.seeds[0], found.seeds[-1]
    seeds = f"seed {first}" if first == last else f"seeds {first} … {last}, means"
    settings = "the scenario's own" if case.preset == "default" else case.preset
    changes = "".join(f"  {change}" for change in case.changes)
    rows = [
        [
            victim,
            *(
                UNKNOWN
                if culprit == victim
                else percent(_or_none(found.effect[victim, culprit].longer), 1)
                for culprit in found.tenants
            ),
            percent(_or_none(found.interference[victim].longer), 1),
        ]
        for victim in found.tenants
    ]
    head = ["victim", *(f"by {name}" for name in found.tenants), "against alone"]
    sentences = [found.sentence(victim) for victim in found.tenants]
    warnings = [f"warning: {warning['text']}" for warning in _warnings(case, found)]
    lines = "\n".join([*sentences, *warnings])
    return (
        f"{case.base.name}, {seeds}; settings: {settings}{changes}\n\n"
        f"how much longer its work takes because of …\n{table(head, rows)}\n\n{lines}"
    )
