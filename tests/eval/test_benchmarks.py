"""The workloads that are timed, and when an aim counts as reached; nothing is timed here."""

import pytest

from eval.benchmarks.__main__ import _line
from eval.benchmarks.cases import cases
from eval.benchmarks.measure import Row, packet_hops


def test_variants_differ_from_their_plain_workload_in_what_they_say():
    known = {case.name: case for case in cases(quick=True)}
    varied = {name: case for name, case in known.items() if case.plain is not None}
    assert len(varied) == 8 and len(known) == 18
    for name, case in varied.items():
        plain, _, what = name.rpartition(", ")
        assert case.plain is known[plain]
        changed = {
            "spraying": case.scenario.routing.policy == "spray_random",
            "HPCC": {tenant.cc for tenant in case.scenario.tenants} == {"hpcc"},
            "Swift": {tenant.cc for tenant in case.scenario.tenants} == {"swift"},
            "user function": {tenant.cc for tenant in case.scenario.tenants} == {"user"},
        }
        assert [key for key, holds in changed.items() if holds] == [what]
        assert case.scenario.topology == case.plain.scenario.topology
        assert case.plain_aim == (0.7 if what == "user function" else 0)


@pytest.mark.parametrize(
    ("row", "reached", "aim"),
    [
        (Row("a", 5, "s"), True, ""),
        (Row("a", 5e6, "s", aim=4e6), True, ">= 4 M"),
        (Row("a", 3e6, "s", aim=4e6), False, ">= 4 M  MISSED"),
        (Row("a", 3, "s", aim=2, at_most=True), False, "<= 2  MISSED"),
        (Row("a", 5, "s", plain_ratio=0.6), True, "0.60"),
        (Row("a", 5, "s", plain_ratio=0.7, plain_aim=0.7), True, ">= 0.7 x plain"),
        (Row("a", 5, "s", plain_ratio=0.6, plain_aim=0.7), False, ">= 0.7 x plain  MISSED"),
    ],
)
def test_aims(row, reached, aim):
    assert row.reached is reached
    assert _line(row).rstrip().endswith(aim)


def test_a_variant_is_timed_with_its_plain_workload():
    case = next(case for case in cases(quick=True) if case.name.endswith("ACK per 16, HPCC"))
    short = type(case)(case.name, case.scenario, 5.0, 5.0, plain=case.plain)
    row = packet_hops(short, repeat=1)
    assert row.value > 0 and row.plain_ratio > 0
