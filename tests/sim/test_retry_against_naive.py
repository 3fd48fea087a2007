"""The compiled core agrees with the oracle where jobs have their own timeouts and retry limits."""

from __future__ import annotations

import pytest
from retry_cases import Retries
from side_by_side import SideBySide
from tiny_cases import make_case

from roce_gym import assembly
from roce_gym.fabric import Fabric

CASES = range(40)


@pytest.fixture
def long_wheel(monkeypatch):
    monkeypatch.setattr(assembly.events, "MIN_BUCKETS", 2**17)


@pytest.mark.parametrize("number", CASES)
def test_agrees(number, long_wheel):
    both = SideBySide(make_case(number, extra=Retries(number), varied=True))
    times = {both.case.end_ps * step**3 // 6**3 for step in range(1, 7)}
    for time in sorted(times | {time for time, _ in both.case.settings[1:]}):
        assert both.advance(max(1, time)) == [], time


def test_the_cases_have_what_they_are_for():
    """Different timeouts in one case, QPs without a timer, retries, QPs that fail, own classes."""
    different = without = retried = failed = classes = 0
    for number in CASES:
        case = make_case(number, extra=Retries(number), varied=True)
        fabric = Fabric(case.scenario, case.seed, network=case.network, plan=case.plan)
        failed += fabric.advance(ps=case.end_ps).failed_qps
        timeouts = set(fabric._state.retry["rto_ps"].tolist())
        different += len(timeouts) > 1
        without += 0 in timeouts and len(timeouts) > 1
        retried += int((fabric._state.sender["retries"] > 0).sum())
        of_tenant = [case.scenario.tenants[qp.tenant].traffic_class for qp in case.plan.qps]
        of_job = [case.scenario.classes[qp.class_index].name for qp in case.plan.qps]
        classes += of_tenant != of_job
    assert min(different, without, retried, failed, classes) >= 5
