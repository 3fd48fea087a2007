"""The commands `render` and `pages`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from roce_gym.cli.commands.base import SCENARIO, add_command, add_seed
from roce_gym.cli.commands.values import count


def add_render(commands: Any) -> None:
    """`roce-gym render`."""
    text = "play an episode and write a film or a picture of it"
    parser = add_command(commands, "render", _render, text, json=False)
    parser.add_argument("scenario", metavar="SCENARIO", help=f"{SCENARIO}, or an environment's id")
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
    add_seed(parser)
    parser.add_argument("--steps", type=count, metavar="N", help="control intervals (default: all)")
    parser.add_argument(
        "--every", type=count, default=1, metavar="N", help="intervals a picture (default: 1)"
    )
    parser.add_argument(
        "--fps", type=count, default=10, metavar="N", help="pictures a second (default: 10)"
    )
    parser.add_argument("--force", action="store_true", help="let --out replace a file")


def _render(arguments: argparse.Namespace) -> int:
    from roce_gym.cli.render import render

    return render(arguments)


def add_pages(commands: Any) -> None:
    """`roce-gym pages`."""
    text = "write the pages on the environments (docs/envs)"
    parser = add_command(commands, "pages", _pages, text, json=False)
    parser.add_argument("env", nargs="?", metavar="ID", help="one environment (default: all)")
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="default: print")


def _pages(arguments: argparse.Namespace) -> int:
    from roce_gym.cli.page import pages

    return pages(arguments)
