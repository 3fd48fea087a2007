"""Schedulers, shapers and pools: the compiled core agrees with the oracle."""

from __future__ import annotations

from collections import Counter

import pytest
from queueing_cases import make_queueing_case
from side_by_side import SideBySide
from test_against_naive import LONG_WHEEL, checkpoints

from roce_gym import assembly
from roce_gym.fabric import Fabric

CASES = range(60)
SHORT_CASES = (2, 9, 12, 21, 25, 28)


@pytest.fixture(autouse=True)
def long_wheel(monkeypatch):
    monkeypatch.setattr(assembly.events, "MIN_BUCKETS", LONG_WHEEL)


@pytest.mark.parametrize("number", CASES)
def test_agrees_at_many_moments(number):
    both = SideBySide(make_queueing_case(number))
    for time in checkpoints(both.case, 10):
        assert both.advance(time) == [], time


@pytest.mark.nojit
@pytest.mark.parametrize("number", SHORT_CASES)
def test_agrees_without_compilation(number):
    both = SideBySide(make_queueing_case(number))
    for time in checkpoints(both.case, 3):
        assert both.advance(time) == [], time


def test_the_cases_reach_every_rule():
    seen = Counter()
    for case in map(make_queueing_case, CASES):
        fabric = Fabric(case.scenario, case.seed, network=case.network, plan=case.plan)
        state = fabric._state
        for part in range(1, 120):
            fabric.advance(ps=case.end_ps * part // 1_000 - fabric.now_ps)
            waits = state.event_ps[int(state.params[0]["first_bucket"]) :] < 2**62
            count = len(state.tenant_bucket)
            seen["tenant waits"] += int(waits[:count].sum())
            seen["class waits"] += int(waits[count:].sum())
            seen["held"] += int((state.tenant_bucket["head"] >= 0).sum())
            seen["shared headroom"] += int((state.xoff["used"] > 0).sum())
            seen["deficits"] += int((state.share["deficit"] > 0).sum())
            seen["pools"] += int(state.params[0]["num_pools"]) > 1
            seen["drops"] += int(state.ingress["drops"].sum() > 0)
    assert len(seen) == 7
    assert min(seen.values()) > 10, seen
