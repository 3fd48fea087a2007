"""What commands have in common: a parser, a scenario and changes to it, a duration."""

from __future__ import annotations

import argparse
from typing import Any, NoReturn

from roce_gym.cli.commands.values import duration, seed
from roce_gym.errors import ConfigError

SCENARIO = "name of a packaged scenario (see: roce-gym list), or path of a YAML file"

SET_HELP = """\
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


class Parser(argparse.ArgumentParser):
    """Complains as the rest of the program does."""

    def error(self, message: str) -> NoReturn:
        """Raises what argparse would print."""
        text = message.removeprefix("argument ")
        text = text.removeprefix("the following ").replace("arguments are required", "missing")
        raise ConfigError(f"{text} (see: {self.prog} --help)")


def add_command(
    commands: Any, name: str, function: Any, text: str, epilog: str = "", json: bool = True
) -> Parser:
    """A command; `function` takes its arguments and returns the exit code."""
    parser: Parser = commands.add_parser(
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


def add_case(parser: Parser, before: str = "") -> None:
    """A scenario, and what may be changed of it."""
    parser.add_argument("scenario", metavar="SCENARIO", help=before + SCENARIO)
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
    add_seed(parser)


def add_seed(parser: Parser) -> None:
    """What decides everything that is random."""
    parser.add_argument(
        "--seed", type=seed, default=0, metavar="N", help="of everything random (default: 0)"
    )


def add_duration(parser: Parser) -> None:
    """How long to simulate."""
    parser.add_argument(
        "--duration-us",
        type=duration,
        metavar="US",
        help="simulated time, instead of the scenario's horizon",
    )
