"""`noisy_neighbor_fast` is `noisy_neighbor` at a quarter of the bandwidth."""

import numpy as np
import pytest

from roce_gym.config import validate_scenario
from roce_gym.env import RoceEnv
from roce_gym.scenario_file import SPLITS, draw, load_raw, seed_in


def drawn(name, seed):
    return validate_scenario(draw(load_raw(name), seed))


@pytest.mark.shows("noisy_neighbor_fast")
@pytest.mark.parametrize("split", SPLITS)
def test_same_layout_in_a_quarter_of_the_bytes(split):
    for number in range(20):
        seed = seed_in(split, number)
        full, fast = drawn("noisy_neighbor", seed), drawn("noisy_neighbor_fast", seed)
        assert full.topology.host_rate_gbps == 4 * fast.topology.host_rate_gbps
        assert full.topology.spine_rate_gbps == 4 * fast.topology.spine_rate_gbps
        assert full.switch.buffer_bytes == 4 * fast.switch.buffer_bytes
        assert full.control == fast.control and full.classes == fast.classes
        for ours, theirs in zip(full.tenants, fast.tenants, strict=True):
            assert ours.hosts == theirs.hosts and ours.weight == theirs.weight
            a, b = ours.jobs[0].model_dump(), theirs.jobs[0].model_dump()
            assert a.pop("bytes") == pytest.approx(4 * b.pop("bytes"), rel=1e-5)
            assert a == b


def test_it_has_the_same_spaces():
    full, fast = RoceEnv("noisy_neighbor"), RoceEnv("noisy_neighbor_fast")
    assert full.knobs.names == fast.knobs.names and full.sight.names == fast.sight.names


@pytest.mark.shows("noisy_neighbor_fast")
@pytest.mark.slow
def test_scores_are_near_those_of_the_full_one():
    """As the head of its file says: within 0.08 on average; here of two seeds each."""
    for preset in ("connectx_default", "hpcc_production", "pfc_only"):
        means = []
        for name in ("noisy_neighbor", "noisy_neighbor_fast"):
            env, scores = RoceEnv(name), []
            for seed in (0, 1):
                env.reset(seed=seed, options={"preset": preset})
                is_over = False
                while not is_over:
                    *_, is_over, info = env.step(np.zeros(20))
                scores.append(info["score"])
            means.append(np.mean(scores))
        assert means[1] == pytest.approx(means[0], abs=0.12)
