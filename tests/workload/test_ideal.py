"""Rounds on a network that takes no time, by hand."""

import pytest
from graph_runs import run
from test_graph_planner import network, place
from test_planner import FABRIC, plan_of, tenant

from roce_gym.workload.graph_builder import OpGraphBuilder
from roce_gym.workload.graph_plan import GraphWork
from roce_gym.workload.graph_planner import plan_graph
from roce_gym.workload.ideal import ideal_round_ps
from roce_gym.workload.op_graph import CollectiveCall, OpKind
from roce_gym.workload.plan import JobPlan

ALL_REDUCE = CollectiveCall("all_reduce", "auto", (0, 1), 10**6)


def ideal(build, *calls, compute_ps=0):
    work = GraphWork(build.graph(calls), compute_ps=compute_ps)
    graph, _ = plan_graph(work, place((0, 1)), network())
    return ideal_round_ps(JobPlan("graph", 0, (0, 1), ((),), compute_ps=compute_ps, graph=graph))


def test_loops_only_communicate():
    assert ideal_round_ps(JobPlan("ring_all_reduce", 0, (0, 1), ((0, 1),), compute_ps=5)) == 0


def test_a_chain_and_what_runs_beside_it():
    build = OpGraphBuilder(1)
    first = build.add(0, OpKind.COMPUTE, duration_ps=30)
    second = build.add(0, OpKind.COMPUTE, duration_ps=12, needs=[first])
    build.add(0, OpKind.COMPUTE, duration_ps=5, needs=[first, second])
    build.add(0, OpKind.COMPUTE, duration_ps=46)
    assert ideal(build) == 30 + 12 + 5


def test_two_ranks_wait_for_each_other():
    """10, message, 20, all-reduce for which rank 0 has computed 25 more, 7."""
    build = OpGraphBuilder(2)
    first = build.add(0, OpKind.COMPUTE, duration_ps=10)
    send = build.add(0, OpKind.SEND, peer=1, size=10**6, needs=[first])
    more = build.add(0, OpKind.COMPUTE, duration_ps=25, needs=[send])
    build.add(0, OpKind.COLLECTIVE, peer=0, needs=[more])
    receive = build.add(1, OpKind.RECV, peer=0, size=10**6)
    second = build.add(1, OpKind.COMPUTE, duration_ps=20, needs=[receive])
    call = build.add(1, OpKind.COLLECTIVE, peer=0, needs=[second])
    build.add(1, OpKind.COMPUTE, duration_ps=7, needs=[call])
    assert ideal(build, ALL_REDUCE) == 10 + 25 + 7


def test_the_phase_before_a_round_is_not_in_it():
    build = OpGraphBuilder(2)
    for rank in (0, 1):
        build.add(rank, OpKind.COLLECTIVE, peer=0)
    assert ideal(build, ALL_REDUCE, compute_ps=1000) == 0


@pytest.mark.parametrize("schedule", ["gpipe", "1f1b"])
@pytest.mark.parametrize(("stages", "batches"), [(2, 1), (2, 4), (4, 3), (4, 8)])
def test_the_bubble_of_a_pipeline_is_part_of_it(schedule, stages, batches):
    """(micro-batches + stages - 1) (forward + backward): Narayanan et al., SC 2021, section 2.2."""
    job = {"kind": "pipeline", "schedule": schedule, "bytes": 10**6, "micro_batches": batches}
    times = {"forward_us": 10, "backward_us": 20}
    (job,) = plan_of(tenant("a", list(range(stages)), job | times), topology=FABRIC).jobs
    assert ideal_round_ps(job) == (batches + stages - 1) * 30 * 10**6


def test_a_training_step_against_a_slow_interpreter():
    model = {"layers": 4, "hidden": 64, "ffn_hidden": 128, "heads": 4, "kv_heads": 2}
    job = {"kind": "training", "model": model | {"vocabulary": 100}, "sequence": 16}
    job |= {"parallel": {"tensor": 2, "pipeline": 2}, "micro_batches": 3}
    (job,) = plan_of(tenant("a", list(range(4)), job), topology=FABRIC).jobs
    assert ideal_round_ps(job) == max(run(job.graph.graph)) > 0
