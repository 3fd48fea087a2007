"""The command `roce-gym`: scenarios, measurements and environments from a terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from roce_gym.cli.parser import make_parser
from roce_gym.errors import ConfigError, RoceGymError

__all__ = ["main"]

BAD_INPUT = 2
FAILED = 1
INTERRUPTED = 130
"""128 + SIGINT, as shells report it."""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a command.

    Args:
        argv: arguments without the program's name; None: those of the process.

    Returns:
        Exit code. 0: done; 1: the simulation failed; 2: bad input; 130: interrupted.
    """
    try:
        arguments = make_parser().parse_args(argv)
        code: int = arguments.command(arguments)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader, such as `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except RoceGymError as error:
        first, *others = str(error).splitlines()
        print("\n       ".join([f"error: {first}", *others]), file=sys.stderr)
        return BAD_INPUT if isinstance(error, ConfigError) else FAILED
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    return code
