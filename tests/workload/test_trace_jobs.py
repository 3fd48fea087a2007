"""Jobs of kind trace and poisson, from the scenario to the plan."""

from pathlib import Path

import numpy as np
import pytest
import yaml
from trace_writers import GOAL, METADATA, message_file, node, ring, write_chakra

from roce_gym.config import validate_scenario
from roce_gym.errors import ConfigError, TraceFileError
from roce_gym.fabric import Fabric
from roce_gym.reference import cache_key
from roce_gym.scenario_file import load_scenario
from roce_gym.topology import build_network
from roce_gym.workload import trace_jobs
from roce_gym.workload.planner import make_plan
from roce_gym.workload.trace_jobs import trace_notes

POISSON = {"kind": "poisson", "load": 0.3, "sizes": [[0, 0], [20_000, 100]], "stop_us": 300}


def scenario_of(job, hosts=(4, 2, 0, 1), **rest):
    return validate_scenario(
        {
            "name": "test",
            "topology": {"kind": "star", "hosts": 6, "host_rate_gbps": 100},
            "tenants": [{"name": "one", "hosts": list(hosts), "jobs": [job]}],
            **rest,
        }
    )


def plan_of(job, seed=0, **rest):
    scenario = scenario_of(job, **rest)
    return make_plan(scenario, build_network(scenario.topology), seed)


@pytest.fixture
def goal(tmp_path):
    path = tmp_path / "a.goal"
    path.write_text(GOAL)
    return {"kind": "trace", "file": str(path)}


def test_trace__ranks_are_hosts_in_order(goal):
    """GOAL's messages: 0 → 1, 1 → 2, 2 → 0; the tenant has a host more than there are ranks."""
    plan = plan_of(goal | {"rounds": 3, "bytes_scale": 2.0, "compute_scale": 10.0, "jitter": 0.5})
    (job,) = plan.jobs
    assert (job.kind, job.hosts, job.rounds, job.jitter) == ("graph", (4, 2, 0), 3, 0.5)
    ends = {(pair.src, pair.dst) for pair in plan.qps}
    assert ends == {(4, 2), (2, 0), (0, 4)}
    graph = job.graph.graph
    assert sorted(graph.bytes.tolist()) == [0, 0, 0, 0, 2, 2, 20, 20, 40, 40]
    assert graph.duration_ps.max() == 1_000_000


def test_trace__more_ranks_than_hosts(goal):
    with pytest.raises(ConfigError, match=r"tenants\.one\.jobs\.0: needs 3 hosts, a rank each"):
        plan_of(goal, hosts=(1, 2))


def test_trace__hosts_without_a_rank_are_told(goal):
    for hosts, count in (((4, 2, 0), 0), ((4, 2, 0, 1, 3), 2)):
        texts = [note for _, note in trace_notes(scenario_of(goal, hosts=hosts))]
        found = [n.times for n in texts if n.text.startswith("hosts without a rank, of which the")]
        assert found == [count] * (count > 0)


def test_trace__a_chakra_file_for_every_host(tmp_path):
    """Nothing in files of collectives alone says that the last of them is missing."""
    call = node(0, 7, comm_type=0, comm_size=4096)
    folder = write_chakra(tmp_path / "t", [call], [call], [call], prefix="x")
    job = {"kind": "trace", "file": str(folder)}
    assert len(plan_of(job, hosts=(0, 1, 2)).qps) == 3
    message = (
        r"^tenants\.one\.jobs\.0\.file: .* 3 ranks, the tenant has 4 hosts; .*x\.3\.et is missi"
    )
    with pytest.raises(ConfigError, match=message):
        plan_of(job)


def test_trace__is_read_once(goal, monkeypatch):
    calls = []
    read = trace_jobs.read_trace

    def counted(*arguments):
        calls.append(arguments)
        return read(*arguments)

    monkeypatch.setattr(trace_jobs, "read_trace", counted)
    for _ in range(3):
        plan_of(goal)
    assert [note.times for _, note in trace_notes(scenario_of(goal))] == [2, 1, 1, 1, 1]
    assert len(calls) == 1
    path = Path(goal["file"])
    path.write_text(GOAL.replace("calc 100", "calc 1000"))
    plan_of(goal)
    assert len(calls) == 2


def test_trace__faults(goal, tmp_path):
    for change, error, message in [
        ({"file": str(tmp_path / "no")}, TraceFileError, "no: "),
        ({"format": "msccl"}, ConfigError, r"tenants\.one\.jobs\.0: .*size of the buffer"),
        ({"bytes": 5}, ConfigError, r"tenants\.one\.jobs\.0: .* allowed with no other"),
        ({"groups_file": "x"}, ConfigError, r"'chakra' only; the format is 'goal'"),
        ({"format": "dumpi"}, ConfigError, r"jobs\.0\.format: .*'dumpi'"),
        ({"bytes_scale": 0}, ConfigError, r"jobs\.0\.bytes_scale: .* 0"),
    ]:
        with pytest.raises(error, match=message):
            plan_of(goal | change)


def test_trace__scaled_too_much(goal):
    """10,000 bytes × 10^12 are more than 2^50."""
    with pytest.raises(ConfigError, match=r"jobs\.0\.bytes_scale = 1e\+12 is not allowed: makes"):
        Path(goal["file"]).write_text(GOAL.replace("10b", "10000b"))
        plan_of(goal | {"bytes_scale": 1e12})


def test_paths_start_at_the_scenario(tmp_path):
    (tmp_path / "sizes.txt").write_text("0 0\n5000 100\n")
    (tmp_path / "groups.json").write_text("{}")
    write_chakra(tmp_path / "t", [node(1, 4, duration_us=1)])
    jobs = [
        {"kind": "trace", "file": "t", "groups_file": "groups.json"},
        {"kind": "poisson", "load": 0.5, "sizes_file": "sizes.txt", "num_flows": 4},
    ]
    raw = scenario_of(POISSON).model_dump(mode="json", exclude_none=True)
    raw["tenants"][0]["jobs"] = jobs
    (tmp_path / "s.yaml").write_text(yaml.safe_dump(raw))
    trace, poisson = load_scenario(tmp_path / "s.yaml").tenants[0].jobs
    assert (trace.file, trace.groups_file) == (str(tmp_path / "t"), str(tmp_path / "groups.json"))
    assert poisson.sizes_file == str(tmp_path / "sizes.txt")


def test_cache_key__changes_with_the_files(tmp_path):
    """One of many files of a trace; groups; sizes."""
    folder = write_chakra(tmp_path / "t", *[[node(1, 4, duration_us=1)]] * 2)
    groups, sizes = tmp_path / "groups.json", tmp_path / "sizes.txt"
    groups.write_text("{}")
    sizes.write_text("5 100\n")
    trace = scenario_of({"kind": "trace", "file": str(folder), "groups_file": str(groups)})
    poisson = scenario_of(
        {"kind": "poisson", "load": 0.5, "sizes_file": str(sizes), "num_flows": 4}
    )
    keys = [cache_key(trace, 0), cache_key(poisson, 0)]
    for path, content, changed in [
        (folder / "trace.1.et", message_file(METADATA, node(1, 4, duration_us=2)), 0),
        (groups, b"{ }", 0),
        (sizes, b"6 100\n", 1),
    ]:
        path.write_bytes(content)
        new = [cache_key(trace, 0), cache_key(poisson, 0)]
        assert (new[changed] != keys[changed]) and new[1 - changed] == keys[1 - changed]
        keys = new


# --------------------------------------------------------------------------- Poisson


def test_poisson__flows_of_the_tenant():
    plan = plan_of(POISSON | {"start_us": 100})
    (job,) = plan.jobs
    assert job.kind == "flows"
    assert min(job.flow_start_ps) >= 100e6 and max(job.flow_start_ps) < 300e6
    ends = {host for pair in plan.qps for host in (pair.src, pair.dst)}
    assert ends == {0, 1, 2, 4}
    expected = 4 * 0.3 * 1e11 / 8 * 200e-6 / 10_000
    assert len(job.flow_bytes) == pytest.approx(expected, rel=0.3)


def test_poisson__seed_decides(monkeypatch):
    """The same seed draws the same flows, whoever else is there."""
    first, again, other = (plan_of(POISSON, seed) for seed in (3, 3, 4))
    assert first == again
    assert first.jobs[0].flow_start_ps != other.jobs[0].flow_start_ps
    more = plan_of(POISSON | {"stop_us": 400}, 3)
    count = len(first.jobs[0].flow_bytes)
    assert more.jobs[0].flow_bytes[:count] == first.jobs[0].flow_bytes


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"load": 0}, r"jobs\.0\.load: must be greater than 0"),
        ({"load": 1.5}, r"jobs\.0\.load: .* \(got 1\.5\)"),
        ({"stop_us": None}, "needs num_flows or stop_us"),
        ({"sizes": []}, "needs sizes or sizes_file, and not both"),
        ({"sizes_file": "x"}, "needs sizes or sizes_file, and not both"),
        ({"sizes": [[0, 0], [5, 99]]}, r"jobs\.0\.sizes: the last share is 99"),
        ({"sizes": [[9, 0], [5, 100]]}, r"jobs\.0\.sizes: 5 100 after 9 0; allowed: neither"),
        ({"sizes": [[0, 0], [1e18, 100]]}, r"jobs\.0\.sizes\.1\.0: .* \(got 1e\+18\)"),
        ({"sizes": [[-1, 0], [5, 100]]}, r"jobs\.0\.sizes\.0\.0: .* \(got -1\)"),
        ({"sizes": [[1, 100]], "stop_us": 1e9}, r"jobs\.0: about .* flows; allowed: 1 … 1048576"),
        ({"start_us": 300}, "has no flow, or none that starts before its stop"),
    ],
)
def test_poisson__faults(change, message):
    with pytest.raises(ConfigError, match=message):
        plan_of(POISSON | change)


# --------------------------------------------------------------------------- executed


def run(job, hosts, us=2000.0):
    scenario = scenario_of(job, hosts, control={"horizon_us": us})
    fabric = Fabric(scenario, 0)
    return fabric, fabric.advance(us=us)


def test_executed__goal_by_hand(tmp_path):
    """Two computations of a rank side by side, then a message; the other waits and computes.

    A packet of 4,096 B has 62 B of headers, and takes 20 B more on the wire (preamble and gap). It
    goes over two links of 100 Gb/s and 1 us: 3,000 + 2 × (4,178 × 0.08 + 1,000) + 50,000 ns.
    """
    path = tmp_path / "a.goal"
    path.write_text(
        "num_ranks 2\nrank 0 {\na: calc 2000\nb: calc 3000\ns: send 4096b to 1\n"
        "s requires a\ns requires b\n}\nrank 1 {\nr: recv 4096b from 0\nc: calc 50000\n"
        "c requires r\n}\n"
    )
    job = {"kind": "trace", "file": str(path), "rounds": 1}
    _, interval = run(job, (0, 1))
    (done,) = interval.completions
    took_ns = (done["end_ps"] - done["start_ps"]) / 1000
    assert took_ns == pytest.approx(3000 + 2 * (4178 * 0.08 + 1000) + 50_000, abs=0.01)


def test_executed__msccl_ring_moves_what_it_must(tmp_path):
    """Each rank sends 2 (n - 1) chunks of a quarter of 400,000 bytes, in each of 2 rounds."""
    path = tmp_path / "a.xml"
    path.write_text(ring(4))
    job = {"kind": "trace", "file": str(path), "bytes": 400_000, "rounds": 2}
    fabric, interval = run(job, (0, 1, 2, 3))
    assert len(interval.completions) == 2
    assert interval.delivered_bytes.tolist() == [2 * 6 * 100_000] * 4
    times = interval.completions["end_ps"] - interval.completions["start_ps"]
    bound_ps = 6 * 100_000 * 80
    assert (times > bound_ps).all() and (times < 1.2 * bound_ps + 6 * 3e6).all()
    assert fabric.advance(us=100).delivered_bytes.sum() == 0


def test_executed__poisson_flows_all_arrive():
    fabric, interval = run(POISSON, (0, 1, 2, 3, 4, 5))
    assert interval.delivered_bytes.sum() == sum(fabric.plan.jobs[0].flow_bytes)
    assert np.isfinite(interval.delivered_bytes).all()
