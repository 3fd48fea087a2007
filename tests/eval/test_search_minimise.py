import itertools

import numpy as np
import pytest

from eval.search.minimise import Effort, latin_hypercube, minimise, seed_stream

pytest.importorskip("cma")

BEST = np.array([0.6, -0.3, 0.1, -0.95])
EFFORT = Effort(points=150, repeats=3, confirm=6, sigma=0.4)


class Bowl:
    """Distance from a point, and noise that belongs to the seed and the point, as in episodes."""

    def __init__(self, noise):
        self.noise = noise
        self.calls = []

    def __call__(self, points, seeds):
        self.calls.append((np.array(points), list(seeds)))
        return np.array([[self.one(point, seed) for seed in seeds] for point in points])

    def one(self, point, seed):
        own = int(1e4 * np.abs(point).sum())
        of_seed = np.random.default_rng(seed).normal()
        of_both = np.random.default_rng([seed, own]).normal()
        return float(np.square(point - BEST).sum()) + self.noise * (of_seed + 0.3 * of_both)


def run(play, effort=EFFORT, random_seed=0, starts=None, screened=20):
    starts = [np.zeros(4)] if starts is None else starts
    rng = np.random.default_rng(random_seed)
    return minimise(play, starts, screened, effort, seed_stream(range(12), rng), rng)


def test_it_finds_the_lowest_point():
    assert np.abs(run(Bowl(0.0)) - BEST).max() < 0.15


def test_it_finds_it_in_noise_as_large_as_what_is_left_to_gain():
    for random_seed in range(3):
        found = run(Bowl(0.1), random_seed=random_seed)
        assert np.square(found - BEST).sum() < 0.25 * np.square(BEST).sum()


def test_it_keeps_to_its_budget_and_to_the_box():
    play = Bowl(0.05)
    run(play)
    *tried, last = play.calls
    assert sum(len(points) for points, _ in tried) <= EFFORT.points
    assert sum(len(points) for points, _ in tried) > EFFORT.points - 9  # less than a generation
    assert all(len(set(seeds)) == 3 for _, seeds in tried)
    assert len(set(last[1])) == 6 and len(last[0]) <= 5
    assert sum(len(p) * len(s) for p, s in play.calls) <= EFFORT.episodes
    assert max(np.abs(points).max() for points, _ in play.calls) <= 1.0


def test_generations_are_played_on_other_seeds_and_all_of_one_on_the_same():
    play = Bowl(0.05)
    run(play)
    drawn = [tuple(seeds) for _, seeds in play.calls]
    assert len(set(drawn)) == len(drawn)
    # Four calls of three seeds use all twelve before any comes again.
    assert sorted(itertools.chain(*drawn[:4])) == list(range(12))


def test_the_same_draws_find_the_same_and_others_something_else():
    first, again, other = run(Bowl(0.1)), run(Bowl(0.1)), run(Bowl(0.1), random_seed=1)
    assert (first == again).all() and (first != other).any()


def test_numpys_own_generator_is_left_alone():
    np.random.seed(7)  # noqa: NPY002
    expected = np.random.random()  # noqa: NPY002
    np.random.seed(7)  # noqa: NPY002
    run(Bowl(0.1))
    assert np.random.random() == expected  # noqa: NPY002


def test_a_start_that_is_best_is_not_lost():
    few = Effort(points=12, repeats=1, confirm=1, sigma=0.4)
    starts = [np.full(4, 0.9), BEST, np.zeros(4)]
    assert (run(Bowl(0.0), few, starts=starts, screened=9) == BEST).all()


def test_a_flat_function_uses_the_whole_budget():
    play = Bowl(0.0)
    play.one = lambda point, seed: 1.0
    run(play)
    assert sum(len(points) for points, _ in play.calls[:-1]) > EFFORT.points - 9


def test_latin_hypercube_has_one_point_in_each_slice_of_each_axis():
    points = latin_hypercube(10, 3, np.random.default_rng(0))
    slices = np.floor((points + 1.0) * 5.0).astype(int)
    assert (np.sort(slices, axis=0) == np.arange(10)[:, None]).all()
    assert latin_hypercube(0, 3, np.random.default_rng(0)).shape == (0, 3)


@pytest.mark.parametrize("incumbents", [0, 1])
def test_an_incumbent_meets_the_finalists_however_it_was_screened(incumbents):
    def play(points, seeds):
        scores = Bowl(0.0)(points, seeds)
        unlucky = (np.array(points) == BEST).all(axis=1) & (len(seeds) == 1)
        return scores + 100.0 * unlucky[:, None]

    effort = Effort(points=12, repeats=1, confirm=5, sigma=0.4)
    rng = np.random.default_rng(0)
    starts = [BEST, np.zeros(4)]
    found = minimise(play, starts, 10, effort, seed_stream(range(12), rng), rng, incumbents)
    assert (found == BEST).all() == bool(incumbents)
