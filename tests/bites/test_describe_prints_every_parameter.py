"""Whatever a parameter's value is, `roce-gym describe` tells it."""

from __future__ import annotations

import pytest
import yaml
from bites import Bite, incast, put
from test_every_parameter_bites import BITES

from roce_gym.cli import main


def described(bite: Bite, value: object, path, capsys) -> str:
    path.write_text(yaml.safe_dump(put(bite.raw, bite.path, value)))
    assert main(["describe", str(path)]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("bite", {b.field: b for b in BITES}.values(), ids=lambda b: b.field)
def test_it_is_printed(bite, tmp_path, capsys):
    path = tmp_path / "one.yaml"
    texts = [described(bite, value, path, capsys) for value in (bite.low, bite.high)]
    assert texts[0] != texts[1]


def test_a_parameter_that_is_not_printed_is_found_out(tmp_path, capsys):
    """The gap of flowlets, where there are none."""
    hidden = Bite("routing.flowlet_gap_us", 1, 2, len, True, incast())
    with pytest.raises(AssertionError):
        test_it_is_printed(hidden, tmp_path, capsys)
