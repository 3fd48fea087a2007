import copy

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small import SMALL

from roce_gym.config import validate_scenario
from roce_gym.env import RoceEnv
from roce_gym.errors import ConfigError
from roce_gym.scenario_file import (
    SPLIT_SIZE,
    SPLITS,
    apply_overrides,
    available_scenarios,
    changes_of,
    draw,
    load_raw,
    seed_in,
    split_of,
)
from roce_gym.topology import build_network
from roce_gym.workload.planner import make_plan

VARIED = SMALL | {
    "splits": {
        "held_out": {"tenants.ring.hosts": [3, 2, 1, 0]},
        "stress": {
            "tenants.burst.jobs.0.bytes": {"integers": [400_000, 500_000]},
            "switch.buffer_bytes": 800_000,
        },
    }
}

numbers = st.integers(0, SPLIT_SIZE - 1)


@given(st.sampled_from(SPLITS), numbers)
def test_a_seed_is_in_one_split(split, number):
    seed = seed_in(split, number)
    assert split_of(seed) == split and seed_in(split, seed) == seed
    assert all(split_of(seed_in(other, number)) == other for other in SPLITS)
    assert float(seed) == seed and 0 <= seed < 2**63  # survives JSON, fits the core


@settings(max_examples=40, deadline=None)
@given(st.one_of(st.none(), numbers), st.one_of(st.none(), numbers), st.sampled_from(SPLITS))
def test_environment_never_leaves_its_split(seed, episode_seed, split):
    """Whatever is asked for, the episode is of the split, so none is in two of them."""
    env = RoceEnv(SMALL)
    chosen = env._choose_seed(seed, _options(split=split, episode_seed=episode_seed))
    assert split_of(chosen) == split
    own = RoceEnv(SMALL, split=split)
    assert split_of(own._choose_seed(seed, _options())) == split


def _options(**given):
    from roce_gym.options import check_options

    return check_options(given)


def test_training_never_meets_held_out__in_any_packaged_scenario():
    """Neither seeds nor what they draw: no held-out layout is among those trained on."""
    for name in available_scenarios():
        raw = load_raw(name)
        if draw(raw, 0) == draw(raw, 1):
            continue  # nothing is random
        env = RoceEnv(name)
        trained = {seed_in("train", n) for n in range(env._layouts)}
        rows = [{seed_in(split, n) for n in range(64)} for split in ("held_out", "stress")]
        assert trained.isdisjoint(rows[0] | rows[1]) and rows[0].isdisjoint(rows[1])
        layouts = {str(draw(raw, seed)) for seed in trained}
        assert all(str(draw(raw, seed)) not in layouts for row in rows for seed in row)


def test_placements_that_are_held_out_are_never_trained_on():
    for name in available_scenarios():
        raw = load_raw(name)
        held = {p: v for p, v in changes_of(raw).get("held_out", {}).items() if "hosts" in p}
        for path, value in held.items():
            tenant = path.split(".")[1]
            trained = next(t for t in raw["tenants"] if t["name"] == tenant)["hosts"]["choice"]
            assert not set(map(tuple, trained)) & set(map(tuple, value["choice"]))


@pytest.mark.parametrize("name", available_scenarios())
def test_every_split_of_packaged_scenarios_can_be_built(name):
    raw = load_raw(name)
    for split in SPLITS:
        for number in range(6):
            seed = seed_in(split, number)
            scenario = validate_scenario(draw(raw, seed))
            network = build_network(scenario.topology)
            assert make_plan(scenario, network, seed).jobs


# --------------------------------------------------------------------------- changes of a split


def test_changes_hold_in_their_split_only():
    by_split = {split: draw(VARIED, seed_in(split, 3)) for split in SPLITS}
    ring = [by_split[split]["tenants"][0]["hosts"] for split in SPLITS]
    assert ring == [[0, 1, 2, 3], [3, 2, 1, 0], [0, 1, 2, 3]]
    burst = [by_split[split]["tenants"][1]["jobs"][0]["bytes"] for split in SPLITS]
    assert burst[:2] == [200_000] * 2 and 400_000 <= burst[2] <= 500_000
    assert all("splits" not in raw for raw in by_split.values())
    assert "splits" in VARIED  # a copy was drawn from


def test_overrides_hold_in_every_split():
    raw = apply_overrides(VARIED, ["switch.buffer_bytes=700000", "tenants.ring.hosts=[1,2,3,4]"])
    for split in SPLITS:
        drawn = draw(raw, seed_in(split, 0))
        assert drawn["switch"]["buffer_bytes"] == 700_000
        assert drawn["tenants"][0]["hosts"] == [1, 2, 3, 4]


def test_an_override_inside_of_what_a_split_replaces():
    raw = copy.deepcopy(VARIED)
    raw["splits"]["stress"]["tenants.burst.jobs"] = [
        {"kind": "incast", "bytes": 1000, "degree": 2, "period_us": 90}
    ]
    raw = apply_overrides(raw, ["tenants.burst.jobs.0.degree=1"])
    job = draw(raw, seed_in("stress", 0))["tenants"][1]["jobs"][0]
    assert (job["degree"], job["period_us"]) == (1, 90)


@pytest.mark.parametrize(
    ("splits", "message"),
    [
        ([1], "splits: a mapping is expected, found list"),
        ({"test": {}}, "splits: 'test' is unknown; allowed: train, held_out, stress"),
        ({"stress": [1]}, r"splits\.stress: a mapping of dotted paths"),
        ({"stress": {"tenants.x.hosts": [1]}}, r"splits\.stress: .*tenants has no 'x'"),
        ({"stress": {"switch.buffer_bytes": -1}}, r"splits\.stress: switch\.buffer_bytes: must be"),
        ({"held_out": {"tenants.0.name": "other"}}, "seed 1000000000000 draws .*other"),
    ],
)
def test_faults__before_anything_runs(splits, message):
    with pytest.raises(ConfigError, match=message):
        RoceEnv(SMALL | {"splits": splits})


# --------------------------------------------------------------------------- reset options


def test_reset__split():
    env = RoceEnv(VARIED)
    info = env.reset(seed=4, options={"split": "held_out"})[1]
    assert info["episode_seed"] == SPLIT_SIZE + 4
    assert env.scenario.tenants[0].hosts == (3, 2, 1, 0)
    drawn = {env.reset(options={"split": "stress"})[1]["episode_seed"] for _ in range(5)}
    assert len(drawn) > 1 and all(split_of(seed) == "stress" for seed in drawn)
    assert split_of(env.reset()[1]["episode_seed"]) == "train"
    again = env.reset(options={"split": "held_out", "episode_seed": 4})[1]
    assert again["episode_seed"] == SPLIT_SIZE + 4
    assert env.reset(options={"episode_seed": SPLIT_SIZE + 4})[1] == again
    assert env.reset(seed=4)[1]["episode_seed"] == 4


def test_argument__split():
    env = RoceEnv(VARIED, split="held_out", layouts=4)
    assert env.reset(seed=0)[1]["episode_seed"] == SPLIT_SIZE
    drawn = {env.reset()[1]["episode_seed"] for _ in range(30)}
    assert drawn == {SPLIT_SIZE + n for n in range(4)}
    assert env.reset(seed=0, options={"split": "train"})[1]["episode_seed"] == 0


def test_reset__params_for_one_episode():
    env = RoceEnv(VARIED)
    params = {"tenants.burst.jobs.0.bytes": 123_456, "switch.buffer_bytes": {"integers": [9, 9]}}
    params["switch.buffer_bytes"] = {"integers": [900_000, 900_001]}
    for split in SPLITS:
        env.reset(seed=1, options={"params": params, "split": split})
        assert env.scenario.tenants[1].jobs[0].bytes == 123_456
        assert env.scenario.switch.buffer_bytes in (900_000, 900_001)
    env.reset(seed=1)
    assert env.scenario.tenants[1].jobs[0].bytes == 200_000


def test_reset__params_change_what_happens_and_the_references():
    env = RoceEnv(SMALL)
    runs = []
    for options in ({}, {"params": {"tenants.burst.jobs.0.bytes": 20_000}}, {}):
        env.reset(seed=1, options=options)
        for _ in range(10):
            *_, info = env.step(np.zeros(20))
        runs.append(info)
    assert runs[0] == runs[2] != runs[1]
    assert runs[1]["rounds/burst"] > 0
    params = {"tenants.burst.jobs.0.bytes": 20_000}
    env.reset(seed=1, options={"params": params, "preset": "default"})
    total = 0.0
    for _ in range(10):
        total += env.step(np.zeros(20))[1]
    assert abs(total) < 1e-9  # compared with the default settings of this very episode


def test_reset__another_scenario_with_the_same_spaces():
    other = copy.deepcopy(SMALL) | {"switch": {"buffer_bytes": 600_000}}
    env = RoceEnv(SMALL, overrides=["control.horizon_us=250"], history=2)
    env.reset(seed=1, options={"scenario": other})
    assert env.scenario.switch.buffer_bytes == 600_000
    assert env.scenario.control.horizon_us == 250 and env.scenario.control.history == 2
    env.reset(seed=1)
    assert env.scenario.switch.buffer_bytes == 1_000_000


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"split": "test"}, "split = 'test' is unknown; allowed: train, held_out, stress"),
        ({"split": 1}, "split = 1 is unknown"),
        ({"split": "train", "episode_seed": SPLIT_SIZE}, "is of split 'held_out', not 'train'"),
        ({"params": [1]}, r"params = \[1\] is not allowed"),
        ({"params": {1: 2}}, "params = "),
        ({"params": {"switch.bufer": 1}}, "switch has no 'bufer'"),
        ({"params": {"switch.buffer_bytes": "x"}}, "buffer_bytes"),
        ({"scenario": "nowhere"}, "scenario 'nowhere' is unknown"),
        ({"scenario": 7}, "scenario = 7 is not allowed"),
        ({"scenario": "noisy_neighbor"}, "classes: seed 0 draws"),
        ({"params": {"control.knob_mode": "multidiscrete"}}, "the environment has Box"),
        ({"params": {"control.knobs": {"kmin": None}}}, "knobs: seed 0 gives 2 entries"),
    ],
)
def test_reset__faults(options, message):
    with pytest.raises(ConfigError, match=message):
        RoceEnv(SMALL).reset(seed=0, options=options)


def test_argument__unknown_split():
    with pytest.raises(ConfigError, match="split = 'all' is unknown"):
        RoceEnv(SMALL, split="all")


def test_link_rate_buffer_and_period_can_be_drawn():
    raw = copy.deepcopy(SMALL)
    raw["topology"]["host_rate_gbps"] = {"choice": [50, 100, 200]}
    raw["switch"]["buffer_bytes"] = {"integers": [800_000, 1_200_000]}
    raw["tenants"][1]["jobs"][0] |= {
        "period_us": {"log_uniform": [80.0, 300.0]},
        "degree": {"integers": [1, 3]},
    }
    raw["tenants"][0]["hosts"] = {"kind": "random", "count": {"integers": [3, 5]}}
    env = RoceEnv(raw)
    seen = set()
    for seed in range(8):
        env.reset(seed=seed)
        job = env.scenario.tenants[1].jobs[0]
        rate = env.scenario.topology.host_rate_gbps
        seen.add((rate, env.scenario.switch.buffer_bytes, job.period_us, job.degree))
        assert env.step(env.action_space.sample())[0] in env.observation_space
        kmin = env.knobs.knobs[0]
        assert kmin.high == pytest.approx(800_000 * rate / 100)
    assert len(seen) == 8 and len({row[0] for row in seen}) > 1 and len({r[3] for r in seen}) > 1
