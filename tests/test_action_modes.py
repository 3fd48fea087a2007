import math

import numpy as np
import pytest
from small import SMALL

from roce_gym.action_modes import FACTORS, KEEP
from roce_gym.config import validate_scenario
from roce_gym.env import RoceEnv
from roce_gym.errors import ActionError, ConfigError
from roce_gym.scenario_file import draw


def kmin(env):
    return env.fabric.settings.classes["gold"].ecn.kmin_bytes


def made(mode, **control):
    env = RoceEnv(SMALL | {"control": SMALL["control"] | control}, knob_mode=mode)
    env.reset(seed=0)
    return env


def index(env, name="class/gold/kmin"):
    return env.knobs.names.index(name)


def test_absolute__is_the_default_and_what_it_was():
    plain, named = RoceEnv(SMALL), RoceEnv(SMALL, knob_mode="absolute")
    action = np.linspace(-1, 1, 20)
    results = []
    for env in (plain, named):
        env.reset(seed=0)
        results.append(env.step(action)[0].tobytes())
        assert env.action_space == env.knobs.space
        assert (env._position == action).all()
    assert results[0] == results[1]


@pytest.mark.parametrize(("factor", "entry"), [(2.0, 1.0), (2.0, -1.0), (4.0, 0.5), (1.5, 0.25)])
def test_delta__multiplies_by_a_power_of_the_factor(factor, entry):
    env = made("delta", max_factor=factor)
    action = np.zeros(20)
    env.step(action)
    before = kmin(env)
    action[index(env)] = entry
    env.step(action)
    assert kmin(env) == pytest.approx(before * factor**entry, abs=1.0)
    others = env.fabric.settings.classes["gold"].ecn
    assert others.pmax == pytest.approx(0.2)


def test_delta__is_bounded_by_the_range_and_clips_entries():
    env = made("delta")
    action = np.zeros(20)
    action[index(env)] = 100.0  # clipped to 1: a factor of 2
    env.step(np.zeros(20))
    before = kmin(env)
    env.step(action)
    assert kmin(env) == pytest.approx(2 * before, abs=1) and before == 400_000
    for _ in range(3):
        env.step(action)
    assert kmin(env) == 800_000
    action[index(env)] = -1.0
    env.step(action)
    assert kmin(env) == 400_000  # nothing was wound up beyond the bound


def test_delta__doubles_the_ratio_of_reserve_to_shared_pool():
    env = made("delta")
    i = index(env, "class/gold/buffer_split")
    action = np.zeros(20)
    env.step(action)
    low, high = env.knobs.knobs[i].low, env.knobs.knobs[i].high
    before = low + (env._position[i] + 1) / 2 * (high - low)
    action[i] = 1.0
    env.step(action)
    after = low + (env._position[i] + 1) / 2 * (high - low)
    assert after - before == pytest.approx(math.log(2))


@pytest.mark.parametrize("choice", range(len(FACTORS)))
def test_multidiscrete__chooses_a_factor(choice):
    env = made("multidiscrete")
    assert env.action_space.nvec.tolist() == [5] * 20
    keep = np.full(20, KEEP)
    env.step(keep)
    start = env._position.copy()
    action = keep.copy()
    action[index(env)] = 0
    env.step(action)  # 200 KB, away from both bounds
    before = kmin(env)
    action[index(env)] = choice
    env.step(action)
    assert kmin(env) == pytest.approx(before * (0.5, 0.5**0.5, 1, 2**0.5, 2)[choice], abs=1)
    moved = np.flatnonzero(env._position != start)
    assert set(moved) <= {index(env)}


@pytest.mark.parametrize(
    ("action", "message"),
    [
        (np.full(19, 2), r"shape \(19,\) is not allowed; allowed: \(20,\)"),
        (np.where(np.arange(20) == 1, 5, 2), r"action\[1\] \(class/gold/kmax_ratio\) = 5"),
        (np.where(np.arange(20) == 1, -1, 2), r"= -1 is not allowed; allowed: 0 … 4"),
        (np.where(np.arange(20) == 1, 0.5, 2), "= 0.5 is not allowed"),
        (np.where(np.arange(20) == 1, np.nan, 2), "= nan is not allowed"),
        ("up", "whole numbers are expected"),
    ],
)
def test_multidiscrete__faults_change_nothing(action, message):
    env = made("multidiscrete")
    with pytest.raises(ActionError, match=message):
        env.step(action)
    assert env.fabric.now_ps == 0


@pytest.mark.parametrize("mode", ["delta", "multidiscrete"])
def test_samples_are_playable_and_repeatable(mode):
    ends = []
    for _ in range(2):
        env = RoceEnv(SMALL, knob_mode=mode)
        env.action_space.seed(3)
        env.reset(seed=1)
        for _ in range(10):
            observation, *_ = env.step(env.action_space.sample())
        ends.append(observation.tobytes())
    assert ends[0] == ends[1]


def test_unknown_mode_and_knobs_without_steps():
    with pytest.raises(ConfigError, match=r"control\.knob_mode: must be 'absolute', 'delta' or"):
        RoceEnv(SMALL, knob_mode="sideways")

    class Own:
        def __init__(self, scenario, network):
            self.space, self.names, self.clip = None, ("a",), None

    with pytest.raises(ConfigError, match=r"a method steps\(factor\), which Own has not"):
        RoceEnv(SMALL, knob_mode="delta", knobs=Own)


def test_mode_can_come_from_the_scenario():
    raw = SMALL | {"control": SMALL["control"] | {"knob_mode": "multidiscrete"}}
    assert RoceEnv(raw).action_space.shape == (20,)
    assert validate_scenario(draw(raw, 0)).control.knob_mode == "multidiscrete"
    assert RoceEnv(raw, knob_mode="absolute").action_space.dtype == np.float32


@pytest.mark.parametrize("mode", ["absolute", "delta", "multidiscrete"])
def test_a_held_preset_does_not_look_at_actions(mode):
    ends = []
    for action in (np.zeros(20), np.full(20, np.nan), None):
        env = RoceEnv(SMALL, knob_mode=mode)
        env.reset(seed=0, options={"preset": "pfc_only"})
        ends.append(env.step(action)[0].tobytes())
    assert ends[0] == ends[1] == ends[2]
