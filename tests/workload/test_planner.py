import csv
from collections import Counter
from pathlib import Path

import pytest

from roce_gym.config import class_order, validate_scenario
from roce_gym.errors import ConfigError, TraceFileError
from roce_gym.routing import Router
from roce_gym.topology import build_network
from roce_gym.workload.planner import make_plan

SHARED = Path(__file__).resolve().parents[3] / "shared"
REFERENCE = SHARED / "reference" / "ns3" / "S5d_tenants"

FABRIC = {"kind": "leaf_spine", "leaves": 4, "hosts_per_leaf": 4, "spines": 4}
RING = {"kind": "ring_all_reduce", "bytes": 1000}
ALL_TO_ALL = {"kind": "all_to_all", "bytes": 1000}
INCAST = {"kind": "incast", "bytes": 10, "degree": 2, "period_us": 50}
CLASSES = [
    {"name": "bulk", "priority": 1},
    {"name": "gold", "priority": 6, "scheduling": "strict"},
    {"name": "roce", "priority": 0},
    {"name": "top", "priority": 7, "scheduling": "strict"},
]


def tenant(name, hosts, *jobs, **rest):
    return {"name": name, "hosts": hosts, "jobs": list(jobs), **rest}


def build(*tenants, topology=FABRIC, **rest):
    raw = {"name": "test", "topology": topology, "tenants": list(tenants), **rest}
    scenario = validate_scenario(raw)
    return scenario, build_network(scenario.topology)


def plan_of(*tenants, seed=0, **rest):
    return make_plan(*build(*tenants, **rest), seed)


def ends(plan, qp):
    return plan.qps[qp].src, plan.qps[qp].dst


def test_class_order():
    scenario, _ = build(tenant("a", [0, 1], RING), classes=CLASSES)
    assert [scenario.classes[i].name for i in class_order(scenario)] == [
        "top",
        "gold",
        "roce",
        "bulk",
    ]


def test_ring():
    job = RING | {"channels": 2, "chunks_per_step": 3, "compute_us": 1.5, "jitter": 0.1}
    job |= {"rounds": 7, "start_us": 2, "stop_us": 9}
    plan = plan_of(tenant("a", [5, 1, 9], job))
    (ring,) = plan.jobs
    assert (ring.kind, ring.tenant, ring.hosts) == ("ring_all_reduce", 0, (5, 1, 9))
    for channel in ring.qps:
        assert [ends(plan, qp) for qp in channel] == [(5, 1), (1, 9), (9, 5)]
    assert sorted(qp for channel in ring.qps for qp in channel) == list(range(6))
    assert ring.message_bytes == 56  # 1000 / (3 x 2 x 3) = 55.6
    assert (ring.messages_per_round, ring.chunks) == (12, 3)
    assert (ring.compute_ps, ring.jitter, ring.rounds) == (1_500_000, 0.1, 7)
    assert (ring.start_ps, ring.stop_ps, ring.period_ps) == (2_000_000, 9_000_000, 0)


def test_all_to_all():
    plan = plan_of(tenant("a", [5, 1, 9], ALL_TO_ALL))
    (job,) = plan.jobs
    assert job.hosts == (5, 1, 9)
    assert [[ends(plan, qp) for qp in row] for row in job.qps] == [
        [(5, 1), (5, 9)],
        [(1, 9), (1, 5)],
        [(9, 5), (9, 1)],
    ]
    assert (job.message_bytes, job.messages_per_round, job.chunks) == (334, 2, 0)
    assert (job.rounds, job.stop_ps) == (-1, -1)


def test_incast():
    plan = plan_of(tenant("a", [5, 1, 9, 2], INCAST))
    (job,) = plan.jobs
    assert job.hosts == (1, 9)
    assert [[ends(plan, qp) for qp in row] for row in job.qps] == [[(1, 5), (9, 5)]]
    assert (job.message_bytes, job.messages_per_round, job.period_ps) == (10, 2, 50_000_000)


def test_flows__sorted_by_start_then_file_order_and_cut_at_stop(tmp_path):
    file = tmp_path / "flow.txt"
    file.write_text("2\n3 2 3 100 30 0.000001\n0 1 3 100 40 0.000002\n")
    flows = [
        {"src": 0, "dst": 1, "bytes": 10, "start_us": 1},
        {"src": 7, "dst": 2, "bytes": 20},
        {"src": 0, "dst": 1, "bytes": 50, "start_us": 9},
    ]
    job = {"kind": "flows", "flows": flows, "file": str(file), "start_us": 1, "stop_us": 10}
    plan = plan_of(tenant("a", [0], job))
    (planned,) = plan.jobs
    assert planned.flow_bytes == (20, 10, 30, 40)
    assert planned.flow_start_ps == (1_000_000, 2_000_000, 2_000_000, 3_000_000)
    assert [ends(plan, qp) for qp in planned.qps[0]] == [(7, 2), (0, 1), (3, 2), (0, 1)]
    assert len(set(planned.qps[0])) == len(plan.qps) == 4


def test_qps__sorted_by_host_class_and_creation():
    scenario, network = build(
        tenant("a", [0, 1], RING | {"channels": 2}, traffic_class="bulk"),
        tenant("b", [1, 0], RING, ALL_TO_ALL, traffic_class="gold"),
        tenant("c", [0, 1], RING),
        classes=CLASSES,
    )
    plan = make_plan(scenario, network, 3)
    # classes: gold (1) before roce (2) before bulk (0)
    assert [(qp.src, qp.class_index, qp.tenant) for qp in plan.qps] == [
        (host, *rest) for host in (0, 1) for rest in ((1, 1), (1, 1), (2, 2), (0, 0), (0, 0))
    ]
    channels, ring, pairs, last = (job.qps for job in plan.jobs)
    assert channels == ((3, 8), (4, 9))
    assert ring == ((5, 0),) and pairs == ((6,), (1,)) and last == ((2, 7),)


def test_paths__lead_from_src_to_dst_and_back():
    scenario, network = build(tenant("a", list(range(16)), ALL_TO_ALL))
    for qp in make_plan(scenario, network, 1).qps:
        for links, (src, dst) in (
            (qp.data_links, (qp.src, qp.dst)),
            (qp.ack_links, (qp.dst, qp.src)),
        ):
            assert network.link_src[links[0]] == src and network.link_dst[links[-1]] == dst
            for i in range(len(links) - 1):
                assert network.link_dst[links[i]] == network.link_src[links[i + 1]]


def spines(plan):
    return [qp.data_links[1:-1] for qp in plan.qps], [qp.ack_links[1:-1] for qp in plan.qps]


def test_paths__vary_with_seed_job_and_channel_and_direction():
    """16 cross-leaf pairs and 4 spines: two independent draws agree with probability 4^-16."""
    job = RING | {"channels": 2}
    hosts = [leaf * 4 + i for i in range(4) for leaf in range(4)]
    scenario, network = build(tenant("a", hosts, job, job))
    plan, again, other = (make_plan(scenario, network, seed) for seed in (0, 0, 1))
    assert plan == again
    assert spines(plan)[0] != spines(other)[0] and spines(plan)[1] != spines(other)[1]
    channels = [channel for planned in plan.jobs for channel in planned.qps]
    via = [
        tuple(int(network.link_dst[plan.qps[qp].data_links[1]]) for qp in channel)
        for channel in channels
    ]
    back = [
        tuple(int(network.link_dst[plan.qps[qp].ack_links[1]]) for qp in channel)
        for channel in channels
    ]
    assert len({*via, *back}) == 8
    assert set(Counter(spine for row in via for spine in row)) == {20, 21, 22, 23}


def test_only_tenant__keeps_hosts_paths_and_member_numbers():
    random = {"kind": "random", "count": 6}
    tenants = [
        tenant("a", random, INCAST, RING),
        tenant("b", random, {"kind": "flows", "flows": [{"src": 0, "dst": 9, "bytes": 1}]}),
        tenant("c", random, ALL_TO_ALL, RING | {"channels": 3}, traffic_class="bulk"),
    ]
    scenario, network = build(*tenants, classes=CLASSES)
    shared = make_plan(scenario, network, 11)
    assert [job.first_member_id for job in shared.jobs] == [0, 0, 6, 6, 12]
    for name, index in (("a", 0), ("b", 1), ("c", 2)):
        alone = make_plan(scenario, network, 11, only_tenant=name)
        assert alone.qps == tuple(qp for qp in shared.qps if qp.tenant == index)
        expected = [job for job in shared.jobs if job.tenant == index]
        for job, same in zip(alone.jobs, expected, strict=True):
            assert (job.hosts, job.first_member_id) == (same.hosts, same.first_member_id)
            for row, same_row in zip(job.qps, same.qps, strict=True):
                assert [alone.qps[qp] for qp in row] == [shared.qps[qp] for qp in same_row]
    with pytest.raises(ConfigError, match="tenant 'x' is unknown; allowed: a, b, c"):
        make_plan(scenario, network, 11, only_tenant="x")


def test_placement__packed_and_strided():
    plan = plan_of(
        tenant("a", {"kind": "packed", "count": 3, "first": 2}, RING),
        tenant("b", {"kind": "strided", "count": 4, "first": 3, "stride": 4}, RING),
    )
    assert [job.hosts for job in plan.jobs] == [(2, 3, 4), (3, 7, 11, 15)]


def test_placement__random_depends_on_seed_and_own_index_only():
    random = {"kind": "random", "count": 5}
    first, second = (
        plan_of(tenant("a", hosts, RING), tenant("b", random, RING), seed=4)
        for hosts in ([0, 1], random)
    )
    assert first.jobs[1].hosts == second.jobs[1].hosts != second.jobs[0].hosts
    draws = {plan_of(tenant("a", random, RING), seed=seed).jobs[0].hosts for seed in range(20)}
    assert len(draws) > 15
    assert all(len(set(hosts)) == 5 and set(hosts) <= set(range(16)) for hosts in draws)
    assert plan_of(tenant("a", random | {"count": 16}, RING)).jobs[0].hosts != tuple(range(16))


@pytest.mark.parametrize(
    ("hosts", "message"),
    [
        ({"kind": "packed", "count": 17}, "17 hosts from position 0 .* reach position 16"),
        ({"kind": "packed", "count": 2, "first": 15}, "reach position 16; .* is at 15"),
        ({"kind": "strided", "count": 2**31 - 1, "stride": 2**31 - 1}, "reach position"),
        ({"kind": "random", "count": 17}, r"count = 17 is not allowed; allowed: 1 … 16"),
        ([0, 16], "tenants.a.hosts: node 16 is a switch, not a host"),
        ([0, 99], "tenants.a.hosts: node 99 does not exist"),
        ([0, 1, 0], r"tenants.a.hosts: listed more than once: \[0\]"),
        ([], "tenants.a.hosts: is empty"),
        ([3], "tenants.a.jobs.0: needs at least 2 hosts"),
    ],
)
def test_hosts__faults(hosts, message):
    for job in (RING, ALL_TO_ALL):
        with pytest.raises(ConfigError, match=message):
            plan_of(tenant("a", hosts, job))


def test_incast__more_senders_than_hosts():
    with pytest.raises(ConfigError, match=r"a.jobs.0.degree = 2 .* has 1 hosts beside"):
        plan_of(tenant("a", [0, 1], INCAST))


@pytest.mark.parametrize(
    ("flow", "message"),
    [
        ({"src": 16}, "jobs.0.flows.0: src = 16: node 16 is a switch, not a host"),
        ({"dst": 40}, "jobs.0.flows.0: dst = 40: node 40 does not exist"),
        ({"dst": 0}, "src and dst are both host 0"),
        ({"data_path": [0, 16, 20, 17, 5]}, "must end at host 4, not at host 5"),
        ({"ack_path": [0, 16, 20, 17, 4]}, "must start at host 4, not at host 0"),
        ({"data_path": [0, 16, 17, 4]}, "no cable leads from switch 16 to switch 17"),
    ],
)
def test_flows__faults(flow, message):
    good = {"src": 0, "dst": 4, "bytes": 1}
    with pytest.raises(ConfigError, match=message):
        plan_of(tenant("a", [0], {"kind": "flows", "flows": [good | flow]}))


def test_flows__none():
    for job in ({"kind": "flows"}, {"kind": "flows", "flows": [], "start_us": 1}):
        with pytest.raises(ConfigError, match="has no flow"):
            plan_of(tenant("a", [0], job))
    job = {"kind": "flows", "file": "/absent/flow.txt"}
    with pytest.raises(TraceFileError, match=r"flow\.txt: cannot be read"):
        plan_of(tenant("a", [0], job))


def test_flows__forced_paths():
    flow = {"src": 0, "dst": 4, "bytes": 1, "data_path": [0, 16, 22, 17, 4]}
    both = flow | {"ack_path": [4, 17, 20, 16, 0]}
    scenario, network = build(tenant("a", [0], {"kind": "flows", "flows": [flow, both]}))
    acks = set()
    for seed in range(20):
        first, second = make_plan(scenario, network, seed).qps
        assert [network.link_dst[link] for link in first.data_links] == [16, 22, 17, 4]
        assert second.data_links == first.data_links
        assert [network.link_dst[link] for link in second.ack_links] == [17, 20, 16, 0]
        acks.add(first.ack_links)
    assert len(acks) > 1


def test_seed__negative():
    with pytest.raises(ConfigError, match="seed = -1 is not allowed"):
        plan_of(tenant("a", [0, 1], RING), seed=-1)


def test_router__can_be_shared():
    scenario, network = build(tenant("a", list(range(16)), RING))
    router = Router(network)
    for seed in range(3):
        assert make_plan(scenario, network, seed, router=router) == make_plan(
            scenario, network, seed
        )


@pytest.mark.skipif(not REFERENCE.is_dir(), reason="reference runs are absent")
def test_reference_run__flow_file_with_forced_paths():
    topology = {"kind": "hpcc_file", "path": str(REFERENCE / "topology.txt")}
    with (REFERENCE / "paths.csv").open() as lines:
        rows = list(csv.DictReader(lines))
    flows = [
        {
            "src": int(row["src"]),
            "dst": int(row["dst"]),
            "bytes": 1,
            **{key: list(map(int, row[key].split("-"))) for key in ("data_path", "ack_path")},
        }
        for row in rows
    ]
    forced, free = (
        plan_of(tenant("a", [0], {"kind": "flows"} | source), topology=topology)
        for source in ({"flows": flows}, {"file": str(REFERENCE / "flow.txt")})
    )
    assert len(forced.qps) == len(free.qps) == 28
    assert Counter((qp.src, qp.dst) for qp in forced.qps) == Counter(
        (qp.src, qp.dst) for qp in free.qps
    )
    assert free.jobs[0].flow_start_ps == (0,) * 16 + (100_000_000,) * 12
    assert set(free.jobs[0].flow_bytes[16:]) == {1_000_000}
