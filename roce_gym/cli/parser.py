"""Arguments of the command `roce-gym`."""

from __future__ import annotations

import argparse

from roce_gym import __version__
from roce_gym.cli.commands.base import Parser
from roce_gym.cli.commands.environments import add_pages, add_render
from roce_gym.cli.commands.measurements import add_blame, add_diagnose
from roce_gym.cli.commands.scenarios import add_describe, add_list, add_run
from roce_gym.cli.commands.workloads import add_import

COMMANDS = (
    add_list,
    add_describe,
    add_run,
    add_blame,
    add_diagnose,
    add_import,
    add_render,
    add_pages,
)
"""In the order of `roce-gym --help`."""


def make_parser() -> argparse.ArgumentParser:
    """The whole parser; `command` of what it returns is the function to call."""
    parser = Parser(
        prog="roce-gym",
        description="Packet-level simulation of shared RoCEv2 fabrics.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"roce-gym {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True, parser_class=Parser)
    for add in COMMANDS:
        add(commands)
    return parser
