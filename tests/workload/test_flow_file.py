from pathlib import Path

import pytest

from roce_gym.config import Star
from roce_gym.errors import TraceFileError
from roce_gym.topology import build_network
from roce_gym.topology.graph import network_from_cables
from roce_gym.topology.hpcc_file import read_hpcc_topology
from roce_gym.workload.flow_file import read_flow_file

SHARED = Path(__file__).resolve().parents[3] / "shared"
SAMPLES = SHARED / "samples" / "hpcc"
REFERENCE = sorted(SHARED.glob("reference/ns3/*/flow.txt"))

GOOD = """2

0 2 3 100 4000000 2
1 2 0 65535 1 0.000000000001
not read
"""


@pytest.fixture
def network():
    """Hosts 0, 1, 2 and switch 3."""
    return build_network(Star(hosts=3))


def write(folder, text):
    path = folder / "flow.txt"
    path.write_text(text, encoding="utf-8")
    return path


def test_read(tmp_path, network):
    assert read_flow_file(write(tmp_path, GOOD), network) == [
        (0, 2, 3, 100, 4_000_000, 2 * 10**12, 3),
        (1, 2, 0, 65535, 1, 1, 4),
    ]
    assert read_flow_file(write(tmp_path, "0\n"), network) == []


def test_read__start_is_exact(tmp_path, network):
    text = "1\n0 1 3 100 1 123456.789012345678\n"
    assert read_flow_file(write(tmp_path, text), network)[0].start_ps == 123456789012345678


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("2\n", "2 1\n", 1, "1 fields expected (count), found 2"),
        ("2\n", "-1\n", 1, "count = -1 is not allowed"),
        ("2\n", "4\n", 1, "count = 4 is not allowed; allowed: 0 … 3 (lines that follow: 3)"),
        ("2\n", f"{10**18}\n", 1, f"count = {10**18} is not allowed"),
        ("2\n", "3\n", 5, "6 fields expected (src dst priority dport bytes start_s), found 2"),
        ("0 2 3", "3 2 3", 3, "src: node 3 is a switch, not a host"),
        ("0 2 3", "0 3 3", 3, "dst: node 3 is a switch, not a host"),
        ("0 2 3", "0 4 3", 3, "dst: node 4 does not exist"),
        ("0 2 3", "2 2 3", 3, "a flow from host 2 to itself"),
        ("0 2 3", "x 2 3", 3, "src = 'x' is not a whole number"),
        ("0 2 3", "0 2 8", 3, "priority = 8 is not allowed; allowed: 0 … 7"),
        ("65535", "65536", 4, "dport = 65536 is not allowed"),
        ("4000000", "0", 3, "bytes = 0 is not allowed"),
        ("4000000", "4e6", 3, "bytes = '4e6' is not a whole number"),
        ("4000000", str(2**51), 3, "bytes = 2251799813685248 is not allowed"),
        ("4000000 2", "4000000 -2", 3, "start_s = -2 is not allowed"),
        ("4000000 2", "4000000 inf", 3, "start_s = 'inf' is not a number"),
        ("4000000 2", "4000000 1e7", 3, "start_s = 1e7 is not allowed"),
    ],
)
def test_read__faults_name_file_line_and_value(tmp_path, network, old, new, line, message):
    assert old in GOOD
    path = write(tmp_path, GOOD.replace(old, new, 1))
    with pytest.raises(TraceFileError) as caught:
        read_flow_file(path, network)
    assert str(caught.value).startswith(f"{path}, line {line}: ")
    assert message in str(caught.value)


def test_read__empty_file(tmp_path, network):
    with pytest.raises(TraceFileError, match="ends after line 0, where 'count' should follow"):
        read_flow_file(write(tmp_path, "\n \n"), network)


def test_read__ids_are_those_of_the_topology_file(tmp_path):
    network = network_from_cables(2, 1, [(0, 2), (1, 2)], 10**9, 0, node_label=[1, 2, 0])
    (record,) = read_flow_file(write(tmp_path, "1\n2 1 3 100 5 0\n"), network)
    assert (record.src, record.dst) == (2, 1)
    with pytest.raises(TraceFileError, match="src: node 0 is a switch"):
        read_flow_file(write(tmp_path, "1\n0 1 3 100 5 0\n"), network)


@pytest.mark.skipif(not SAMPLES.is_dir(), reason="sample files are absent")
def test_read__shipped_sample_lists_more_than_it_counts():
    network = read_hpcc_topology(SAMPLES / "topology.txt")
    assert read_flow_file(SAMPLES / "flow.txt", network) == [
        (2, 1, 3, 100, 200_000_000, 2 * 10**12, 2),
        (3, 1, 3, 100, 200_000_000, 2 * 10**12, 3),
    ]


@pytest.mark.skipif(not REFERENCE, reason="reference runs are absent")
def test_read__reference_flows():
    for path in REFERENCE:
        network = read_hpcc_topology(path.with_name("topology.txt"))
        flows = read_flow_file(path, network)
        assert len(flows) == int(path.read_text().split()[0]) > 0
        assert all(flow.priority == 3 for flow in flows)
