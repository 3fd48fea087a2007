import copy
import pickle
import subprocess
import sys
import warnings

import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from small import SMALL, TWO

import roce_gym
from roce_gym.env import RoceEnv
from roce_gym.errors import ActionError, ConfigError
from roce_gym.knobs import KnobSpace
from roce_gym.observation import Observation
from roce_gym.switch_knobs import SwitchKnobSpace
from roce_gym.switch_settings import by_switch

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
        for agents in ("switches", "both"):
            parallel_api_test(make(TWO, agents=agents), num_cycles=25)
            parallel_seed_test(lambda agents=agents: make(TWO, agents=agents))
        parallel_api_test(make(TWO, agents="both", knob_mode="delta"), num_cycles=25)
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


# --------------------------------------------------------------------------- switches


SWITCHES = ["switch 6", "switch 7"]


def test_each_switch_has_its_own_knobs_and_sees_its_own_ports():
    env = make(TWO, agents="switches")
    assert env.possible_agents == SWITCHES
    for agent in SWITCHES:
        names, seen = env.knob_names(agent), env.observation_names(agent)
        assert env.action_space(agent).shape == (len(names),) == (10,)
        assert env.observation_space(agent).shape == (len(seen),) == (21 + 10,)
        assert {name.partition("/")[0] for name in names} == {agent}
        assert {name.removeprefix("knob/").partition("/")[0] for name in seen} == {agent}
    assert {n.partition("/")[0] for n in env.core.knobs.names} == set(SWITCHES)


def test_with_both_tenants_have_what_is_of_their_nics():
    env = make(TWO, agents="both")
    assert env.possible_agents == ["ring", "burst", *SWITCHES]
    assert {name.rpartition("/")[0] for name in env.knob_names("ring")} == {"tenant/ring"}
    assert len(env.knob_names("ring")) == 5 and len(env.knob_names("switch 7")) == 10
    seen = env.observation_names("ring")
    assert {"class/gold/queue_max", "tenant/ring/cnps", "fabric/buffer"} < set(seen)
    assert not any("lead" in name or "burst" in name or "switch" in name for name in seen)
    turned = [name for agent in env.possible_agents for name in env.knob_names(agent)]
    assert sorted(turned) == sorted(env.core.knobs.names)


def test_tenants_with_nothing_to_turn_are_no_agents_beside_switches():
    raw = TWO | {"tenants": [TWO["tenants"][0], TWO["tenants"][1] | {"cc": "hpcc"}]}
    assert make(raw, agents="both").possible_agents == ["ring", *SWITCHES]


@pytest.mark.parametrize("agents", ["switches", "both"])
def test_switches_do_what_the_joint_action_does(agents):
    def knobs(scenario, network):
        return SwitchKnobSpace(scenario, network, with_tenants=agents == "both")

    env, single = make(TWO, agents=agents), RoceEnv(TWO, layouts=4, knobs=knobs)
    observations, infos = env.reset(seed=3)
    _, info = single.reset(seed=3)
    rng = np.random.default_rng(0)
    while env.agents:
        state = dict(zip(env.core.observation_names, env.state(), strict=True))
        for agent in env.possible_agents:
            assert observations[agent] in env.observation_space(agent)
            assert observations[agent].tolist() == [state[n] for n in env.observation_names(agent)]
        told = infos["switch 6"]
        assert told == {k: v for k, v in info.items() if "/" not in k or k[:3] in ("raw", "bas")}
        actions = random_actions(env, rng)
        joint = dict.fromkeys(single.knobs.names)
        for agent, action in actions.items():
            joint |= dict(zip(env.knob_names(agent), action.tolist(), strict=True))
        observations, rewards, _, truncations, infos = env.step(actions)
        _, reward, _, truncated, info = single.step(list(joint.values()))
        assert env.core.fabric.settings == single.fabric.settings
        assert set(rewards.values()) == {reward} and set(rewards) == set(env.possible_agents)
    assert truncated and all(truncations.values())


def test_a_switch_turns_its_own_queues_and_nobody_elses():
    env = make(TWO, agents="switches")
    env.reset(seed=0)
    default = env.core.knobs.base
    env.step({"switch 6": np.full(10, -1.0), "switch 7": np.full(10, 1.0)})
    fabric = env.core.fabric
    there = by_switch(fabric.settings, fabric.network)
    for name in ("gold", "lead"):
        assert there.at(6)[name].ecn.kmin_bytes == 8_000
        assert there.at(7)[name].ecn.kmin_bytes == 800_000
    assert fabric.settings.tenants == default.tenants
    kmin = fabric._state.queue["kmin"].reshape(-1, 3)[:, 1:]
    source = fabric.network.link_src
    assert (kmin[source == 6] == 8_000).all() and (kmin[source == 7] == 800_000).all()


def test_steps_of_switches():
    env = make(TWO, agents="switches", knob_mode="delta")
    env.reset(seed=0)
    gold = by_switch(env.core.fabric.settings, env.core.fabric.network).at(6)["gold"]
    half = np.zeros(10)
    half[0] = -1.0  # kmin of the first class
    env.step({"switch 6": half, "switch 7": np.zeros(10)})
    there = by_switch(env.core.fabric.settings, env.core.fabric.network)
    assert gold.ecn.kmin_bytes == 400_000
    assert there.at(6)["gold"].ecn.kmin_bytes == pytest.approx(200_000, rel=1e-4)
    assert there.at(7)["gold"].ecn.kmin_bytes == pytest.approx(400_000, rel=1e-4)
    assert there.at(6)["lead"].ecn.kmin_bytes == pytest.approx(400_000, rel=1e-4)


@pytest.mark.parametrize("agents", ["switches", "both"])
def test_copies_and_snapshots_with_switches_go_on_alike(agents):
    env = make(TWO, agents=agents, history=2, noise=0.1, telemetry_delay=1)
    env.reset(seed=1)
    rng = np.random.default_rng(0)
    env.step(random_actions(env, rng))
    twin, snapshot = pickle.loads(pickle.dumps(env)), env.core.snapshot()
    actions = random_actions(env, rng)
    ours, theirs = env.step(actions), twin.step(actions)
    env.core.restore(snapshot)
    again = env.step(actions)
    for other in (theirs, again):
        assert ours[1:] == other[1:]
        assert all((ours[0][agent] == other[0][agent]).all() for agent in ours[0])


@pytest.mark.parametrize("agents", ["tenants", "switches", "both"])
def test_what_operators_could_see(agents):
    polling = {"switch_us": 50, "nic_us": 50}
    raw = TWO | {"control": TWO["control"] | {"observation": "deployable", "polling": polling}}
    env = make(raw, agents=agents)
    observations, _ = env.reset(seed=0)
    for _ in range(3):
        observations, *_ = env.step(random_actions(env, np.random.default_rng(0)))
    for agent in env.possible_agents:
        kinds = {n.partition("/")[0] for n in env.observation_names(agent)}
        tenant = {"nic", "switch", "poll", "knob"}
        assert kinds == ({agent, "poll", "knob"} if agent in SWITCHES else tenant)
        measured = [not n.startswith(("knob", "poll")) for n in env.observation_names(agent)]
        assert observations[agent][measured].any()


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
        ({"burst": np.full(10, np.nan)}, r"action of burst\[0\] \(class/lead/kmin\) = nan is"),
        ({"burst": "x"}, "action of burst: numbers are expected, got 'x'"),
        ({"burst": [1j] * 10}, "action of burst: numbers are expected"),
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
    with pytest.raises(ConfigError, match="agents = 'hosts' is not allowed; allowed: tenants, sw"):
        make(agents="hosts")
    with pytest.raises(ConfigError, match="rewards = 'own' is not allowed with agents = 'both'"):
        make(agents="both", rewards="own")
    with pytest.raises(ConfigError, match="rewards = 'mine' is not allowed; allowed: own, team"):
        make(agents="switches", rewards="mine")
    for wrong in ("abc", -3, 0, 1.5, True):
        with pytest.raises(ConfigError, match=f"max_cycles = {wrong!r} is not allowed; allowed: N"):
            make(max_cycles=wrong)
    with pytest.raises(
        ConfigError, match=r"reset options = \[1\] is not allowed; allowed: None, or"
    ):
        make().reset(options=[1])
    with pytest.raises(ConfigError, match="knobs: with agents that are switches"):
        make(agents="switches", knobs=KnobSpace)
    with pytest.raises(ConfigError, match=r"observation = .* is not allowed with agents that are"):
        make(agents="switches", observation=Observation)
    named = TWO | {"tenants": [TWO["tenants"][0] | {"name": "switch 7"}, TWO["tenants"][1]]}
    with pytest.raises(ConfigError, match=r"tenants\.name = 'switch 7' is the name of a switch"):
        make(named, agents="both")
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
