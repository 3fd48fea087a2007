"""Bootstrap intervals over seeds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

LEVEL = 0.95
RESAMPLES = 10_000


@dataclass(frozen=True)
class Estimate:
    """A mean with its interval.

    Attributes:
        mean: of all values.
        low, high: ends of the interval; NaN if there is one value only.
    """

    mean: float
    low: float
    high: float


def bootstrap_mean(
    values: ArrayLike, level: float = LEVEL, resamples: int = RESAMPLES, seed: int = 0
) -> Estimate:
    """Mean of independent values, and its percentile bootstrap interval (Efron 1979).

    Draws `resamples` samples of the same size with replacement; the interval holds the middle
    `level` of their means. It is somewhat narrow for few values: 8 or more are advisable.

    Args:
        values: shape (n,), n of at least 1; one a seed.
        level: share of the interval.
        resamples: number of samples.
        seed: of the draws; the same values always give the same interval.
    """
    values = np.asarray(values, np.float64)
    if len(values) < 2:
        return Estimate(float(values.mean()), float("nan"), float("nan"))
    rng = np.random.default_rng(seed)
    means = values[rng.integers(len(values), size=(resamples, len(values)))].mean(axis=1)
    low, high = np.quantile(means, [(1.0 - level) / 2.0, (1.0 + level) / 2.0])
    return Estimate(float(values.mean()), float(low), float(high))
