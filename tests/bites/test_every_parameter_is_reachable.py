"""Every parameter can be set on the command line, and `roce-gym describe` tells its value."""

from __future__ import annotations

import pytest
import yaml
from bites import Bite, incast, put
from test_every_parameter_bites import BITES

from roce_gym.cli import main
from roce_gym.config import validate_scenario
from roce_gym.scenario_file import apply_overrides

FIELDS = {bite.field: bite for bite in BITES}.values()


def described(bite: Bite, value: object, path, capsys) -> str:
    path.write_text(yaml.safe_dump(put(bite.raw, bite.path, value)))
    assert main(["describe", str(path)]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("bite", FIELDS, ids=lambda bite: bite.field)
def test_it_can_be_set(bite):
    text = yaml.safe_dump(bite.high, default_flow_style=True).removesuffix("...\n")
    changed = apply_overrides(dict(bite.raw), [f"{bite.path}={text}"])
    wanted = validate_scenario(put(bite.raw, bite.path, bite.high))
    assert validate_scenario(changed) == wanted


@pytest.mark.parametrize("bite", FIELDS, ids=lambda bite: bite.field)
def test_it_is_printed(bite, tmp_path, capsys):
    path = tmp_path / "one.yaml"
    texts = [described(bite, value, path, capsys) for value in (bite.low, bite.high)]
    assert texts[0] != texts[1]


def test_a_parameter_that_is_not_printed_is_found_out(tmp_path, capsys):
    """The gap of flowlets, where there are none."""
    hidden = Bite("routing.flowlet_gap_us", 1, 2, len, True, incast())
    with pytest.raises(AssertionError):
        test_it_is_printed(hidden, tmp_path, capsys)
