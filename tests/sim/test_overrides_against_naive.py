"""Switches with settings of their own: the core agrees with the oracle."""

from __future__ import annotations

import pytest
from override_cases import Overrides
from queueing_cases import Queueing
from side_by_side import SideBySide
from test_against_naive import LONG_WHEEL, checkpoints
from tiny_cases import make_case

from roce_gym import assembly
from roce_gym.switch_settings import by_switch


@pytest.fixture(autouse=True)
def long_wheel(monkeypatch):
    monkeypatch.setattr(assembly.events, "MIN_BUCKETS", LONG_WHEEL)


def case(number):
    alone = number % 2 == 0
    return make_case(
        number, (), Overrides(number, None if alone else Queueing(number)), varied=not alone
    )


def check(number, steps):
    both = SideBySide(case(number))
    for time in checkpoints(both.case, steps):
        assert both.advance(time) == [], time
    return both


NUMBERS = range(5000, 5040)


@pytest.mark.parametrize("number", NUMBERS)
def test_agrees(number):
    check(number, 6)


@pytest.mark.nojit
@pytest.mark.parametrize("number", range(5100, 5104))
def test_agrees_without_jit(number):
    check(number, 2)


def test_the_cases_have_what_they_are_for():
    kinds, changes = 0, 0
    for one in map(case, NUMBERS):
        kinds += len(by_switch(one.settings[0][1], one.network).kinds) > 2
        overrides = [settings.switch_overrides for _, settings in one.settings]
        changes += len(set(map(str, overrides))) > 1
    assert kinds > 15 and changes > 10
