import pickle

import numpy as np
import pytest
import yaml
from small import SMALL

from agents.checkpoint import Checkpoint, write_checkpoint
from agents.preset import preset_names
from agents.registry import make_policy
from roce_gym.env import RoceEnv
from roce_gym.errors import CheckpointError, ConfigError

sb3 = pytest.importorskip("stable_baselines3")


@pytest.fixture(scope="module")
def env():
    return RoceEnv(SMALL)


@pytest.fixture(scope="module")
def model(env):
    return sb3.PPO("MlpPolicy", env, n_steps=10, batch_size=10, seed=3, device="cpu")


def play(env, policy, seed):
    observation, info = env.reset(seed=seed, options=dict(policy.reset_options))
    policy.reset(env, seed)
    actions, is_over = [], False
    while not is_over:
        actions.append(policy.act(observation))
        observation, _, terminated, truncated, info = env.step(actions[-1])
        is_over = terminated or truncated
    return np.array(actions), info


@pytest.mark.parametrize("spec", ["", "preset", "preset:", "presets:default", "random:1", "sb3:"])
def test_unknown_policies_are_refused_with_those_allowed(spec):
    with pytest.raises(ConfigError, match=r"allowed: .*default"):
        make_policy(spec)


def test_unknown_presets_are_refused_with_those_allowed():
    with pytest.raises(ConfigError, match=r"'dcqcn' is unknown.*dcqcn_paper.*pfc_only"):
        make_policy("preset:dcqcn")


@pytest.mark.parametrize("spec", ["preset:default", "preset:pfc_only", "random"])
def test_the_same_seed_gives_the_same_episode(env, spec):
    first, first_info = play(env, make_policy(spec), 5)
    again, again_info = play(RoceEnv(SMALL), make_policy(spec), 5)
    assert (first == again).all()
    assert first_info == again_info


def test_presets_are_held_by_the_environment(env):
    for name in preset_names():
        actions, info = play(env, make_policy(f"preset:{name}"), 2)
        assert (actions == actions[0]).all() and np.abs(actions).max() <= 1.0
        env.reset(seed=2, options={"preset": name})
        for _ in actions:
            *_, held = env.step(env.action_space.sample())
        assert held == info


def test_random_actions_differ_from_step_to_step_and_seed_to_seed(env):
    actions, _ = play(env, make_policy("random"), 5)
    other, _ = play(env, make_policy("random"), 6)
    assert actions.std(axis=0).min() > 0.1
    assert (actions != other).any()
    assert env.action_space.contains(actions[0])


def test_a_plain_model_of_stable_baselines3_acts_as_its_mean(env, model, tmp_path):
    model.save(tmp_path / "plain.zip")
    policy = make_policy(f"sb3:{tmp_path / 'plain.zip'}")
    policy.check(env)
    actions, _ = play(env, policy, 5)
    observation, _ = env.reset(seed=5)
    assert (actions[0] == model.predict(observation, deterministic=True)[0]).all()
    again, _ = play(env, make_policy(f"sb3:{tmp_path / 'plain.zip'}"), 5)
    assert (actions == again).all()


@pytest.mark.parametrize("name", ["SAC", "TD3", "A2C"])
def test_other_algorithms_are_told_apart(env, name, tmp_path):
    getattr(sb3, name)("MlpPolicy", env, device="cpu").save(tmp_path / "plain.zip")
    policy = make_policy(f"sb3:{tmp_path / 'plain.zip'}")
    assert policy.checkpoint.about["algorithm"] == name
    play(env, policy, 5)


def test_statistics_of_vec_normalize_are_applied(env, model, tmp_path):
    from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

    normalizer = VecNormalize(DummyVecEnv([lambda: env]), norm_reward=False)
    normalizer.obs_rms.mean = np.full(env.observation_space.shape, 0.25)
    model.save(tmp_path / "plain.zip")
    content = (tmp_path / "plain.zip").read_bytes()
    path = tmp_path / "step_0000000000.zip"
    about = {"algorithm": "PPO", "steps": 0}
    write_checkpoint(path, Checkpoint(about, content, normalizer=pickle.dumps(normalizer)))
    observation, _ = env.reset(seed=5)
    expected = model.predict(normalizer.normalize_obs(observation), deterministic=True)[0]
    policy = make_policy(f"sb3:{path}")
    assert (policy.act(observation) == expected).all()
    plain = make_policy(f"sb3:{tmp_path / 'plain.zip'}")
    assert (plain.act(observation) != expected).any()
    assert plain.fingerprint != policy.fingerprint


def test_a_model_for_another_environment_is_refused(env, tmp_path):
    other = yaml.safe_load(yaml.safe_dump(SMALL))
    other["tenants"].pop()
    small_model = sb3.PPO("MlpPolicy", RoceEnv(other), n_steps=10, batch_size=10, device="cpu")
    small_model.save(tmp_path / "other.zip")
    with pytest.raises(CheckpointError, match=r"other\.zip: was trained with observations"):
        make_policy(f"sb3:{tmp_path / 'other.zip'}").check(env)


def test_a_model_that_cannot_be_unpickled_is_refused(tmp_path):
    path = tmp_path / "step_0000000000.zip"
    write_checkpoint(path, Checkpoint({"algorithm": "PPO", "steps": 0}, b"no model"))
    with pytest.raises(CheckpointError, match=r"step_0+\.zip: the model in it cannot be loaded"):
        make_policy(f"sb3:{path}")


@pytest.mark.parametrize("mode", ["delta", "multidiscrete"])
def test_random_policy_and_presets_play_in_every_mode(mode):
    env = RoceEnv(SMALL, knob_mode=mode)
    for spec in ("random", "preset:pfc_only"):
        policy = make_policy(spec)
        env.reset(seed=1, options=dict(policy.reset_options))
        policy.reset(env, 1)
        observation = env.step(policy.act(np.zeros(1)))[0]
        assert observation in env.observation_space
    drawn = make_policy("random")
    drawn.reset(env, 1)
    assert drawn.act(np.zeros(1)) in env.action_space
