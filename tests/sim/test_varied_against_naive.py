"""The compiled core agrees with the oracle on every routing, recovery and link event."""

from __future__ import annotations

from collections import Counter

import pytest
from side_by_side import SideBySide
from tiny_cases import make_case

from roce_gym import assembly
from roce_gym.fabric import Fabric

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


def test_the_cases_reach_every_rule():
    """Every policy and recovery, cuts with and without detours, resent gaps: none is left out."""
    seen = Counter()
    for number in CASES:
        case = make_case(number, varied=True)
        fabric = Fabric(case.scenario, case.seed, network=case.network, plan=case.plan)
        planned = fabric._state.path.copy()
        for _ in range(20):
            interval = fabric.advance(ps=case.end_ps // 20)
            nacks, state = int(interval.nacks.sum()), fabric._state
            seen[case.scenario.routing.policy] += 1
            seen[case.scenario.nic.recovery, case.scenario.nic.out_of_order] += nacks
            seen["lost"] += int(interval.lost_packets.sum())
            seen["unreachable"] += interval.unreachable_qps
            seen["detours"] += int((state.path != planned).sum())
            seen["held"] += int((state.held["first"] >= 0).sum())
            seen["timers"] += int(state.held["timer_armed"].sum())
            seen["to resend"] += int((state.resend["first"] >= 0).sum())
            seen["draws"] += int(state.hop_draws.sum())
            seen["gone back"] += int((interval.delivered_bytes < 0).sum())
    assert len(seen) == 5 + 4 + 8
    assert min(seen.values()) > 5, seen
