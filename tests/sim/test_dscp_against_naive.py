"""Maps of DSCPs and priorities that differ by switch: the core agrees with the oracle."""

from __future__ import annotations

import pytest
from dscp_cases import Dscp
from queueing_cases import Queueing
from sender_cases import DRAWN
from side_by_side import SideBySide
from test_against_naive import LONG_WHEEL, checkpoints
from tiny_cases import make_case

from roce_gym import assembly
from roce_gym.assembly.dscp import mismatches

ALGORITHMS = ((), ("int_throttle", "none"), ("dcqcn", *DRAWN))
"""By the case's number."""


@pytest.fixture(autouse=True)
def long_wheel(monkeypatch):
    monkeypatch.setattr(assembly.events, "MIN_BUCKETS", LONG_WHEEL)


def case(number):
    alone = number % 2 == 0
    extra = Dscp(number, None if alone else Queueing(number))
    return make_case(number, ALGORITHMS[number % 3], extra, pfc=True, varied=not alone)


def check(number, steps):
    both = SideBySide(case(number))
    for time in checkpoints(both.case, steps):
        assert both.advance(time) == [], time
    return both


NUMBERS = range(3000, 3060)


@pytest.mark.parametrize("number", NUMBERS)
def test_agrees(number):
    check(number, 6)


@pytest.mark.nojit
@pytest.mark.parametrize("number", range(3100, 3106))
def test_agrees_without_jit(number):
    check(number, 2)


def test_the_cases_have_what_they_are_for():
    found = [mismatches(c.scenario, c.network) for c in map(case, NUMBERS)]
    assert sum(any("taken_as" in one for one in each) for each in found) > 30
    assert sum(any("pfc_priority" in one for one in each) for each in found) > 20
