"""Operation graphs and collectives: the compiled core agrees with the oracle, which expands every
message; with PFC, ECN, loss, any routing, recovery and sender."""

from __future__ import annotations

from collections import Counter

import pytest
from graph_cases import GraphJobs, random_work
from queueing_cases import Queueing
from sender_cases import DRAWN
from side_by_side import SideBySide
from test_against_naive import LONG_WHEEL, checkpoints
from tiny_cases import Case, make_case

from roce_gym import assembly
from roce_gym.config import ALGORITHMS, validate_scenario
from roce_gym.fabric import Fabric
from roce_gym.topology import build_network
from roce_gym.workload.graph_jobs import GRAPH_MAKERS
from roce_gym.workload.planner import make_plan

MIXED = ((), ("dcqcn", "timely", "hpcc"), tuple(DRAWN), ("dcqcn", *DRAWN))


@pytest.fixture(autouse=True)
def any_graph(monkeypatch):
    monkeypatch.setattr(assembly.events, "MIN_BUCKETS", LONG_WHEEL)
    monkeypatch.setitem(GRAPH_MAKERS, "pipeline", random_work)


def plain_case(number):
    return make_case(number, (), GraphJobs(number))


def mixed_case(number):
    extra = GraphJobs(number, Queueing(number))
    return make_case(number, MIXED[number % 4], extra, pfc=True, varied=True)


def check(case, steps):
    both = SideBySide(case)
    for time in checkpoints(case, steps):
        assert both.advance(time) == [], time
    return both


@pytest.mark.parametrize("number", range(3000, 3040))
def test_agrees(number):
    check(plain_case(number), 10)


@pytest.mark.parametrize("number", range(4000, 4040))
def test_agrees_where_everything_is_mixed(number):
    check(mixed_case(number), 5)


@pytest.mark.nojit
@pytest.mark.parametrize("number", range(3000, 3006))
def test_agrees_without_jit(number):
    check(plain_case(number), 2)


def one_collective(topology, hosts, job, seed=3):
    job = {"kind": "collective", "bytes": 30_000, "compute_us": 1, "jitter": 0.9, **job}
    raw = {
        "name": "one",
        "topology": topology,
        "preset": "pfc_only",
        "tenants": [{"name": "t", "hosts": hosts, "jobs": [job | {"rounds": 3}]}],
    }
    scenario = validate_scenario(raw)
    network = build_network(scenario.topology)
    plan = make_plan(scenario, network, seed)
    settings = Fabric(scenario, seed, network=network, plan=plan).settings
    return Case(scenario, network, plan, seed, ((0, settings),), 200_000_000)


@pytest.mark.parametrize("operation", ["all_reduce", "all_gather", "reduce_scatter"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"channels": 2, "chunk_bytes": 1_500, "in_flight": 2},
        {"qps_per_connection": 3, "chunk_bytes": 900},
        {"qps_per_connection": 2, "split_data_on_qps": True, "slices": 2},
    ],
)
def test_agrees_inside_servers_and_across(operation, options):
    topology = {"kind": "rail_optimised", "nodes": 3, "gpus_per_node": 2}
    job = {"operation": operation, "algorithm": "hierarchical", **options}
    both = check(one_collective(topology, [5, 4, 1, 0, 3, 2], job), 8)
    assert len(both.completions) == 3
    assert len(both.collectives) == 3 * options.get("in_flight", 1)


@pytest.mark.parametrize(
    "options",
    [
        {"bytes": 900_000},  # 14 pieces as they are by default
        {"chunk_bytes": 500},
        {"chunk_bytes": 300, "channels": 2, "slices": 2},
        {"chunk_bytes": 300, "qps_per_connection": 2, "split_data_on_qps": True},
    ],
)
@pytest.mark.parametrize("ranks", [2, 4, 5])
def test_agrees_where_leaves_of_trees_wait_for_what_comes_back(ranks, options):
    job = {"operation": "all_reduce", "algorithm": "tree", **options}
    topology = {"kind": "star", "hosts": ranks}
    both = check(one_collective(topology, list(range(ranks)), job), 8)
    assert both.completions


def test_the_cases_reach_every_machine_and_kind_of_operation():
    seen = Counter()
    ahead = 0
    for case in [plain_case(n) for n in range(3000, 3040)] + [
        mixed_case(n) for n in range(4000, 4040)
    ]:
        fabric = Fabric(case.scenario, case.seed, network=case.network, plan=case.plan)
        interval = fabric.advance(ps=case.end_ps)
        seen["rounds"] += len(interval.completions)
        seen["collectives"] += len(interval.collectives)
        seen["marks"] += len(interval.marks)
        seen["lost"] += int(interval.lost_packets.sum())
        seen["dropped"] += int(interval.dropped_packets.sum())
        seen["marked"] += int(interval.ecn_marked_packets.sum())
        seen["paused"] += int(interval.pause_frames.sum())
        for number, job in enumerate(case.plan.jobs):
            if job.graph is None:
                continue
            first = int(fabric._state.job[number]["first_member"])
            rounds = fabric._state.member["round"][first : first + len(job.hosts)]
            assert rounds.max() - rounds.min() <= 2  # it waits for its turn of the third
            ahead += int(rounds.max() - rounds.min() == 2)
            for kind in job.graph.graph.kind:
                seen[f"op {kind}"] += 1
            done = {int(e["call"]) for e in interval.collectives if e["job"] == number}
            for call in done:
                machine = job.graph.machines[job.graph.call_machine[call]]
                seen[machine.operation, machine.algorithm] += 1
    flat = [(o, a) for o, names in ALGORITHMS.items() for a in names if a != "hierarchical"]
    assert min(seen[key] for key in flat) > 3, seen
    assert min(seen.values()) > 3, seen
    assert ahead > 3
