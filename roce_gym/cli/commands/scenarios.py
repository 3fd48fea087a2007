"""The commands `list`, `describe` and `run`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from roce_gym.cli.commands.base import SET_HELP, add_case, add_command, add_duration

_RUN_HELP = """\
results:
  CCT                  collective completion time: from the moment the last member has entered a
                       round to the moment the last one has finished it; completed rounds only
  CCT alone            mean of the same rounds when the tenant has the fabric to itself: same seed
                       and paths, line rate without congestion control, whatever is under test
  slowdown             CCT mean / CCT alone; interference = slowdown - 1
  FCT                  flow completion time, where a tenant has a list of flows
Results of DCQCN are chaotic: compare settings over several seeds.

exit codes: 0 done, 1 the simulation failed, 2 bad input, 130 interrupted (what was reached is
reported)"""


def add_list(commands: Any) -> None:
    """`roce-gym list`."""
    add_command(
        commands, "list", _list, "list packaged scenarios, environments, presets and switch ASICs"
    )


def _list(arguments: argparse.Namespace) -> int:
    from roce_gym.cli.catalogue import list_all

    return list_all(as_json=arguments.json)


def add_describe(commands: Any) -> None:
    """`roce-gym describe`."""
    text = "show a scenario with everything resolved"
    add_case(add_command(commands, "describe", _describe, text, SET_HELP))


def _describe(arguments: argparse.Namespace) -> int:
    from roce_gym.cli.describe import describe

    return describe(arguments)


def add_run(commands: Any) -> None:
    """`roce-gym run`."""
    text = "simulate a scenario up to its horizon and report"
    parser = add_command(commands, "run", _run, text, f"{SET_HELP}\n\n{_RUN_HELP}")
    add_case(parser)
    add_duration(parser)
    parser.add_argument(
        "--trace",
        type=Path,
        metavar="FILE",
        help="write a CSV file with a row for each control interval",
    )
    parser.add_argument(
        "--timeline",
        type=Path,
        metavar="FILE",
        help="write every port's counters at each control interval, as .csv or .parquet",
    )
    parser.add_argument(
        "--prometheus",
        type=Path,
        metavar="FILE",
        help="write every port's counters at the end, as Prometheus text",
    )
    parser.add_argument(
        "--latency",
        action="store_true",
        help="measure latencies of messages and packets, p50 to p99.99 (the run takes longer)",
    )
    parser.add_argument(
        "--force",
        action="store_true",
        help="let --trace, --timeline and --prometheus replace files",
    )


def _run(arguments: argparse.Namespace) -> int:
    from roce_gym.cli.run import run

    return run(arguments)
