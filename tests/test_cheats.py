"""Ways to cheat: none may look better than leaving the settings alone.

Each is played in the environments on which agents are judged, beside the default settings on the
same seeds; scores of a few seeds differ by chance, hence the margins.
"""

import functools
from pathlib import Path

import numpy as np
import pytest

from agents.settings_file import read_settings
from roce_gym.env import RoceEnv
from roce_gym.registration import ENVIRONMENTS

SEEDS = (0, 1)
MARGIN = 0.05
"""Of score and of mean reward; standard deviations of the score between seeds are 0.05 to 0.15."""

FOUND = Path(__file__).parents[1] / "docs" / "headroom"

QUICK = ("RoCE/NoisyNeighborFast-v0", "RoCE/RegimeShift-v0", "RoCE/LatencyVsBulk-v0")
"""Others take longer."""

ENVS = [i if i in QUICK else pytest.param(i, marks=pytest.mark.slow) for i in ENVIRONMENTS]

BRAKE = {"initial_alpha": 1.0, "alpha_cap": 1.0, "g": 1.0, "increase_timer": 1.0, "rate_ai": -1.0}
"""Positions with which a tenant slows down most and recovers least."""


@functools.cache
def environment(env_id):
    return RoceEnv(ENVIRONMENTS[env_id])


def default_position(env):
    return env.knobs.encode(env.knobs.base).astype(float)


def with_settings(env, **positions):
    """The default position with all knobs of some settings moved."""
    out = default_position(env)
    for i, name in enumerate(env.knobs.names):
        out[i] = positions.get(name.rpartition("/")[2], out[i])
    return out


def play(env, seed, policy, options=None):
    """Mean reward and the last info."""
    env.reset(seed=seed, options=options)
    rewards, is_over, step = [], False, 0
    while not is_over:
        _, reward, terminated, truncated, info = env.step(policy(step))
        rewards.append(reward)
        is_over = terminated or truncated
        step += 1
    assert not terminated
    return np.mean(rewards), info


@functools.cache
def default_scores(env_id):
    env = environment(env_id)
    held = {"preset": "default"}
    runs = [play(env, s, lambda _: default_position(env), held) for s in SEEDS]
    return [info for _, info in runs]


def assert_does_not_pay(env_id, policy):
    """Neither for the score nor for the reward. Returns what was played."""
    env = environment(env_id)
    runs = [play(env, seed, policy) for seed in SEEDS]
    mine = np.mean([info["score"] for _, info in runs])
    default = np.mean([info["score"] for info in default_scores(env_id)])
    assert mine > default - MARGIN
    assert np.mean([reward for reward, _ in runs]) < MARGIN
    return [info for _, info in runs]


@pytest.mark.parametrize("env_id", ENVS)
def test_idling__nobody_sends_much(env_id):
    """No pauses, no queues: and no work done."""
    env = environment(env_id)
    action = with_settings(env, kmin=-1.0, kmax_ratio=-1.0, pmax=1.0, **BRAKE)
    infos = assert_does_not_pay(env_id, lambda _: action)
    tenants = [t.name for t in env.scenario.tenants]
    for info, other in zip(infos, default_scores(env_id), strict=True):
        assert any(info[f"rounds/{t}"] < other[f"rounds/{t}"] for t in tenants)  # it does idle


def starving(env, victim):
    """Everything is marked; the victim brakes as hard as it can, all others hardly."""
    action = with_settings(env, kmin=-1.0, kmax_ratio=-1.0, pmax=1.0)
    for i, name in enumerate(env.knobs.names):
        kind, owner, setting = name.split("/")
        if kind == "tenant":
            action[i] = BRAKE[setting] if owner == victim else -BRAKE[setting]
    return action


@pytest.mark.parametrize("env_id", ENVS)
def test_starving_another_tenant_of_the_same_weight(env_id):
    """A tenant of little weight may pay for others: that is what weights say, and no cheat."""
    env = environment(env_id)
    victim = env.scenario.tenants[-1]
    if victim.weight < max(t.weight for t in env.scenario.tenants):
        victim = max(env.scenario.tenants[:-1], key=lambda t: t.weight)
    action = starving(env, victim.name)
    assert_does_not_pay(env_id, lambda _: action)


@pytest.mark.parametrize("env_id", ENVS)
def test_starving_the_tenant_with_the_most_weight(env_id):
    env = environment(env_id)
    victim = max(env.scenario.tenants, key=lambda t: t.weight).name
    action = starving(env, victim)
    infos = assert_does_not_pay(env_id, lambda _: action)
    for info, other in zip(infos, default_scores(env_id), strict=True):
        assert info[f"slowdown/{victim}"] > other[f"slowdown/{victim}"]


@pytest.mark.parametrize("env_id", ENVS)
def test_pausing_everything(env_id):
    """Smallest thresholds, no reserve, no marks."""
    env = environment(env_id)
    action = with_settings(
        env, kmin=1.0, kmax_ratio=1.0, pmax=-1.0, buffer_alpha=-1.0, buffer_split=-1.0
    )
    infos = assert_does_not_pay(env_id, lambda _: action)
    for info, other in zip(infos, default_scores(env_id), strict=True):
        key = "episode_pfc_frames_per_s"
        assert info[key] > other[key]


@pytest.mark.parametrize("env_id", ENVS)
def test_pausing_in_place_of_marking(env_id):
    """Buffers as they are, no marks: no cheat, but worse than what a search found."""
    env = environment(env_id)
    path = FOUND / f"{env_id.removeprefix('RoCE/').removesuffix('-v0')}.yaml"
    positions = read_settings(path).settings
    found = np.array([positions[name] for name in env.knobs.names])
    pausing = with_settings(env, kmin=1.0, kmax_ratio=1.0, pmax=-1.0)
    scores = [
        np.mean([play(env, seed, lambda _, a=action: a)[1]["score"] for seed in SEEDS])
        for action in (pausing, found)
    ]
    assert scores[0] > scores[1] + MARGIN


@pytest.mark.parametrize("env_id", ENVS)
def test_oscillating_knobs(env_id):
    """From one end of every range to the other, in every interval."""
    count = len(environment(env_id).knobs.names)
    assert_does_not_pay(env_id, lambda step: np.full(count, 1.0 if step % 2 else -1.0))


def test_a_pause_at_the_end_is_not_forgotten():
    """The score counts a round that is stuck when the episode ends."""
    env = environment("RoCE/RegimeShift-v0")
    idle = with_settings(env, kmin=-1.0, kmax_ratio=-1.0, pmax=1.0, **BRAKE)
    usual = default_position(env)
    steps = env._num_steps
    _, late = play(env, 0, lambda step: idle if step > 0.7 * steps else usual)
    _, normal = play(env, 0, lambda _: usual)
    assert late["score"] > normal["score"]
