"""`roce-gym diagnose`: suspects in a timeline of counters."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path
from typing import Any

from roce_gym.cli.case import load_case
from roce_gym.cli.terminal import Ticker
from roce_gym.cli.text import to_json
from roce_gym.counters import Sampler
from roce_gym.diagnose import RULES, Recorder, Suspect, Timeline, diagnose, read_timeline
from roce_gym.errors import ConfigError
from roce_gym.fabric import Fabric
from roce_gym.units import us_to_ps

NOTHING = "nothing suspicious"


def diagnose_command(arguments: argparse.Namespace) -> int:
    """Reads or runs, prints; the exit code."""
    path = Path(arguments.scenario)
    if path.suffix in (".csv", ".parquet"):
        _refuse_options(arguments)
        timeline = read_timeline(path)
    else:
        timeline = _simulate(arguments)
    found = diagnose(timeline)
    print(
        to_json(_results(arguments, timeline, found)) if arguments.json else _text(timeline, found)
    )
    return 0


def _refuse_options(arguments: argparse.Namespace) -> None:
    """A file is what it is."""
    given = {
        "--set": arguments.changes,
        "--preset": arguments.preset,
        "--duration-us": arguments.duration_us,
        "--seed": arguments.seed,
    }
    used = [name for name, value in given.items() if value]
    if used:
        raise ConfigError(f"{', '.join(used)}: only for scenarios, not for a timeline in a file")


def _simulate(arguments: argparse.Namespace) -> Timeline:
    case = load_case(arguments)
    ticker = Ticker()
    sampler = Sampler(case.scenario, case.network, case.plan)
    recorder = Recorder(sampler)
    fabric = Fabric(case.scenario, case.seed, network=case.network, plan=case.plan)
    control = case.base.control
    horizon_ps, step_ps = us_to_ps(control.horizon_us), us_to_ps(control.interval_us)
    try:
        while fabric.now_ps < horizon_ps and not fabric.is_deadlocked:
            sampler.add(fabric.advance(ps=min(step_ps, horizon_ps - fabric.now_ps)))
            recorder.add()
            ticker.show(f"{100 * fabric.now_ps / horizon_ps:.0f} % simulated")
    finally:
        ticker.clear()
    return recorder.timeline()


def _results(
    arguments: argparse.Namespace, timeline: Timeline, found: list[Suspect]
) -> dict[str, Any]:
    return {
        "source": arguments.scenario,
        "samples": len(timeline.time_us),
        "ports": len(timeline.places),
        "rules": list(RULES),
        "suspects": [asdict(suspect) for suspect in found],
    }


def _text(timeline: Timeline, found: list[Suspect]) -> str:
    times = timeline.time_us
    head = (
        f"{len(times)} samples of {len(timeline.places)} ports, "
        f"{times[0]:,.0f} to {times[-1]:,.0f} us"
    )
    if not found:
        return f"{head}\n{NOTHING}"
    blocks = [
        f"{suspect.rule}: {suspect.verdict}\n"
        + "\n".join(f"    {sentence}" for sentence in suspect.evidence)
        for suspect in found
    ]
    return "\n\n".join([head, *blocks])
