"""Load balancing and gray failures, beyond the rows of `eval.validate.published`."""

from __future__ import annotations

import numpy as np

from eval.validate.published.balance import ring
from eval.validate.published.spread import around_a_slow_cable


def test_spraying_needs_receivers_of_any_order():
    """Each overtaken packet costs an in-order receiver a NACK and its sender a go-back."""
    slow, nacks = ring("spray_random", out_of_order=False)
    assert nacks > 1_000
    assert slow > 3 * ring("spray_random")[0]
    assert ring("spray_random")[1] == 0


def test_flowlets_are_between():
    """A time without data finds free ways between messages, so collisions do not last."""
    assert ring("flowlet", seed=1)[0] < ring(seed=1)[0]


def test_a_slow_cable_on_given_paths_is_the_same_with_any_policy():
    by_hash, sprayed = (around_a_slow_cable(policy) for policy in ("ecmp", "spray_random"))
    assert np.array_equal(by_hash[0], sprayed[0]) and by_hash[1] == sprayed[1] > 100
