"""Every sender algorithm agrees with the oracle, alone and beside others."""

from __future__ import annotations

import pytest
from sender_cases import DRAWN
from side_by_side import SideBySide
from test_against_naive import LONG_WHEEL, checkpoints
from tiny_cases import make_case

from roce_gym import assembly

KINDS = {name: (name,) for name in DRAWN} | {"all": ("dcqcn", *DRAWN)}


@pytest.fixture(autouse=True)
def long_wheel(monkeypatch):
    monkeypatch.setattr(assembly.events, "MIN_BUCKETS", LONG_WHEEL)


def check(number, name, steps):
    both = SideBySide(make_case(number, KINDS[name]))
    for time in checkpoints(both.case, steps):
        assert both.advance(time) == [], time


@pytest.mark.parametrize("number", range(300, 315))
@pytest.mark.parametrize("name", KINDS)
def test_agrees(name, number):
    check(number, name, 20)


@pytest.mark.nojit
@pytest.mark.parametrize("name", KINDS)
def test_agrees_without_jit(name):
    check(400, name, 4)
