import numpy as np
import pytest
from small import SMALL, make_interval, parts

from roce_gym.config import ControlConfig
from roce_gym.env import RoceEnv
from roce_gym.errors import ConfigError
from roce_gym.observation import Observation
from roce_gym.sight import Sight


class Counting:
    """Sees how long an interval has been; one knob."""

    names = ("time", "knob/a")

    def __init__(self):
        from gymnasium.spaces import Box

        self.space = Box(0.0, 1.0, (2,), np.float32)

    def __call__(self, interval, knobs):
        return np.array([interval, knobs[0]], np.float32)

    def at_start(self, knobs):
        return np.array([0.0, knobs[0]], np.float32)


def shown(**control):
    sight = Sight(Counting(), ControlConfig(**control), 0)
    rows = [sight.at_start([0.5])]
    rows += [sight(i / 10, [i]) for i in (1, 2, 3, 4)]
    return sight, [np.round(row, 3).tolist() for row in rows]


def test_plain__what_the_eyes_see():
    sight, rows = shown()
    assert np.array(rows) == pytest.approx(
        np.array([[0, 0.5], [0.1, 1], [0.2, 2], [0.3, 3], [0.4, 4]])
    )
    assert sight.names == Counting.names


def test_delay__measurements_are_late__knobs_are_not():
    _, rows = shown(telemetry_delay=2)
    assert rows == [pytest.approx(row) for row in ([0, 0.5], [0, 1], [0, 2], [0.1, 3], [0.2, 4])]


def test_history__oldest_first():
    sight, rows = shown(history=3)
    assert sight.names == ("time@-2", "knob/a@-2", "time@-1", "knob/a@-1", "time", "knob/a")
    assert rows[0] == pytest.approx([0, 0.5] * 3)
    assert rows[1] == pytest.approx([0, 0.5, 0, 0.5, 0.1, 1])
    assert rows[4] == pytest.approx([0.2, 2, 0.3, 3, 0.4, 4])
    assert sight.space.shape == (6,)


def test_history_of_late_measurements():
    _, rows = shown(history=2, telemetry_delay=1)
    assert rows[4] == pytest.approx([0.2, 3, 0.3, 4])


def test_a_new_episode_forgets():
    sight, _ = shown(history=2, telemetry_delay=1)
    assert sight.at_start([0.0]).tolist() == [0.0] * 4


def test_noise__relative_before_scaling_and_of_the_stated_size():
    scenario, network, plan = parts()
    eyes = Observation(scenario, network, plan, ("a",))
    interval = make_interval(
        scenario, network, plan, delivered_bytes=np.full(len(plan.qps), 30_000, np.int64)
    )
    exact = eyes(interval, [0.2])
    sight = Sight(eyes, ControlConfig(noise=0.1), 7)
    seen = np.array([sight(interval, [0.2]) for _ in range(4000)])
    is_zero = exact == 0
    assert (seen[:, is_zero] == 0).all()  # a counter that did not move is read as it is
    assert (seen[:, -1] == exact[-1]).all()  # the knob
    i = eyes.names.index("tenant/ring/throughput")
    logs = np.log(seen[:, i] / exact[i])
    assert logs.std() == pytest.approx(0.1, rel=0.05) and abs(logs.mean()) < 0.01
    again = Sight(eyes, ControlConfig(noise=0.1), 7)
    other = Sight(eyes, ControlConfig(noise=0.1), 8)
    assert (again(interval, [0.2]) == seen[0]).all()
    assert (other(interval, [0.2]) != seen[0]).any()


def test_noise_needs_eyes_that_know_errors():
    with pytest.raises(ConfigError, match=r"control\.noise = 0.1 needs an observation with"):
        Sight(Counting(), ControlConfig(noise=0.1), 0)


# --------------------------------------------------------------------------- in the environment


def play(env, seed=0, steps=10):
    rng = np.random.default_rng(1)
    rows = [env.reset(seed=seed)[0]]
    rewards = []
    for _ in range(steps):
        observation, reward, *_ = env.step(rng.uniform(-1, 1, env.action_space.shape))
        rows.append(observation)
        rewards.append(reward)
    return np.array(rows), rewards


def test_options_change_what_is_seen__not_what_happens():
    plain, rewards = play(RoceEnv(SMALL))
    for arguments in ({"history": 3}, {"telemetry_delay": 2}, {"noise": 0.2}):
        env = RoceEnv(SMALL, **arguments)
        seen, same = play(env)
        assert same == rewards
        assert seen[0] in env.observation_space and seen[-1] in env.observation_space
        assert seen.shape != plain.shape or (seen != plain).any()
    late, _ = play(RoceEnv(SMALL, telemetry_delay=2))
    measured = [not n.startswith("knob/") for n in RoceEnv(SMALL).eyes.names]
    assert (late[3:, measured] == plain[1:-2, measured]).all()
    assert (late[:, np.logical_not(measured)] == plain[:, np.logical_not(measured)]).all()
    stacked, _ = play(RoceEnv(SMALL, history=3))
    assert (stacked[5].reshape(3, -1) == plain[3:6]).all()


def test_action_delay__what_is_chosen_holds_later():
    env = RoceEnv(SMALL, action_delay=2)
    env.reset(seed=0)
    base = env.fabric.settings
    chosen = [np.full(20, value) for value in (-0.5, 0.1, 0.6)]
    env.step(chosen[0])
    assert env.fabric.settings == base
    assert (env._position == chosen[0]).all()  # what is seen is what was chosen last
    env.step(chosen[1])
    assert env.fabric.settings == base
    env.step(chosen[2])
    assert env.fabric.settings == env.knobs.decode(chosen[0])
    env.step(chosen[2])
    assert env.fabric.settings == env.knobs.decode(chosen[1])
    env.reset(seed=0)
    env.step(chosen[0])
    assert env.fabric.settings == base  # nothing is left over from the episode before


def test_noise_can_be_drawn_by_seed():
    raw = SMALL | {"control": SMALL["control"] | {"noise": {"uniform": [0.0, 0.2]}}}
    env = RoceEnv(raw)
    drawn = set()
    for seed in range(4):
        env.reset(seed=seed)
        drawn.add(env.scenario.control.noise)
    assert len(drawn) == 4


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"history": 0}, r"control\.history: .*\(got 0\)"),
        ({"history": 65}, r"control\.history: .*64 \(got 65\)"),
        ({"telemetry_delay": -1}, r"control\.telemetry_delay: .*\(got -1\)"),
        ({"action_delay": 1.5}, r"control\.action_delay: must be a whole number \(got 1.5\)"),
        ({"noise": 2}, r"control\.noise: .*1 \(got 2\)"),
        ({"noise": float("nan")}, r"control\.noise"),
        ({"observation": "all"}, r"control\.observation: must be 'full' or 'deployable'"),
    ],
)
def test_faults(arguments, message):
    with pytest.raises(ConfigError, match=message):
        RoceEnv(SMALL, **arguments)


def test_spaces_must_not_change_with_the_seed():
    raw = SMALL | {"control": SMALL["control"] | {"history": {"choice": [1, 2]}}}
    env = RoceEnv(raw)
    with pytest.raises(ConfigError, match=r"observation: seed \d+ gives \d+ entries"):
        for seed in range(20):
            env.reset(seed=seed)
