"""The compiled core agrees with the oracle on every routing, recovery and link event."""

from __future__ import annotations

import pytest
from side_by_side import SideBySide
from tiny_cases import make_case

from roce_gym import assembly

CASES = range(80)
SHORT_CASES = range(300, 312)


@pytest.fixture
def long_wheel(monkeypatch):
    monkeypatch.setattr(assembly.events, "MIN_BUCKETS", 2**17)


def check(number, steps):
    both = SideBySide(make_case(number, varied=True))
    times = {both.case.end_ps * step**3 // steps**3 for step in range(1, steps + 1)}
    for time in sorted(times | {time for time, _ in both.case.settings[1:]}):
        assert both.advance(max(1, time)) == [], time


@pytest.mark.parametrize("number", CASES)
def test_agrees(number, long_wheel):
    check(number, 8)


@pytest.mark.nojit
@pytest.mark.parametrize("number", SHORT_CASES)
def test_agrees_without_jit(number, long_wheel):
    check(number, 2)
