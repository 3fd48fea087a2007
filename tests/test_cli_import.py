"""`roce-gym import`, and what run and describe say of traces."""

import json

import pytest
import yaml
from trace_writers import GOAL, SIMAI, ring

from roce_gym.cli import main


@pytest.fixture
def command(capsys):
    """Runs a command that must succeed; its output."""

    def call(*arguments):
        assert main([str(argument) for argument in arguments]) == 0
        out, err = capsys.readouterr()
        assert all(line.startswith("roce-gym: ") for line in err.splitlines())  # progress
        return out

    return call


@pytest.fixture
def write(tmp_path):
    def call(text, name="file"):
        path = tmp_path / name
        path.write_text(text)
        return path

    return call


def test_import__goal_by_hand(command, write):
    """The longest chain: receive, mark, b or c; the slowest: 100 ns, message, 6 ns."""
    path = write(GOAL)
    found = json.loads(command("import", path, "--json"))
    notes = found.pop("left_out")
    assert found == {
        "file": str(path),
        "format": "goal",
        "ranks": 3,
        "operations": {"compute": 4, "send": 3, "recv": 3, "collective": 0},
        "dependencies": 4,
        "compute_us": 0.111,
        "sent_bytes": 31,
        "sent_bytes_of_a_rank": {"min": 1, "max": 20},
        "collectives": [],
        "critical_path_us": 0.106,
        "longest_chain": 5,
    }
    assert [note["times"] for note in notes] == [2, 1, 1, 1]
    text = command("import", path)
    assert text.startswith(f"{path}: goal\n")
    assert "4 compute, 3 send, 3 recv, 0 collective" in text
    assert "2 ×  cpu numbers other than 0: a rank's operations run side by side" in text


def test_import__collectives(command, write):
    """In 8 ranks TP has 4 groups, EP 4, DP 2, DP_EP 4."""
    found = json.loads(command("import", write(SIMAI), "--json"))
    rows = [(c["operation"], c["ranks"], c["count"], c["sum_bytes"]) for c in found["collectives"]]
    assert rows == [
        ("all_gather", 4, 2, 2 * 5000),
        ("all_reduce", 2, 4, 4 * 1000),
        ("all_to_all", 2, 8, 4 * 2000 + 4 * 3000),
        ("reduce_scatter", 2, 4, 4 * 4000),
    ]
    assert found["critical_path_us"] == pytest.approx(0.672)
    text = command("import", write(SIMAI))
    assert "left out or changed: nothing" in text
    assert " ".join(text.split()).find("all_to_all 2 8 2,000 3,000 20,000") > 0


def test_import__flows_and_sizes(command, write):
    flows = write("2\n0 2 3 100 4000000 2\n1 2 0 65535 1 2.5\n")
    found = json.loads(command("import", flows, "--json"))
    assert found | {"file": ""} == {
        "file": "",
        "format": "hpcc_flows",
        "flows": 2,
        "hosts": 3,
        "sum_bytes": 4_000_001,
        "first_start_us": 2e6,
        "last_start_us": 2.5e6,
    }
    text = command("import", write("0 0\n1000 50\n5000 100\n"))
    assert "mean bytes  1,750.0" in text
    assert "p90 bytes   4,200" in text


def test_import__bad_input(capsys, write):
    xml = write(ring(3))
    for arguments, message in [
        (["import", xml], "the size of the buffer in bytes is needed"),
        (["import", xml, "--bytes", "-5"], "--bytes: '-5' is not allowed"),
        (["import", xml, "--bytes", str(10**18)], f"'{10**18}' is not allowed"),
        (["import", xml, "--format", "otf2"], "invalid choice: 'otf2'"),
        (["import", xml, "--format", "goal"], "line 1: 'num_ranks', 'rank' or '}' expected"),
        (["import", "/dev/zero"], "is not a regular file"),
        (["import"], "missing: FILE"),
    ]:
        assert main([str(argument) for argument in arguments]) == 2
        out, err = capsys.readouterr()
        assert out == "" and err.startswith("error: ") and err.count("\n") == 1
        assert message in err


def test_describe_and_run__say_what_is_left_out(command, write):
    write(GOAL, "a.goal")
    scenario = {
        "name": "test",
        "topology": {"kind": "star", "hosts": 3},
        "tenants": [
            {"name": "one", "hosts": [0, 1, 2], "jobs": [{"kind": "trace", "file": "a.goal"}]}
        ],
        "control": {"horizon_us": 200},
    }
    path = write(yaml.safe_dump(scenario), "s.yaml")
    line = "2 ×  tenants.one.jobs.0 cpu numbers other than 0: a rank's operations run side by side"
    for name in ("describe", "run"):
        assert line in command(name, path)
        found = json.loads(command(name, path, "--json"))
        assert [note["times"] for note in found["left_out"]] == [2, 1, 1, 1]
        assert {note["job"] for note in found["left_out"]} == {"tenants.one.jobs.0"}
