import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small import SMALL, parts

from roce_gym.config import Settings, validate_scenario
from roce_gym.errors import ActionError
from roce_gym.fabric import Fabric
from roce_gym.knobs import LOGIT_RANGE, KnobSpace
from roce_gym.presets import PRESETS, resolve_settings
from roce_gym.reserve_budget import MAX_RESERVED_BYTES
from roce_gym.scenario_file import load_scenario
from roce_gym.topology import build_network

TIGHT = SMALL | {
    "switch": {"buffer_bytes": 920_000},  # headroom of 6 ports and 4 classes: 902,832
    "topology": {"kind": "star", "hosts": 6},
    "classes": [{"name": n, "priority": p} for p, n in enumerate(("gold", "lead", "a", "b"))],
}
FAST = SMALL | {
    "topology": {"kind": "star", "hosts": 6, "host_rate_gbps": 3200},
    "switch": {"buffer_bytes": 64_000_000},
}


def knobs_of(scenario):
    return KnobSpace(scenario, build_network(scenario.topology))


def small_fabric(raw):
    raw = parts(raw | {"tenants": parts()[0].model_dump(mode="json")["tenants"]})[0]
    raw = raw.model_dump(mode="json")
    for c in raw["classes"]:
        c["buffer"] = {"reserved_bytes": 0}
    return Fabric(validate_scenario(raw), seed=0)


FABRICS = {
    "noisy_neighbor": lambda: Fabric(load_scenario("noisy_neighbor"), seed=0),
    "regime_shift": lambda: Fabric(load_scenario("regime_shift"), seed=0),
    "tight": lambda: small_fabric(TIGHT),
    "fast": lambda: small_fabric(FAST),
}


@pytest.fixture(scope="module", params=FABRICS)
def fabric(request):
    return FABRICS[request.param]()


def test_no_action_is_invalid(fabric):
    knobs = KnobSpace(fabric.scenario, fabric.network)
    entry = st.one_of(st.sampled_from([-1.0, 1.0]), st.floats(-1, 1, width=32))
    n = len(knobs.names)

    @settings(deadline=None, max_examples=60)
    @given(action=st.lists(entry, min_size=n, max_size=n), us=st.sampled_from([1, 20]))
    def check(action, us):
        chosen = knobs.decode(np.array(action, np.float32))
        Settings.model_validate(chosen.model_dump())
        fabric.apply(chosen)
        interval = fabric.advance(us=us)
        assert interval.dropped_packets.sum() == 0
        reserved = sum(c.buffer.reserved_bytes for c in chosen.classes.values())
        if len(chosen.classes) > 1:
            scale = fabric.network.host_rate_bps / 1e11
            assert reserved <= MAX_RESERVED_BYTES * scale

    check()


def test_names_and_ranges():
    knobs = knobs_of(load_scenario("noisy_neighbor"))
    of_class = ["kmin", "kmax_ratio", "pmax", "buffer_alpha", "buffer_split"]
    of_tenant = ["initial_alpha", "alpha_cap", "g", "increase_timer", "rate_ai"]
    owners = ("training", "checkpoint")
    assert knobs.names == (
        *(f"class/{c}/{k}" for c in owners for k in of_class),
        *(f"tenant/{t}/{k}" for t in owners for k in of_tenant),
    )
    assert knobs.space.shape == (20,) and knobs.space.dtype == np.float32
    shared = knobs_of(load_scenario("regime_shift"))
    assert shared.space.shape == (14,)
    assert not any("buffer_split" in name for name in shared.names)


def test_decode__by_hand():
    knobs = knobs_of(load_scenario("noisy_neighbor"))
    low, mid, high = (knobs.decode(np.full(20, x, np.float32)) for x in (-1, 0, 1))
    ecn = [s.classes["training"].ecn for s in (low, mid, high)]
    assert [e.kmin_bytes for e in ecn] == [8_000, 80_000, 800_000]
    assert [e.kmax_bytes for e in ecn] == [9_600, round(80_000 * np.sqrt(9.6)), 6_400_000]
    assert [e.pmax for e in ecn] == pytest.approx([0.01, 0.1, 1.0])
    buffers = [s.classes["checkpoint"].buffer for s in (low, mid, high)]
    assert [b.alpha for b in buffers] == pytest.approx([1 / 32, 2**-2.5, 1.0])
    weight = np.exp(LOGIT_RANGE)
    expected = [40_000 / weight / (1 + 2 / weight), 40_000 / 3, 40_000 * weight / (1 + 2 * weight)]
    assert [b.reserved_bytes for b in buffers] == [int(x) for x in expected]
    nic = [s.tenants["training"] for s in (low, mid, high)]
    assert [n.alpha_cap for n in nic] == pytest.approx([0.03, 0.03**0.5, 1.0])
    assert [n.g for n in nic] == pytest.approx([1 / 512, 1 / 32, 1 / 2])
    assert [n.increase_timer_us for n in nic] == pytest.approx([20, 12_000**0.5, 600])
    assert [n.rate_ai_mbps for n in nic] == pytest.approx([5, 100, 2000])
    assert [n.rate_hai_mbps for n in nic] == pytest.approx([50, 100, 2000])


def test_decode__scales_with_the_link_rate():
    slow, fast = (
        knobs_of(validate_scenario(raw)).decode(np.zeros(20))
        for raw in (
            FAST | {"topology": {"kind": "star", "hosts": 6}, "tenants": TENANTS},
            FAST | {"tenants": TENANTS},
        )
    )
    for name in ("gold", "lead"):
        assert fast.classes[name].ecn.kmin_bytes == 32 * slow.classes[name].ecn.kmin_bytes
        assert fast.classes[name].ecn.pmax == slow.classes[name].ecn.pmax
    assert fast.tenants["ring"].rate_ai_mbps == pytest.approx(
        32 * slow.tenants["ring"].rate_ai_mbps
    )
    assert fast.tenants["ring"].increase_timer_us == slow.tenants["ring"].increase_timer_us


TENANTS = parts()[0].model_dump(mode="json")["tenants"]


@pytest.mark.parametrize("name", ["noisy_neighbor", "regime_shift"])
@pytest.mark.parametrize("preset", ["connectx_default", "hpcc_production", "multi_tenant_tuned"])
def test_encode__presets_survive(name, preset):
    scenario = load_scenario(name)
    given = resolve_settings(scenario, 100.0, preset)
    knobs = knobs_of(scenario.model_copy(update={"preset": preset}))
    back = knobs.decode(knobs.encode(given))
    for c in given.classes:
        assert back.classes[c].ecn.kmin_bytes == pytest.approx(
            given.classes[c].ecn.kmin_bytes, 1e-5
        )
        assert back.classes[c].ecn.kmax_bytes == pytest.approx(
            given.classes[c].ecn.kmax_bytes, 1e-5
        )
        assert back.classes[c].buffer.alpha == pytest.approx(given.classes[c].buffer.alpha, 1e-5)
        reserved = given.classes[c].buffer.reserved_bytes
        assert back.classes[c].buffer.reserved_bytes == pytest.approx(reserved, abs=1)
    for t in given.tenants:
        assert back.tenants[t].model_dump() == pytest.approx(given.tenants[t].model_dump(), 1e-4)


@pytest.mark.parametrize("preset", PRESETS)
def test_encode__stays_in_the_box(preset):
    scenario = load_scenario("noisy_neighbor")
    knobs = knobs_of(scenario)
    action = knobs.encode(resolve_settings(scenario, 100.0, preset))
    assert action in knobs.space


@given(seed=st.integers(0, 2**32 - 1))
def test_encode__inverts_decode(seed):
    action = np.random.default_rng(seed).uniform(-1, 1, 20).astype(np.float32)
    assert NOISY.encode(NOISY.decode(action)) == pytest.approx(action, abs=0.03)  # whole bytes


NOISY = knobs_of(load_scenario("noisy_neighbor"))


def test_clip():
    values = np.linspace(-3, 3, 20)
    assert NOISY.clip(values) == pytest.approx(np.clip(values, -1, 1))
    assert NOISY.decode(values) == NOISY.decode(np.clip(values, -1, 1))


@pytest.mark.parametrize(
    ("action", "message"),
    [
        (np.zeros(19), r"shape \(19,\) is not allowed; allowed: \(20,\)"),
        (np.zeros((1, 20)), r"shape \(1, 20\)"),
        (0.5, r"shape \(\)"),
        ("full", "numbers are expected"),
        (None, "action"),
        (
            np.where(np.arange(20) == 3, np.nan, 0),
            r"action\[3\] \(class/training/buffer_alpha\) = nan",
        ),
        (
            np.where(np.arange(20) == 19, -np.inf, 0),
            r"action\[19\] \(tenant/checkpoint/rate_ai\) = -inf",
        ),
    ],
)
def test_bad_actions(action, message):
    with pytest.raises(ActionError, match=message):
        NOISY.decode(action)


def test_presets_that_switch_off__knobs_switch_on():
    scenario = load_scenario("noisy_neighbor").model_copy(update={"preset": "pfc_only"})
    chosen = knobs_of(scenario).decode(np.zeros(20))
    assert all(c.ecn.enabled for c in chosen.classes.values())
    assert all(t.enabled for t in chosen.tenants.values())


def test_tenants_with_another_sender_have_no_knobs():
    fabric = Fabric(load_scenario("checkpoint_over_tcp"), seed=0)
    knobs = KnobSpace(fabric.scenario, fabric.network)
    assert any(name.startswith("tenant/training/") for name in knobs.names)
    assert not any("checkpoint" in name for name in knobs.names)
    chosen = knobs.decode(np.ones(len(knobs.names)))
    assert set(chosen.tenants) == {"training", "checkpoint"}
    fabric.apply(chosen)
    assert np.allclose(knobs.encode(chosen), 1.0, atol=0.01)
