import pytest
from small import parts

from roce_gym.knobs import KnobSpace
from roce_gym.render.charts import nice_ceiling
from roce_gym.render.values import knob_rows, short


@pytest.mark.parametrize(
    ("value", "text"),
    [
        *((0, "0"), (0.0625, "0.062"), (0.5, "0.5"), (1.2, "1.2"), (35.37, "35.4"), (400, "400")),
        *((1600, "1600"), (9999, "9999"), (25_000, "25k"), (2_500_000, "2.5M"), (-0.87, "-0.87")),
    ],
)
def test_short(value, text):
    assert short(value) == text


@pytest.mark.parametrize(("value", "top"), [(0.9, 1), (1, 1), (1.1, 2), (3, 5), (7, 10), (48, 50)])
def test_nice_ceiling(value, top):
    assert nice_ceiling(value) == pytest.approx(top)


def test_rows__by_setting_with_units():
    scenario, network, _ = parts()
    knobs = KnobSpace(scenario, network)
    rows = {row.label: row for row in knob_rows(knobs, knobs.base)}
    assert [(c.owner, c.text) for c in rows["ECN kmin, KB"].cells] == [
        ("gold", "400"),
        ("lead", "400"),
    ]
    assert rows["ECN pmax, %"].cells[0].text == "20"
    assert rows["increase timer, us"].kind == "tenant"
    assert rows["increase timer, us"].cells[0].text == "300"
    assert len(rows) == 10


def test_rows__off():
    scenario, network, _ = parts()
    off = KnobSpace(scenario.model_copy(update={"preset": "pfc_only"}), network)
    rows = {row.label: row for row in knob_rows(off, off.base)}
    for label in ("ECN kmin, KB", "ECN pmax, %", "gain g", "rate step, Mb/s"):
        assert rows[label].cells[0].text == "off", label
    assert rows["buffer alpha"].cells[0].text == "0.12"


def test_rows__knobs_of_a_users_own():
    assert knob_rows(object(), None) == []
