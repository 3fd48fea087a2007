import gymnasium
import numpy as np
import pytest
from small import SMALL

from roce_gym.env import RoceEnv
from roce_gym.errors import ConfigError
from roce_gym.mo_env import MoRoceEnv, MoRoceVectorEnv
from roce_gym.registration import ENVIRONMENTS
from roce_gym.reward import TERMS


def test_the_vector_is_the_terms_and_nothing_else_differs():
    ours, scalar = MoRoceEnv(SMALL), RoceEnv(SMALL)
    assert ours.reset(seed=4)[1] == scalar.reset(seed=4)[1]
    assert ours.reward_space.shape == (3,) and ours.reward_dim == 3
    weights = dict(ours.scenario.control.reward_weights.items())
    rng = np.random.default_rng(0)
    for _ in range(10):
        action = rng.uniform(-1, 1, 20)
        observation, vector, *rest = ours.step(action)
        expected, reward, *others = scalar.step(action)
        assert observation.tobytes() == expected.tobytes() and rest == others
        assert vector in ours.reward_space and vector.dtype == np.float32
        assert vector.tolist() == [np.float32(rest[2][term]) for term in TERMS]
        assert reward == pytest.approx(vector @ [weights[term] for term in TERMS], abs=1e-6)


@pytest.mark.parametrize("env_id", ENVIRONMENTS)
def test_ids(env_id):
    env = gymnasium.make(f"mo-{env_id}", overrides=["control.horizon_us=1000"])
    assert isinstance(env.unwrapped, MoRoceEnv)
    assert env.action_space == gymnasium.make(env_id).action_space
    assert type(env.spec).from_json(env.spec.to_json()) == env.spec


def test_vector():
    env = MoRoceVectorEnv(2, scenario=SMALL, layouts=2)
    singles = [MoRoceEnv(SMALL, layouts=2) for _ in range(2)]
    env.reset(seed=0)
    for i, single in enumerate(singles):
        single.reset(seed=i)
    rng = np.random.default_rng(0)
    for _ in range(10):
        actions = rng.uniform(-1, 1, (2, 20))
        _, rewards, *_ = env.step(actions)
        assert rewards.dtype == np.float32
        expected = [single.step(a)[1] for single, a in zip(singles, actions, strict=True)]
        assert (rewards == expected).all()
    _, rewards, *_ = env.step(actions)
    assert rewards.shape == (2, 3) and not rewards.any()
    assert env.reward_space.shape == (3,)


def test_weights_are_refused():
    with pytest.raises(ConfigError, match="reward_weights: a reward vector has none"):
        MoRoceEnv(SMALL, reward_weights={"pfc": 1.0})
