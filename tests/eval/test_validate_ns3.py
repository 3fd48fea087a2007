import json
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest

from eval.validate.__main__ import main
from eval.validate.ns3 import _Group
from eval.validate.ns3_compare import Comparer, seed_groups
from eval.validate.ns3_limits import LIMITS, kind_of
from eval.validate.ns3_params import read_parameters
from eval.validate.ns3_reference import TABLE, read_reference, read_references
from eval.validate.ns3_report import default_rules, summary
from eval.validate.ns3_rng import initial_state, stream_of
from eval.validate.ns3_run import simulate
from eval.validate.ns3_scenario import build_case
from eval.validate.ns3_table import is_table, write_table
from eval.validate.ns3_types import Results
from roce_gym.config import SimulatorConfig
from roce_gym.errors import ConfigError, TraceFileError

SHARED = Path(__file__).resolve().parents[3] / "shared" / "reference" / "ns3"
needs_shared = pytest.mark.skipif(not SHARED.is_dir(), reason="no reference folder")

PARAMETERS = {
    "CC_MODE": 1,
    "ENABLE_QCN": 1,
    "HAS_WIN": 0,
    "ACK_HIGH_PRIO": 1,
    "ALPHA_RESUME_INTERVAL": 1,
    "RATE_DECREASE_INTERVAL": 4.9,
    "RP_TIMER": 300,
    "CLAMP_TARGET_RATE": 0,
    "EWMA_GAIN": 0.00390625,
    "FAST_RECOVERY_TIMES": 1,
    "RATE_AI": "20Mb/s",
    "RATE_HAI": "200Mb/s",
    "MIN_RATE": "100Mb/s",
    "PACKET_PAYLOAD_SIZE": 1000,
    "KMIN_MAP": {"100000000000": 100.0},
    "KMAX_MAP": {"100000000000": 400.0},
    "PMAX_MAP": {"100000000000": 0.2},
    "BUFFER_SIZE": 16,
    "PFC_SHIFT": 3,
    "RES_PS": 0,
    "RNG_SEED": 1,
    "SIMULATOR_STOP_TIME": 0.001,
}
FCT = """variant,src,dst,size_bytes,start_ns,fct_ns,ideal_fct_ns,ecn_marked_pkts,rx_pkts
a,0,2,3000,0,5000,4900,1,3
a,1,2,3000,0,7000,4900,2,3
b,0,2,3000,0,5500,4900,0,3
b,1,2,3000,0,,4900,0,2
"""
PORTS = """variant,node,port,peer,max_egress_bytes,dequeued_pkts,pause_sent
a,3,1,0,60,3,1
a,3,2,1,60,3,2
a,3,3,2,2096,6,0
b,3,1,0,60,3,0
b,3,3,2,1048,5,0
"""


@pytest.fixture
def folder(tmp_path):
    """Two senders, one receiver; variants a and b differ in their seed."""
    scenario = tmp_path / "mini"
    scenario.mkdir()
    write(scenario, "topology.txt", "4 1 3\n3\n" + "".join(f"{h} 3 100Gbps 1us 0\n" for h in "012"))
    write(scenario, "flow.txt", "2\n0 2 3 100 3000 0\n1 2 3 100 3000 0\n")
    write(scenario, "paths.csv", "src,dst,data_path,ack_path\n0,2,0-3-2,2-3-0\n1,2,1-3-2,2-3-1\n")
    write_parameters(scenario, a={}, b={"RNG_SEED": 2}, dctcp={"CC_MODE": 8}, pint={"CC_MODE": 10})
    write(scenario, "fct.csv", FCT)
    write(scenario, "ports.csv", PORTS)
    return scenario


def write(folder, name, text):
    (folder / name).write_text(text, encoding="utf-8")


def write_parameters(folder, **changes):
    write(folder, "params.json", json.dumps({v: PARAMETERS | c for v, c in changes.items()}))


def in_table(name):
    (reference,) = [one for one in read_references(TABLE, name) if one.name == name]
    return reference


def same(one, other):
    """Whether two scenarios are equal; the number of a flow's line may differ."""
    networks = [
        [np.asarray(getattr(r.network, field.name)).tolist() for field in fields(r.network)]
        for r in (one, other)
    ]
    flows = [[flow._replace(line=0) for flow in r.flows] for r in (one, other)]
    rest = [(r.name, r.paths, r.parameters, r.results) for r in (one, other)]
    return all(a == b for a, b in (networks, flows, rest))


def results(**values):
    base = {"flows_done": 2, "mean_fct_ns": 1000, "max_fct_ns": 2000, "goodput_gbps": 0}
    rest = {"pause_frames": 0, "max_queue_bytes": 5000, "marked_packets": 100}
    return Results(**(base | rest | values))


def compare(kind, ours, theirs, repeats=()):
    return Comparer("s", "v", "none", kind).compare(ours, theirs, repeats)


def row_of(rows, metric):
    (row,) = [row for row in rows if row.metric == metric]
    return row


# --------------------------------------------------------------------------- reading


def test_read__metrics(folder):
    reference = read_reference(folder)
    assert list(reference.parameters) == ["a", "b"]  # no DCTCP, no PINT
    assert reference.results["a"] == Results(2, 6000, 7000, 0, 3, 2096, 3)
    assert reference.paths[1] == ((1, 3, 2), (2, 3, 1))


def test_read__unfinished_flow_counts_by_goodput(folder):
    cut = read_reference(folder).results["b"]
    assert (cut.flows_done, cut.mean_fct_ns) == (1, 5500)
    # 3,000 and 2,000 bytes in 1 ms
    assert cut.goodput_gbps == pytest.approx((0.024 + 0.016) / 2)


def test_read__wrapped_packet_counter(folder):
    write_parameters(folder, b={})
    flows = FCT.replace("3000", "900000000")
    write(folder, "fct.csv", flows)
    write(folder, "flow.txt", "2\n0 2 3 100 900000000 0\n1 2 3 100 900000000 0\n")
    write(folder, "ports.csv", PORTS.replace("b,3,1,0,60,3,0", "b,3,1,0,60,65538,0"))
    cut = read_reference(folder).results["b"]
    assert cut.goodput_gbps == pytest.approx((65539 * 0.008 + 2 * 0.008) / 2)


def test_table__same_as_source(folder, tmp_path):
    write_parameters(folder, a={}, b={"RNG_SEED": 2, "SIMULATOR_STOP_TIME": 0.5})
    write(folder, "topology.txt", "4 1 3\n0\n" + "".join(f"{h} 0 1Gbps 7ns 0.5\n" for h in "321"))
    write(folder, "flow.txt", "2\n1 2 3 100 3000 0.25\n3 2 3 100 3000 0\n")
    write(folder, "paths.csv", "src,dst,data_path,ack_path\n1,2,1-0-2,2-0-1\n3,2,3-0-2,2-0-3\n")
    (source,) = read_references(folder.parent)
    write_table([source], tmp_path / "table")
    (copy,) = read_references(tmp_path / "table")
    assert same(copy, source)
    assert read_references(tmp_path / "table", only="other") == []


@pytest.mark.parametrize(
    ("name", "old", "new", "message"),
    [
        ("cables.csv", "h0", "0", "must be h or s and a number"),
        ("cables.csv", "100000000000", "x", "rate_bps = 'x' is not a number"),
        ("flows.csv", "1-3-2", "1-x-2", r"flows\.csv, line 3"),
        ("flows.csv", "ack_path", "ack", "has no column ack_path"),
        ("flows.csv", "mini,", "maxi,", "has nothing of scenario mini"),
        ("settings.json", "changes", "change", "cannot be read"),
        ("settings.json", '"PFC_SHIFT": 3', '"PFC_SHIFT": 31', "a: PFC_SHIFT"),
        ("results.csv", "mini,b,a,", "mini,b,c,", r"line 3: settings = 'c'"),
        ("results.csv", ",6000,", ",-,", "mean_fct_ns = '-' is not a number"),
    ],
)
def test_table__fault_names_file(folder, tmp_path, name, old, new, message):
    table = tmp_path / "table"
    write_table(read_references(folder.parent), table)
    text = (table / name).read_text()
    assert old in text
    write(table, name, text.replace(old, new))
    with pytest.raises(TraceFileError, match=message) as caught:
        read_references(table)
    assert name in str(caught.value)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("fct.csv", "variant,src\n", "has no column"),
        ("fct.csv", FCT.replace("7000", "x"), "fct_ns = 'x' is not a number"),
        ("fct.csv", FCT.replace("a,1,2,3000,0,7000,4900,2,3\n", ""), "1 flows of a"),
        ("fct.csv", FCT.replace("b,", "c,"), "no results of variant b"),
        ("paths.csv", "src,dst,data_path,ack_path\n0,2,0-3-2,2-3-0\n", "1 paths"),
        ("paths.csv", "src,dst,data_path,ack_path\n0,2,0-x,2-3-0\n1,2,1,2\n", "line 2"),
        ("params.json", "{", "is not JSON"),
        ("params.json", "[]", "must map variants"),
        ("params.json", '{"a": {"CC_MODE": 1}}', "a: ENABLE_QCN"),
        ("params.json", json.dumps({"a": PARAMETERS | {"RNG_SEED": 0}}), "a: RNG_SEED"),
        ("topology.txt", "", "nodes switches links"),
    ],
)
def test_read__fault_names_file(folder, name, text, message):
    write(folder, name, text)
    with pytest.raises(TraceFileError, match=message) as caught:
        read_reference(folder)
    assert name in str(caught.value) or "no results" in message


def test_read__missing(folder, tmp_path):
    with pytest.raises(TraceFileError, match="is not a folder"):
        read_references(tmp_path / "none")
    (tmp_path / "empty").mkdir()
    with pytest.raises(TraceFileError, match="holds no scenario"):
        read_references(tmp_path / "empty")
    (folder / "fct.csv").unlink()
    with pytest.raises(TraceFileError, match=r"fct\.csv: cannot be read"):
        read_reference(folder)


# --------------------------------------------------------------------------- scenario


def test_build__from_parameters(folder):
    case = build_case(read_reference(folder), "a")
    (one,) = case.scenario.classes
    assert (one.ecn.kmin_bytes, one.ecn.kmax_bytes, one.ecn.pmax) == (100_000, 400_000, 0.2)
    assert one.buffer.alpha == 0.125
    assert case.scenario.nic.ack_ignores_pause
    assert case.scenario.tenants[0].dcqcn.decrease_interval_us == 4  # fractions are cut off
    assert case.stop_ps == 10**9
    assert case.draws
    assert not case.loses_at_random
    assert case.scenario.simulator == SimulatorConfig(tie_order="scheduled", clock_ps=1000)


HPCC = {"CC_MODE": 3, "HAS_WIN": 1, "VAR_WIN": 1, "FAST_REACT": 1, "INT_MULTI": 4}


def test_build__hpcc(folder):
    write_parameters(folder, a=HPCC | {"RATE_AI": "40Mb/s"})
    scenario = build_case(read_reference(folder), "a").scenario
    (tenant,) = scenario.tenants
    assert tenant.cc == "hpcc"
    assert (tenant.hpcc.rate_ai_mbps, tenant.hpcc.max_stage) == (40, 0)
    assert (tenant.hpcc.tx_unit_bytes, tenant.hpcc.queue_unit_bytes) == (512, 320)
    # Two links of 1 us and 100 Gb/s: 4 us there and back, 80 ns for 1,000 bytes on each.
    assert (tenant.window.base_rtt_us, tenant.window.bytes) == (4.16, 52_000)
    assert (scenario.nic.header_bytes, scenario.nic.ack_bytes) == (90, 88)


def test_build__timely(folder):
    write_parameters(folder, a={"CC_MODE": 7, "RATE_AI": "100Mb/s", "RATE_HAI": "500Mb/s"})
    scenario = build_case(read_reference(folder), "a").scenario
    (tenant,) = scenario.tenants
    assert (tenant.cc, tenant.window) == ("timely", None)
    assert (tenant.timely.rate_ai_mbps, tenant.timely.rate_hai_mbps) == (100, 500)
    assert (scenario.nic.header_bytes, scenario.nic.ack_bytes) == (56, 60)


def test_build__window(folder):
    write_parameters(folder, a={"HAS_WIN": 1, "VAR_WIN": 1}, b={"HAS_WIN": 1})
    reference = read_reference(folder)
    windows = [build_case(reference, v).scenario.tenants[0].window for v in "ab"]
    assert [(w.bytes, w.follows_rate) for w in windows] == [(52_000, True), (52_000, False)]


def test_build__loss(folder):
    write_parameters(folder, a={"ERROR_RATE_PER_LINK": 0.01, "ENABLE_QCN": 0})
    case = build_case(read_reference(folder), "a")
    assert case.loses_at_random
    assert not case.marks_at_random
    assert case.draws


def test_case__draws_and_rules(folder):
    case = build_case(read_reference(folder), "b")
    simulator = case.with_draws_of(2).scenario.simulator
    assert simulator.mrg32k3a_state == initial_state(2, stream_of(4))
    assert (simulator.tie_order, simulator.clock_ps) == ("scheduled", 1000)
    assert case.with_default_rules().scenario.simulator == SimulatorConfig()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"KMIN_MAP": {"400000000000": 1.0}}, "KMIN_MAP has no value for links of 100000000000"),
        ({"USE_DYNAMIC_PFC_THRESHOLD": 0}, "USE_DYNAMIC_PFC_THRESHOLD = 0"),
        ({"SWITCH_ACK_HIGH_PRIO": 1}, "SWITCH_ACK_HIGH_PRIO = 1"),
        ({"L2_BACK_TO_ZERO": 1}, "L2_BACK_TO_ZERO = 1"),
        ({"RATE_AI": "fast"}, "rate = 'fast'"),
        (HPCC | {"FAST_REACT": 0}, "FAST_REACT = 0"),
        (HPCC | {"HAS_WIN": 0}, "HAS_WIN = 0"),
        ({"HAS_WIN": 1, "GLOBAL_T": 0}, "GLOBAL_T = 0"),
        ({"CC_MODE": 7, "RATE_BOUND": 0}, "RATE_BOUND = 0"),
    ],
)
def test_build__unsupported(folder, change, message):
    write_parameters(folder, a=change)
    with pytest.raises(ConfigError, match=message):
        build_case(read_reference(folder), "a")


def test_build__thresholds_not_in_proportion(folder):
    trunk = "4 1 3\n3\n0 3 100Gbps 1us 0\n1 3 100Gbps 1us 0\n2 3 50Gbps 1us 0\n"
    write(folder, "topology.txt", trunk)
    maps = {f"{k}_MAP": {"100000000000": 0.1, "50000000000": 0.1} for k in ("KMIN", "KMAX", "PMAX")}
    write_parameters(folder, a=maps, b=maps)
    with pytest.raises(ConfigError, match=r"KMIN_MAP = 0\.1 at 50000000000"):
        build_case(read_reference(folder), "a")


# --------------------------------------------------------------------------- limits


@pytest.mark.parametrize(
    ("changes", "draws", "kind"),
    [
        ({"CC_MODE": 0, "ENABLE_QCN": 0, "RES_PS": 1}, "none", "exact"),
        ({"CC_MODE": 0, "ENABLE_QCN": 0}, "none", "rounded"),
        ({"RES_PS": 1}, "none", "marked"),
        ({}, "none", "repeated"),
        ({"RES_PS": 1}, "same", "repeated"),
        ({"RES_PS": 1}, "own", "random"),
        ({"CC_MODE": 0, "ENABLE_QCN": 0, "RES_PS": 1}, "own", "random"),  # loss
    ],
)
def test_kind(folder, changes, draws, kind):
    write_parameters(folder, a=changes)
    assert kind_of(read_parameters(folder / "params.json")["a"], draws) == kind


@pytest.mark.parametrize(
    ("kind", "metric", "theirs", "passes", "fails"),
    [
        ("exact", "mean_fct_ns", 1000, 1002, 1003),
        ("exact", "max_fct_ns", 1000, 998, 997),
        ("exact", "pause_frames", 1000, 1010, 1011),
        ("exact", "pause_frames", 50, 52, 53),
        ("exact", "max_queue_bytes", 1000, 990, 989),
        ("rounded", "mean_fct_ns", 1000, 1005, 1006),
        ("rounded", "max_fct_ns", 1000, 995, 994),
        ("rounded", "pause_frames", 1000, 970, 969),
        ("rounded", "pause_frames", 0, 3, 4),
        ("rounded", "max_queue_bytes", 1000, 1020, 1021),
        ("marked", "mean_fct_ns", 1000, 980, 979),
        ("marked", "max_fct_ns", 1000, 1030, 1031),
        ("marked", "marked_packets", 1000, 1030, 1031),
        ("random", "mean_fct_ns", 1000, 1030, 1031),
        ("random", "max_fct_ns", 1000, 950, 949),
        ("random", "pause_frames", 1000, 1100, 1101),
        ("random", "pause_frames", 10, 15, 16),
        ("repeated", "mean_fct_ns", 1000, 1030, 1031),
        ("repeated", "max_fct_ns", 1000, 950, 949),
        ("repeated", "pause_frames", 1000, 1100, 1101),
        ("repeated", "max_queue_bytes", 1000, 1020, 1021),
        ("repeated", "marked_packets", 1000, 970, 969),
    ],
)
def test_limit(kind, metric, theirs, passes, fails):
    limit = LIMITS[kind][metric]
    comparer = Comparer("s", "v", "none", kind)
    assert comparer.judge(metric, limit, passes, theirs).ok
    assert not comparer.judge(metric, limit, fails, theirs).ok


def test_compare__spread_of_seeds_widens_limit():
    theirs = [results(mean_fct_ns=value) for value in (950, 1000, 1050)]
    ours = [results(mean_fct_ns=value) for value in (1080, 1100)]
    assert not row_of(compare("random", ours, theirs), "mean_fct_ns").ok
    row = row_of(compare("random", ours, theirs, repeats=theirs), "mean_fct_ns")
    assert (row.ours, row.theirs) == (1090, 1000)
    assert row.error == pytest.approx(0.09)
    assert row.spread == row.limit == pytest.approx(0.1)
    assert row.plain_limit == 0.03
    assert row.ok


def test_compare__small_spread_leaves_limit():
    row = row_of(compare("random", [results()], [results()], [results()] * 2), "max_fct_ns")
    assert (row.spread, row.limit, row.plain_limit) == (0, 0.05, 0.05)


def test_compare__flow_that_hangs():
    rows = compare(
        "exact", [results(flows_done=1)], [results()], [results(), results(flows_done=1)]
    )
    assert [row.metric for row in rows if not row.ok] == ["flows_done"]
    assert "flows_done" in "\n".join(summary(rows))


def test_compare__goodput_where_cut_off():
    theirs = results(flows_done=0, mean_fct_ns=0, max_fct_ns=0, goodput_gbps=20)
    rows = compare("marked", [replace(theirs, goodput_gbps=20.5)], [theirs])
    assert [row.metric for row in rows] == ["flows_done", "goodput_gbps", "marked_packets"]
    assert [row.ok for row in rows] == [True, False, True]


def test_default_rules__mean_and_largest_error():
    rows = compare("exact", [results(mean_fct_ns=1010)], [results()])
    rows += compare("exact", [results(mean_fct_ns=970)], [results()])
    (line,) = [line for line in default_rules(rows) if "mean_fct_ns" in line]
    assert "2 runs" in line
    assert "2.000%" in line
    assert "3.00%" in line
    assert "970.0 for 1,000.0" in line


def test_seed_groups(folder):
    changes = {"ps": {"RES_PS": 1}, "b": {"RNG_SEED": 2}, "big": {"BUFFER_SIZE": 32}}
    write_parameters(folder, a={}, **changes, fine={"SIMULATOR_STOP_TIME": 0.0005})
    of_a = "".join(FCT.splitlines(keepends=True)[1:3])
    write(
        folder,
        "fct.csv",
        FCT + of_a.replace("a,", "ps,") + of_a.replace("a,", "big,") + of_a.replace("a,", "fine,"),
    )
    assert seed_groups(read_reference(folder)) == {"a": ["a", "b"], "ps": ["ps"], "big": ["big"]}


# --------------------------------------------------------------------------- runs


def test_run__incast_with_pfc_only():
    reference = in_table("S2_incast_08")
    ours = simulate(build_case(reference, "pfconly_ps"), seed=0)
    theirs = reference.results["pfconly_ps"]
    assert ours.max_queue_bytes == theirs.max_queue_bytes == 8_416_488
    assert ours.pause_frames == theirs.pause_frames == 232
    assert all(row.ok for row in compare("exact", [ours], [theirs]))


def test_run__same_draws():
    reference = in_table("S2_incast_02")
    case = build_case(reference, "dcqcn").with_draws_of(reference.parameters["dcqcn"].seed)
    ours = simulate(case, seed=0)
    assert ours == reference.results["dcqcn"]
    assert (ours.mean_fct_ns, ours.marked_packets) == (628_715, 42)


def test_rows__a_wrong_reference_fails_whatever_the_spread():
    reference = in_table("S2_incast_02")
    true = reference.results["dcqcn"]
    wrong = replace(true, mean_fct_ns=2 * true.mean_fct_ns)
    reference = replace(reference, results=reference.results | {"dcqcn": wrong})
    group = _Group(reference, ["dcqcn"], build_case(reference, "dcqcn"), 3)
    rows = group.rows({run: simulate(t.case, t.seed) for run, t in group.tasks().items()})
    judged = {(row.draws, row.metric): row.ok for row in rows}
    assert not judged["same", "mean_fct_ns"] and not judged["own", "mean_fct_ns"]
    assert judged["same", "max_fct_ns"]


@needs_shared
def test_table__up_to_date():
    ours, theirs = read_references(TABLE), read_references(SHARED)
    assert is_table(TABLE)
    assert [x.name for x in ours] == [x.name for x in theirs]
    assert all(same(*pair) for pair in zip(ours, theirs, strict=True))


def test_main__exit_codes(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["--jobs", "1", "--seeds", "1", "--only", "S1_single_1KB"]) == 0
    assert "are within their limits, 0 are not" in capsys.readouterr().out
    rows = json.loads(Path("runs/validate/ns3.json").read_text())
    assert set(rows[0]) == {
        *(
            "scenario",
            "variant",
            "draws",
            "metric",
            "ours",
            "theirs",
            "error",
            "limit",
            "plain_limit",
            "spread",
            "ok",
        )
    }
    assert main(["ns3", "--reference", "none"]) == 2
    assert "none: is not a folder" in capsys.readouterr().err


def test_main__out_of_limits(folder, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    arguments = ["--jobs", "1", "--seeds", "1", "ns3", "--reference", str(folder.parent)]
    assert main(arguments) == 1  # the invented figures are far off
    assert "FAILED" in capsys.readouterr().out
    rows = json.loads(Path("runs/validate/ns3.json").read_text())
    compared = {(row["variant"], row["draws"]) for row in rows}
    assert compared == {("a", "same"), ("b", "same"), ("a", "own")}


def test_main__draws_for_losses_are_unknown(folder, tmp_path, monkeypatch, capsys):
    write_parameters(folder, a={"ERROR_RATE_PER_LINK": 0.01}, b={"CC_MODE": 0, "ENABLE_QCN": 0})
    monkeypatch.chdir(tmp_path)
    main(["--jobs", "1", "--seeds", "1", "ns3", "--reference", str(folder.parent)])
    rows = json.loads(Path("runs/validate/ns3.json").read_text())
    assert {(row["variant"], row["draws"]) for row in rows} == {("a", "own"), ("b", "none")}
    assert "under the default rules" in capsys.readouterr().out
