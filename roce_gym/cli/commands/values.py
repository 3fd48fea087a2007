"""Values that commands take, with their limits; types as argparse has them."""

from __future__ import annotations

import argparse
import math

MIN_DURATION_US, MAX_DURATION_US = 100, 1e8
"""As `control.horizon_us`."""

MAX_COUNT = 1000
"""Of seeds, of processes, of intervals."""
MAX_VOLUME = 2**50
"""As `bytes` of jobs."""


def seed(text: str) -> int:
    """A seed; raises argparse.ArgumentTypeError."""
    return _whole(text, 0, 2**63 - 1, "0 … 2^63 - 1")


def count(text: str) -> int:
    """How many; raises argparse.ArgumentTypeError."""
    return _whole(text, 1, MAX_COUNT, f"1 … {MAX_COUNT}")


def _whole(text: str, low: int, high: int, allowed: str) -> int:
    try:
        value = int(text)
    except ValueError:
        value = low - 1
    if not low <= value <= high:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not allowed; allowed: whole numbers, {allowed}"
        )
    return value


def duration(text: str) -> float:
    """Microseconds; raises argparse.ArgumentTypeError."""
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


def volume(text: str) -> int:
    """Bytes; raises argparse.ArgumentTypeError."""
    if not text.isdecimal() or len(text) > 20 or not 1 <= int(text) <= MAX_VOLUME:
        raise argparse.ArgumentTypeError(
            f"{text[:40]!r} is not allowed; allowed: bytes, 1 … {MAX_VOLUME}"
        )
    return int(text)
