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


def _count(text: str) -> int:
    value = int(text) if text.isdecimal() else 0
    if not 1 <= value < 2**31:
        raise argparse.ArgumentTypeError(f"{text!r} is not allowed; allowed: whole numbers from 1")
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


def _render(arguments: argparse.Namespace) -> int:
    from roce_gym.cli.render import render

    return render(arguments)


def _pages(arguments: argparse.Namespace) -> int:
    from roce_gym.cli.page import pages

    return pages(arguments)
