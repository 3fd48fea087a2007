"""Screening and CMA-ES on a noisy function of points in a box; knows nothing of networks.

CMA-ES: Hansen and Ostermeier 2001, as PyPI's `cma` has it. Every generation is played on other
seeds, the same for all of its points, so that it neither fits a few seeds nor is led by the
difference between them. What it ends with is not believed: the last points and the best ones before
meet again on seeds of their own number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roce_gym.errors import ConfigError

Point = NDArray[np.float64]
"""Shape (dimensions,), in [-1, 1]."""

Play = Callable[[Sequence[Point], Sequence[int]], NDArray[np.float64]]
"""Points and seeds -> what each point scores on each seed, shape (points, seeds); low is good."""

DECIMALS = 4
"""Of points that are played: enough for any knob, and short in a file."""

FINALISTS = 5


@dataclass(frozen=True)
class Effort:
    """How much to try.

    Attributes:
        points: at most, screened ones included; finalists count once.
        repeats: seeds that each of them is played on.
        confirm: seeds that finalists are played on.
        sigma: first standard deviation of CMA-ES; the box is 2 wide.
    """

    points: int
    repeats: int
    confirm: int
    sigma: float

    @property
    def episodes(self) -> int:
        """At most."""
        return self.points * self.repeats + FINALISTS * self.confirm


def seed_stream(seeds: Sequence[int], rng: np.random.Generator) -> Iterator[int]:
    """All seeds in an order drawn anew for every pass."""
    while True:
        yield from rng.permutation(seeds).tolist()


def latin_hypercube(count: int, dimensions: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Shape (count, dimensions), in [-1, 1]: one point in each of `count` slices of every axis.

    McKay, Beckman and Conover 1979.
    """
    slices = rng.permuted(np.tile(np.arange(count), (dimensions, 1)), axis=1).T
    return 2.0 * (slices + rng.random((count, dimensions))) / max(count, 1) - 1.0


def minimise(
    play: Play,
    starts: Sequence[Point],
    screened: int,
    effort: Effort,
    seeds: Iterator[int],
    rng: np.random.Generator,
    incumbents: int = 0,
) -> Point:
    """Finds a point that scores low on average.

    Args:
        play: see :data:`Play`.
        starts: points to try first, one at least.
        incumbents: how many of them are finalists in any case.
        screened: further points to try first, spread over the box.
        effort: how much to try.
        seeds: endless.
        rng: everything drawn here comes from it.

    Raises:
        ConfigError: `cma` is not installed.
    """
    first = [*starts, *latin_hypercube(screened, len(starts[0]), rng)]
    first = _distinct([_as_played(point) for point in first])[: effort.points]
    means = play(first, _take(seeds, effort.repeats)).mean(axis=1)
    order = np.argsort(means, kind="stable")
    best = [first[i] for i in order[:2]]
    late = _evolve(play, best[0], effort, effort.points - len(first), seeds, rng)
    finalists = _distinct([*first[:incumbents], *late, *best])[:FINALISTS]
    means = play(finalists, _take(seeds, effort.confirm)).mean(axis=1)
    return finalists[int(np.argmin(means))]


def _evolve(
    play: Play,
    start: Point,
    effort: Effort,
    points: int,
    seeds: Iterator[int],
    rng: np.random.Generator,
) -> list[Point]:
    """Centre of the last generation, then the best points of the last two."""
    strategy = _strategy(start, effort.sigma, rng)
    late: list[Point] = []
    while points >= strategy.popsize and not strategy.stop():
        asked = strategy.ask()
        played = [_as_played(point) for point in asked]
        means = play(played, _take(seeds, effort.repeats)).mean(axis=1)
        strategy.tell(asked, means.tolist())
        late = [played[int(np.argmin(means))], *late[:1]]
        points -= len(asked)
    return [_as_played(strategy.result.xfavorite), *late] if late else []


def _strategy(start: Point, sigma: float, rng: np.random.Generator) -> Any:
    try:
        import cma
    except ImportError:
        raise ConfigError(
            'search: needs cma; install it with: pip install "roce-gym[search]"'
        ) from None
    options = {
        "bounds": [-1.0, 1.0],
        "randn": lambda *shape: rng.standard_normal(shape),
        "seed": np.nan,  # leaves NumPy's global generator alone
        "verbose": -9,
        "tolfun": 0.0,  # equal scores are no reason to stop before the budget is used
        "tolfunhist": 0.0,
        "tolflatfitness": np.inf,
    }
    return cma.CMAEvolutionStrategy(np.clip(start, -0.99, 0.99), sigma, options)


def _as_played(point: Any) -> Point:
    return np.round(np.clip(np.asarray(point, np.float64), -1.0, 1.0), DECIMALS) + 0.0


def _distinct(points: list[Point]) -> list[Point]:
    """Without repetitions, in order."""
    return list({point.tobytes(): point for point in points}.values())


def _take(seeds: Iterator[int], count: int) -> list[int]:
    """The next ones, all different."""
    taken: list[int] = []
    for seed in seeds:
        if seed not in taken:
            taken.append(seed)
        if len(taken) == count:
            break
    return taken
