"""Traffic classes of jobs, and tenants that arrive and leave: in the plan and in the run."""

import pytest

from roce_gym.config import validate_scenario
from roce_gym.errors import ConfigError
from roce_gym.fabric import Fabric
from roce_gym.topology import build_network
from roce_gym.workload.planner import make_plan

US = 1_000_000
RING = {"kind": "ring_all_reduce", "bytes": 20_000, "compute_us": 5}
CLASSES = [
    {"name": "roce", "priority": 3},
    {"name": "bulk", "priority": 1},
]


def scenario(*tenants, **rest):
    raw = {"name": "test", "topology": {"kind": "star", "hosts": 6}, "tenants": list(tenants)}
    return validate_scenario(raw | rest)


def tenant(name, hosts, *jobs, **rest):
    return {"name": name, "hosts": hosts, "jobs": list(jobs), **rest}


def planned(made):
    return make_plan(made, build_network(made.topology), 0)


# --------------------------------------------------------------------------- classes


def test_tenants_may_share_a_class():
    made = scenario(tenant("a", [0, 1], RING), tenant("b", [2, 3], RING), classes=CLASSES[:1])
    assert {(qp.tenant, qp.class_index) for qp in planned(made).qps} == {(0, 0), (1, 0)}
    state = Fabric(made, 0)._state
    assert set(state.qp["cls"].tolist()) == {1}
    assert set(state.qp["tenant"].tolist()) == {0, 1}


@pytest.mark.parametrize(("tc", "index"), [(96, 0), (104, 1), (106, 1), (40, 1), (43, 1), (124, 0)])
def test_nccl_ib_tc_chooses_the_class(tc, index):
    # DSCP 24 … 31 mean priority 3, and 8 … 15 priority 1, but the map says bulk of 26.
    job = RING | {"nccl": {"NCCL_IB_TC": tc}}
    switch = {"dscp": {"map": {26: "bulk"}}}
    made = scenario(tenant("a", [0, 1], job, RING), classes=CLASSES, switch=switch)
    classes = {qp.job: qp.class_index for qp in planned(made).qps}
    assert classes == {0: index, 1: 0}


def test_a_code_point_without_a_class():
    job = RING | {"nccl": {"NCCL_IB_TC": 4}}  # DSCP 1 would be priority 0
    with pytest.raises(
        ConfigError, match=r"DSCP 1, which no class has; .*: 32 \(bulk\), 96 \(roce"
    ):
        scenario(tenant("a", [0, 1], job), classes=CLASSES)


def test_timeouts_and_retries_are_those_of_the_job():
    job = RING | {"nccl": {"NCCL_IB_TIMEOUT": 1, "NCCL_IB_RETRY_CNT": 2}}
    made = scenario(tenant("a", [0, 1], job, RING))
    found = {qp.job: (qp.timeout_ps, qp.retry_limit) for qp in planned(made).qps}
    assert found == {0: (8_192_000, 2), 1: (None, None)}


def test_a_job_gives_up_after_its_own_timeouts():
    # All is lost from the start on: sent at 0, 8.192 and 16.384 us, failed at 24.576 us; the job
    # of the NIC's settings waits on.
    flows = [{"kind": "flows", "flows": [{"src": 0, "dst": 1, "bytes": 100}]} for _ in range(2)]
    flows[0]["nccl"] = {"NCCL_IB_TIMEOUT": 1, "NCCL_IB_RETRY_CNT": 2}
    lossy = [{"kind": "lossy", "between": [0, 6], "start_us": 0, "loss": 1.0}]
    made = scenario(tenant("a", [0, 1], *flows), link_events=lossy)
    fabric = Fabric(made, 0)
    assert fabric.advance(ps=24_576_000 - 1).failed_qps == 0
    assert fabric.advance(ps=1).failed_qps == 1
    assert fabric.advance(us=1000).failed_qps == 1


# --------------------------------------------------------------------------- arrive, leave


def test_times_of_jobs_count_from_the_arrival():
    flows = {
        "kind": "flows",
        "flows": [{"src": 0, "dst": 1, "bytes": 9, "start_us": t} for t in (1, 6)],
    }
    made = scenario(
        tenant(
            "a",
            [0, 1],
            RING | {"start_us": 3, "stop_us": 20},
            RING | {"stop_us": 80},
            RING,
            flows | {"start_us": 2},
            arrive_us=10,
            leave_us=50,
        )
    )
    jobs = planned(made).jobs
    assert [job.start_ps // US for job in jobs] == [13, 10, 10, 12]
    assert [job.stop_ps // US for job in jobs] == [30, 50, 50, 50]
    assert [t // US for t in jobs[3].flow_start_ps] == [13, 18]


def test_a_flow_after_the_leave_is_left_out():
    flows = {
        "kind": "flows",
        "flows": [{"src": 0, "dst": 1, "bytes": 9, "start_us": t} for t in (1, 6)],
    }
    made = scenario(tenant("a", [0, 1], flows, arrive_us=10, leave_us=16))
    assert planned(made).jobs[0].flow_start_ps == (11 * US,)


def test_a_tenant_sends_from_arrival_to_leave_only():
    made = scenario(
        tenant("a", [0, 1, 2], RING, arrive_us=100, leave_us=300),
        tenant("b", [3, 4, 5], RING),
    )
    fabric = Fabric(made, 0)
    sent = []
    for _ in range(5):
        interval = fabric.advance(us=100)
        links = fabric.network.host_link
        sent.append(interval.tx_bytes[links].sum(1))
    before, during, also, after, much_later = (row[:3].sum() for row in sent)
    assert before == 0 and during > 0 and also > 0
    assert after < also / 4  # the round under way ends, no other begins
    assert much_later == 0
    assert all(row[3:].sum() > 0 for row in sent)


def test_leave_before_the_jobs_begin():
    with pytest.raises(ConfigError, match=r"leave_us = 12.0 is not after arrive_us = 10.0"):
        scenario(tenant("a", [0, 1], RING | {"start_us": 3}, arrive_us=10, leave_us=12))
