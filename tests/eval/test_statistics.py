import math

import numpy as np
import pytest

from eval.statistics import bootstrap_mean


def test_the_interval_of_three_values_is_that_of_all_their_resamples():
    # Means of resamples of (0, 0, 3): 0, 1, 2, 3 with probability 8/27, 12/27, 6/27, 1/27.
    values = [0.0, 0.0, 3.0]
    wide = bootstrap_mean(values)  # 3 is drawn in 3.7 %, more than 2.5 %
    assert (wide.mean, wide.low, wide.high) == (1.0, 0.0, 3.0)
    narrow = bootstrap_mean(values, level=0.9)  # and less than 5 %
    assert (narrow.low, narrow.high) == (0.0, 2.0)


def test_the_interval_of_many_normal_values_is_that_of_the_textbook():
    values = np.random.default_rng(5).normal(10.0, 2.0, 400)
    found = bootstrap_mean(values)
    half = 1.96 * values.std() / math.sqrt(400)
    assert found.low == pytest.approx(values.mean() - half, abs=0.1 * half)
    assert found.high == pytest.approx(values.mean() + half, abs=0.1 * half)


def test_about_95_of_100_intervals_hold_the_true_mean():
    rng = np.random.default_rng(6)
    found = [bootstrap_mean(rng.normal(0.0, 1.0, 30), resamples=1000) for _ in range(300)]
    assert 0.9 < np.mean([one.low < 0.0 < one.high for one in found]) < 0.97


def test_the_same_values_give_the_same_interval_and_equal_ones_none_at_all():
    values = [0.3, 0.1, 0.7, 0.2]
    assert bootstrap_mean(values) == bootstrap_mean(values)
    equal = bootstrap_mean([2.0, 2.0, 2.0])
    assert (equal.low, equal.high) == (2.0, 2.0)


def test_one_value_has_no_interval():
    one = bootstrap_mean([0.5])
    assert one.mean == 0.5 and math.isnan(one.low) and math.isnan(one.high)
