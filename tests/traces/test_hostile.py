"""Whatever the bytes: a file is read, or refused with a TraceFileError that names it."""

import re

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from trace_writers import GOAL, METADATA, SIMAI, message_file, node, ring

from roce_gym.errors import TraceFileError
from roce_gym.traces.chakra import read_chakra
from roce_gym.traces.goal import read_goal
from roce_gym.traces.msccl import read_msccl
from roce_gym.traces.simai import read_simai
from roce_gym.traces.size_cdf import read_size_cdf
from roce_gym.workload.flow_file import read_flow_file
from roce_gym.workload.graph_check import check

CHAKRA = message_file(
    METADATA,
    node(0, 1, inputs='[\'[{"pg_name": "3", "ranks": [0, 1]}]\']'),
    node(1, 4, [0], duration_us=7, num_ops=5),
    node(2, 7, [1], is_cpu_op=False, comm_type=0, comm_size=4096, pg_name="3"),
    node(3, 7, [2], comm_type=2, comm_size=10),
    node(4, 4, [2, 3, 1], duration_us=300),
)
FLOWS = "2\n0 2 3 100 4000000 2\n1 2 0 65535 1 0.000001\n"
CDF = "0 0\n1000 15.5\n30000 100\n"


def read_one_chakra(path):
    return read_chakra(path.parent)


READERS = {
    "goal": (GOAL.encode(), "a.goal", read_goal),
    "simai": (SIMAI.encode(), "a.txt", read_simai),
    "msccl": (ring(3).encode(), "a.xml", lambda path: read_msccl(path, 3000)),
    "chakra": (CHAKRA, "a.0.et", read_one_chakra),
    "flows": (FLOWS.encode(), "flow.txt", lambda path: read_flow_file(path, None)),
    "size_cdf": (CDF.encode(), "cdf.txt", read_size_cdf),
}

HOSTILE = [
    b"0",
    b"-1",
    b"1000000000000000000",
    b"9" * 30,
    b"9" * 5000,
    b"1e309",
    b"nan",
    b"\x00",
    b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
    b"\xf0\x9f\x98\x80",
    b"\xc0\x80",
    b"<",
    b"&a;",
    b"]]>",
    b"}",
    b"{",
    b"/*",
    b"\r",
    b"\xe2\x80\xa8",
    b"\xd9\xa1",  # a digit, but not of ASCII
]


@st.composite
def damaged(draw, content):
    """A few cuts, copies and replacements; of numbers most of all."""
    data = content
    for _ in range(draw(st.integers(1, 4))):
        kind = draw(st.sampled_from(["number", "token", "cut", "end", "copy", "byte", "insert"]))
        at = draw(st.integers(0, len(data)))
        end = min(len(data), at + draw(st.integers(0, 40)))
        if kind == "number":
            found = list(re.finditer(rb"-?[0-9]+", data))
            if found:
                chosen = draw(st.sampled_from(found))
                value = draw(
                    st.one_of(
                        st.sampled_from(HOSTILE), st.integers(-2, 12).map(lambda n: b"%d" % n)
                    )
                )
                data = data[: chosen.start()] + value + data[chosen.end() :]
        elif kind == "token":
            words = re.findall(rb"\S+", data) or [b""]
            data = data.replace(draw(st.sampled_from(words)), draw(st.sampled_from(words)), 1)
        elif kind == "cut":
            data = data[:at] + data[end:]
        elif kind == "end":
            data = data[:at]
        elif kind == "copy":
            data = data[:end] + data[at:end] + data[end:]
        elif kind == "byte":
            data = data[:at] + draw(st.binary(min_size=1, max_size=3)) + data[at + 1 :]
        else:
            data = data[:at] + draw(st.sampled_from(HOSTILE)) + data[at:]
    return data


@pytest.mark.parametrize("name", READERS)
@settings(
    max_examples=250, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_damaged_files_are_read_or_refused(tmp_path, name, data):
    content, file_name, read = READERS[name]
    path = tmp_path / file_name
    if name == "chakra":
        (tmp_path / "a.1.et").write_bytes(content)
    path.write_bytes(data.draw(damaged(content)))
    try:
        found = read(path)
    except TraceFileError as error:
        assert str(tmp_path) in str(error)
        assert "\n" not in str(error)
        return
    if hasattr(found, "graph"):
        check(found.graph)


@pytest.mark.parametrize("name", READERS)
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(content=st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(tmp_path, name, content):
    _, file_name, read = READERS[name]
    path = tmp_path / file_name
    path.write_bytes(content)
    try:
        read(path)
    except TraceFileError as error:
        assert str(tmp_path) in str(error)


@pytest.mark.parametrize("name", READERS)
def test_good_files_are_read(tmp_path, name):
    """What the tests above damage is good: each beginning of it but the whole is not."""
    content, file_name, read = READERS[name]
    path = tmp_path / file_name
    if name == "chakra":
        (tmp_path / "a.1.et").write_bytes(content)
    path.write_bytes(content)
    read(path)
    refused = 0
    for length in range(0, len(content) - 2, 7):
        path.write_bytes(content[:length])
        try:
            read(path)
        except TraceFileError:
            refused += 1
    assert refused >= len(range(0, len(content) - 2, 7)) - 2


def test_lines_without_end(tmp_path):
    """50 MB in one line: refused after the first kilobytes."""
    path = tmp_path / "a.goal"
    path.write_bytes(b"num_ranks 2\n" + b"x" * 50_000_000)
    with pytest.raises(TraceFileError, match="line 2: has more than 4096 bytes"):
        read_goal(path)
    with pytest.raises(TraceFileError, match=r"line 2: has \d+ characters; allowed"):
        path.write_bytes(b"2\n" + b"x" * 50_000_000 + b"\nx\n")
        read_flow_file(path, None)


def test_more_operations_and_lines_than_allowed(tmp_path, monkeypatch):
    """With limits made small; of those as they are, the same code takes care."""
    monkeypatch.setattr("roce_gym.traces.builder.MAX_OPS", 9)
    monkeypatch.setattr("roce_gym.traces.builder.MAX_DEPENDENCIES", 3)
    monkeypatch.setattr("roce_gym.traces.builder.MAX_COLLECTIVES", 1)
    path = tmp_path / "a.goal"
    path.write_text(GOAL)
    with pytest.raises(TraceFileError, match="line 18: more than 3 dependencies"):
        read_goal(path)
    monkeypatch.setattr("roce_gym.traces.builder.MAX_DEPENDENCIES", 100)
    with pytest.raises(TraceFileError, match="line 21: more than 9 operations"):
        read_goal(path)
    for rank in range(2):
        (tmp_path / f"a.{rank}.et").write_bytes(CHAKRA)
    with pytest.raises(TraceFileError, match=r"a\.0\.et, record 5: more than 1 collectives"):
        read_chakra(tmp_path)
    monkeypatch.setattr("roce_gym.topology.lines.MAX_LINES", 3)
    path.write_text(FLOWS)
    with pytest.raises(TraceFileError, match="has more than 3 lines"):
        read_flow_file(path, None)


def test_many_dependencies_of_one_record(tmp_path):
    """A million of them, on nodes that do not exist."""
    data = node(5, 4, np.arange(10**6).tolist())
    (tmp_path / "a.0.et").write_bytes(message_file(METADATA, data))
    with pytest.raises(TraceFileError, match="record 2: depends on node 0, which the file"):
        read_chakra(tmp_path)
