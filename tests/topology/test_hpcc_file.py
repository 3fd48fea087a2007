from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roce_gym.config import TopologyFile
from roce_gym.errors import ConfigError, TopologyError, TraceFileError
from roce_gym.topology import build_network
from roce_gym.topology.hpcc_file import parse_delay_ps, parse_rate_bps, read_hpcc_topology

SHARED = Path(__file__).resolve().parents[3] / "shared"
SAMPLES = SHARED / "samples" / "hpcc"
REFERENCE = sorted(SHARED.glob("reference/ns3/*/topology.txt"))

GOOD = """5 2 5
0 3

1 0 100Gbps 1000ns 0
2 0 25Gb/s 0.001ms 0.25
0 3 40000Mbps 1us 0.000000
0 3 40000Mbps 2us 1e-3
4 3 12.5GB/s 1.5ps 0
anything may follow
"""


def write(folder, text):
    path = folder / "topology.txt"
    path.write_text(text, encoding="utf-8")
    return path


def test_read__interleaved_switches(tmp_path):
    network = build_network(TopologyFile(path=str(write(tmp_path, GOOD))))
    assert (network.num_hosts, network.num_switches) == (3, 2)
    assert network.node_label.tolist() == [1, 2, 4, 0, 3]
    assert network.link_src.tolist() == [0, 3, 1, 3, 3, 4, 3, 4, 2, 4]
    assert network.link_dst.tolist() == [3, 0, 3, 1, 4, 3, 4, 3, 4, 2]
    giga = [100, 25, 40, 40, 100]
    assert network.link_rate_bps.tolist() == [g * 10**9 for g in giga for _ in range(2)]
    assert network.link_delay_ps.tolist()[::2] == [10**6, 10**6, 10**6, 2 * 10**6, 2]
    assert network.link_loss.tolist()[1::2] == [0.0, 0.25, 0.0, 0.001, 0.0]


def test_read__windows_line_ends_and_byte_order_mark(tmp_path):
    plain = read_hpcc_topology(write(tmp_path, GOOD))
    path = tmp_path / "crlf.txt"
    path.write_bytes(b"\xef\xbb\xbf" + GOOD.replace("\n", "\r\n").encode() + b"\xff\xfe\x00")
    assert read_hpcc_topology(path).link_rate_bps.tolist() == plain.link_rate_bps.tolist()


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("5 2 5", "5 2", 1, "3 fields expected (nodes switches links), found 2: 5 2"),
        ("5 2 5", "5 2 5 A100", 1, "found 4"),
        ("5 2 5", "five 2 5", 1, "nodes = 'five' is not a whole number"),
        ("5 2 5", "5 2 1000000000000000000", 1, "links = 1000000000000000000 is not allowed"),
        ("5 2 5", f"{10**18} 2 5", 1, f"nodes = {10**18} is not allowed"),
        ("5 2 5", "2000000000 2 5", 1, "leaves 1999999998 hosts beside 2 switches"),
        ("5 2 5", "2000000000 1999999999 5", 3, "1999999999 fields expected (switch ids), found 2"),
        ("5 2 5", f"5 {'9' * 5000} 5", 1, "is not a whole number"),
        ("5 2 5", "5 -2 5", 1, "switches = -2 is not allowed; allowed: 1 … 5"),
        ("5 2 5", "5 2 0", 1, "links = 0 is not allowed"),
        ("0 3\n", "0\n", 3, "2 fields expected (switch ids), found 1: 0"),
        ("0 3\n", "0 5\n", 3, "switch id = 5 is not allowed; allowed: 0 … 4"),
        ("0 3\n", "3 3\n", 3, "switch id 3 is listed twice"),
        ("2 0 25Gb/s", "5 0 25Gb/s", 6, "src = 5 is not allowed; allowed: 0 … 4"),
        ("2 0 25Gb/s", "2 -1 25Gb/s", 6, "dst = -1 is not allowed"),
        ("2 0 25Gb/s", "2 2 25Gb/s", 6, "a link from node 2 to itself"),
        ("2 0 25Gb/s", "2 0 0Gb/s", 6, "rate = '0Gb/s' is not allowed"),
        ("2 0 25Gb/s", "2 0 -25Gb/s", 6, "rate = '-25Gb/s' is not allowed"),
        ("2 0 25Gb/s", "2 0 25", 6, "rate = '25' is not a rate"),
        ("2 0 25Gb/s", "2 0 nanGb/s", 6, "rate = 'nanGb/s' is not a rate"),
        ("2 0 25Gb/s", "2 0", 6, "5 fields expected (src dst rate delay loss), found 4"),
        ("0.001ms", "-0.001ms", 6, "delay = '-0.001ms' is not allowed"),
        ("0.001ms", "0.001", 6, "delay = '0.001' is not a delay"),
        ("0.25", "1.5", 6, "loss = 1.5 is not allowed; allowed: 0 … 1"),
        ("0.25", "nan", 6, "loss = 'nan' is not a number"),
    ],
)
def test_read__faults_name_file_line_and_value(tmp_path, old, new, line, message):
    assert old in GOOD
    path = write(tmp_path, "\n" * (line > 1) + GOOD.replace(old, new, 1))
    with pytest.raises(TraceFileError) as caught:
        read_hpcc_topology(path)
    assert str(caught.value).startswith(f"{path}, line {line}: ")
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "ends after line 0, where 'nodes switches links' should follow"),
        ("5 2 5\n0 3\n1 0 1Gbps 1us 0\n", r"line 1: links = 5 .* \(lines that follow: 2\)"),
        ("3 1 3\n2\n0 2 1Gbps 1us 0\n1 2 1Gbps 1us 0\n", "ends after line 4, where 'src dst"),
    ],
)
def test_read__truncated(tmp_path, text, message):
    with pytest.raises(TraceFileError, match=message):
        read_hpcc_topology(write(tmp_path, text))


def test_read__no_such_file_and_folder(tmp_path):
    for path in (tmp_path / "absent.txt", tmp_path):
        with pytest.raises(TraceFileError, match="cannot be read"):
            read_hpcc_topology(path)


def test_build__faults_of_the_graph_name_the_file(tmp_path):
    path = write(tmp_path, GOOD.replace("4 3 12.5GB/s", "0 3 12.5GB/s"))
    with pytest.raises(TopologyError, match=r"topology.txt: each host .* host 4 has 0"):
        build_network(TopologyFile(path=str(path)))


@pytest.mark.parametrize(
    ("text", "rate_bps"),
    [
        ("100Gbps", 100 * 10**9),
        ("25Gb/s", 25 * 10**9),
        ("40000Mbps", 40 * 10**9),
        ("0.1Tbps", 10**11),
        ("12.5GB/s", 10**11),
        ("2e3Mbps", 2 * 10**9),
        ("1000kbps", 10**6),
        ("1Gib/s", 2**30),
        ("1000000bps", 10**6),
    ],
)
def test_parse_rate(text, rate_bps):
    assert parse_rate_bps(text) == rate_bps


@pytest.mark.parametrize(
    "text",
    ["", "Gbps", "100", "100G", "100gbps", "1,5Gbps", "1e99999Gbps", "infGbps", "100ibps", "4Tbps",
     "1bps", "١Gbps", "1" * 60 + "Gbps"],
)  # fmt: skip
def test_parse_rate__faults(text):
    with pytest.raises(ConfigError, match="rate = "):
        parse_rate_bps(text)


@given(ps=st.integers(0, 10**15), unit=st.sampled_from(["ps", "ns", "us", "ms", "s"]))
def test_parse_delay__is_exact_in_every_unit(ps, unit):
    exponent = {"ps": 0, "ns": 3, "us": 6, "ms": 9, "s": 12}[unit]
    whole, part = divmod(ps, 10**exponent)
    text = f"{whole}.{part:0{exponent}d}{unit}" if exponent else f"{ps}ps"
    assert parse_delay_ps(text) == ps


@given(value=st.decimals(0, 10**6, places=9))
def test_parse_delay__rounds_the_exact_value(value):
    assert parse_delay_ps(f"{value:f}ns") == round(Fraction(value) * 1000)


@pytest.mark.parametrize("text", ["", "1", "us", "-1ns", "1e9s", "1e-999ns", "1min", "1 us"])
def test_parse_delay__faults(text):
    with pytest.raises(ConfigError, match="delay = "):
        parse_delay_ps(text)


@pytest.mark.skipif(not SAMPLES.is_dir(), reason="sample files are absent")
@pytest.mark.parametrize(
    ("name", "hosts", "switches", "cables", "first_label"),
    [("topology.txt", 65, 1, 65, 1), ("fat.txt", 320, 56, 480, 0)],
)
def test_read__shipped_samples(name, hosts, switches, cables, first_label):
    network = build_network(TopologyFile(path=str(SAMPLES / name)))
    assert (network.num_hosts, network.num_switches) == (hosts, switches)
    assert network.num_links == 2 * cables
    assert network.node_label[0] == first_label
    assert set(network.link_rate_bps.tolist()) <= {25 * 10**9, 100 * 10**9, 400 * 10**9}
    assert set(network.link_delay_ps.tolist()) == {10**6}


@pytest.mark.skipif(not REFERENCE, reason="reference runs are absent")
def test_read__reference_topologies():
    for path in REFERENCE:
        network = build_network(TopologyFile(path=str(path)))
        nodes, switches, links = map(int, path.read_text().splitlines()[0].split())
        assert network.num_hosts == nodes - switches
        assert network.num_links == 2 * links
