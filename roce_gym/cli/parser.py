"""Arguments of the command `roce-gym`."""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import Any, NoReturn

from roce_gym import __version__
from roce_gym.errors import ConfigError

MIN_DURATION_US, MAX_DURATION_US = 100, 1e8
"""As `control.horizon_us`."""

MAX_COUNT = 1000
"""Of seeds, and of processes."""
MAX_VOLUME = 2**50
"""As `bytes` of jobs."""

_SCENARIO = "name of a packaged scenario (see: roce-gym list), or path of a YAML file"

_SET_HELP = """\
what --set takes, as often as needed:
  PATH=VALUE           any field of the scenario by its dotted path; list elements by name or
                       index: topology.hosts_per_leaf=8, tenants.training.jobs.0.bytes=4e6
  CLASS.SETTING=VALUE  a setting of a traffic class, in all switches: kmin_bytes, kmax_bytes, pmax,
                       alpha, reserved_bytes, static_threshold_bytes (short for
                       classes.CLASS.ecn.… and classes.CLASS.buffer.…)
  TENANT.SETTING=VALUE a DCQCN setting of a tenant, in its NICs: g, initial_alpha, alpha_cap,
                       rate_ai_mbps, increase_timer_us, … (short for tenants.TENANT.dcqcn.…)
  class/CLASS/KNOB=VALUE, tenant/TENANT/KNOB=VALUE
                       a knob of the environment by its name, in its own unit (see: describe)
Settings of classes and tenants change one value each and leave the others as the preset or the
scenario has them; they win over --preset. A wrong name is answered with those that exist."""

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

_IMPORT_HELP = """\
formats:
  simai, chakra, msccl, goal   operations of ranks: a job of kind trace
  hpcc_flows                   flows: a job of kind flows
  size_cdf                     distribution of flow sizes: a job of kind poisson"""


class _Parser(argparse.ArgumentParser):
    """Complains as the rest of the program does."""

    def error(self, message: str) -> NoReturn:
        """Raises what argparse would print."""
        text = message.removeprefix("argument ")
        text = text.removeprefix("the following ").replace("arguments are required", "missing")
        raise ConfigError(f"{text} (see: {self.prog} --help)")


def make_parser() -> argparse.ArgumentParser:
    """The whole parser; `command` of what it returns is the function to call."""
    parser = _Parser(
        prog="roce-gym",
        description="Packet-level simulation of shared RoCEv2 fabrics.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"roce-gym {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True, parser_class=_Parser)
    _add_list(commands)
    _add_describe(commands)
    _add_run(commands)
    _add_blame(commands)
    _add_diagnose(commands)
    _add_import(commands)
    _add_render(commands)
    _add_pages(commands)
    return parser


def _add(
    commands: Any, name: str, function: Any, text: str, epilog: str = "", json: bool = True
) -> _Parser:
    parser: _Parser = commands.add_parser(
        name,
        help=text,
        description=text[0].upper() + text[1:] + ".",
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.set_defaults(command=function)
    if json:
        parser.add_argument("--json", action="store_true", help="one JSON object instead of text")
    return parser


def _add_list(commands: Any) -> None:
    _add(commands, "list", _list, "list packaged scenarios, environments, presets and switch ASICs")


def _add_describe(commands: Any) -> None:
    text = "show a scenario with everything resolved"
    _add_case(_add(commands, "describe", _describe, text, _SET_HELP))


def _add_run(commands: Any) -> None:
    text = "simulate a scenario up to its horizon and report"
    parser = _add(commands, "run", _run, text, f"{_SET_HELP}\n\n{_RUN_HELP}")
    _add_case(parser)
    _add_duration(parser)
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


def _add_blame(commands: Any) -> None:
    text = "tell who slows whom: run without each tenant, and see what the others gain"
    parser = _add(commands, "blame", _blame, text, f"{_SET_HELP}\n\n{_BLAME_HELP}")
    _add_case(parser)
    parser.add_argument(
        "--seeds",
        type=_count,
        default=1,
        metavar="N",
        help="runs of seeds --seed, --seed + 1, …, of which means are shown (default: 1)",
    )
    parser.add_argument(
        "--processes", type=_count, metavar="N", help="at a time (default: one a core)"
    )
    _add_duration(parser)


def _add_diagnose(commands: Any) -> None:
    text = "name suspects in a timeline of counters: from a file, or of a scenario that is run"
    parser = _add(commands, "diagnose", _diagnose, text, f"{_SET_HELP}\n\n{_DIAGNOSE_HELP}")
    _add_case(parser, "timeline that `run --timeline` or a collector wrote (.csv, .parquet), or a ")
    _add_duration(parser)


def _add_duration(parser: _Parser) -> None:
    parser.add_argument(
        "--duration-us",
        type=_duration,
        metavar="US",
        help="simulated time, instead of the scenario's horizon",
    )


def _add_import(commands: Any) -> None:
    text = "show what a workload file contains and what of it is left out"
    parser = _add(commands, "import", _import, text, _IMPORT_HELP)
    parser.add_argument("file", metavar="FILE", help="a file; of Chakra its folder or prefix")
    parser.add_argument(
        "--format",
        default="auto",
        choices=("auto", "simai", "chakra", "msccl", "goal", "hpcc_flows", "size_cdf"),
        help="default: by name and content",
    )
    parser.add_argument(
        "--bytes", type=_volume, metavar="N", help="msccl: size of the whole buffer"
    )
    parser.add_argument("--groups", metavar="FILE", help="chakra: JSON with process groups")


def _add_render(commands: Any) -> None:
    text = "play an episode and write a film or a picture of it"
    parser = _add(commands, "render", _render, text, json=False)
    parser.add_argument("scenario", metavar="SCENARIO", help=f"{_SCENARIO}, or an environment's id")
    parser.add_argument(
        "--out", type=Path, required=True, metavar="FILE", help=".gif: film; .png: last picture"
    )
    chosen = parser.add_mutually_exclusive_group()
    chosen.add_argument("--preset", metavar="NAME", help="settings to hold (default: its own)")
    chosen.add_argument("--random", action="store_true", help="turn all knobs now and then")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        dest="changes",
        metavar="PATH=VALUE",
        help="change a field of the scenario",
    )
    parser.add_argument(
        "--seed", type=_seed, default=0, metavar="N", help="of everything random (default: 0)"
    )
    parser.add_argument(
        "--steps", type=_count, metavar="N", help="control intervals (default: all)"
    )
    parser.add_argument(
        "--every", type=_count, default=1, metavar="N", help="intervals a picture (default: 1)"
    )
    parser.add_argument(
        "--fps", type=_count, default=10, metavar="N", help="pictures a second (default: 10)"
    )
    parser.add_argument("--force", action="store_true", help="let --out replace a file")


def _add_pages(commands: Any) -> None:
    text = "write the pages on the environments (docs/envs)"
    parser = _add(commands, "pages", _pages, text, json=False)
    parser.add_argument("env", nargs="?", metavar="ID", help="one environment (default: all)")
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="default: print")


def _add_case(parser: _Parser, before: str = "") -> None:
    parser.add_argument("scenario", metavar="SCENARIO", help=before + _SCENARIO)
    parser.add_argument(
        "--preset",
        metavar="NAME",
        help="ECN and DCQCN settings to use instead of the scenario's own (default)",
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        dest="changes",
        metavar="NAME=VALUE",
        help="change a value, see below",
    )
    parser.add_argument(
        "--seed", type=_seed, default=0, metavar="N", help="of everything random (default: 0)"
    )


def _seed(text: str) -> int:
    try:
        value = int(text)
    except ValueError:
        value = -1
    if not 0 <= value < 2**63:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not allowed; allowed: whole numbers, 0 … 2^63 - 1"
        )
    return value


def _count(text: str) -> int:
    try:
        value = int(text)
    except ValueError:
        value = 0
    if not 1 <= value <= MAX_COUNT:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not allowed; allowed: whole numbers, 1 … {MAX_COUNT}"
        )
    return value


def _duration(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not MIN_DURATION_US <= value <= MAX_DURATION_US:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not allowed; allowed: microseconds, "
            f"{MIN_DURATION_US:g} … {MAX_DURATION_US:g}"
        )
    return value


def _volume(text: str) -> int:
    if not text.isdecimal() or len(text) > 20 or not 1 <= int(text) <= MAX_VOLUME:
        raise argparse.ArgumentTypeError(
            f"{text[:40]!r} is not allowed; allowed: bytes, 1 … {MAX_VOLUME}"
        )
    return int(text)


# What needs the simulator is imported when it is called: `--help` shall not wait for it.


def _list(arguments: argparse.Namespace) -> int:
    from roce_gym.cli.catalogue import list_all

    return list_all(as_json=arguments.json)


def _describe(arguments: argparse.Namespace) -> int:
    from roce_gym.cli.describe import describe

    return describe(arguments)


def _run(arguments: argparse.Namespace) -> int:
    from roce_gym.cli.run import run

    return run(arguments)


def _blame(arguments: argparse.Namespace) -> int:
    from roce_gym.cli.blame import blame_command

    return blame_command(arguments)


def _diagnose(arguments: argparse.Namespace) -> int:
    from roce_gym.cli.diagnose import diagnose_command

    return diagnose_command(arguments)


def _import(arguments: argparse.Namespace) -> int:
    from roce_gym.cli.import_trace import import_trace

    return import_trace(arguments)


def _render(arguments: argparse.Namespace) -> int:
    from roce_gym.cli.render import render

    return render(arguments)


def _pages(arguments: argparse.Namespace) -> int:
    from roce_gym.cli.page import pages

    return pages(arguments)
