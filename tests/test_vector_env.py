import pickle
import threading
import warnings

import gymnasium
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from small import SMALL

from roce_gym.batch import Batch
from roce_gym.env import RoceEnv
from roce_gym.errors import ActionError, ConfigError, SimulationError
from roce_gym.parts import run_in_turn
from roce_gym.registration import ENVIRONMENTS
from roce_gym.vector_env import RoceVectorEnv

MODES = list(AutoresetMode)
STEPS = 23
"""More than two episodes of `SMALL`, which have ten steps each."""


def make(num_envs=3, **kwargs):
    return RoceVectorEnv(num_envs, scenario=SMALL, layouts=4, **kwargs)


def actions_of(env, steps=STEPS):
    rng = np.random.default_rng(1)
    return rng.uniform(-1, 1, (steps, *env.action_space.shape)).astype(np.float32)


def same(a, b):
    """Bit for bit, types included."""
    if isinstance(a, dict):
        assert isinstance(b, dict) and list(a) == list(b)
        return all(same(a[key], b[key]) for key in a)
    if isinstance(a, np.ndarray) and a.dtype == object:
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    return type(a) is type(b) and a == b


def play(env, mode, seed=7):
    """All that a vector answers; without autoreset, episodes that end are reset by mask."""
    out = [env.reset(seed=seed)]
    for action in actions_of(env):
        out.append(env.step(action))
        over = out[-1][2] | out[-1][3]
        if mode == AutoresetMode.DISABLED and over.any():
            out.append(env.reset(options={"reset_mask": over}))
    return out


# --------------------------------------------------------------------------- equivalence


@pytest.mark.parametrize("mode", MODES)
def test_equals_gymnasiums_own_vector__whatever_the_number_of_threads(mode):
    makers = [lambda: RoceEnv(SMALL, layouts=4)] * 3
    expected = play(SyncVectorEnv(makers, autoreset_mode=mode), mode)
    for threads in (1, 2, 3):
        found = play(make(threads=threads, autoreset_mode=mode), mode)
        assert len(found) == len(expected)
        for ours, theirs in zip(found, expected, strict=True):
            for a, b in zip(ours[:-1], theirs[:-1], strict=True):
                assert same(a, b)
            assert same(dict(sorted(ours[-1].items())), dict(sorted(theirs[-1].items())))


@pytest.mark.parametrize("threads", [1, 2])
def test_equals_single_environments_with_seeds_one_apart(threads):
    vector = make(3, threads=threads)
    singles = [RoceEnv(SMALL, layouts=4) for _ in range(3)]
    observations, infos = vector.reset(seed=5)
    for i, env in enumerate(singles):
        observation, info = env.reset(seed=5 + i)
        assert observation.tobytes() == observations[i].tobytes()
        assert info == {key: infos[key][i] for key in info}
    for action in actions_of(vector, 10):
        answer = vector.step(action)
        for i, env in enumerate(singles):
            observation, reward, terminated, truncated, info = env.step(action[i])
            assert observation.tobytes() == answer[0][i].tobytes()
            assert (reward, terminated, truncated) == tuple(part[i] for part in answer[1:4])
            assert info == {key: answer[4][key][i] for key in info}
    assert answer[3].all()


@pytest.mark.parametrize("env_id", ENVIRONMENTS)
def test_make_vec__with_real_scenarios(env_id):
    kwargs = {"overrides": ["control.horizon_us=1000"], "layouts": 2}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ours = gymnasium.make_vec(env_id, num_envs=2, threads=2, **kwargs)
        theirs = gymnasium.make_vec(env_id, num_envs=2, vectorization_mode="sync", **kwargs)
    assert isinstance(ours, RoceVectorEnv) and isinstance(theirs, SyncVectorEnv)
    assert ours.single_action_space == theirs.single_action_space
    assert ours.observation_space == theirs.observation_space
    assert ours.metadata["autoreset_mode"] == AutoresetMode.NEXT_STEP
    assert RoceVectorEnv.metadata == {}  # of the instance, not of the class
    assert ours.spec.to_json() and gymnasium.make_vec(ours.spec).num_envs == 2
    assert same(ours.reset(seed=1)[1], theirs.reset(seed=1)[1])
    for action in actions_of(ours, 12):
        for a, b in zip(ours.step(action), theirs.step(action), strict=True):
            assert same(a, b)
    ours.close()
    ours.close()


def test_gymnasiums_vector_wrappers():
    wrapped = gymnasium.wrappers.vector.RecordEpisodeStatistics(make(2, threads=1))
    wrapped = gymnasium.wrappers.vector.NormalizeObservation(wrapped)
    wrapped.reset(seed=0)
    for action in actions_of(wrapped, 10):
        *_, infos = wrapped.step(action)
    assert infos["episode"]["l"].tolist() == [10, 10]


# --------------------------------------------------------------------------- modes


def test_next_step__resets_with_the_step_after_the_end():
    env = make(2)
    env.reset(seed=0)
    for action in actions_of(env, 10):
        *_, truncated, infos = env.step(action)
    assert truncated.all() and (infos["time_us"] == 500).all()
    _, rewards, _, truncated, infos = env.step(actions_of(env, 1)[0])
    assert not truncated.any() and (infos["time_us"] == 0).all() and (rewards == 0).all()
    assert rewards.dtype == np.float64


def test_same_step__keeps_what_the_episode_ended_with():
    env = make(2, autoreset_mode="SameStep")
    _, infos = env.reset(seed=0)
    keys, finals = {key: value.dtype for key, value in infos.items()}, []
    for action in actions_of(env, 20):
        observations, _, terminated, truncated, infos = env.step(action)
        final = {key: infos.pop(key) for key in list(infos) if "final_" in key}
        assert {key: value.dtype for key, value in infos.items()} == keys
        assert bool(final) == truncated.any() and not terminated.any()
        if final:
            assert (final["_final_obs"] == truncated).all()
            assert (final["_final_info"] == truncated).all()
            finals.append(final)
            assert (infos["time_us"] == 0).all()
            assert (final["final_info"]["time_us"] == 500).all()
            assert final["final_info"]["_time_us"].all()
            assert all(x in env.single_observation_space for x in final["final_obs"])
            assert (final["final_obs"][0] != observations[0]).any()
    assert len(finals) == 2


def test_disabled__resets_only_what_the_mask_says():
    env = make(3, autoreset_mode=AutoresetMode.DISABLED)
    before, _ = env.reset(seed=0)
    options = {"reset_mask": np.array([False, True, False]), "episode_seed": 9}
    after, infos = env.reset(options=options)
    assert set(options) == {"reset_mask", "episode_seed"}
    assert (after[[0, 2]] == before[[0, 2]]).all()
    assert infos["episode_seed"].tolist() == [0, 9, 0]
    assert infos["_episode_seed"].tolist() == [False, True, False]
    for action in actions_of(env, 10):
        env.step(action)
    with pytest.raises(ResetNeeded, match=r"reset_mask.*environments \[0, 1, 2\] are over"):
        env.step(actions_of(env, 1)[0])


def test_max_episode_steps():
    env = make(2, max_episode_steps=4, autoreset_mode="SameStep")
    env.reset(seed=0)
    ends = [bool(env.step(action)[3].all()) for action in actions_of(env, 9)]
    assert [i for i, end in enumerate(ends) if end] == [3, 7]


def test_arrays_are_fresh():
    env = make(2)
    first, _ = env.reset(seed=0)
    copied = first.copy()
    second, *_ = env.step(actions_of(env, 1)[0])
    second[:] = 7
    third, *_ = env.step(actions_of(env, 1)[0])
    assert (first == copied).all() and (third != 7).any()
    first, _ = env.reset(options={"reset_mask": np.array([True, False])})
    first[:] = 7
    again, _ = env.reset(options={"reset_mask": np.array([True, False])})
    assert (again[1] == third[1]).all()


# --------------------------------------------------------------------------- the rest


def test_pickle_goes_on_alike():
    env = make(2, threads=2)
    env.reset(seed=3)
    env.step(actions_of(env, 1)[0])
    twin = pickle.loads(pickle.dumps(env))
    for action in actions_of(env, 12):
        assert all(same(a, b) for a, b in zip(env.step(action), twin.step(action), strict=True))


def test_attributes_and_calls():
    env = make(2, render_mode="ansi")
    env.reset(seed=[4, None])
    assert env.get_attr("episode_seed")[0] == 4 and env.np_random_seed[0] == 4
    env.set_attr("mark", [1, 2])
    assert env.get_attr("mark") == (1, 2)
    env.set_attr("mark", "x")
    assert env.call("get_wrapper_attr", "mark") == ("x", "x")
    env.step(actions_of(env, 1)[0])
    assert len(env.render()) == 2 and "0.050 ms" in env.render()[0]
    assert make(1).render() is None
    assert len({id(generator) for generator in env.np_random}) == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_envs": 0}, "num_envs = 0 is not allowed"),
        ({"num_envs": True}, "num_envs = True"),
        ({"threads": 0}, "threads = 0 is not allowed; allowed: None, or 1 and above"),
        ({"threads": 1.5}, "threads = 1.5 is not allowed"),
        ({"threads": "x"}, "threads = 'x' is not allowed"),
        ({"threads": True}, "threads = True is not allowed"),
        ({"autoreset_mode": "never"}, "autoreset_mode = 'never' is not allowed; allowed: 'NextSt"),
        ({"max_episode_steps": 0}, "max_episode_steps = 0"),
        ({"layouts": 0}, "layouts = 0"),
    ],
)
def test_arguments__faults(arguments, message):
    with pytest.raises(ConfigError, match=message):
        RoceVectorEnv(**({"scenario": SMALL} | arguments))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"seed": [1]}, r"seed = \[1\] is not allowed; allowed: None, a whole number, or 2"),
        ({"seed": 1.5}, "seed = 1.5 is not allowed"),
        ({"seed": [1.7, 2.2]}, r"seed = \[1.7, 2.2\] is not allowed"),
        ({"seed": np.array([1.0, 2.0])}, r"seed = \[1.0, 2.0\] is not allowed"),
        ({"seed": "12"}, "seed = '12' is not allowed"),
        ({"seed": [True, False]}, r"seed = \[True, False\] is not allowed"),
        ({"seed": np.array([True, False])}, r"seed = \[True, False\] is not allowed"),
        ({"seed": [0, -1]}, r"seed = \[0, -1\] is not allowed"),
        ({"options": [1]}, r"reset options = \[1\] is not allowed; allowed: None, or a mapping"),
        ({"options": {"reset_mask": [True, False]}}, "reset_mask = .* is not allowed"),
        ({"options": {"reset_mask": np.zeros(2, bool)}}, "at least one True"),
        ({"options": {"reset_mask": np.ones(3, bool)}}, r"shape \(2,\)"),
        ({"options": {"nonsense": 1}}, r"environment 0 \(scenario 'small', seed 0\).*'nonsense'"),
    ],
)
def test_reset__faults(arguments, message):
    with pytest.raises(ConfigError, match=message):
        make(2).reset(**arguments)


@pytest.mark.parametrize("seeds", [[4, 9], (np.int64(4), 9), np.array([4, 9]), [4, None]])
def test_reset__seeds_of_each(seeds):
    drawn = make(2).reset(seed=seeds)[1]["episode_seed"].tolist()
    assert drawn[0] == 4 and (seeds[1] is None or drawn[1] == 9)


def test_bad_actions_change_nothing_and_name_the_environment():
    env = make(2)
    with pytest.raises(ResetNeeded, match="no episode was started"):
        env.step(env.action_space.sample())
    env.reset(seed=10)
    good = actions_of(env, 1)[0]
    bad = good.copy()
    bad[1, 2] = np.nan
    with pytest.raises(
        ActionError, match=r"environment 1 \(scenario 'small', seed 11\): action\[2\]"
    ):
        env.step(bad)
    for shape in (good[:1], good[0], 5):
        with pytest.raises(ActionError, match=r"allowed: \(2, 20\)|allowed: \(20,\)"):
            env.step(shape)
    first = env.step(good)
    env.reset(seed=10)
    assert all(same(a, b) for a, b in zip(first, env.step(good), strict=True))


@pytest.mark.parametrize("threads", [1, 2])
def test_a_fault_is_reported_with_seed_and_scenario(threads):
    env = make(3, threads=threads)
    env.reset(seed=20)
    good = actions_of(env, 1)[0]

    def fail(**_):
        raise SimulationError("the core stopped with status 9 at 5 ps")

    env.envs[1].fabric.advance_in_parts = fail
    with pytest.raises(
        SimulationError, match=r"environment 1 \(scenario 'small', seed 21\): the core stopped"
    ):
        env.step(good)
    assert [e.fabric.now_ps for e in env.envs] == [50_000_000, 0, 50_000_000]
    with pytest.raises(ResetNeeded, match="one failed"):
        env.step(good)
    env.reset(options={"reset_mask": np.array([True, True, False])})
    with pytest.raises(ResetNeeded):
        env.step(good)
    env.reset(seed=20)
    env.step(good)


def test_a_foreign_exception_keeps_its_type():
    batch = Batch([RoceEnv(SMALL), RoceEnv(SMALL)], threads=2)
    with pytest.raises(ZeroDivisionError) as caught:
        batch.each(lambda i: 1 // (1 - i))
    assert caught.value.__notes__ == ["in environment 1 (scenario 'small', seed 0)"]
    assert batch.each(lambda i: 10 * i, [1]) == [10]
    batch.close()


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_tasks_in_parts(threads):
    here, batch = threading.get_ident(), Batch([RoceEnv(SMALL) for _ in range(3)], threads)
    between = []

    def task(i, faulty=None):
        total = 0
        for k in range(i + 1):
            between.append((k, i, threading.get_ident() == here))
            total += yield lambda k=k: 1 // (k != 1 or i != faulty) + k
        return total

    assert batch.each_in_parts(task) == [1, 3, 6]
    # One environment after the other, and all parts of one round before the next.
    assert between == [(k, i, True) for k in range(3) for i in range(k, 3)]
    with pytest.raises(ZeroDivisionError) as caught:
        batch.each_in_parts(lambda i: task(i, faulty=1))
    assert caught.value.__notes__ == ["in environment 1 (scenario 'small', seed 0)"]
    assert between[6:] == between[:6]  # the others came to their end
    batch.close()


def test_tasks_in_parts__hear_of_the_faults_of_their_parts():
    def fail():
        raise ValueError("part")

    def task(i):
        try:
            yield fail if i else dict
        except ValueError as error:
            return str(error)
        return "none"

    assert Batch([RoceEnv(SMALL), RoceEnv(SMALL)], 2).each_in_parts(task) == ["none", "part"]
    assert [run_in_turn(task(i)) for i in range(2)] == ["none", "part"]
    with pytest.raises(ValueError, match="part"):
        run_in_turn(part for part in [fail])
