import copy
import pickle

import gymnasium
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from small import SMALL

from roce_gym.env import RoceEnv
from roce_gym.errors import ConfigError

FULL = {"history": 3, "telemetry_delay": 1, "action_delay": 2, "noise": 0.1}


def go_on(env, steps=4, seed=9):
    """Everything that the next steps give, as comparable values."""
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(steps):
        observation, *rest = env.step(rng.uniform(-1, 1, 20))
        rows.append((observation.tobytes(), *rest))
    return rows


@pytest.mark.parametrize(
    "arguments",
    [{}, FULL, FULL | {"knob_mode": "delta"}, {"observation": "deployable", "noise": 0.1}],
)
def test_restore__what_follows_is_repeated_exactly(arguments):
    env = RoceEnv(SMALL, **arguments)
    env.reset(seed=3)
    go_on(env, 3, seed=1)
    snapshot = env.snapshot()
    first = go_on(env)
    assert go_on(env, 3, 2) != first[:3]
    for _ in range(2):  # a snapshot can be used again
        env.restore(snapshot)
        assert go_on(env) == first


def test_restore__after_another_episode_and_at_an_end():
    env = RoceEnv(SMALL, **FULL)
    env.reset(seed=3)
    go_on(env, 2)
    snapshot = env.snapshot()
    first = go_on(env, 8)
    with pytest.raises(ResetNeeded):
        env.step(np.zeros(20))
    end = env.snapshot()
    env.reset(seed=4, options={"preset": "pfc_only"})
    go_on(env, 3)
    env.restore(snapshot)
    assert env.episode_seed == 3 and go_on(env, 8) == first
    env.reset(seed=4)
    env.restore(end)
    with pytest.raises(ResetNeeded):
        env.step(np.zeros(20))


def test_restore__random_state_of_later_resets():
    env = RoceEnv(SMALL, layouts=1000)
    env.reset(seed=0)
    snapshot = env.snapshot()
    drawn = [env.reset()[1]["episode_seed"] for _ in range(3)]
    env.restore(snapshot)
    assert [env.reset()[1]["episode_seed"] for _ in range(3)] == drawn


def test_restore__in_another_environment__without_touching_the_first():
    env, twin = RoceEnv(SMALL, **FULL), RoceEnv(SMALL, **FULL)
    env.reset(seed=3)
    go_on(env, 2)
    snapshot = env.snapshot()
    there = pickle.loads(pickle.dumps(snapshot))
    twin.restore(there)
    first = go_on(twin)
    assert go_on(env) == first
    twin.restore(snapshot)
    assert twin.fabric is not env.fabric
    assert go_on(twin) == first
    assert go_on(env, 2, 5) == go_on(twin, 2, 5)


def test_an_environment_that_was_never_seeded():
    env = RoceEnv(SMALL)
    env.reset(options={"episode_seed": 2})
    snapshot = env.snapshot()
    first = go_on(env)
    env.restore(snapshot)
    assert go_on(env) == first


def test_planning__branches_do_not_disturb_each_other():
    env = RoceEnv(SMALL)
    env.reset(seed=0)
    root = env.snapshot()
    ends = []
    for value in (-1.0, 0.0, 1.0, -1.0):
        env.restore(root)
        for _ in range(5):
            *_, info = env.step(np.full(20, value))
        ends.append(info["score"])
    assert ends[0] == ends[3] and len(set(ends)) == 3


def test_pickle__with_everything_on():
    env = RoceEnv(SMALL, render_mode="rgb_array", **FULL)
    env.reset(seed=1)
    go_on(env, 3)
    env.render()
    twin = pickle.loads(pickle.dumps(env))
    assert (twin.render() == env.render()).all()
    assert go_on(twin) == go_on(env)
    assert (twin.render() == env.render()).all()


def test_faults():
    env = RoceEnv(SMALL)
    with pytest.raises(ResetNeeded, match="snapshot"):
        env.snapshot()
    env.reset(seed=0)
    with pytest.raises(ConfigError, match="restore: the snapshot is of an environment with other"):
        RoceEnv(SMALL, history=2).restore(env.snapshot())
    for wrong in (3, None):
        with pytest.raises(ConfigError, match=f"restore: snapshot = {wrong} is not allowed; allo"):
            env.restore(wrong)
    assert isinstance(env, gymnasium.Env)


@pytest.mark.parametrize(
    "other",
    [
        {"scenario": SMALL | {"switch": {"buffer_bytes": 900_000}}},
        {"scenario": SMALL | {"name": "other"}},
        {"overrides": ["switch.buffer_bytes=900000"]},
        {"noise": 0.1},
    ],
)
def test_faults__another_scenario_with_the_same_spaces(other):
    env, another = RoceEnv(SMALL), RoceEnv(**({"scenario": SMALL} | other))
    env.reset(seed=0)
    snapshot = env.snapshot()
    another.reset(seed=1)
    before = go_on(copy.deepcopy(another))
    with pytest.raises(ConfigError, match=r"restore: .* of 'small', this one is of '(small|other)"):
        another.restore(snapshot)
    assert go_on(another) == before


def test_restore__episodes_of_other_seeds_splits_and_parameters():
    raw = SMALL | {"splits": {"stress": {"tenants.burst.jobs.0.period_us": 100}}}
    env, twin = RoceEnv(raw), RoceEnv(raw)
    params = {"params": {"switch.buffer_bytes": 900_000}}
    for seed, options in ((1, {}), (2, {"split": "stress"}), (3, params)):
        env.reset(seed=seed, options=options)
        snapshot = pickle.loads(pickle.dumps(env.snapshot()))
        first = go_on(env)
        for other in (env, twin):
            other.reset(seed=4)
            other.restore(snapshot)
            assert go_on(other) == first


def test_restore__after_a_reset_that_failed():
    env = RoceEnv(SMALL)
    env.reset(seed=1)
    snapshot = env.snapshot()
    first = go_on(env)
    for options in ({"nonsense": 1}, {"params": {"tenants.ring.name": "x"}}):
        with pytest.raises(ConfigError):
            env.reset(seed=77, options=options)
        with pytest.raises(ResetNeeded, match="snapshot"):
            env.snapshot()
        env.restore(snapshot)
        assert go_on(env) == first
