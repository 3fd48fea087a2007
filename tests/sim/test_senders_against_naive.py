"""Every sender algorithm agrees with the oracle, alone and beside others."""

from __future__ import annotations

import random

import pytest
import tiny_cases
from side_by_side import SideBySide
from tiny_cases import make_case

from roce_gym import assembly


def swift(r: random.Random) -> dict:
    return {
        "enabled": r.random() < 0.9,
        "base_target_us": r.choice([2, 6, 20]),
        "hop_target_us": r.choice([0, 0.7, 3]),
        "endpoint_target_us": r.choice([0.2, 2, 20]),
        "fs_range_us": r.choice([0, 4, 40]),
        "fs_min_cwnd": r.choice([0.1, 0.5]),
        "fs_max_cwnd": r.choice([4, 100]),
        "ai": r.choice([0.3, 1, 5]),
        "beta": r.choice([0.2, 0.8, 1]),
        "max_mdf": r.choice([0.1, 0.5, 0.9]),
        "retransmit_reset": r.choice([1, 2, 5]),
        "initial_cwnd": r.choice([0.5, 1, 10]),
        "min_cwnd": r.choice([0.01, 0.2]),
        "max_cwnd": r.choice([10, 40, 1000]),
        "max_rate_mbps": r.choice([0, 0, 7_000]),
    }


SENDERS = {"swift": swift}


@pytest.fixture(autouse=True)
def long_wheel(monkeypatch):
    """No wake-up of the tiny cases is beyond it, so that numbers of events are equal."""
    monkeypatch.setattr(assembly.events, "MIN_BUCKETS", 2**17)


def drawn(name):
    """An algorithm alone, or all of them with DCQCN among the tenants."""
    return {name: SENDERS[name]} if name in SENDERS else SENDERS | {"dcqcn": tiny_cases._dcqcn}


@pytest.mark.parametrize("number", range(300, 315))
@pytest.mark.parametrize("name", [*SENDERS, "all"])
def test_agrees(name, number):
    both = SideBySide(make_case(number, drawn(name)))
    times = {both.case.end_ps * step**3 // 8000 for step in range(1, 21)}
    for time in sorted(times | {time for time, _ in both.case.settings[1:]}):
        assert both.advance(max(time, 1)) == [], time
