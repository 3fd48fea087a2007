"""The command `import`."""

from __future__ import annotations

import argparse
from typing import Any

from roce_gym.cli.commands.base import add_command
from roce_gym.cli.commands.values import volume

_IMPORT_HELP = """\
formats:
  simai, chakra, msccl, goal   operations of ranks: a job of kind trace
  hpcc_flows                   flows: a job of kind flows
  size_cdf                     distribution of flow sizes: a job of kind poisson"""


def add_import(commands: Any) -> None:
    """`roce-gym import`."""
    text = "show what a workload file contains and what of it is left out"
    parser = add_command(commands, "import", _import, text, _IMPORT_HELP)
    parser.add_argument("file", metavar="FILE", help="a file; of Chakra its folder or prefix")
    parser.add_argument(
        "--format",
        default="auto",
        choices=("auto", "simai", "chakra", "msccl", "goal", "hpcc_flows", "size_cdf"),
        help="default: by name and content",
    )
    parser.add_argument("--bytes", type=volume, metavar="N", help="msccl: size of the whole buffer")
    parser.add_argument("--groups", metavar="FILE", help="chakra: JSON with process groups")


def _import(arguments: argparse.Namespace) -> int:
    from roce_gym.cli.import_trace import import_trace

    return import_trace(arguments)
