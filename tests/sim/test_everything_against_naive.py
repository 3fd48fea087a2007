"""The compiled core agrees with the oracle where everything is mixed: rules must not get in each
other's way.

Queueing, pauses and watchdogs, storms, routing, recovery, link events and senders, all in one case.
"""

from __future__ import annotations

import pytest
from queueing_cases import Queueing
from sender_cases import DRAWN
from side_by_side import SideBySide
from test_against_naive import LONG_WHEEL, checkpoints
from tiny_cases import make_case

from roce_gym import assembly

ALGORITHMS = ((), ("dcqcn", "timely", "hpcc"), tuple(DRAWN), ("dcqcn", *DRAWN))
"""By the case's number."""


@pytest.fixture(autouse=True)
def long_wheel(monkeypatch):
    monkeypatch.setattr(assembly.events, "MIN_BUCKETS", LONG_WHEEL)


def check(number, steps):
    both = SideBySide(
        make_case(number, ALGORITHMS[number % 4], Queueing(number), pfc=True, varied=True)
    )
    for time in checkpoints(both.case, steps):
        assert both.advance(time) == [], time


@pytest.mark.parametrize("number", range(1000, 1080))
def test_agrees(number):
    check(number, 6)


@pytest.mark.nojit
@pytest.mark.parametrize("number", range(2000, 2006))
def test_agrees_without_jit(number):
    check(number, 2)
