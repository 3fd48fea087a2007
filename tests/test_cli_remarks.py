"""Jobs that have nothing to show in a run: it says why, and what to change."""

import json

import pytest
import yaml

FLOWS = "2\n0 1 3 100 1000 0.000050\n1 0 3 100 1000 2\n"


@pytest.fixture
def run(command, tmp_path):
    """Runs a scenario with one job, 100 us long; its notes, and what the job got."""
    (tmp_path / "flow.txt").write_text(FLOWS)

    def call(job, *arguments, **tenant):
        raw = {
            "name": "late",
            "topology": {"kind": "star", "hosts": 4},
            "tenants": [{"name": "t", "hosts": [0, 1, 2, 3], "jobs": [job], **tenant}],
            "control": {"horizon_us": 100},
        }
        path = tmp_path / "late.yaml"
        path.write_text(yaml.safe_dump(raw))
        text = command("run", path, *arguments)
        found = json.loads(command("run", path, "--json", *arguments))
        notes = [line for line in text.splitlines() if line.startswith("note: ")]
        return notes, found["tenants"]["t"]["jobs"][0]

    return call


def test_flows_of_a_file_that_start_after_the_end(run):
    notes, job = run({"kind": "flows", "file": "flow.txt"})
    assert notes == [
        "note: 1 of 2 flows of t (flows) start after the end of the run at 100.0 us, at "
        "2,000,000.0 us; set --duration-us or control.horizon_us above 2,000,000.0"
    ]
    assert job["starts_after_end"] == {"count": 1, "first_us": 2e6, "last_us": 2e6}
    assert job["flows_completed"] == 1


def test_all_flows_start_after_the_end__and_the_advice_helps(run):
    notes, job = run({"kind": "flows", "file": "flow.txt", "start_us": 60})
    assert "2 of 2 flows" in notes[0] and "from 110.0 to 2,000,060.0 us" in notes[0]
    notes, job = run({"kind": "flows", "file": "flow.txt"}, "--duration-us", 2_000_100)
    assert notes == [] and job["starts_after_end"] is None
    assert job["flows_completed"] == 2


def test_flows_that_arrive_at_random(run):
    sizes = [[0, 0], [1000, 100]]
    notes, job = run({"kind": "poisson", "load": 0.1, "sizes": sizes, "stop_us": 200})
    count = job["starts_after_end"]["count"]
    assert 0 < count < job["flows"]
    assert f"note: {count:,} of {job['flows']:,} flows of t (flows) start after the end" in notes[0]


@pytest.mark.parametrize(
    ("job", "tenant", "begin"),
    [
        ({"kind": "ring_all_reduce", "bytes": 1000, "start_us": 150}, {}, "150.0"),
        ({"kind": "all_to_all", "bytes": 1000, "compute_us": 200, "jitter": 0.5}, {}, "100.0"),
        ({"kind": "incast", "bytes": 1000, "degree": 3, "period_us": 9}, {"arrive_us": 100}, "100"),
        ({"kind": "collective", "operation": "broadcast", "bytes": 1, "start_us": 101}, {}, "101"),
    ],
)
def test_jobs_that_begin_after_the_end(run, job, tenant, begin):
    notes, job = run(job, **tenant)
    assert len(notes) == 1
    assert notes[0].startswith(f"note: t ({job['kind']}) begins nothing before the end of the run")
    assert f"its first round at {begin}" in notes[0]
    assert notes[0].endswith(
        "us at the earliest; set --duration-us or control.horizon_us above that"
    )
    assert job["rounds_completed"] == 0


def test_nothing_to_remark(run):
    notes, job = run({"kind": "ring_all_reduce", "bytes": 1000, "start_us": 50})
    assert notes == [] and job["starts_after_end"] is None
