import copy
import pickle
import subprocess
import sys
import warnings

import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from small import SMALL

import roce_gym
from roce_gym.env import RoceEnv
from roce_gym.errors import ActionError, ConfigError

pytest.importorskip("pettingzoo")

from roce_gym import multi_agent

SHARED = copy.deepcopy(SMALL)
"""Both tenants in one class; nobody is in the other one."""
SHARED["tenants"][1]["traffic_class"] = "gold"


def make(scenario=SMALL, **kwargs):
    return roce_gym.parallel_env(scenario, layouts=4, **kwargs)


def random_actions(env, rng):
    return {a: rng.uniform(-1, 1, env.action_space(a).shape).astype(np.float32) for a in env.agents}


def test_pettingzoos_own_tests():
    pytest.importorskip("pygame")  # one of its own environments, imported with the tests, needs it
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of that environment
        from pettingzoo.test import max_cycles_test, parallel_api_test, parallel_seed_test
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        parallel_api_test(make(), num_cycles=25)
        parallel_api_test(make(SHARED, rewards="team"), num_cycles=25)
        parallel_seed_test(make)
        max_cycles_test(multi_agent)


def test_each_tenant_has_its_own_knobs_and_sees_its_own_telemetry():
    env = make()
    assert env.possible_agents == ["ring", "burst"]
    names = env.knob_names("ring")
    assert len(names) == env.action_space("ring").shape[0] == 10
    assert {name.rpartition("/")[0] for name in names} == {"class/gold", "tenant/ring"}
    seen = env.observation_names("burst")
    assert len(seen) == env.observation_space("burst").shape[0] == 7 + 5 + 1 + 10
    assert {"class/lead/queue_max", "tenant/burst/cnps", "fabric/buffer"} < set(seen)
    assert "knob/class/lead/kmin" in seen
    assert not any("gold" in name or "ring" in name for name in seen)
    assert env.state_space == RoceEnv(SMALL).observation_space


def test_is_the_single_agents_run():
    env, single = make(), RoceEnv(SMALL, layouts=4)
    observations, infos = env.reset(seed=3)
    state, info = single.reset(seed=3)
    rng = np.random.default_rng(0)
    weights = np.array([3, 1]) / 4
    while env.agents:
        assert env.state().tobytes() == state.tobytes()
        for agent in env.possible_agents:
            assert observations[agent] in env.observation_space(agent)
            indices = [single.eyes.names.index(name) for name in env.observation_names(agent)]
            assert (observations[agent] == state[indices]).all()
            other = {"ring": ("burst", "lead"), "burst": ("ring", "gold")}[agent]
            mine = {k: v for k, v in info.items() if not k.endswith(other)}
            assert infos[agent] == mine and f"slowdown/{agent}" in mine and "score" in mine
        actions = random_actions(env, rng)
        joint = np.full(20, np.nan)
        for agent, action in actions.items():
            joint[[single.knobs.names.index(name) for name in env.knob_names(agent)]] = action
        observations, rewards, terminations, truncations, infos = env.step(actions)
        state, reward, _, truncated, info = single.step(joint)
        # The tenants' rewards, weighted as the tenants are, are the single agent's.
        assert weights @ [rewards["ring"], rewards["burst"]] == pytest.approx(reward, abs=1e-12)
        assert rewards["ring"] != rewards["burst"]
    assert all(truncations.values()) and truncated and not any(terminations.values())
    assert env.state().tobytes() == state.tobytes()
    with pytest.raises(ResetNeeded, match="no episode is under way"):
        env.step(actions)


def test_default_settings_earn_every_tenant_nothing_for_its_own_completion():
    weights = {"completion": 2.0, "pfc": 0.0, "interference": 0.0}
    env = make(reward_weights=weights)
    env.reset(seed=1, options={"preset": "default"})
    sums = {"ring": 0.0, "burst": 0.0}
    most = 0.0
    while env.agents:
        _, rewards, *_ = env.step({a: np.zeros(10, np.float32) for a in env.agents})
        most = max(most, *map(abs, rewards.values()))
        sums = {agent: sums[agent] + reward for agent, reward in rewards.items()}
    assert most > 0.01
    assert sums == pytest.approx({"ring": 0.0, "burst": 0.0}, abs=1e-9)


def test_team_reward_is_the_single_agents():
    env, single = make(rewards="team"), RoceEnv(SMALL)
    env.reset(seed=2)
    single.reset(seed=2)
    _, rewards, *_ = env.step({a: np.zeros(10, np.float32) for a in env.agents})
    _, reward, *_ = single.step(np.zeros(20))
    assert rewards == {"ring": reward, "burst": reward}


def test_a_shared_class_gets_the_mean_and_an_empty_one_its_default():
    env, single = make(SHARED), RoceEnv(SHARED)
    names = single.knobs.names
    env.reset(seed=0)
    single.reset(seed=0)
    default = single.knobs.encode(single.fabric.settings)
    rng = np.random.default_rng(2)
    actions = random_actions(env, rng)
    env.step(actions)
    seen = dict(zip(single.eyes.names, env.state(), strict=True))
    told = {a: dict(zip(env.knob_names(a), x, strict=True)) for a, x in actions.items()}
    assert set(told["ring"]) & set(told["burst"]) == {n for n in names if n.startswith("class/go")}
    for i, name in enumerate(names):
        if name.startswith("class/gold"):
            wanted = (float(told["ring"][name]) + float(told["burst"][name])) / 2
        elif name.startswith("class/lead"):
            wanted = default[i]
        else:
            wanted = told[name.split("/")[1]][name]
        assert seen[f"knob/{name}"] == pytest.approx((wanted + 1) / 2, abs=1e-6)


def test_steps_of_a_shared_class_are_the_mean_and_an_empty_one_stays():
    env = make(SHARED, knob_mode="delta")
    env.reset(seed=0)
    names = env.core.knobs.names
    start = env.core.knobs.encode(env.core.fabric.settings).astype(np.float64)
    steps = env.core.knobs.steps(env.core.scenario.control.max_factor)
    asked = {"ring": 0.4, "burst": -0.2}
    env.step({a: np.full(env.action_space(a).shape, asked[a], np.float32) for a in env.agents})
    seen = dict(zip(env.core.eyes.names, env.state(), strict=True))
    moved = {"class/gold": 0.1, "class/lead": 0.0, "tenant/ring": 0.4, "tenant/burst": -0.2}
    for i, name in enumerate(names):
        wanted = np.clip(start[i] + moved[name.rpartition("/")[0]] * steps[i], -1, 1)
        assert seen[f"knob/{name}"] == pytest.approx((wanted + 1) / 2, abs=1e-6), name


def test_choices_have_no_mean():
    with pytest.raises(ConfigError, match=r"control.knob_mode = 'multidiscrete' is not allowed"):
        make(knob_mode="multidiscrete")


def test_copies_go_on_alike():
    env = make()
    env.reset(seed=1)
    rng = np.random.default_rng(0)
    env.step(random_actions(env, rng))
    twin = pickle.loads(pickle.dumps(env))
    actions = random_actions(env, rng)
    ours, theirs = env.step(actions), twin.step(actions)
    assert ours[1:] == theirs[1:] and (ours[0]["ring"] == theirs[0]["ring"]).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"ring": np.zeros(9)}, r"action of ring: shape \(9,\) is not allowed; allowed: \(10,\)"),
        ({"ring": None}, "actions: none is given for ring"),
        ({"burst": np.full(10, np.nan)}, r"action of burst: .* not finite"),
    ],
)
def test_actions__faults(change, message):
    env = make()
    env.reset(seed=0)
    actions = {"ring": np.zeros(10), "burst": np.zeros(10)} | change
    actions = {agent: action for agent, action in actions.items() if action is not None}
    with pytest.raises(ActionError, match=message):
        env.step(actions)
    assert env.core.fabric.now_ps == 0


def test_arguments__faults():
    with pytest.raises(ConfigError, match="rewards = 'mine' is not allowed; allowed: own, team"):
        make(rewards="mine")
    with pytest.raises(ConfigError, match="'nonsense' unknown"):
        make().reset(options={"nonsense": 1})
    with pytest.raises(ResetNeeded, match="no episode was started"):
        make().state()
    with pytest.raises(ResetNeeded):
        make().step({})


def test_pettingzoo_is_needed_only_for_this():
    code = (
        "import sys; sys.modules['pettingzoo'] = None; import roce_gym\n"
        "try:\n    roce_gym.parallel_env()\n"
        "except ImportError as error:\n    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install 'roce-gym[multi-agent]'" in done.stdout
