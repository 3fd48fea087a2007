"""Graphs on hosts: queue pairs, algorithms, and what is refused."""

from collections import Counter

import numpy as np
import pytest
from test_planner import FABRIC, build, ends, plan_of, tenant

from roce_gym.assembly.graphs import make_graphs
from roce_gym.config import validate_scenario
from roce_gym.errors import ConfigError
from roce_gym.topology import build_network
from roce_gym.workload.collective_jobs import stage_order
from roce_gym.workload.graph_builder import OpGraphBuilder
from roce_gym.workload.graph_plan import Connection, GraphWork
from roce_gym.workload.graph_planner import by_rank, plan_graph
from roce_gym.workload.machines import Options
from roce_gym.workload.op_graph import CollectiveCall, OpKind
from roce_gym.workload.planner import make_plan
from roce_gym.workload.queue_pairs import JobPlace

RAILS = {"kind": "rail_optimised", "nodes": 2, "gpus_per_node": 4, "spines": 2}
COLLECTIVE = {"kind": "collective", "operation": "all_reduce", "bytes": 1000}


def place(hosts):
    return JobPlace("tenants.a.jobs.0", 0, 0, 0, hosts, 0)


def network(topology=FABRIC):
    return build_network(validate_scenario(raw(topology)).topology)


def raw(topology, hosts=(0, 1), **job):
    return {
        "name": "test",
        "topology": topology,
        "tenants": [tenant("a", list(hosts), COLLECTIVE | job)],
    }


def calls(*many, n=4, options=Options()):  # noqa: B008
    """A graph in which all ranks of each call do it, one after the other."""
    build = OpGraphBuilder(n)
    last = {}
    for index, call in enumerate(many):
        for rank in call.ranks:
            needs = last.get(rank, [])
            last[rank] = [build.add(rank, OpKind.COLLECTIVE, peer=index, needs=needs)]
    return GraphWork(build.graph(many), options)


def test_a_ring_on_hosts():
    plan = plan_of(tenant("a", [5, 1, 9], COLLECTIVE | {"channels": 2, "compute_us": 1.5}))
    (job,) = plan.jobs
    assert (job.kind, job.label, job.hosts) == ("graph", "collective", (5, 1, 9))
    assert (job.compute_ps, job.rounds) == (1_500_000, -1)
    assert Counter(ends(plan, qp) for qp in job.qps[0]) == {(5, 1): 2, (1, 9): 2, (9, 5): 2}
    assert job.graph.call_sizes[0].tolist() == [[4, 167, 1]]  # 1000 / (3 x 2) = 166.7
    assert job.graph.round_bytes == 6 * 4 * 167


def test_members_are_counted_behind_those_of_other_jobs():
    first = tenant("a", [0, 1, 2], COLLECTIVE)
    second = tenant("b", [3, 4], {"kind": "ring_all_reduce", "bytes": 1})
    assert [job.first_member_id for job in plan_of(first, second).jobs] == [0, 3]


def test_collectives_of_the_same_ranks_and_algorithm_share_queue_pairs():
    ranks = (0, 1, 2, 3)
    work = calls(
        CollectiveCall("all_reduce", "ring", ranks, 1000),
        CollectiveCall("all_gather", "ring", ranks, 2000),
        CollectiveCall("all_reduce", "ring", ranks, 3000),
        CollectiveCall("all_reduce", "tree", ranks, 1000),
        CollectiveCall("all_reduce", "ring", (0, 1), 1000),
    )
    plan, pairs = plan_graph(work, place((7, 8, 9, 10)), network())
    assert len(plan.machines) == 4
    assert plan.call_machine.tolist() == [0, 1, 0, 2, 3]
    assert (plan.lane_qp[0] == plan.lane_qp[1]).all()
    assert [c.group for c in plan.connections] == [0] * 4 + [1] * 12 + [2] * 2
    assert pairs[:4] == [(7, 8), (8, 9), (9, 10), (10, 7)]
    assert pairs[-2:] == [(7, 8), (8, 7)]


def test_sends_of_one_channel_share_a_queue_pair():
    build = OpGraphBuilder(2)
    for k, channel in enumerate((0, 2, 0)):
        build.add(0, OpKind.SEND, peer=1, size=10, tag=k, channel=channel)
        build.add(1, OpKind.RECV, peer=0, size=10, tag=k, channel=channel)
    plan, _ = plan_graph(GraphWork(build.graph()), place((4, 2)), network())
    assert plan.connections == (Connection(-1, 0, 1, 0), Connection(-1, 0, 1, 2))
    assert plan.send_qp.tolist() == [0, 1, 0, -1, -1, -1]
    assert plan.mate.tolist() == [3, 4, 5, -1, -1, -1]
    assert plan.most_posts == 3


def test_operations_are_sorted_by_rank():
    build = OpGraphBuilder(2)
    a = build.add(1, OpKind.COMPUTE, duration_ps=1)
    b = build.add(0, OpKind.COMPUTE, duration_ps=2)
    build.add(1, OpKind.COMPUTE, duration_ps=3, needs=[a])
    build.add(0, OpKind.COMPUTE, duration_ps=4, needs=[b])
    build.add(0, OpKind.COMPUTE, duration_ps=5, needs=[b, 3])
    graph = by_rank(build.graph())
    assert graph.duration_ps.tolist() == [2, 4, 5, 1, 3]
    assert graph.first_dependency.tolist() == [0, 0, 1, 3, 3, 4]
    assert graph.dependency.tolist() == [0, 0, 1, 3]


@pytest.mark.parametrize(
    ("topology", "hosts", "operation", "algorithm"),
    [
        (FABRIC, range(4), "all_reduce", "ring"),
        (RAILS, range(8), "all_reduce", "hierarchical"),
        (RAILS, range(8), "all_gather", "hierarchical"),
        (RAILS, range(4), "all_reduce", "ring"),  # one server
        (RAILS, (0, 4), "all_reduce", "ring"),  # one rank in each
        (RAILS, (0, 1, 4), "all_reduce", "ring"),  # not equally many
        (RAILS, range(8), "all_to_all", "direct"),
        (RAILS, range(8), "broadcast", "ring"),
    ],
)
def test_auto(topology, hosts, operation, algorithm):
    scenario = validate_scenario(raw(topology, hosts, operation=operation))
    plan = plan_of(scenario.tenants[0].model_dump(), topology=topology)
    assert [m.algorithm for m in plan.jobs[0].graph.machines] == [algorithm]


@pytest.mark.parametrize(
    ("job", "hosts", "message"),
    [
        (
            {"algorithm": "pairwise"},
            4,
            "jobs.0.*algorithm = 'pairwise' is not allowed .*ring, tree",
        ),
        ({"operation": "all_gather", "algorithm": "halving_doubling"}, 6, "power of two .* are 6"),
        ({"algorithm": "hierarchical"}, 4, "needs two servers with NVLink"),
        ({"operation": "reduce"}, 4, "jobs.0.*operation.*all_reduce"),
        ({"bytes": 0}, 4, "bytes"),
        ({"channels": 65}, 4, "channels.*65"),
        ({"qps_per_connection": 0}, 4, "qps_per_connection.*0"),
        (
            {"chunk_bytes": 1, "bytes": 2**40},
            4,
            r"jobs.0: a rank sends up to .* messages",
        ),
        ({}, 1, "tenants.a.jobs.0: needs at least 2 hosts, the tenant has 1"),
        ({"chunk": 5}, 4, "chunk: unknown key"),
    ],
)
def test_what_is_refused(job, hosts, message):
    with pytest.raises(ConfigError, match=f"(?s){message}"):
        plan_of(tenant("a", list(range(hosts)), COLLECTIVE | job))


def test_a_graph_needs_as_many_hosts_as_ranks():
    work = calls(CollectiveCall("all_reduce", "auto", (0, 1, 2, 3), 1))
    with pytest.raises(ConfigError, match="needs 4 hosts, a rank each; the tenant has 3"):
        plan_graph(work, place((1, 2, 3)), network())


def test_rounds_must_take_time():
    build = OpGraphBuilder(1)
    build.add(0, OpKind.COMPUTE)
    build.add(0, OpKind.MARK)
    with pytest.raises(ConfigError, match="a round takes no time"):
        plan_graph(GraphWork(build.graph()), place((1,)), network())
    plan_graph(GraphWork(build.graph(), compute_ps=1), place((1,)), network())


def test_unknown_collectives_of_a_graph():
    for call, message in (
        (CollectiveCall("scatter", "auto", (0, 1), 1), "collectives.0.operation = 'scatter'"),
        (CollectiveCall("all_reduce", "best", (0, 1), 1), "collectives.0.algorithm = 'best'"),
    ):
        with pytest.raises(ConfigError, match=message):
            plan_graph(calls(call), place((0, 1, 2, 3)), network())


@pytest.mark.parametrize("schedule", ["1f1b", "gpipe"])
@pytest.mark.parametrize(("stages", "batches"), [(2, 1), (3, 5), (5, 3)])
def test_stages_do_everything_once_and_hold_few_micro_batches(schedule, stages, batches):
    for stage in range(stages):
        order = stage_order(schedule, stage, stages, batches)
        for is_back in (False, True):
            assert [k for back, k in order if back is is_back] == list(range(batches))
        under_way = np.cumsum([-1 if back else 1 for back, _ in order])
        assert under_way.min() == 0
        expected = batches if schedule == "gpipe" else min(stages - stage, batches)
        assert under_way.max() == expected


class NoServers:
    num_servers = 0


def test_a_ring_of_16384_ranks_takes_memory_for_its_ranks_and_channels():
    """A plan of it has two lanes and queue pairs a rank, not 32,766 messages each."""
    topology = {"kind": "leaf_spine", "leaves": 128, "hosts_per_leaf": 128, "spines": 4}
    job = COLLECTIVE | {"bytes": 2**30, "channels": 2, "rounds": 1}
    scenario, fabric = build(
        tenant("a", list(range(16_384)), job),
        topology=topology,
        switch={"buffer_bytes": 2**31 - 1},
    )
    plan = make_plan(scenario, fabric, 0)
    (ring,) = plan.jobs
    assert len(plan.qps) == 2 * 16_384
    (machine,) = ring.graph.machines
    assert len(machine.src) == len(machine.need_lane) == 2 * 16_384
    assert ring.graph.call_sizes[0].tolist() == [[32_766, 32_768, 1]]
    assert ring.graph.round_bytes == 32_766 * 32_768 * 2 * 16_384
    arrays = make_graphs(plan, [0])
    assert sum(array.nbytes for array in arrays.values()) < 300 * 2 * 16_384
    many = calls(*[CollectiveCall("all_reduce", "ring", tuple(range(64)), 1000)] * 50, n=64)
    one = calls(CollectiveCall("all_reduce", "ring", tuple(range(64)), 1000), n=64)
    posts = [plan_graph(w, place(tuple(range(64))), NoServers())[0].most_posts for w in (one, many)]
    assert posts == [2 * 126 + 1, 2 * 126 + 50]  # does not grow with the number of collectives
