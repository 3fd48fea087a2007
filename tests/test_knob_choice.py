import numpy as np
import pytest
from small import SMALL, parts

from roce_gym.env import RoceEnv
from roce_gym.errors import ConfigError
from roce_gym.knobs import KnobSpace


def space(knobs, **changes):
    scenario, network, _ = parts(None)
    control = scenario.control.model_copy(update={"knobs": None})
    raw = scenario.model_dump(mode="json") | {"control": control.model_dump() | {"knobs": knobs}}
    raw |= changes
    scenario, network, _ = parts(raw)
    return KnobSpace(scenario, network)


def test_only_those_listed_in_the_usual_order():
    knobs = space({"rate_ai": None, "class/lead/kmin": None, "pmax": None})
    assert knobs.names == (
        "class/gold/pmax",
        "class/lead/kmin",
        "class/lead/pmax",
        "tenant/ring/rate_ai",
        "tenant/burst/rate_ai",
    )
    assert knobs.space.shape == (5,)


def test_what_is_not_a_knob_stays_exactly():
    knobs = space({"class/gold/kmin": None})
    for action in (-1.0, 0.3, 1.0):
        got = knobs.decode([action])
        assert got.tenants == knobs.base.tenants
        assert got.classes["lead"] == knobs.base.classes["lead"]
        gold, base = got.classes["gold"], knobs.base.classes["gold"]
        assert gold.buffer == base.buffer and gold.ecn.pmax == base.ecn.pmax
        assert gold.ecn.kmax_bytes == pytest.approx(4 * gold.ecn.kmin_bytes, abs=3)


def test_ecn_and_dcqcn_that_are_off_stay_off_without_a_knob():
    knobs = space({"buffer_alpha": None}, preset="pfc_only")
    got = knobs.decode([0.0, 0.0])
    assert not got.classes["gold"].ecn.enabled and not got.tenants["ring"].enabled
    assert got.classes["gold"].buffer.alpha == pytest.approx(32**-0.5)
    with_ecn = space({"class/gold/pmax": None}, preset="pfc_only").decode([1.0])
    assert with_ecn.classes["gold"].ecn.enabled and not with_ecn.classes["lead"].ecn.enabled
    assert not with_ecn.tenants["ring"].enabled


def test_ranges__own_ones_scale_with_the_link_rate():
    wide = {"kmin": {"low": 20_000}, "tenant/ring/g": {"low": 0.01, "high": 0.1}, "g": None}
    for rate, factor in ((100, 1.0), (400, 4.0)):
        topology = {"kind": "star", "hosts": 6, "host_rate_gbps": rate}
        knobs = space(wide, topology=topology, switch={"buffer_bytes": 4_000_000})
        bounds = {k.name: (k.low, k.high) for k in knobs.knobs}
        assert bounds["class/gold/kmin"] == pytest.approx((20_000 * factor, 800_000 * factor))
        assert bounds["tenant/ring/g"] == (0.01, 0.1)
        assert bounds["tenant/burst/g"] == (1 / 512, 1 / 2)
        ecn = knobs.decode([-1.0] * len(knobs.knobs)).classes["gold"].ecn
        assert ecn.kmin_bytes == pytest.approx(20_000 * factor, abs=1)


def test_encode_inverts_decode():
    knobs = space({"kmin": {"high": 300_000}, "buffer_split": None, "increase_timer": None})
    action = np.linspace(-0.9, 0.9, len(knobs.knobs))
    assert knobs.encode(knobs.decode(action)) == pytest.approx(action, abs=2e-3)


def test_values__in_units():
    knobs = space({"kmin": None, "increase_timer": None})
    assert knobs.values(knobs.base).tolist() == [400_000, 400_000, 300, 300]
    off = space({"kmin": None, "rate_ai": None}, preset="pfc_only")
    assert np.isinf(off.values(off.base)).all()


@pytest.mark.parametrize(
    ("knobs", "message"),
    [
        ({"kmni": None}, r"control\.knobs: 'kmni' is unknown; allowed: kmin, kmax_ratio"),
        ({"class/iron/kmin": None}, "'class/iron/kmin' is unknown"),
        ({}, "there is none"),
        ({"class/gold/buffer_split": None}, "buffer_split is shared out among all classes"),
        (
            {"pmax": {"high": 2}},
            r"control\.knobs\.pmax\.high = 2 is not allowed; allowed: 0.0001",
        ),
        ({"kmin": {"low": 0}}, r"control\.knobs\.kmin\.low = 0 is not allowed; allowed: 64"),
        (
            {"kmin": {"low": 900_000}},
            r"knobs\.kmin: low = 900000 must be below high = 800000",
        ),
        ({"kmin": {"low": 5, "high": 4}}, r"low = 5.* must be below high = 4"),
        ({"kmin": {"lowest": 5}}, "lowest"),
    ],
)
def test_faults(knobs, message):
    with pytest.raises(ConfigError, match=message):
        RoceEnv(SMALL | {"control": SMALL["control"] | {"knobs": knobs}})
