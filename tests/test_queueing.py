"""Weights, shares and shapers at run time, and as knobs."""

import json

import numpy as np
import pytest
from small import SMALL

from roce_gym.cli import main
from roce_gym.config import validate_scenario
from roce_gym.env import RoceEnv
from roce_gym.errors import TuningError
from roce_gym.fabric import Fabric
from roce_gym.knobs import KnobSpace
from roce_gym.scenario_file import load_scenario
from roce_gym.topology import build_network

BURST = {"rate_gbps": 0, "burst_bytes": 20_000}
TENANTS = [
    {
        "name": "ring",
        "traffic_class": "gold",
        "hosts": [0, 1, 2, 3],
        "jobs": [{"kind": "ring_all_reduce", "bytes": 100_000}],
        "shaper": BURST,
    },
    {
        "name": "burst",
        "traffic_class": "lead",
        "hosts": [3, 4, 5, 0],
        "jobs": [{"kind": "incast", "bytes": 200_000, "degree": 3, "period_us": 150}],
    },
]
ALL = SMALL | {
    "classes": [
        {"name": "gold", "scheduling": "dwrr", "buffer": {"pool_share": 0.4}},
        {"name": "lead", "priority": 4, "scheduling": "dwrr", "weight": 2, "shaper": BURST},
    ],
    "tenants": TENANTS,
}
NAMES = (
    "class/gold/weight",
    "class/lead/weight",
    "class/gold/pool_share",
    "class/lead/shaper_rate",
    "tenant/ring/shaper_rate",
)


@pytest.fixture
def fabric():
    return Fabric(validate_scenario(ALL))


def with_class(settings, name, **update):
    changed = settings.classes[name].model_copy(update=update)
    return settings.model_copy(update={"classes": settings.classes | {name: changed}})


def with_buffer(settings, name, **update):
    buffer = settings.classes[name].buffer.model_copy(update=update)
    return with_class(settings, name, buffer=buffer)


# --------------------------------------------------------------------------- settings


def test_settings_come_from_the_scenario_whatever_the_preset():
    for preset in (None, "dcqcn_paper"):
        settings = Fabric(validate_scenario(ALL), preset=preset).settings
        assert settings.classes["lead"].weight == 2
        assert settings.classes["lead"].shaper.burst_bytes == 20_000
        assert set(settings.shapers) == {"ring"}


def test_shares_change_at_run_time(fabric):
    room = int(fabric._state.switch["pool"].sum())
    assert fabric._state.switch["pool"][1] == int(0.4 * room)
    fabric.advance(us=20)
    fabric.apply(with_buffer(fabric.settings, "gold", pool_share=0.7))
    assert fabric._state.switch["pool"].tolist() == [room - int(0.7 * room), int(0.7 * room)]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda s: with_class(s, "gold", shaper=s.shapers["ring"]),
            r"gold\.shaper: none is needed",
        ),
        (lambda s: with_class(s, "lead", shaper=None), r"lead\.shaper: one is needed"),
        (lambda s: s.model_copy(update={"shapers": {}}), r"tenants\.ring\.shaper: one is needed"),
        (
            lambda s: s.model_copy(update={"shapers": s.shapers | {"tin": s.shapers["ring"]}}),
            r"'tin' is unknown; allowed: ring, burst",
        ),
        (lambda s: with_buffer(s, "lead", pool_share=0.2), r"lead\.buffer\.pool_share = 0\.2"),
        (lambda s: with_buffer(s, "gold", pool_share=None), r"gold\.buffer\.pool_share is missing"),
        (lambda s: with_buffer(s, "gold", egress_alpha=1.0), r"gold\.buffer\.egress_alpha = 1\.0"),
        (
            lambda s: with_class(
                s, "lead", shaper=s.shapers["ring"].model_copy(update={"burst_bytes": 100})
            ),
            r"classes\.lead\.shaper\.burst_bytes = 100",
        ),
        (
            lambda s: s.model_copy(
                update={
                    "shapers": {"ring": s.shapers["ring"].model_copy(update={"rate_gbps": 200.0})}
                }
            ),
            r"tenants\.ring\.shaper\.rate_gbps = 200\.0 .* at most 100",
        ),
    ],
)
def test_settings_that_contradict_the_scenario(fabric, change, message):
    before = fabric._state.switch.copy(), fabric._state.bucket.copy()
    with pytest.raises(TuningError, match=message):
        fabric.apply(change(fabric.settings))
    assert np.array_equal(before[0], fabric._state.switch)
    assert np.array_equal(before[1], fabric._state.bucket)


def test_a_weight_needs_dwrr():
    fabric = Fabric(validate_scenario(SMALL | {"tenants": TENANTS}))
    with pytest.raises(TuningError, match=r"classes\.gold\.weight = 3 has no meaning"):
        fabric.apply(with_class(fabric.settings, "gold", weight=3))


# --------------------------------------------------------------------------- knobs


def test_knobs_come_after_all_others():
    scenario = validate_scenario(ALL)
    knobs = KnobSpace(scenario, build_network(scenario.topology))
    assert knobs.names[-5:] == NAMES
    assert not any("weight" in name or "shaper" in name for name in knobs.names[:-5])


def test_knobs_decode_and_encode():
    scenario = validate_scenario(ALL)
    knobs = KnobSpace(scenario, build_network(scenario.topology))
    action = np.zeros(len(knobs.names), np.float32)
    action[-5:] = [1, -1, 0, -1, 1]
    settings = knobs.decode(action)
    assert [settings.classes[name].weight for name in ("gold", "lead")] == [100, 1]
    assert settings.classes["gold"].buffer.pool_share == pytest.approx(0.02**0.5)
    assert settings.classes["lead"].shaper.rate_gbps == pytest.approx(2.0)
    assert settings.shapers["ring"].rate_gbps == pytest.approx(100.0)
    assert knobs.encode(settings) == pytest.approx(action, abs=1e-3)
    assert knobs.encode(knobs.base)[-1] == pytest.approx(1.0)  # no limit


def test_no_action_is_invalid(fabric):
    knobs = KnobSpace(fabric.scenario, fabric.network)
    r = np.random.default_rng(5)
    for _ in range(30):
        fabric.apply(knobs.decode(r.choice([-1.0, 0.3, 1.0], len(knobs.names))))
        assert fabric.advance(us=10).dropped_packets.sum() == 0


def test_the_environment_turns_them():
    env = RoceEnv(ALL)
    assert env.knobs.names[-5:] == NAMES
    observations = []
    for _ in range(2):
        observation, _ = env.reset(seed=3)
        observations.append([observation])
        for value in (-1.0, 0.0, 1.0):
            action = np.full(env.action_space.shape, value, np.float32)
            observations[-1].append(env.step(action)[0])
    assert np.array_equal(observations[0], observations[1])
    env.close()


def test_shares_that_add_up_to_one_but_for_rounding():
    classes = [
        {"name": name, "priority": i, "buffer": {"pool_share": share, "reserved_bytes": 0}}
        for i, (name, share) in enumerate((("gold", 0.7), ("lead", 0.1), ("tin", 0.2)))
    ]
    fabric = Fabric(validate_scenario(SMALL | {"classes": classes, "tenants": TENANTS}))
    room = 1_000_000 - 18 * 37_618
    pools = fabric._state.switch["pool"]
    assert room - 3 <= pools.sum() <= room
    assert pools[0] == 0


# --------------------------------------------------------------------------- shipped scenario

SHARE = "classes.training.buffer.pool_share=0.3"
SHAPER = "tenants.storage.shaper.rate_gbps=50"


@pytest.fixture
def run(capsys):
    def call(seed, *changes):
        flags = [part for change in changes for part in ("--set", change)]
        name = "checkpoint_shared_buffer"
        assert main(["run", name, "--seed", str(seed), "--json", *flags]) == 0
        found = json.loads(capsys.readouterr().out)
        ring = found["tenants"]["training"]["jobs"][0]
        pauses = {name: c["pause_frames"] for name, c in found["fabric"]["classes"].items()}
        return ring["interference"], pauses

    return call


@pytest.mark.shows("checkpoint_shared_buffer")
@pytest.mark.parametrize("seed", range(3))
def test_the_share_and_the_shaper_do_what_the_scenario_says(run, seed):
    harm, pauses = run(seed)
    assert harm > 0.01 and pauses["training"] > 500
    shared_harm, shared = run(seed, SHARE)
    assert abs(shared_harm) < 0.003 and shared["training"] < 0.25 * pauses["training"]
    fixed_harm, fixed = run(seed, SHARE, SHAPER)
    assert abs(fixed_harm) < 0.003 and fixed["training"] == shared["training"]
    assert fixed["storage"] < 0.9 * shared["storage"]


def test_short_names_of_these_knobs(run):
    assert run(0, SHARE, SHAPER) == run(
        0, "class/training/pool_share=0.3", "tenant/storage/shaper_rate=50"
    )


def test_a_shaper_of_a_tenant_without_one(run, capsys):
    # Alone, the tenant is not shaped: the shaper is under test.
    changes = ["tenants.training.shaper={rate_gbps: 10, burst_bytes: 10000}"]
    assert run(0, *changes)[0] > 5
    command = ["run", "checkpoint_shared_buffer", "--set", "tenants.training.shaper.rate_gbps=10"]
    assert main(command) == 2
    assert "--set: shapers.training.burst_bytes: is missing" in capsys.readouterr().err


def test_describe_shows_pools_shapers_and_weights(capsys):
    assert main(["describe", "checkpoint_shared_buffer", "--set", SHARE, "--set", SHAPER]) == 0
    text = capsys.readouterr().out
    room = 2_998_864
    assert f"{int(0.3 * room):,} B" in text and f"{room - int(0.3 * room):,} B" in text
    assert "50 Gb/s a host, bursts of 65,536 B" in text
    dwrr = [f"classes.{i}.scheduling=dwrr" for i in (0, 1)]
    flags = [part for change in [*dwrr, "classes.0.weight=7"] for part in ("--set", change)]
    assert main(["describe", "checkpoint_shared_buffer", *flags]) == 0
    assert "dwrr 7" in capsys.readouterr().out


def test_the_shipped_scenario_is_within_the_others_limits():
    scenario = load_scenario("checkpoint_shared_buffer", seed=1)
    assert Fabric(scenario, seed=1).settings.shapers["storage"].rate_gbps == 0
