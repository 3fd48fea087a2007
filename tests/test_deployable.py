import copy

import numpy as np
import pytest
from small import SMALL, make_interval, parts

from roce_gym.deployable import DeployableObservation
from roce_gym.env import RoceEnv
from roce_gym.observation import Observation


def eyes_and_parts(nic_us=200, switch_us=300):
    scenario, network, plan = parts()
    polling = {"nic_us": nic_us, "switch_us": switch_us}
    control = {"control": SMALL["control"] | {"polling": polling}}
    scenario, network, plan = parts(scenario.model_dump(mode="json") | control)
    eyes = DeployableObservation(scenario, network, plan, ("a", "b"))
    return eyes, scenario, network, plan


def grid(network, value, links, cls):
    out = np.zeros((network.num_links, 2), np.int64)
    out[links, cls] = value
    return out


def test_names__nothing_of_queue_pairs():
    eyes, *_ = eyes_and_parts()
    assert len(eyes.names) == 2 * 5 + 2 * 6 + 2 + 2 and eyes.space.shape == (26,)
    assert eyes.num_measured == 24
    for word in ("rate", "alpha", "active", "outstanding"):
        assert not any(word in name for name in eyes.names)


def test_counters_are_shown_when_polled_and_held_until_the_next_poll():
    eyes, scenario, network, plan = eyes_and_parts()
    host_links, out, into = network.host_link, network.from_switch, network.into_switch
    i = eyes.names.index
    assert (eyes.at_start([0.0, 1.0])[:-2] == 0).all()
    shown = []
    for number in range(1, 7):  # intervals of 100 us; a NIC is polled after 2, a switch after 3
        interval = make_interval(
            scenario,
            network,
            plan,
            (number - 1) * 100,
            number * 100,
            tx_bytes=grid(network, 125_000 * number, host_links[:4], 0),
            tx_packets=grid(network, 10, out, 0),
            ecn_marked_packets=grid(network, number, out[:1], 0),
            queue_max_bytes=grid(network, 100_000 if number == 2 else 50_000, out[:1], 0),
            paused_ps=grid(network, 20_000_000, host_links[:1], 0),
            pause_frames=grid(network, 6, into, 1),
            cnps=np.full(len(plan.qps), number, np.int64),
        )
        shown.append(eyes(interval, [0.0, 1.0]))
    table = np.array(shown)
    sent = table[:, i("nic/ring/sent")]
    # The ring's hosts send 125 KB x number in 100 us; 100 Gb/s are 1,250 KB.
    assert sent == pytest.approx([0, 0.15, 0.15, 0.35, 0.35, 0.55], abs=1e-6)
    marked = table[:, i("switch/gold/marked_fraction")]
    # 1 + 2 + 3 of 6 ports x 30 packets, then 4 + 5 + 6.
    assert marked == pytest.approx([0, 0, 6 / 180, 6 / 180, 6 / 180, 15 / 180], abs=1e-6)
    mark = table[:, i("switch/gold/queue_watermark")]
    peaks = np.log1p(np.array([0.1, 0.05]) / 0.01) / np.log1p(1 / 0.01)
    assert mark == pytest.approx([0, 0, peaks[0], peaks[0], peaks[0], peaks[1]], rel=1e-5)
    assert table[1, i("nic/ring/paused")] == pytest.approx(0.2 / 4)
    pauses = np.log1p(6 / 100e-6 / 30) / np.log1p(100_000 / 30)
    assert table[2, i("switch/lead/pause_frames")] == pytest.approx(pauses, rel=1e-5)
    assert table[:, i("poll/nic")] == pytest.approx([0.5, 0, 0.5, 0, 0.5, 0])
    assert table[:, i("poll/switch")] == pytest.approx([1 / 3, 2 / 3, 0, 1 / 3, 2 / 3, 0], abs=1e-6)
    assert (table[:, -2:] == [0.5, 1.0]).all()


def test_nic_counters_are_of_ports__whoever_sends():
    """A CNP that a host handles for the ring counts for every tenant that has the host."""
    eyes, scenario, network, plan = eyes_and_parts(nic_us=100)
    cnps = np.array([10 * (q.src == 3 and q.tenant == 0) for q in plan.qps], np.int64)
    row = eyes(make_interval(scenario, network, plan, cnps=cnps), [0, 0])
    i = eyes.names.index
    assert row[i("nic/ring/cnps_handled")] == row[i("nic/burst/cnps_handled")] > 0


def test_a_new_episode_and_a_copy():
    eyes, scenario, network, plan = eyes_and_parts(nic_us=100)
    busy = make_interval(
        scenario, network, plan, tx_bytes=grid(network, 125_000, network.host_link, 0)
    )
    first = eyes(busy, [0, 0])
    assert first.any()
    twin = copy.deepcopy(eyes)
    later = make_interval(scenario, network, plan, 100, 150)
    assert (twin(later, [0, 0]) == eyes(later, [0, 0])).all()
    assert (eyes.at_start([-1, -1]) == 0).all()
    assert (eyes(later, [-1, -1])[:-4] == 0).all()


def test_polling_faster_than_the_interval_agrees_with_the_full_observation():
    control = SMALL["control"] | {"polling": {"nic_us": 10, "switch_us": 10}}
    raw = SMALL | {"control": control}
    env, full = RoceEnv(raw, observation="deployable"), RoceEnv(raw)
    for one in (env, full):
        one.reset(seed=0)
    pairs = [
        ("switch/gold/queue_watermark", "class/gold/queue_max"),
        ("switch/lead/queue_watermark", "class/lead/queue_max"),
        ("switch/lead/marked_fraction", "class/lead/marked_fraction"),
        ("switch/lead/pause_frames", "class/lead/pause_frames"),
    ]
    action = np.full(20, -0.5)
    seen = 0.0
    for _ in range(10):
        ours, theirs = env.step(action)[0], full.step(action)[0]
        assert ours in env.observation_space
        for mine, other in pairs:
            value = ours[env.sight.names.index(mine)]
            assert value == pytest.approx(theirs[full.sight.names.index(other)], abs=1e-6)
            seen += value
    assert seen > 0.5


def test_real_polling_rates_show_nothing_before_they_are_due():
    env = RoceEnv(SMALL, observation="deployable")
    observation, _ = env.reset(seed=0)
    for _ in range(10):  # 0.5 ms; NICs are read every 10 ms, switches every second
        observation, *_ = env.step(np.zeros(20))
    values = dict(zip(env.sight.names, observation.tolist(), strict=True))
    assert all(v == 0 for k, v in values.items() if k.startswith(("switch/", "nic/")))
    assert values["poll/nic"] == pytest.approx(0.05)
    assert isinstance(RoceEnv(SMALL).eyes, Observation)
