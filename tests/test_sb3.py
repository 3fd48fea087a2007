import functools

import numpy as np
import pytest
from small import SMALL

from roce_gym.env import RoceEnv
from roce_gym.errors import SimulationError

pytest.importorskip("stable_baselines3")

from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

from roce_gym.sb3 import ThreadVecEnv

MAKE = functools.partial(RoceEnv, SMALL, layouts=4)


def make(cls, **kwargs):
    return make_vec_env(MAKE, n_envs=3, seed=6, vec_env_cls=cls, vec_env_kwargs=kwargs)


@pytest.mark.parametrize("threads", [1, 2])
def test_equals_dummy_vec_env(threads):
    ours, theirs = make(ThreadVecEnv, threads=threads), make(DummyVecEnv)
    for env in (ours, theirs):
        env.set_options({"episode_seed": 2})
    assert ours.reset().tobytes() == theirs.reset().tobytes()
    assert ours.reset_infos == theirs.reset_infos
    rng = np.random.default_rng(0)
    ends = 0
    for _ in range(23):
        actions = rng.uniform(-1, 1, (3, 20)).astype(np.float32)
        a, b = ours.step(actions), theirs.step(actions)
        for x, y in zip(a[:3], b[:3], strict=True):
            assert x.dtype == y.dtype and x.tobytes() == y.tobytes()
        for x, y in zip(a[3], b[3], strict=True):
            assert list(x) == list(y)
            if "terminal_observation" in x:
                ends += 1
                assert x["TimeLimit.truncated"] is True
                assert (x.pop("terminal_observation") == y.pop("terminal_observation")).all()
                ended, expected = x.pop("episode"), y.pop("episode")
                assert (ended["r"], ended["l"]) == (expected["r"], expected["l"])
            assert x == y
        assert ours.reset_infos == theirs.reset_infos
    assert ends == 6
    ours.close()


def test_wrappers_attributes_and_methods():
    env = make(ThreadVecEnv)
    assert env.env_is_wrapped(Monitor) == [True] * 3
    assert env.get_attr("render_mode") == [None] * 3
    normalized = VecNormalize(env)
    normalized.reset()
    assert normalized.get_attr("episode_seed", [1]) == [7]
    assert len(normalized.env_method("get_wrapper_attr", "knobs")) == 3


def test_a_fault_is_reported_with_seed_and_scenario():
    env = make(ThreadVecEnv, threads=2)
    env.reset()

    def fail(**_):
        raise SimulationError("the core stopped")

    env.envs[2].unwrapped.fabric.advance_in_parts = fail
    with pytest.raises(SimulationError, match=r"environment 2 \(scenario 'small', seed 8\): the c"):
        env.step(np.zeros((3, 20), np.float32))
