"""`python -m eval.benchmarks`: the table, and `runs/bench/latest.json`."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path

from eval.benchmarks.cases import cases, machine_cases
from eval.benchmarks.measure import (
    Row,
    cost,
    env_steps,
    packet_hops,
    peak_memory,
    planning,
    reset_costs,
    starts,
    timed,
    vector_steps,
)

_ENVS = {
    "RoCE/NoisyNeighbor-v0": (300.0, 550.0),
    "RoCE/NoisyNeighborFast-v0": (1000.0, 0.0),
    "RoCE/RegimeShift-v0": (0.0, 0.0),
}
"""Steps a second that are aimed at: on one core, and on two."""

_MOST_STEPS_OF_RESET = 2.0

_SECONDS = 5
_HEADER = f"{'':<62}{'value':>14} {'unit':<14}{'x yardstick':>12}{'x plain':>9}  {'aim':>12}"


def _line(row: Row) -> str:
    value = f"{row.value:,.0f}" if row.value >= 100 else f"{row.value:.2f}"
    ratio = f"{row.yardstick_ratio:.3g}" if row.yardstick_ratio else ""
    plain = f"{row.plain_ratio:.2f}" if row.plain_ratio else ""
    aim = f">= {row.plain_aim:g} x plain" if row.plain_aim else ""
    if row.plain_aim and not row.reached:
        aim += "  MISSED"
    if row.aim:
        sign = "<=" if row.at_most else ">="
        aim = f"{sign} {row.aim / 1e6:g} M" if row.aim >= 1e6 else f"{sign} {row.aim:g}"
        aim += "" if row.reached else "  MISSED"
    return f"{row.name:<62}{value:>14} {row.unit:<14}{ratio:>12}{plain:>9}  {aim:>12}"


def _write(rows: list[Row], path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    entries = [{**asdict(row), "reached": row.reached} for row in rows]
    machine = {"python": platform.python_version(), "machine": platform.machine()}
    text = json.dumps({"machine": machine, "rows": entries}, indent=1)
    beside = path.with_suffix(".tmp")
    beside.write_text(text + "\n")
    os.replace(beside, path)


def main() -> int:
    """Runs all benchmarks; 0 even if an aim is missed, since machines differ."""
    parser = argparse.ArgumentParser(prog="python -m eval.benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="leave out 1,024 hosts and more")
    parser.add_argument("--only", default="", metavar="TEXT", help="rows whose name has TEXT")
    parser.add_argument("--repeat", type=int, default=3, help="repetitions of each row (3)")
    parser.add_argument("--out", type=Path, default=Path("runs/bench/latest.json"))
    args = parser.parse_args()
    jobs: list[tuple[str, Callable[[], Row | list[Row]]]] = []
    jobs += [(case.name, partial(packet_hops, case, args.repeat)) for case in cases(args.quick)]
    jobs += [(case.name, partial(cost, case, args.repeat)) for case in machine_cases()]
    for name, (one, two) in _ENVS.items():
        jobs.append((name, partial(env_steps, name, _SECONDS, one)))
        jobs.append((name, partial(vector_steps, name, _SECONDS, two)))
        jobs.append((name, partial(reset_costs, name, _MOST_STEPS_OF_RESET)))
    jobs += [("memory", peak_memory), ("start of a process", starts)]
    if not args.quick:
        jobs.append(("workload of 16,384 GPUs is planned", planning))
    print(_HEADER, flush=True)
    rows: list[Row] = []
    for name, job in jobs:
        if args.only in name:
            for row in timed(job):
                rows.append(row)
                print(_line(row), flush=True)
    _write(rows, args.out)
    missed = sum(not row.reached for row in rows)
    print(f"Yardstick: a Python heapq event queue, timed beside each row. Written to {args.out}")
    print(f"{missed} aims missed" if missed else "All aims reached")
    return 0


if __name__ == "__main__":
    sys.exit(main())
