"""A tenant with `score: p95` is judged by its slow rounds."""

import math

import numpy as np
import pytest
from small import completions, make_interval, parts

from roce_gym.env import RoceEnv
from roce_gym.progress import Alone, Pace, Progress
from roce_gym.reward import RewardTerms, pfc_cost
from roce_gym.score import PFC_WEIGHT, Score


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


# --------------------------------------------------------------------------- reward


def test_reward__by_hand():
    scenario, network, plan = parts()
    ring = scenario.tenants[0].model_copy(update={"score": "p95"})
    scenario = scenario.model_copy(update={"tenants": (ring, scenario.tenants[1])})
    progress = Progress(scenario, plan)
    by_default = [(0.0, 100e6, 150e6), (0.0, 200e6, 300e6), (0.0, 300e6, 200e6)]
    pace = Pace(300e6, 0.0, (300e6, 0.0), (200e6, 0.0), tuple(by_default))
    terms = RewardTerms(scenario, network, progress, Alone((100e6, 0.0), (1.0, 0.0)), pace)
    assert terms.default_completion == pytest.approx(-math.log(np.percentile([1.5, 3, 2], 95)))
    # What has happened, and what the default settings do from then on. The round that begins at
    # 120 us has nothing delivered: it is late at once (80 of 100 us, and all of it to come).
    counted = ([1.5, 3, 2], [3, 2], [1.2, 0.9, 1.8, 2], [1.2, 0.9, 2.8])
    costs = [math.log(np.percentile(slowdowns, 95)) for slowdowns in counted]
    ended = ([], [(0, 0, 0, 120), (0, 1, 30, 120)], [])
    for k in range(3):
        one = make_interval(
            scenario,
            network,
            plan,
            100.0 * k,
            100.0 * (k + 1),
            completions=completions(*ended[k]),
            job_begun_ps=np.array([120_000_000 if k > 0 else -1, -1]),
        )
        expected = -costs[0] - 3 * (costs[k + 1] - costs[k])
        assert terms(one, progress(one))["completion"] == pytest.approx(expected)


@pytest.mark.parametrize("preset", ["default", "dcqcn_paper", None])
def test_reward__its_mean_over_an_episode_is_the_score(preset):
    overrides = [f"tenants.{name}.score=p95" for name in ("training", "checkpoint")]
    env = RoceEnv("noisy_neighbor", overrides=[*overrides, "control.horizon_us=4000"])
    env.action_space.seed(0)
    env.reset(seed=3, options={"preset": preset} if preset else {})
    raw, is_over = [], False
    while not is_over:
        *_, is_over, info = env.step(env.action_space.sample())
        raw.append(info["raw/completion"])
    expected = PFC_WEIGHT * pfc_cost(info["episode_pfc_frames_per_s"]) - info["score"]
    assert np.mean(raw) == pytest.approx(expected, rel=1e-9)
    assert (info["slowdown/training"], info["slowdown/checkpoint"]) > (1.0, 1.0)
    if preset == "default":
        assert info["baseline/completion"] == pytest.approx(expected, rel=1e-9)
