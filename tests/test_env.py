import copy
import hashlib
import json
import pickle
import subprocess
import sys
import warnings

import gymnasium
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import check_env
from small import SMALL

import roce_gym
from roce_gym.config import validate_scenario
from roce_gym.env import RoceEnv
from roce_gym.errors import ActionError, ConfigError, SimulationError
from roce_gym.presets import PRESETS
from roce_gym.registration import ENVIRONMENTS, OWN_SCENARIO, register_environments
from roce_gym.reward import TERMS
from roce_gym.scenario_file import draw, load_raw

SHORT = {"RoCE/NoisyNeighbor-v0": 4_000, "RoCE/NoisyNeighborFast-v0": 4_000}
"""Horizons in us that are long enough for a burst and short enough for a test; others: 2,000."""

FIRST = ("RoCE/NoisyNeighbor-v0", "RoCE/RegimeShift-v0")
"""For what takes longer, or is not a matter of the scenario."""


def make(env_id="RoCE/NoisyNeighbor-v0", **kwargs):
    """The environment with a short horizon."""
    return gymnasium.make(
        env_id, overrides=[f"control.horizon_us={SHORT.get(env_id, 2_000)}"], **kwargs
    )


def play(env, seed=0, policy=None, options=None):
    """Plays an episode; returns stacked observations, rewards and infos."""
    observation, info = env.reset(seed=seed, options=options)
    rng = np.random.default_rng(5)
    observations, rewards, infos = [observation], [], [info]
    done = False
    while not done:
        shape = env.action_space.shape
        action = rng.uniform(-1, 1, shape).astype(np.float32) if policy is None else policy
        observation, reward, terminated, truncated, info = env.step(action)
        done = terminated or truncated
        observations.append(observation)
        rewards.append(reward)
        infos.append(info)
    return np.stack(observations), np.array(rewards), infos


def digest(env, seed):
    observations, rewards, infos = play(env, seed)
    text = observations.tobytes() + rewards.tobytes() + json.dumps(infos).encode()
    return hashlib.sha256(text).hexdigest()


def default_action(env):
    u = env.unwrapped
    return u.knobs.encode(u.knobs.base)


# --------------------------------------------------------------------------- contract


@pytest.mark.parametrize("env_id", ENVIRONMENTS)
def test_gymnasium_checker(env_id):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        env = make(env_id)
        check_env(env.unwrapped)
        env.close()
        env.close()


@pytest.mark.parametrize(
    "arguments",
    [
        {"knob_mode": "delta", "history": 3, "telemetry_delay": 1, "action_delay": 1, "noise": 0.1},
        {"knob_mode": "multidiscrete", "observation": "deployable", "noise": 0.1},
    ],
)
def test_gymnasium_checker__options(arguments, tmp_path):
    path = tmp_path / "small.yaml"
    path.write_text(json.dumps(SMALL))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        env = gymnasium.make(OWN_SCENARIO, scenario=str(path), **arguments)
        check_env(env.unwrapped)


@pytest.mark.parametrize("env_id", FIRST)
def test_sb3_checker(env_id):
    checker = pytest.importorskip("stable_baselines3.common.env_checker")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        checker.check_env(gymnasium.make(env_id).unwrapped, warn=True)


def test_registration_is_idempotent_and_specs_are_json():
    before = dict(gymnasium.registry)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        register_environments()
    assert dict(gymnasium.registry) == before
    for env_id in FIRST:
        env = make(env_id, reward_weights={"pfc": 0.5}, layouts=None)
        again = gymnasium.make(gymnasium.spec(env_id)).unwrapped
        spec = type(env.spec).from_json(env.spec.to_json())
        assert spec.make().action_space == env.action_space == again.action_space
    assert roce_gym.__version__


@pytest.mark.parametrize("env_id", FIRST)
def test_same_seed_same_trajectory__also_in_another_process(env_id):
    env = make(env_id)
    first = digest(env, 3)
    assert digest(env, 3) == first
    assert digest(make(env_id), 3) == first != digest(env, 4)
    code = f"from test_env import *; print(digest(make({env_id!r}), 3))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd="tests", capture_output=True, text=True, check=False
    )
    assert done.stdout.strip() == first, done.stderr


def test_copies_go_on_alike():
    env = make().unwrapped
    env.reset(seed=1)
    env.step(np.zeros(20, np.float32))
    for twin in (copy.deepcopy(env), pickle.loads(pickle.dumps(env))):
        ours = copy.deepcopy(env)
        for _ in range(3):
            a, b = ours.step(np.ones(20, np.float32)), twin.step(np.ones(20, np.float32))
            assert a[0].tobytes() == b[0].tobytes() and a[1:] == b[1:]


@pytest.mark.parametrize("env_id", ENVIRONMENTS)
def test_types_and_constant_keys(env_id):
    env = make(env_id).unwrapped
    observation, info = env.reset(seed=0)
    keys = list(info)
    assert observation in env.observation_space
    truncated = False
    steps = 0
    while not truncated:
        observation, reward, terminated, truncated, info = env.step(env.action_space.sample())
        steps += 1
        assert observation in env.observation_space and observation.dtype == np.float32
        assert type(reward) is float and type(terminated) is bool and type(truncated) is bool
        assert not terminated and sorted(info) == sorted(keys)
        assert all(type(v) is float for k, v in info.items() if k != "episode_seed")
        assert all(np.isfinite(v) for v in info.values())
        observation[:] = 7
    control = env.scenario.control
    assert steps == control.horizon_us / control.interval_us
    assert info["time_us"] == control.horizon_us
    assert env.last_interval.end_ps == control.horizon_us * 1e6


@pytest.mark.parametrize("env_id", ENVIRONMENTS)
def test_no_key_of_info_lies_under_another(env_id):
    """Formats that take `/` for a folder, such as HDF5, can hold an `info`."""
    keys = set(make(env_id).reset(seed=0)[1])
    assert not [key for key in keys if key.rpartition("/")[0] in keys]


def test_step_needs_reset():
    env = RoceEnv(SMALL)
    with pytest.raises(ResetNeeded, match="no episode was started"):
        env.step(env.action_space.sample())
    env.reset(seed=0)
    for _ in range(10):
        *_, truncated, _ = env.step(env.action_space.sample())
    assert truncated
    with pytest.raises(ResetNeeded, match="the episode is over"):
        env.step(env.action_space.sample())
    env.reset()
    env.step(env.action_space.sample())


@pytest.mark.parametrize(
    "options",
    [
        {"nonsense": 1},
        {"params": {"switch.buffer_bytes": -1}},
        {"params": {"tenants.ring.name": "x"}},
        {"params": {"control.history": 2}},
    ],
)
def test_a_reset_that_fails_leaves_no_episode(options):
    env = RoceEnv(SMALL, render_mode="ansi")
    first = env.reset(seed=1)
    with pytest.raises(ConfigError):
        env.reset(seed=77, options=options)
    with pytest.raises(ResetNeeded, match="no episode was started"):
        env.step(env.action_space.sample())
    assert env.render() is None
    again = env.reset(seed=1)
    assert again[0].tobytes() == first[0].tobytes() and again[1] == first[1]


@pytest.mark.parametrize("part", ["fabric.advance_in_parts", "_judge", "_measures", "sight"])
def test_a_step_that_fails_ends_the_episode(monkeypatch, part):
    env = RoceEnv(SMALL)
    env.reset(seed=0)

    def fail(*_, **__):
        raise SimulationError("the core stopped with status 9 at 5 ps")

    with monkeypatch.context() as patch:
        owner, _, name = part.rpartition(".")
        patch.setattr(getattr(env, owner) if owner else env, name, fail)
        with pytest.raises(SimulationError):
            env.step(env.action_space.sample())
    with pytest.raises(ResetNeeded, match="the episode is over"):
        env.step(env.action_space.sample())
    env.reset(seed=0)
    env.step(env.action_space.sample())


def test_bad_actions_change_nothing():
    env = RoceEnv(SMALL)
    env.reset(seed=0)
    good = env.action_space.sample()
    wrong = [good[:-1], np.where(np.arange(20) == 2, np.nan, good), np.full(20, np.inf)]
    for bad in (*wrong, good + 1j, ["0"] * 20, "x", None):
        with pytest.raises(ActionError):
            env.step(bad)
    assert env.fabric.now_ps == 0
    first = env.step(good)
    env.reset(seed=0)
    second = env.step(good)
    assert first[0].tobytes() == second[0].tobytes() and first[1] == second[1]


def test_actions_outside_of_the_box_are_clipped():
    env = RoceEnv(SMALL)
    results = []
    for scale in (1, 5):
        env.reset(seed=0)
        results.append(env.step(scale * np.ones(20))[:2])
    assert results[0][0].tobytes() == results[1][0].tobytes() and results[0][1] == results[1][1]


def test_termination__failed_queue_pairs():
    env = RoceEnv(SMALL)
    env.reset(seed=0)
    env.fabric._state.core["failed_qps"] = 1
    *_, terminated, truncated, info = env.step(env.action_space.sample())
    assert terminated is True and truncated is False and info["failed_qps"] == 1
    with pytest.raises(ResetNeeded):
        env.step(env.action_space.sample())


def test_render():
    env = RoceEnv(SMALL, render_mode="ansi")
    assert env.render() is None
    env.reset(seed=0)
    env.step(env.action_space.sample())
    text = env.render()
    assert "0.050 ms of 0.5 ms" in text and "ring" in text and "burst" in text
    assert "ECN kmin, KB: gold" in text
    assert RoceEnv(SMALL).render() is None


# --------------------------------------------------------------------------- seeds and options


def test_seeds__first_given_then_drawn_from_the_pool():
    env = RoceEnv(SMALL, layouts=4)
    assert env.reset(seed=1000)[1]["episode_seed"] == 1000
    drawn = [env.reset()[1]["episode_seed"] for _ in range(40)]
    assert set(drawn) == {0, 1, 2, 3}
    env.reset(seed=1000)
    assert [env.reset()[1]["episode_seed"] for _ in range(40)] == drawn
    env = RoceEnv(SMALL, layouts=None)
    env.reset(seed=7)
    assert len({env.reset()[1]["episode_seed"] for _ in range(5)}) == 5
    info = env.reset(options={"episode_seed": np.int64(12)})[1]
    assert info["episode_seed"] == 12 == env.episode_seed


def test_seeds__draw_the_scenario():
    env = RoceEnv(SMALL)
    sizes = set()
    for seed in range(5):
        env.reset(seed=seed)
        sizes.add(env.scenario.tenants[0].jobs[0].bytes)
    assert len(sizes) == 5


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([1], r"reset options = \[1\] is not allowed; allowed: None, or a mapping"),
        ([], r"reset options = \[\] is not allowed"),
        ({"preset": "best"}, "preset = 'best' is unknown; allowed: default, connectx_default"),
        ({"preset": 1}, "preset = 1 is unknown"),
        ({"episode_seed": -1}, "episode_seed = -1 is not allowed"),
        ({"episode_seed": 1.5}, "episode_seed = 1.5"),
        ({"episode_seed": True}, "episode_seed = True"),
        ({"episode_seed": 2**63}, "episode_seed = "),
        ({"seed": 1}, "'seed' unknown; allowed: 'episode_seed', 'preset', 'split', 'scenario'"),
    ],
)
def test_options__faults(options, message):
    with pytest.raises(ConfigError, match=message):
        RoceEnv(SMALL).reset(options=options)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"scenario": "nowhere"}, "scenario 'nowhere' is unknown"),
        ({"scenario": None}, "scenario: is missing; allowed: a packaged scenario's name"),
        ({"scenario": 3}, "scenario = 3 is not allowed"),
        ({"render_mode": "3d"}, "render_mode = '3d' is not allowed; allowed: None, rgb_array"),
        ({"scenario": SMALL | {"typo": 1}}, "typo"),
        (
            {"scenario": SMALL | {(1, 2): 3}},
            r"scenario: key \(1, 2\) is not allowed; allowed: text",
        ),
        (
            {"scenario": SMALL | {"name": {"choice": ["a", {"x": {(1, 2): 3}}]}}},
            r"scenario\.name\.choice\.1\.x: key \(1, 2\) is not allowed",
        ),
        ({"overrides": ["switch={2020-01-01: 1}"]}, r"scenario\.switch: key datetime\.date"),
        ({"overrides": ["topology.host=1"]}, "topology has no 'host'"),
        ({"layouts": 0}, "layouts = 0 is not allowed"),
        ({"layouts": 1.5}, "layouts = 1.5"),
        ({"reward_weights": {"latency": 1}}, "'latency' is unknown; allowed: completion, pfc"),
        ({"reward_weights": [1, 2, 3]}, r"reward_weights = \[1, 2, 3\] is not allowed; allowed: N"),
        ({"reward_weights": {"pfc": -1}}, "reward_weights.pfc = -1 is not allowed"),
        ({"reward_weights": {"pfc": float("nan")}}, "reward_weights.pfc = nan"),
        ({"reward_weights": {"pfc": "1"}}, "reward_weights.pfc = '1'"),
    ],
)
def test_arguments__faults(arguments, message):
    with pytest.raises(ConfigError, match=message):
        RoceEnv(**({"scenario": SMALL} | arguments))


def test_names_must_not_change_with_the_seed():
    raw = copy.deepcopy(SMALL)
    raw["tenants"][0]["name"] = {"choice": ["a", "b"]}
    env = RoceEnv(raw)
    with pytest.raises(ConfigError, match=r"tenants: seed \d+ draws .*, seed 0 draws"):
        for seed in range(20):
            env.reset(seed=seed)


def test_scenario__by_name_path_mapping_or_object(tmp_path):
    raw = load_raw("noisy_neighbor")
    path = tmp_path / "mine.yaml"
    path.write_text(json.dumps(raw))
    first = [RoceEnv(s).reset(seed=2)[1] for s in ("noisy_neighbor", path, str(path), raw)]
    assert all(info == first[0] for info in first)
    fixed = RoceEnv("noisy_neighbor")
    fixed.reset(seed=2)
    again = RoceEnv(fixed.scenario)
    again.reset(seed=2)
    assert again.scenario == fixed.scenario
    drawn = draw(raw, 0)
    validate_scenario(drawn | {"tenants": json.loads(fixed.scenario.model_dump_json())["tenants"]})


def test_own_scenario__by_path(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text(json.dumps(SMALL))
    env = gymnasium.make(OWN_SCENARIO, scenario=str(path))
    env.reset(seed=0)
    env.step(env.action_space.sample())
    again = type(env.spec).from_json(env.spec.to_json()).make()
    assert again.unwrapped.knobs.names == env.unwrapped.knobs.names
    with pytest.raises(ConfigError, match="scenario: is missing"):
        gymnasium.make(OWN_SCENARIO)
    with pytest.raises(gymnasium.error.Error, match="Scenaro"):
        gymnasium.make("RoCE/Scenaro-v0")
    with pytest.raises(TypeError, match="unknown_option"):
        gymnasium.make(OWN_SCENARIO, scenario=str(path), unknown_option=1)


def test_scenario_file_that_changes(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text(json.dumps(SMALL))
    env = RoceEnv(path)
    env.reset(seed=0)
    path.write_text(json.dumps(SMALL))  # written again, and says the same
    env.reset(seed=0)
    path.write_text(json.dumps(SMALL | {"summary": "another"}))
    with pytest.raises(ConfigError, match=r"mine\.yaml: has changed since this environment"):
        env.reset(seed=0)
    RoceEnv(path).reset(seed=0)
    gone = RoceEnv(path)
    path.unlink()
    gone.reset(seed=0)


# --------------------------------------------------------------------------- reward


@pytest.mark.parametrize("env_id", ENVIRONMENTS)
def test_default_settings_earn_nothing(env_id):
    env = make(env_id)
    for preset in ("default", "connectx_default") if env_id in FIRST else ("default",):
        _, rewards, infos = play(env, 2, options={"preset": preset})
        assert abs(rewards.sum()) < 1e-9
        assert np.abs(rewards).max() > 0.01
        for term in TERMS:
            assert abs(sum(info[term] for info in infos[1:])) < 1e-9


def test_held_preset__ignores_actions_and_keeps_every_parameter():
    env = make().unwrapped
    play(env, 0, policy=np.ones(20), options={"preset": "dcqcn_paper"})
    chosen = env.fabric.settings.tenants["training"]
    assert chosen == PRESETS["dcqcn_paper"].dcqcn(100.0)
    observations, *_ = play(env, 0, policy=-np.ones(20), options={"preset": "dcqcn_paper"})
    again, *_ = play(env, 0, policy=np.ones(20), options={"preset": "dcqcn_paper"})
    assert (observations == again).all()
    knobs = [i for i, name in enumerate(env.eyes.names) if name.startswith("knob/")]
    assert (again[0, knobs] == again[-1, knobs]).all()
    play(env, 0, policy=np.ones(20))
    assert env.fabric.settings.tenants["training"] != chosen


def test_reward_is_the_weighted_sum_of_its_terms():
    weights = {"completion": 0.3, "pfc": 2.0, "interference": 0.0}
    env = make(reward_weights=weights)
    _, rewards, infos = play(env, 1)
    for reward, info in zip(rewards, infos[1:], strict=True):
        assert reward == pytest.approx(sum(weights[t] * info[t] for t in TERMS), abs=1e-12)
    partial = make(reward_weights={"pfc": 2.0})
    _, rewards, infos = play(partial, 1)
    expected = infos[3]["completion"] + 2 * infos[3]["pfc"] + 0.1 * infos[3]["interference"]
    assert rewards[2] == pytest.approx(expected)


def starving(env, tenant):
    """A way to cheat: all is marked, one tenant reacts as strongly as possible, others hardly."""
    action = default_action(env)
    victim = {"initial_alpha": 1, "alpha_cap": 1, "g": 1, "increase_timer": 1, "rate_ai": -1}
    for i, name in enumerate(env.unwrapped.knobs.names):
        kind, owner, setting = name.split("/")
        if kind == "class":
            action[i] = {"kmin": -1, "kmax_ratio": -1, "pmax": 1}.get(setting, action[i])
        else:
            action[i] = victim[setting] if owner == tenant else -victim[setting]
    return action


@pytest.mark.parametrize(
    ("env_id", "tenant", "least"),
    [
        # The checkpoint has little weight, and the default settings starve it more than this does.
        ("RoCE/NoisyNeighbor-v0", "training", 1.8),
        ("RoCE/RegimeShift-v0", "shifting", 3.0),
        ("RoCE/RegimeShift-v0", "steady", 5.0),
    ],
)
def test_starving_a_tenant_does_not_pay(env_id, tenant, least):
    env = gymnasium.make(env_id)
    for seed in (0, 1):
        env.reset(seed=seed)
        _, rewards, infos = play(env, seed, policy=starving(env, tenant))
        assert infos[-1][f"slowdown/{tenant}"] > least
        assert rewards.mean() < -0.1
        assert sum(info["completion"] for info in infos[1:]) < 0


@pytest.mark.parametrize("env_id", FIRST)
def test_every_knob_bites(env_id):
    env = make(env_id)
    names = env.unwrapped.knobs.names
    measured = [not name.startswith("knob/") for name in env.unwrapped.eyes.names]
    for i, name in enumerate(names):
        results = []
        for value in (-1, 1):
            action = default_action(env)
            if name.endswith("rate_ai"):  # counts once increases come after fast recovery
                action[[n.endswith("increase_timer") for n in names]] = -1
            if name.endswith("buffer_split"):  # counts once the shared pool is not enough
                action[[n.endswith("buffer_alpha") for n in names]] = -1
            action[i] = value
            observations, _, infos = play(env, 0, policy=action)
            results.append((observations[:, measured], infos[-1]["score"]))
        (low, low_score), (high, high_score) = results
        assert (low != high).any() and low_score != high_score, name
