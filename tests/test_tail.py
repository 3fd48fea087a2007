"""A tenant with `score: p95` is judged by its slow rounds."""

import math

import numpy as np
import pytest
from small import completions, make_interval, parts

from roce_gym.progress import Alone, Progress
from roce_gym.score import Score


def scored(rows, score="p95", end_us=10_000.0, begun_us=None):
    """The score's entries after rounds of the ring that take `rows` us, alone: 100 us."""
    scenario, network, plan = parts()
    ring = scenario.tenants[0].model_copy(update={"score": score})
    scenario = scenario.model_copy(update={"tenants": (ring, scenario.tenants[1])})
    progress = Progress(scenario, plan)
    total = Score(scenario, progress, Alone((100e6, 100e6), (0.5, 0.5)))
    log = completions(*((0, i, 0.0, float(us)) for i, us in enumerate(rows)))
    begun = np.full(2, -1, np.int64)
    if begun_us is not None:
        begun[0] = int(begun_us * 1e6)
    interval = make_interval(
        scenario, network, plan, 0, end_us, completions=log, job_begun_ps=begun
    )
    work = progress(interval)
    total.add(work, interval.end_ps, 0.0)
    return total.entries(work)


def test_percentile_of_rounds__not_their_mean():
    rows = [100.0] * 18 + [200.0, 400.0]
    assert scored(rows)["slowdown/ring"] == pytest.approx(np.percentile(rows, 95) / 100)
    assert scored(rows)["slowdown/ring"] == pytest.approx(2.1)  # rank 18.05 of 0 … 19
    assert scored(rows, "mean")["slowdown/ring"] == pytest.approx(1.2)
    assert scored(rows)["cct_us/ring"] == pytest.approx(120.0)
    weight = 3 / 4  # of the ring; the other tenant has no round, and still its weight
    assert scored(rows)["score"] == pytest.approx(weight * math.log(2.1))


def test_a_stuck_round_counts_before_it_ends():
    rows = [100.0] * 10
    stuck = scored(rows, begun_us=9_000.0)  # for 1,000 us, nothing of it delivered
    assert stuck["slowdown/ring"] == pytest.approx(np.percentile([1.0] * 10 + [11.0], 95))
    assert scored(rows)["slowdown/ring"] == pytest.approx(1.0)
    assert scored([], begun_us=9_000.0)["slowdown/ring"] == pytest.approx(11.0)


def test_no_round_yet():
    assert scored([])["slowdown/ring"] == 0.0
