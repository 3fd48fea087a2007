import copy
import dataclasses
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small import TWO, parts

from roce_gym.config import SwitchOverride
from roce_gym.env import RoceEnv
from roce_gym.errors import ActionError, ConfigError
from roce_gym.fabric import Fabric
from roce_gym.knobs import KnobSpace
from roce_gym.render.values import knob_rows
from roce_gym.switch_knobs import SwitchKnobSpace
from roce_gym.switch_settings import by_switch

AT_7 = {
    "switches": [7],
    "classes": {
        "gold": {
            "ecn": {"kmin_bytes": 50_000, "kmax_bytes": 100_000, "pmax": 0.5},
            "alpha": 0.25,
            "reserved_bytes": 9_000,
        }
    },
}
OTHERWISE = TWO | {"switch": TWO["switch"] | {"overrides": [AT_7]}}


def space_of(raw=TWO, **kwargs):
    scenario, network, _ = parts(raw)
    return SwitchKnobSpace(scenario, network, **kwargs)


def test_names():
    space = space_of()
    assert space.switches == ("switch 6", "switch 7")
    assert len(space.names) == 20 and len(set(space.names)) == 20
    assert space.names[:5] == tuple(
        f"switch 6/gold/{name}"
        for name in ("kmin", "kmax_ratio", "pmax", "buffer_alpha", "buffer_split")
    )
    assert space.names[10:15] == tuple(n.replace("6", "7", 1) for n in space.names[:5])
    with_tenants = space_of(with_tenants=True)
    assert with_tenants.names[:20] == space.names
    assert with_tenants.names[20:] == KnobSpace(*parts(TWO)[:2]).names[10:]


def test_a_switch_gets_what_the_class_would_get():
    scenario, network, _ = parts(TWO)
    space, of_class = SwitchKnobSpace(scenario, network), KnobSpace(scenario, network)
    rng = np.random.default_rng(0)
    rows = rng.uniform(-1, 1, (2, 10))
    settings_ = space.decode(rows.ravel())
    there = by_switch(settings_, network)
    for node, row in zip((6, 7), rows, strict=True):
        wanted = of_class.decode(np.concatenate([row, np.zeros(10)]))
        assert there.at(node) == wanted.classes
    assert there.at(0) == space.base.classes
    assert settings_.tenants == space.base.tenants
    assert space.encode(settings_) == pytest.approx(rows.ravel(), abs=1e-3)


def test_tenants_get_what_they_would_get():
    scenario, network, _ = parts(TWO)
    space, single = (
        SwitchKnobSpace(scenario, network, with_tenants=True),
        KnobSpace(scenario, network),
    )
    action = np.random.default_rng(1).uniform(-1, 1, 30)
    wanted = single.decode(np.concatenate([np.zeros(10), action[20:]]))
    assert space.decode(action).tenants == wanted.tenants
    assert space.encode(space.decode(action)) == pytest.approx(action, abs=1e-3)
    # With 10 knobs of classes before: the steps are those of the single agent's knobs.
    steps = single.steps(2.0)
    assert space.steps(2.0).tolist() == [*steps[:10], *steps[:10], *steps[10:]]


def test_it_starts_with_what_the_scenario_has_at_each_switch():
    space = space_of(OTHERWISE)
    values = dict(zip(space.names, space.values(space.base), strict=True))
    assert values["switch 6/gold/kmin"] == 400_000 and values["switch 7/gold/kmin"] == 50_000
    assert values["switch 7/gold/kmax_ratio"] == 2 and values["switch 7/gold/buffer_alpha"] == 0.25
    assert values["switch 7/lead/kmin"] == 400_000
    network = parts(OTHERWISE)[1]
    again = by_switch(space.decode(space.encode(space.base)), network)
    for node, kmin in ((6, 400_000), (7, 50_000)):
        assert again.at(node)["gold"].ecn.kmin_bytes == pytest.approx(kmin, rel=1e-5)


def test_what_is_no_knob_stays_as_it_is_at_each_switch():
    raw = OTHERWISE | {"control": TWO["control"] | {"knobs": {"class/gold/kmin": None}}}
    space = space_of(raw)
    assert space.names == ("switch 6/gold/kmin", "switch 7/gold/kmin")
    there = by_switch(space.decode([0.0, 0.0]), parts(raw)[1])
    at_6, at_7 = there.at(6)["gold"], there.at(7)["gold"]
    assert at_6.ecn.kmin_bytes == at_7.ecn.kmin_bytes == 80_000
    assert (at_6.ecn.pmax, at_7.ecn.pmax) == (0.2, 0.5)
    assert (at_6.buffer.alpha, at_7.buffer.alpha) == (0.125, 0.25)
    assert (at_6.buffer.reserved_bytes, at_7.buffer.reserved_bytes) == (4_096, 9_000)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from([1.0, 5.0]))
def test_no_action_is_invalid(seed, spread):
    scenario, network, plan = parts(TWO)
    space = SwitchKnobSpace(scenario, network, with_tenants=True)
    fabric = Fabric(scenario, 0, network=network, plan=plan)
    action = np.random.default_rng(seed).normal(0, spread, space.space.shape)
    fabric.apply(space.decode(action))
    assert (fabric._state.switch["pool"] > 0).all()


def test_no_action_on_classes_is_invalid_where_a_switch_reserves_more():
    greedy = {"switches": [7], "classes": {"gold": {"reserved_bytes": 30_000}}}
    raw = TWO | {"switch": {"buffer_bytes": 700_000, "overrides": [greedy]}}
    scenario, network, plan = parts(raw)
    fabric = Fabric(scenario, 0, network=network, plan=plan)
    fabric.apply(KnobSpace(scenario, network).decode(np.ones(20)))
    assert (fabric._state.switch["pool"] > 0).all()


@pytest.mark.parametrize(
    ("action", "message"),
    [
        (np.zeros(19), r"shape \(19,\) is not allowed; allowed: \(20,\)"),
        ([*np.zeros(19), np.nan], r"action\[19\] \(switch 7/lead/buffer_split\) = nan"),
        (["a"] * 20, "numbers are expected"),
    ],
)
def test_actions__faults(action, message):
    with pytest.raises(ActionError, match=message):
        space_of().decode(action)


def test_a_switch_needs_something_to_turn():
    raw = TWO | {"control": TWO["control"] | {"knobs": {"g": None}}}
    with pytest.raises(ConfigError, match=r"control\.knobs: there is none that a switch could"):
        space_of(raw)


def test_copies_decode_alike():
    space = space_of(with_tenants=True)
    action = np.random.default_rng(2).uniform(-1, 1, 30)
    for twin in (pickle.loads(pickle.dumps(space)), copy.deepcopy(space)):
        assert twin.decode(action) == space.decode(action)


def test_pictures_and_text_know_them():
    space = space_of()
    rows = knob_rows(space, space.base)
    assert [row.kind for row in rows] == ["switch"] * 5
    assert [cell.owner for cell in rows[0].cells] == [
        *("switch 6 gold", "switch 6 lead", "switch 7 gold", "switch 7 lead")
    ]


# --------------------------------------------------------------------------- in the environment


def run(env, action, steps=4):
    env.reset(seed=3)
    intervals = []
    for _ in range(steps):
        _, reward, *_ = env.step(action)
        intervals.append((reward, env.last_interval))
    return intervals


def alike(ours, theirs):
    return all(
        one[0] == other[0]
        and all(
            np.asarray(getattr(one[1], f.name)).tobytes()
            == np.asarray(getattr(other[1], f.name)).tobytes()
            for f in dataclasses.fields(one[1])
            if f.name not in ("deadlock", "latency")
        )
        for one, other in zip(ours, theirs, strict=True)
    )


class Held(KnobSpace):
    """Leaves tenants alone: no position of their knobs is exactly their default."""

    def decode(self, action):
        return super().decode(action).model_copy(update={"tenants": self.base.tenants})


def test_all_switches_alike_are_the_class__bit_for_bit():
    row = np.random.default_rng(5).uniform(-1, -0.2, 10)
    ours = run(RoceEnv(TWO, layouts=4, knobs=SwitchKnobSpace), np.tile(row, 2))
    of_class = np.concatenate([row, np.zeros(10)])
    assert alike(ours, run(RoceEnv(TWO, layouts=4, knobs=Held), of_class))
    assert not alike(ours, run(RoceEnv(TWO, layouts=4, knobs=Held), np.zeros(20)))


def test_an_environment_of_a_scenario_with_overrides_keeps_them():
    env = RoceEnv(OTHERWISE, layouts=4)
    env.reset(seed=0)
    env.step(np.ones(20))
    there = by_switch(env.fabric.settings, env.fabric.network)
    assert there.at(6)["gold"].ecn.kmin_bytes == 800_000
    assert there.at(7)["gold"].ecn.kmin_bytes == 50_000
    assert env.fabric.settings.switch_overrides == (SwitchOverride.model_validate(AT_7),)


def test_one_switch_alone_is_the_star():
    space = SwitchKnobSpace(*parts()[:2])
    assert space.switches == ("switch 6",) and len(space.names) == 10
