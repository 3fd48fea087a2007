"""The commands `blame` and `diagnose`."""

from __future__ import annotations

import argparse
from typing import Any

from roce_gym.cli.commands.base import SET_HELP, add_case, add_command, add_duration
from roce_gym.cli.commands.values import count

_BLAME_HELP = """\
results:
  by TENANT            CCT (or FCT) with all tenants / the same without TENANT - 1, in the mean of
                       the rounds and flows that ended in both runs; same seed, paths and settings
  against alone        CCT with all tenants / CCT alone - 1, as `interference` of `roce-gym run`
The worst culprit of each tenant is named if its effect is more than chance: 7 % in one run, which
the order of simultaneous events alone may make, and 7 % / sqrt(N) in the mean of N seeds.
Runs are remembered (folder: ROCE_GYM_CACHE), so that an interrupted command goes on.

exit codes: 0 done, 1 a simulation failed, 2 bad input, 130 interrupted"""

_DIAGNOSE_HELP = """\
Rules, thresholds and the columns that they read: docs/measurements.md.

exit codes: 0 done, whether there are suspects or not, 1 the simulation failed, 2 bad input, 130
interrupted"""


def add_blame(commands: Any) -> None:
    """`roce-gym blame`."""
    text = "tell who slows whom: run without each tenant, and see what the others gain"
    parser = add_command(commands, "blame", _blame, text, f"{SET_HELP}\n\n{_BLAME_HELP}")
    add_case(parser)
    parser.add_argument(
        "--seeds",
        type=count,
        default=1,
        metavar="N",
        help="runs of seeds --seed, --seed + 1, …, of which means are shown (default: 1)",
    )
    parser.add_argument(
        "--processes", type=count, metavar="N", help="at a time (default: one a core)"
    )
    add_duration(parser)


def _blame(arguments: argparse.Namespace) -> int:
    from roce_gym.cli.blame import blame_command

    return blame_command(arguments)


def add_diagnose(commands: Any) -> None:
    """`roce-gym diagnose`."""
    text = "name suspects in a timeline of counters: from a file, or of a scenario that is run"
    parser = add_command(commands, "diagnose", _diagnose, text, f"{SET_HELP}\n\n{_DIAGNOSE_HELP}")
    add_case(parser, "timeline that `run --timeline` or a collector wrote (.csv, .parquet), or a ")
    add_duration(parser)


def _diagnose(arguments: argparse.Namespace) -> int:
    from roce_gym.cli.diagnose import diagnose_command

    return diagnose_command(arguments)
