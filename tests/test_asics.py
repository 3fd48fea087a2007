"""Switch ASICs: what a scenario takes from them, and what it keeps for itself."""

from typing import get_args

import pytest

from roce_gym.asics import ASICS, AsicName
from roce_gym.cli.case import load_case
from roce_gym.cli.parser import make_parser
from roce_gym.config import BufferConfig, SwitchConfig, TrafficClass, validate_scenario
from roce_gym.errors import ConfigError
from roce_gym.presets import PRESETS, resolve_settings


def scenario_with(switch, buffer=None):
    return validate_scenario(
        {
            "name": "asic",
            "topology": {"kind": "star", "hosts": 2},
            "switch": switch,
            "classes": [{"name": "roce", **({} if buffer is None else {"buffer": buffer})}],
            "tenants": [
                {"name": "a", "hosts": [0, 1], "jobs": [{"kind": "ring_all_reduce", "bytes": 9}]}
            ],
        }
    )


def buffer_of(scenario, preset=None):
    return resolve_settings(scenario, 100.0, preset).classes["roce"].buffer


def test_every_name_has_an_entry_with_a_source():
    assert set(ASICS) == set(get_args(AsicName))
    assert all(asic.source and 0 < asic.buffer_bytes < 2**31 for asic in ASICS.values())


@pytest.mark.parametrize(
    ("name", "buffer_bytes", "alpha"),
    [
        ("spectrum4", 158_229_504, 1.0),
        ("tomahawk3", 67_117_468, 0.25),
        ("tomahawk5", 165_660_324, 1.0),
        ("trident3", 32_000_000, 0.125),
    ],
)
def test_buffer_and_alpha(name, buffer_bytes, alpha):
    scenario = scenario_with({"asic": name})
    assert scenario.switch.buffer_bytes == buffer_bytes
    assert buffer_of(scenario).alpha == alpha


def test_own_values_win():
    scenario = scenario_with({"asic": "tomahawk3", "buffer_bytes": 9_000_000}, {"alpha": 0.5})
    assert scenario.switch.buffer_bytes == 9_000_000
    assert buffer_of(scenario).alpha == 0.5


def test_own_reserve_leaves_the_alpha_of_the_asic():
    scenario = scenario_with({"asic": "tomahawk3"}, {"reserved_bytes": 0})
    assert (buffer_of(scenario).alpha, buffer_of(scenario).reserved_bytes) == (0.25, 0)


@pytest.mark.parametrize("preset", [None, *PRESETS])
def test_without_an_asic_nothing_changes(preset):
    scenario = scenario_with({})
    assert scenario.switch.buffer_bytes == 16 * 2**20
    assert buffer_of(scenario, preset) == PRESETS[preset or "connectx_default"].buffer


@pytest.mark.parametrize("buffer", [None, {"reserved_bytes": 0}, {"alpha": 0.5}])
def test_a_dump_is_the_same_scenario(buffer):
    scenario = scenario_with({"asic": "tomahawk3"}, buffer)
    again = validate_scenario(scenario.model_dump(mode="json"))
    assert again == scenario and buffer_of(again) == buffer_of(scenario)
    parts = {name: getattr(scenario, name) for name in type(scenario).model_fields}
    assert validate_scenario(parts) == scenario


def test_parts_made_in_python():
    given = TrafficClass(name="roce", buffer=BufferConfig(reserved_bytes=0))
    for chosen in (given, {"name": "roce", "buffer": given.buffer}):
        raw = scenario_with({}).model_dump() | {"classes": [chosen]}
        assert buffer_of(validate_scenario(raw)).alpha == 0.125
        raw["switch"] = SwitchConfig(asic="tomahawk3")
        assert buffer_of(validate_scenario(raw)).alpha == 0.25


def test_changes_on_the_command_line_are_what_runs():
    options = ["--set", "switch.asic=tomahawk3", "--set", "training.reserved_bytes=0"]
    arguments = make_parser().parse_args(["describe", "noisy_neighbor", *options])
    case = load_case(arguments)
    assert case.base.switch.buffer_bytes == 8_000_000  # as the scenario says
    assert case.settings.classes["training"].buffer.reserved_bytes == 0
    assert resolve_settings(case.scenario, 100.0) == case.settings


def test_unknown_asic():
    with pytest.raises(ConfigError, match=r"switch.asic: must be 'spectrum2', .*'trident3'.*'x'"):
        scenario_with({"asic": "x"})
