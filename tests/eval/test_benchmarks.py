"""The workloads that are timed, and when an aim counts as reached; nothing is timed here."""

import json

import pytest

from eval.benchmarks import __main__ as command
from eval.benchmarks import measure
from eval.benchmarks.__main__ import _line
from eval.benchmarks.cases import cases, machine_cases
from eval.benchmarks.measure import Row, cost, packet_hops
from roce_gym.topology import build_network
from roce_gym.workload.planner import make_plan


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


def test_machines_are_timed_beside_flows_on_the_same_links():
    found = {case.name: case for case in machine_cases()}
    assert list(found) == [
        f"star of 16, {what}, {kind}"
        for what in ("ring all-reduce", "direct all-to-all")
        for kind in ("operation graph", "loop")
    ]

    def ends(case):
        plan = make_plan(case.scenario, build_network(case.scenario.topology), 1)
        assert all(job.rounds < 0 for job in plan.jobs)
        return sorted((pair.src, pair.dst) for pair in plan.qps)

    for case in found.values():
        assert case.plain.name.endswith("flow list")
        assert ends(case) == ends(case.plain)
        assert case.scenario.nic == case.plain.scenario.nic


def test_what_a_machine_costs_is_the_time_of_its_packets_over_that_of_flows(monkeypatch):
    """A machine at four fifths of the speed costs a quarter more, which misses the aim."""
    rates = {"machine": 4e6, "flows": 5e6}

    class Stretch:
        def __init__(self, case):
            self.kind = "machine" if case.plain else "flows"

        def packet_hops_per_s(self, clock):
            return rates[self.kind]

    monkeypatch.setattr(measure, "_Stretch", Stretch)
    case = machine_cases()[0]
    row = cost(case, repeat=1)
    assert (row.value, row.unit, row.reached) == (1.25, "x flow list", False)
    assert _line(row).rstrip().endswith("<= 1.05  MISSED")
    rates["machine"] = 4.8e6
    assert cost(case, repeat=1).reached
    with pytest.raises(ValueError, match="flow list has no workload to be compared with"):
        cost(case.plain, repeat=1)


def test_rows_of_machines_and_of_planning_are_in_the_file(tmp_path, monkeypatch):
    monkeypatch.setattr(command, "cost", lambda case, repeat: Row(case.name, 1.0, "x flow list"))
    monkeypatch.setattr(command, "planning", lambda: Row("planned", 5.0, "s", aim=10, at_most=True))
    names = {}
    for option in ((), ("--quick",)):
        path = tmp_path / "latest.json"
        arguments = ["bench", "--only", "a", "--out", str(path), *option]
        monkeypatch.setattr("sys.argv", arguments)
        for name in ("packet_hops", "env_steps", "vector_steps"):
            monkeypatch.setattr(command, name, lambda *_: Row("other", 1.0, "s"))
        for name in ("peak_memory", "starts"):
            monkeypatch.setattr(command, name, lambda: Row("other", 1.0, "s"))
        assert command.main() == 0
        rows = json.loads(path.read_text())["rows"]
        assert all({"name", "value", "unit", "yardstick_ratio", "aim"} <= set(row) for row in rows)
        names[option] = {row["name"] for row in rows}
    assert {case.name for case in machine_cases()} <= names["--quick",]
    assert names[()] - names["--quick",] == {"planned"}
