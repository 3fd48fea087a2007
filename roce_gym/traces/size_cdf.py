"""Distributions of flow sizes, as in the traffic generator of the HPCC simulator.

    bytes share          (one line a point; shares rise from 0 to 100 percent, or to 1)

Between two points sizes are uniform. A first share above 0 is that of flows of just that size.
Source: traffic_gen of https://github.com/alibaba-edu/High-Precision-Congestion-Control
(custom_rand.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from roce_gym.errors import ConfigError
from roce_gym.traces.limits import MAX_MESSAGE_BYTES
from roce_gym.traces.source import Lines

MAX_POINTS = 2**16
_MAX_SHARE = 100


class SizeCdf(NamedTuple):
    """Points of the distribution; both arrays rise, shares end with 1."""

    bytes: NDArray[np.float64]  # [points]
    share: NDArray[np.float64]  # [points]

    @property
    def mean_bytes(self) -> float:
        """Mean size before rounding to whole bytes, of which each flow has at least one."""
        middle = (self.bytes[1:] + self.bytes[:-1]) / 2
        return float(self.bytes[0] * self.share[0] + (middle * np.diff(self.share)).sum())

    def sizes(self, quantiles: NDArray[np.float64]) -> NDArray[np.int64]:
        """Sizes in bytes at quantiles in [0, 1)."""
        exact = np.interp(quantiles, self.share, self.bytes)
        return np.maximum(np.rint(exact), 1).astype(np.int64)


def read_size_cdf(path: str | Path) -> SizeCdf:
    """Reads a distribution.

    Raises:
        TraceFileError: names file, line and value.
    """
    lines = Lines(path)
    points: list[tuple[float, float]] = []
    for text in lines:
        words = text.split()
        if len(words) != 2:
            raise lines.fault(f"2 fields expected (bytes share), found {len(words)}")
        if len(points) >= MAX_POINTS:
            raise lines.fault(f"more than {MAX_POINTS} points")
        size = float(lines.decimal("bytes", words[0], 0, MAX_MESSAGE_BYTES))
        share = float(lines.decimal("share", words[1], 0, _MAX_SHARE))
        points.append((size, share))
        try:
            check_step(points)
        except ConfigError as error:
            raise lines.fault(str(error)) from None
    try:
        return make_size_cdf(points)
    except ConfigError as error:
        raise lines.fault(str(error)) from None


def check_step(points: Sequence[tuple[float, float]]) -> None:
    """Whether the last point goes on from the one before.

    Raises:
        ConfigError: bytes or share fall.
    """
    if len(points) > 1:
        (size_before, share_before), (size, share) = points[-2:]
        if size < size_before or share < share_before:
            raise ConfigError(
                f"{size:g} {share:g} after {size_before:g} {share_before:g}; allowed: neither may "
                "fall"
            )


def make_size_cdf(points: Sequence[tuple[float, float]]) -> SizeCdf:
    """A distribution from its points.

    Raises:
        ConfigError: they are none of a distribution.
    """
    if not 1 <= len(points) <= MAX_POINTS:
        raise ConfigError(f"{len(points)} points; allowed: 1 … {MAX_POINTS}")
    for end in range(2, len(points) + 1):
        check_step(points[end - 2 : end])
    last = points[-1][1]
    if last not in (1, _MAX_SHARE):
        raise ConfigError(f"the last share is {last:g}; allowed: 100 (percent) or 1")
    table = np.array(points, np.float64)
    if table[-1, 0] < 1:
        raise ConfigError(f"the largest size is {table[-1, 0]:g} bytes; allowed: 1 and above")
    return SizeCdf(table[:, 0], table[:, 1] / last)
