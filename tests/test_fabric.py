"""The door to the simulator: what it refuses, and that settings act where they should."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from small import parts

from roce_gym.config import Settings, validate_scenario
from roce_gym.errors import ConfigError, SimulationError, TuningError
from roce_gym.fabric import Fabric
from roce_gym.presets import PRESETS, get_preset, resolve_settings
from roce_gym.sim.cc.dcqcn import DCQCN_PARAMS
from roce_gym.sim.cc.records import tenant_params

KEPT = ("queue", "ingress", "switch", "cc_state", "cc_params", "sender")


@pytest.fixture
def fabric():
    scenario, network, plan = parts()
    return Fabric(scenario, 1, network=network, plan=plan)


def changed(fabric, *, classes=None, tenants=None):
    """The fabric's settings with some values replaced, by class or tenant name."""
    raw = fabric.settings.model_dump()
    for group, changes in (("classes", classes or {}), ("tenants", tenants or {})):
        for name, values in changes.items():
            for key, value in values.items():
                if isinstance(value, dict):
                    raw[group][name][key] |= value
                else:
                    raw[group][name][key] = value
    return Settings.model_validate(raw)


def copies(fabric):
    return {name: getattr(fabric._state, name).copy() for name in KEPT}


# --------------------------------------------------------------------------- refusals


@pytest.mark.parametrize("seed", [-1, 2**63])
def test_seed_out_of_range(seed):
    scenario, network, plan = parts()
    with pytest.raises(SimulationError, match=rf"seed: {seed} is not allowed"):
        Fabric(scenario, seed, network=network, plan=plan)


@pytest.mark.parametrize("arguments", [{}, {"us": 1.0, "ps": 1}])
def test_advance_needs_one_duration(fabric, arguments):
    with pytest.raises(SimulationError, match="either us or ps"):
        fabric.advance(**arguments)


@pytest.mark.parametrize("arguments", [{"us": 0.0}, {"us": -1.0}, {"ps": 0}, {"us": 1e-7}])
def test_advance_needs_a_positive_duration(fabric, arguments):
    with pytest.raises(SimulationError, match="must be positive"):
        fabric.advance(**arguments)
    assert fabric.now_ps == 0


@pytest.mark.parametrize("duration", [np.nan, np.inf, "5"])
def test_advance_needs_a_finite_number(fabric, duration):
    with pytest.raises(SimulationError, match=f"duration {duration!r} must be a finite number"):
        fabric.advance(us=duration)


def test_snapshot_of_another_fabric_is_refused(fabric):
    scenario, network, plan = parts(seed=2)
    foreign = Fabric(scenario, 2, network=network, plan=plan).snapshot()
    with pytest.raises(SimulationError, match="of another scenario or seed"):
        fabric.restore(foreign)
    fabric.restore(fabric.snapshot())


def test_headroom_beyond_the_buffer():
    raw = parts()[0].model_dump()
    raw["switch"]["buffer_bytes"] = 100_000
    with pytest.raises(ConfigError, match=r"headroom at switch 6 exceed switch\.buffer_bytes"):
        Fabric(validate_scenario(raw))


def test_reserve_beyond_the_buffer_at_the_start():
    raw = parts()[0].model_dump()
    raw["classes"][0]["buffer"] = {"reserved_bytes": 900_000}
    with pytest.raises(ConfigError, match=r"reserved_bytes.*exceed switch.buffer_bytes"):
        Fabric(validate_scenario(raw))


@pytest.mark.parametrize(
    ("group", "names"), [("classes", ["gold"]), ("tenants", ["ring", "burst", "third"])]
)
def test_settings_with_wrong_names(fabric, group, names):
    given = getattr(fabric.settings, group)
    wrong = {name: next(iter(given.values())) for name in names}
    before = copies(fabric)
    with pytest.raises(TuningError, match=rf"settings.{group}: got .*; needed"):
        fabric.apply(fabric.settings.model_copy(update={group: wrong}))
    for name, array in before.items():
        assert np.array_equal(array, getattr(fabric._state, name)), name


def test_a_reserve_without_room_changes_nothing(fabric):
    fabric.advance(us=30)
    before, settings = copies(fabric), fabric.settings
    too_much = changed(
        fabric,
        classes={"gold": {"buffer": {"reserved_bytes": 900_000}, "ecn": {"kmin_bytes": 7}}},
        tenants={"burst": {"rate_ai_mbps": 77}},
    )
    with pytest.raises(TuningError, match=r"by \d+$"):
        fabric.apply(too_much)
    assert fabric.settings == settings
    for name, array in before.items():
        assert np.array_equal(array, getattr(fabric._state, name)), name


def test_unknown_preset():
    with pytest.raises(ConfigError, match="preset: 'best' is unknown; allowed: connectx_default"):
        Fabric(parts()[0], preset="best")


# --------------------------------------------------------------------------- settings


def test_a_class_is_changed_alone(fabric):
    fabric.advance(us=30)
    before = copies(fabric)
    new = changed(
        fabric,
        classes={
            "lead": {
                "ecn": {"kmin_bytes": 1_000, "kmax_bytes": 2_000, "pmax": 0.5},
                "buffer": {"alpha": 2.0, "reserved_bytes": 1_000},
            }
        },
    )
    fabric.apply(new)
    assert fabric.settings == new
    lead, gold = 2, 1  # by rising priority
    after = copies(fabric)
    queue, ingress = (after[name].reshape(-1, 3) for name in ("queue", "ingress"))
    assert set(queue["kmin"][:, lead]) == {1_000}
    assert set(queue["kmax"][:, lead]) == {2_000}
    assert set(ingress["alpha"][:, lead]) == {2.0}
    assert set(ingress["reserved"][:, lead]) == {1_000}
    assert np.array_equal(queue[:, gold], before["queue"].reshape(-1, 3)[:, gold])
    assert np.array_equal(ingress[:, gold], before["ingress"].reshape(-1, 3)[:, gold])
    assert after["switch"]["pool"] == before["switch"]["pool"] + 6 * (4_096 - 1_000)
    for name in ("sender", "cc_state", "cc_params"):
        assert np.array_equal(before[name], after[name])


def test_a_tenant_is_changed_alone(fabric):
    fabric.advance(us=30)
    before = copies(fabric)
    fabric.apply(changed(fabric, tenants={"ring": {"max_rate_mbps": 10_000, "g": 0.5}}))
    of_ring = fabric._state.qp["tenant"] == 0
    after = copies(fabric)
    assert (after["sender"]["rate_bps"][of_ring] <= 10_000_000_000).all()
    assert np.array_equal(after["sender"][~of_ring], before["sender"][~of_ring])
    gains = tenant_params(fabric._state, DCQCN_PARAMS)["g"].tolist()
    assert gains == [0.5, fabric.settings.tenants["burst"].g]
    half = len(after["cc_params"]) // 2
    assert np.array_equal(after["cc_params"][half:], before["cc_params"][half:])
    for name in ("queue", "ingress", "switch"):
        assert np.array_equal(before[name], after[name])
    # The ring's senders keep to the new rate: 10 % of the line, in any 50 us.
    hosts = fabric._state.qp["src"][of_ring]
    fabric.advance(us=5)
    interval = fabric.advance(us=50)
    own = interval.tx_bytes[fabric.network.host_link[hosts], 0]
    assert 0 < own.max() * 8 / 50e-6 < 12e9


def test_the_same_settings_change_nothing():
    scenario, network, plan = parts()
    one, other = (Fabric(scenario, 1, network=network, plan=plan) for _ in range(2))
    for _ in range(10):
        one.advance(us=20)
        other.advance(us=20)
        other.apply(other.settings)
    for name in one._state._fields:
        assert np.array_equal(getattr(one._state, name), getattr(other._state, name)), name


def test_one_tenant_alone_keeps_its_paths():
    scenario, _, plan = parts()
    alone = Fabric(scenario, 0, only_tenant="burst")
    assert {pair.tenant for pair in alone.plan.qps} == {1}
    both = [pair.data_links for pair in plan.qps if pair.tenant == 1]
    assert [pair.data_links for pair in alone.plan.qps] == both
    assert alone.advance(us=100).completions["job"].tolist() == [0]


def test_intervals_are_copies(fabric):
    first = fabric.advance(us=50)
    kept = {name: np.copy(getattr(first, name)) for name in ("tx_bytes", "rate_bps", "job_round")}
    fabric.advance(us=50)
    for name, array in kept.items():
        assert np.array_equal(array, getattr(first, name))


# --------------------------------------------------------------------------- presets


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_builds_and_runs(name):
    scenario, network, plan = parts()
    fabric = Fabric(scenario, preset=name, network=network, plan=plan)
    assert fabric.advance(us=100).acked_bytes.sum() > 0
    assert set(fabric.settings.classes) == {"gold", "lead"}


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_has_a_source_and_scales_with_the_rate(name):
    preset = get_preset(name)
    assert preset.name == name
    assert len(preset.source) > 40
    slow, fast = (preset.ecn(rate) for rate in (100.0, 400.0))
    assert fast.kmin_bytes == 4 * slow.kmin_bytes
    assert fast.kmax_bytes == 4 * slow.kmax_bytes
    assert fast.pmax == slow.pmax
    timers = ("alpha_interval_us", "decrease_interval_us", "increase_timer_us")
    slow_nic, fast_nic = (preset.dcqcn(rate) for rate in (100.0, 400.0))
    assert all(getattr(slow_nic, timer) == getattr(fast_nic, timer) for timer in timers)
    assert fast_nic.rate_ai_mbps in (slow_nic.rate_ai_mbps, 4 * slow_nic.rate_ai_mbps)


def test_values_of_the_scenario_win_unless_a_preset_is_asked_for():
    raw = parts()[0].model_dump()
    raw["classes"][0]["ecn"] = {"kmin_bytes": 11, "kmax_bytes": 12, "pmax": 0.5}
    raw["tenants"][1]["dcqcn"] = {"rate_ai_mbps": 123.0}
    scenario = validate_scenario(raw)
    own = resolve_settings(scenario, 100.0)
    assert own.classes["gold"].ecn.kmin_bytes == 11
    assert own.tenants["burst"].rate_ai_mbps == 123.0
    asked = resolve_settings(scenario, 100.0, "dcqcn_paper")
    assert asked.classes["gold"].ecn == asked.classes["lead"].ecn
    assert asked.tenants["burst"] == asked.tenants["ring"] == PRESETS["dcqcn_paper"].dcqcn(100.0)


def test_copies_go_on_alike_and_apart(fabric):
    fabric.advance(us=60)
    kept, twin = fabric.at_rest()[0], copy.copy(fabric)
    expected = [fabric.advance(us=40) for _ in range(2)]
    quiet = changed(fabric, tenants={"ring": {"max_rate_mbps": 1000.0}})
    twin.apply(quiet)
    slow = twin.advance(us=40)
    assert slow.delivered_bytes.sum() < expected[0].delivered_bytes.sum()
    for again in (copy.copy(kept), copy.copy(kept)):
        for interval in expected:
            other = again.advance(us=40)
            assert np.array_equal(other.tx_bytes, interval.tx_bytes)
            assert np.array_equal(other.completions, interval.completions)
            assert other.events == interval.events


def test_at_rest__takes_equal_arrays_from_another(fabric):
    first, all_bytes = fabric.at_rest()
    assert all_bytes == fabric.state_bytes
    second, own_bytes = fabric.at_rest(first)
    assert own_bytes == 0 and second._state.packet is first._state.packet
    fabric.advance(us=60)
    third, own_bytes = fabric.at_rest(first)
    assert 0 < own_bytes < all_bytes and third._state.link is not first._state.link
    assert third._state.path is first._state.path
