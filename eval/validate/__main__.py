"""Command line: `python -m eval.validate [ns3 | published]`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from eval.command import count
from eval.validate.ns3 import SEEDS, rewrite_table, validate_ns3
from eval.validate.ns3_reference import TABLE
from eval.validate.published import validate_published
from roce_gym.errors import RoceGymError


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the validation; exit code 0: within the limits, 1: not, 2: it could not run."""
    arguments = _parser().parse_args(argv)
    try:
        if getattr(arguments, "write_table", False):
            rewrite_table(arguments.reference)
            return 0
        ok = True
        if arguments.what in (None, "ns3"):
            folder = getattr(arguments, "reference", TABLE)
            ok = validate_ns3(folder, arguments.only, arguments.seeds, arguments.jobs)
        if arguments.what in (None, "published"):
            ok = validate_published(arguments.only) and ok
    except RoceGymError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0 if ok else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m eval.validate", description=__doc__)
    _add_common(parser, only="", seeds=SEEDS, jobs=2)
    commands = parser.add_subparsers(title="what to check (everything, if not given)", dest="what")
    ns3 = commands.add_parser("ns3", help="against runs of an ns-3 RDMA simulator")
    nothing = argparse.SUPPRESS  # what was given before the subcommand stays
    published = commands.add_parser("published", help="against published results")
    published.add_argument("--only", default=nothing, help="claims whose name contains this")
    _add_common(ns3, only=nothing, seeds=nothing, jobs=nothing)
    ns3.add_argument("--reference", type=Path, default=TABLE, help="folder of reference runs")
    ns3.add_argument(
        "--write-table",
        action="store_true",
        help="do not run; copy what is needed of the reference into the project",
    )
    return parser


def _add_common(
    parser: argparse.ArgumentParser, only: str, seeds: int | str, jobs: int | str
) -> None:
    parser.add_argument("--only", default=only, help="scenarios whose name contains this")
    parser.add_argument("--seeds", type=count, default=seeds, help=f"of random runs ({SEEDS})")
    parser.add_argument("--jobs", type=count, default=jobs, help="processes (2)")


if __name__ == "__main__":
    sys.exit(main())
