import os
from pathlib import Path

import pytest
from trace_writers import GOAL, SIMAI, node, ring, write_chakra

from roce_gym.errors import ConfigError, TraceFileError
from roce_gym.traces import detect, read_trace, scale_graph, trace_files

SHARED = Path(__file__).resolve().parents[3] / "shared" / "samples"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (GOAL, "goal"),
        ("\ufeff// comment\n\n  num_ranks 5\n", "goal"),
        (SIMAI, "simai"),
        ("MICRO model_parallel_NPU_group: 1\n", "simai"),
        (ring(3), "msccl"),
        ("\n<?xml version='1.0'?>\n", "msccl"),
        ("2\n0 1 3 100 5000 2.0\n1 0 3 100 5000 2.0\n", "hpcc_flows"),
        ("0 0\n1000 50\n2000 100\n", "size_cdf"),
    ],
)
def test_detect__by_content(tmp_path, text, name):
    path = tmp_path / "file.txt"
    path.write_text(text, encoding="utf-8")
    assert detect(path) == name
    assert trace_files(path) == [path]


def test_detect__by_name(tmp_path):
    path = tmp_path / "file.goal"
    path.write_text("what?")
    assert detect(path) == "goal"
    folder = write_chakra(tmp_path / "t", [node(0, 4, duration_us=1)])
    assert detect(folder) == detect(folder / "trace") == detect(folder / "trace.0.et") == "chakra"
    assert trace_files(folder) == [folder / "trace.0.et"]


@pytest.mark.parametrize("content", [b"", b"hello", b"\xff\xfe\x00", b"1 2 3\n", b"\x00" * 5000])
def test_detect__unknown(tmp_path, content):
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(TraceFileError, match="of no known format; allowed: simai, chakra, msccl"):
        detect(path)


def test_detect__a_topology_is_no_workload(tmp_path):
    path = tmp_path / "file"
    path.write_text("3 1 2\n2\n0 2 100Gbps 1000ns 0\n1 2 100Gbps 1000ns 0\n")
    with pytest.raises(TraceFileError, match=r"topology: \{kind: hpcc_file, path: …\}"):
        detect(path)


def test_files_that_are_none(tmp_path):
    """A pipe would block, a device never end."""
    os.mkfifo(tmp_path / "pipe")
    for name, message in [
        ("pipe", "is not a regular file"),
        ("/dev/zero", "is not a regular file"),
        ("nothing", r"no file PREFIX\.RANK\.et|No such file"),
        ("nul\0l", "cannot be read"),
        ("n" * 5000, "cannot be read"),
    ]:
        with pytest.raises(TraceFileError, match=message):
            read_trace(tmp_path / name)
        for chosen in ("goal", "simai"):
            with pytest.raises(TraceFileError, match="cannot be read"):
                read_trace(tmp_path / name, chosen)
    with pytest.raises(TraceFileError, match="Is a directory"):
        read_trace(tmp_path, "goal")


def test_files_too_large(tmp_path):
    """A sparse file of 1 TiB."""
    path = tmp_path / "huge.goal"
    with path.open("wb") as file:
        file.truncate(2**40)
    with pytest.raises(TraceFileError, match=f"has {2**40} bytes; allowed: 0 … {2**31}"):
        read_trace(path)


def test_arguments(tmp_path):
    path = tmp_path / "a"
    path.write_text(ring(3))
    assert read_trace(path, buffer_bytes=300).graph.bytes.max() == 100
    with pytest.raises(ConfigError, match="the size of the buffer in bytes is needed"):
        read_trace(path)
    with pytest.raises(ConfigError, match="'chakra' only; the format is 'msccl'"):
        read_trace(path, buffer_bytes=300, groups_file="x")
    path.write_text(GOAL)
    with pytest.raises(ConfigError, match="allowed with no other; the format is 'goal'"):
        read_trace(path, buffer_bytes=300)
    path.write_text("0 0\n5 100\n")
    with pytest.raises(ConfigError, match="'size_cdf', a list of flows; allowed: simai, chakra"):
        read_trace(path)


def test_scale(tmp_path):
    path = tmp_path / "a"
    path.write_text(GOAL)
    graph = read_trace(path).graph
    small = scale_graph(graph, 0.25, 3.0)
    assert small.bytes.tolist() == [0, 2, 5, 2, 0, 0, 1, 0, 5, 1]
    assert small.duration_ps.tolist() == [3 * time for time in graph.duration_ps.tolist()]
    with pytest.raises(ConfigError, match=r"bytes_scale = 1e\+15 is not allowed"):
        scale_graph(graph, 1e15)
    with pytest.raises(ConfigError, match="compute_scale = 1e"):
        scale_graph(graph, 1, 1e12)
    path.write_text(SIMAI)
    calls = scale_graph(read_trace(path).graph, 1e-3).collectives
    assert {call.bytes for call in calls} == {1, 2, 3, 4, 5}


@pytest.mark.skipif(not SHARED.is_dir(), reason="sample files are absent")
def test_detect__samples():
    found = {p.name: detect(p) for p in (SHARED / "workloads").iterdir()}
    assert {name.split("_")[0]: value for name, value in found.items()} == {
        "binary": "goal",
        "chakra": "chakra",
        "simai": "simai",
    }
    hpcc = {p.name: detect(p) for p in (SHARED / "hpcc").glob("*[nw].txt")}
    assert hpcc == {
        "FbHdp_distribution.txt": "size_cdf",
        "WebSearch_distribution.txt": "size_cdf",
        "flow.txt": "hpcc_flows",
    }
