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
    _add_import(commands)
    return parser


def _add(commands: Any, name: str, function: Any, text: str, epilog: str = "") -> _Parser:
    parser: _Parser = commands.add_parser(
        name,
        help=text,
        description=text[0].upper() + text[1:] + ".",
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.set_defaults(command=function)
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
    parser.add_argument(
        "--duration-us",
        type=_duration,
        metavar="US",
        help="simulated time, instead of the scenario's horizon",
    )
    parser.add_argument(
        "--trace",
        type=Path,
        metavar="FILE",
        help="write a CSV file with a row for each control interval",
    )
    parser.add_argument("--force", action="store_true", help="let --trace replace a file")


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


def _add_case(parser: _Parser) -> None:
    parser.add_argument("scenario", metavar="SCENARIO", help=_SCENARIO)
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


def _import(arguments: argparse.Namespace) -> int:
    from roce_gym.cli.import_trace import import_trace

    return import_trace(arguments)
