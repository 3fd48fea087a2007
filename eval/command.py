"""What the commands of `eval` have in common: how they end, and numbers that are counts."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable

from roce_gym.errors import RoceGymError

INTERRUPTED = 130
"""Exit code after Ctrl-C, as shells have it: 128 + SIGINT."""


def run_resumable(work: Callable[[], str]) -> int:
    """Does the work of a command that goes on where it was interrupted.

    Args:
        work: returns what to print when all is done.

    Returns:
        exit code; 0: done, 2: refused, 130: interrupted.
    """
    try:
        said = work()
    except RoceGymError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\ninterrupted; the same command goes on", file=sys.stderr)
        return INTERRUPTED
    print(said)
    return 0


def count(text: str) -> int:
    """For `argparse`: a whole number, 1 or more."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is not allowed; 1 or more")
    return value
