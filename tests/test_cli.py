import csv
import json
import os
import signal
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from roce_gym import __version__
from roce_gym.cli import main
from roce_gym.cli.case import load_case
from roce_gym.cli.parser import make_parser
from roce_gym.fabric import Fabric
from roce_gym.presets import PRESETS
from roce_gym.scenario_file import available_scenarios, load_scenario
from roce_gym.workload.placement import place_tenants

cli_run = import_module("roce_gym.cli.run")

TIMES = {f"{kind}_{part}_us" for kind in ("cct", "fct") for part in ("mean", "p99", "max", "alone")}
COUNTS = {"rounds_completed", "flows_completed", "flows"}
JOB_KEYS = (
    TIMES
    | COUNTS
    | {"kind", "slowdown", "interference", "round_under_way_us", "collectives"}
    | {"iteration_mean_us", "exposed_share"}
)
TENANT_KEYS = (
    TIMES
    | COUNTS
    | {"traffic_class", "slowdown", "interference", "goodput_gbps", "cnps", "jobs", "latency"}
    | {"effective_bandwidth_gbps", "effective_bandwidth_share"}
)
CLASS_KEYS = {
    "pause_frames",
    "paused_share_mean",
    "paused_share_max",
    "ecn_marked_share",
    "dropped_packets",
    "queue_max_bytes",
}
FABRIC_KEYS = CLASS_KEYS | {
    "pause_frames_per_s",
    "pause_frames_per_s_and_port",
    "pause_frames_worst_port",
    "pause_frames_of_worst_port",
    "drops",
    "dscp_mismatches",
    "lost_packets",
    "losses",
    "queue_max_port",
    "queue_max_class",
    "queue_max_kmin_bytes",
    "queue_max_kmax_bytes",
    "queue_max_buffer_share",
    "buffer_bytes",
    "failed_queue_pairs",
    "unreachable_queue_pairs",
    "events",
    "classes",
    "first_pause",
    "pausing_hosts",
    "cables_down",
    "ports",
    "watchdog",
    "deadlock",
    "goodput_gbps",
    "effective_bandwidth_share",
    "latency",
}
EXAMPLE = Path(__file__).parents[1] / "docs" / "examples" / "my_sender.py"
RUN_KEYS = {
    "scenario",
    "source",
    "seed",
    "preset",
    "changes",
    "duration_us",
    "horizon_us",
    "status",
    "interrupted",
    "wall_time_s",
    "tenants",
    "fabric",
    "settings",
    "left_out",
}
FLOWS = """\
name: two_senders
topology: {kind: star, hosts: 4, link_delay_ns: 1000}
tenants:
  - name: one
    hosts: [0, 2]
    jobs:
      - kind: flows
        flows:
          - {src: 0, dst: 2, bytes: 1000000}
          - {src: 0, dst: 2, bytes: 900000000, start_us: 300}
control: {horizon_us: 1000}
"""
SECOND = """\
  - name: two
    hosts: [1, 2]
    jobs: [{kind: flows, flows: [{src: 1, dst: 2, bytes: 1000000}]}]
control:"""


@pytest.fixture
def flows(tmp_path):
    path = tmp_path / "flows.yaml"
    path.write_text(FLOWS)
    return path


def case_of(*arguments):
    return load_case(make_parser().parse_args(["describe", *arguments]))


# --------------------------------------------------------------------------- list, describe


def test_list(command):
    text, found = command("list"), json.loads(command("list", "--json"))
    assert list(found["scenarios"]) == available_scenarios()
    assert set(found["presets"]) == set(PRESETS)
    assert "RoCE/NoisyNeighbor-v0" in found["environments"]
    for section in found.values():
        assert all(value for value in section.values())
        for name, value in section.items():
            assert any(name in line and value in line for line in text.splitlines())


@pytest.mark.parametrize("name", available_scenarios())
def test_describe(command, name):
    text, found = command("describe", name), json.loads(command("describe", name, "--json"))
    scenario = load_scenario(name)
    assert found["scenario"] == scenario.model_dump(mode="json")
    fabric = Fabric(scenario)
    assert found["settings"] == fabric.settings.model_dump(mode="json")
    pool = int(fabric._state.switch["pool"][fabric.network.num_servers :].min())
    buffer = found["buffer"]
    assert buffer["shared_bytes"] == pool
    parts = ("headroom", "reserved", "shared")
    assert sum(buffer[f"{part}_bytes"] for part in parts) == buffer["buffer_bytes"]
    assert f"{pool:,} B" in text
    for knob in found["knobs"]:
        assert knob["name"] in text
    placed = place_tenants(scenario.tenants, fabric.network, 0)
    for index, tenant in enumerate(scenario.tenants):
        shown = found["tenants"][tenant.name]["hosts"]
        hosts = list(placed[index])
        if isinstance(tenant.hosts, tuple):
            assert shown == hosts
        else:  # those of them that talk
            assert len(shown) > 1 and shown == sorted(set(shown) & set(hosts))
        assert " ".join(map(str, shown[:32])) in text


def test_describe__routing_and_link_events(command):
    text = command("describe", "gray_failure", "--set", "routing.policy=adaptive")
    for words in ("load balancing    adaptive", "11->9: loss 1e-05 from 0 us on", "go_back_n"):
        assert words in text
    change = "link_events=[{kind: slow, between: [8, 10], rate_gbps: 10, start_us: 5, stop_us: 7}]"
    (row,) = [
        row
        for row in command("describe", "gray_failure", "--set", change).splitlines()
        if "link event" in row
    ]
    assert row.endswith("8-10: 10 Gb/s from 5 us to 7 us")


def test_describe__switches_that_differ(command):
    overrides = (
        "switch.overrides=[{tier: spine, classes: {training: {ecn: {kmin_bytes: 100000, "
        "kmax_bytes: 400000, pmax: 0.5}}}}, {switches: [17], classes: {training: {alpha: 0.03125, "
        "reserved_bytes: 9096}, checkpoint: {static_threshold_bytes: 60000}}}]"
    )
    text = command("describe", "noisy_neighbor", "--set", overrides)
    rows = text.split("switch overrides\n")[1].split("\n\n")[0].splitlines()
    assert [row.strip() for row in rows] == [
        "all of tier spine  training: ECN 100,000 … 400,000 B, pmax 0.5",
        "switch 17          training: alpha 0.03125, reserve 9,096 B/port",
        "switch 17          checkpoint: threshold 60,000 B",
    ]
    # 6 ports with 9,096 and 4,096 bytes; the other leaves have 2 x 4,096.
    assert "reserved             79,152 B" in text and "at                   switch 17" in text
    plain = command("describe", "noisy_neighbor")
    assert "switch overrides" not in plain and "reserved             49,152 B" in plain


def test_run__the_longest_queue_is_compared_with_its_own_switch(command):
    every = "{enabled: true, kmin_bytes: 111000, kmax_bytes: 222000, pmax: 0.5}"
    tiers = ", ".join(
        f"{{tier: {t}, classes: {{training: {{ecn: {every}}}, checkpoint: {{ecn: {every}}}}}}}"
        for t in ("leaf", "spine")
    )
    arguments = ("noisy_neighbor", "--duration-us", "500", "--json")
    found = json.loads(command("run", *arguments, "--set", f"switch.overrides=[{tiers}]"))
    assert found["fabric"]["queue_max_kmin_bytes"] == 111_000
    assert found["fabric"]["queue_max_kmax_bytes"] == 222_000


def test_describe__seed_and_preset(command):
    one, two = (command("describe", "noisy_neighbor", "--seed", seed) for seed in (1, 2))
    assert one != two
    found = json.loads(command("describe", "noisy_neighbor", "--preset", "pfc_only", "--json"))
    assert not any(c["ecn"]["enabled"] for c in found["settings"]["classes"].values())
    assert not any(t["enabled"] for t in found["settings"]["tenants"].values())


def test_describe__senders_and_windows(command):
    text = command(
        "describe",
        "noisy_neighbor",
        "--set",
        "tenants.0.cc=timely",
        "--set",
        "tenants.0.timely.beta=0.25",
        "--set",
        "tenants.1.window.bytes=123456",
    )
    assert "senders: timely, t_low_us 50" in text
    assert "beta 0.25" in text
    assert "window: 123,456 B, in proportion to the rate" in text
    table = text.split("DCQCN\n")[1].split("\n\n")[0]
    assert "checkpoint" in table
    assert "training" not in table


@pytest.mark.parametrize(
    ("job", "text"),
    [
        (
            {"kind": "pipeline", "bytes": 1000, "forward_us": 1, "backward_us": 2, "rounds": 3},
            "pipeline: 1,000 B, forward_us 1, backward_us 2, 3 rounds",
        ),
        (
            {"kind": "collective", "operation": "broadcast", "bytes": 1000, "compute_us": 7.5},
            "collective: 1,000 B, compute 7.5 us, operation broadcast",
        ),
        (
            {"kind": "all_to_all", "bytes": 1000, "nccl": {"NCCL_IB_TIMEOUT": 20}},
            "all_to_all: 1,000 B, NCCL_IB_TIMEOUT 20",
        ),
        (
            {"kind": "training", "model": "llama3_8b", "scale": {"layers": 2, "bytes": 0.01}},
            "scale.layers 2, scale.bytes 0.01",
        ),
        (
            {"kind": "inference", "model": "llama3_8b", "tensor": 4, "requests_per_s": 50},
            "tensor 4, requests_per_s 50",
        ),
    ],
    ids=lambda part: part["kind"] if isinstance(part, dict) else "",
)
def test_describe__every_kind_of_job(command, tmp_path, job, text):
    path = tmp_path / "jobs.yaml"
    tenant = {"name": "a", "hosts": [0, 1, 2, 3], "jobs": [job]}
    topology = {"kind": "star", "hosts": 4}
    path.write_text(json.dumps({"name": "jobs", "topology": topology, "tenants": [tenant]}))
    assert text in command("describe", path)


def test_describe__a_users_sender(command):
    user = f"{{file: {EXAMPLE}, function: delay_and_cnp, params: [25, 0.8, 0.001]}}"
    changes = ("--set", "tenants.training.cc=user", "--set", f"tenants.training.user={user}")
    text = command("describe", "noisy_neighbor", *changes)
    wanted = f"senders: user, file {EXAMPLE}, function delay_and_cnp, params [25, 0.8, 0.001]"
    assert wanted in text


def test_version_help_and_module(capsys):
    for arguments, text in ((["--version"], __version__), (["run", "--help"], "CLASS.SETTING")):
        with pytest.raises(SystemExit) as caught:
            main(arguments)
        assert caught.value.code == 0
        assert text in capsys.readouterr().out
    done = subprocess.run(
        [sys.executable, "-m", "roce_gym", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"roce-gym {__version__}\n"


# --------------------------------------------------------------------------- --set


@pytest.mark.parametrize(
    ("changes", "kind", "owner", "expected"),
    [
        (["checkpoint.kmin_bytes=200000"], "classes", "checkpoint", {"kmin_bytes": 200_000}),
        (["classes.checkpoint.ecn.kmin_bytes=2e5"], "classes", "checkpoint", {"kmin_bytes": 2e5}),
        (["classes.1.buffer.alpha=0.5"], "classes", "checkpoint", {"alpha": 0.5}),
        (["classes.checkpoint.ecn={pmax: 0.5}"], "classes", "checkpoint", {"pmax": 0.5}),
        (
            ["class/checkpoint/kmax_ratio=3", "class/checkpoint/kmin=1000"],
            "classes",
            "checkpoint",
            {"kmin_bytes": 1000, "kmax_bytes": 3000},
        ),
        (["training.g=0.01"], "tenants", "training", {"g": 0.01}),
        (["tenants.training.dcqcn.g=0.01"], "tenants", "training", {"g": 0.01}),
        (["tenant/training/rate_ai=70"], "tenants", "training", {"rate_ai_mbps": 70}),
        (["training.g={uniform: [0.25, 0.25]}"], "tenants", "training", {"g": 0.25}),
        (["training.g=0.1", "training.g=0.2"], "tenants", "training", {"g": 0.2}),
    ],
)
@pytest.mark.parametrize("preset", ["default", "dcqcn_paper"])
def test_set__changes_one_setting_and_nothing_else(changes, kind, owner, expected, preset):
    before = case_of("noisy_neighbor", "--preset", preset).settings.model_dump()
    options = [word for change in changes for word in ("--set", change)]
    case = case_of("noisy_neighbor", "--preset", preset, *options)
    after = case.settings.model_dump()
    for field, value in expected.items():
        parts = [before[kind][owner], after[kind][owner]]
        if kind == "classes":
            section = "ecn" if field in parts[0]["ecn"] else "buffer"
            parts = [part[section] for part in parts]
        assert parts[1][field] == value
        parts[0][field] = value
    assert before == after
    assert case.base == load_scenario("noisy_neighbor")
    assert Fabric(case.scenario).settings == case.settings


def test_set__scenario_fields():
    case = case_of("noisy_neighbor", "--set", "nic.mtu_bytes=1024", "--set", "topology.spines=2")
    assert case.base.nic.mtu_bytes == 1024
    assert case.network.num_switches == 6


# --------------------------------------------------------------------------- run


@pytest.mark.parametrize("name", available_scenarios())
def test_run__json_and_text_agree(command, name):
    arguments = ("run", name, "--duration-us", 3100, "--seed", 1)
    found = json.loads(command(*arguments, "--json"))
    text = command(*arguments)
    assert set(found) == RUN_KEYS
    assert set(found["fabric"]) == FABRIC_KEYS
    assert all(set(c) == CLASS_KEYS for c in found["fabric"]["classes"].values())
    ended = "deadlock" if found["fabric"]["deadlock"] else "completed"
    assert found["status"] == ended and not found["interrupted"]
    assert (found["duration_us"] == 3100) == (ended == "completed")
    for tenant, numbers in found["tenants"].items():
        nvlink = {"nvlink_goodput_gbps"} if name == "rail_ring" else set()
        assert set(numbers) == TENANT_KEYS | nvlink
        assert all(set(job) == JOB_KEYS for job in numbers["jobs"])
        line, *_ = [row for row in text.splitlines() if row.startswith(f"  {tenant} ")]
        for key in ("cct_mean_us", "cct_p99_us", "cct_max_us", "cct_alone_us"):
            assert (f"{numbers[key]:,.1f}" if numbers[key] else "-") in line
        assert f"{numbers['goodput_gbps']:,.2f}" in line
        if numbers["slowdown"]:
            assert f"{numbers['slowdown']:.3f}" in line
            assert numbers["interference"] == numbers["slowdown"] - 1
    assert f"{found['fabric']['pause_frames']:,} frames" in text
    assert f"{found['fabric']['queue_max_bytes']:,} B at" in text
    assert f"{100 * found['fabric']['ecn_marked_share']:.2f} %" in text


def test_run__numbers_are_those_of_the_fabric(command):
    found = json.loads(command("run", "noisy_neighbor", "--duration-us", 3000, "--json"))
    fabric = Fabric(load_scenario("noisy_neighbor"), 0)
    interval = fabric.advance(us=3000)
    assert found["fabric"]["pause_frames"] == interval.pause_frames.sum() > 0
    assert (
        found["fabric"]["queue_max_bytes"]
        == interval.queue_max_bytes[fabric.network.link_src >= 16].max()
    )
    assert found["fabric"]["events"] == interval.events
    log = interval.completions[interval.completions["job"] == 0]
    times = (log["end_ps"] - log["start_ps"]) / 1e6
    training = found["tenants"]["training"]
    assert training["rounds_completed"] == len(times)
    assert training["cct_mean_us"] == pytest.approx(times.mean())
    assert training["cct_max_us"] == times.max()
    owners = np.array([pair.tenant for pair in fabric.plan.qps])
    delivered = interval.delivered_bytes[owners == 0].sum()
    assert training["goodput_gbps"] == pytest.approx(delivered * 8 / 3e6)


def test_run__presets_differ_as_theory_says(command):
    arguments = (
        "run",
        "noisy_neighbor",
        "--duration-us",
        16_000,
        "--seed",
        1,
        "--json",
        "--preset",
    )
    pfc, dcqcn = (json.loads(command(*arguments, name)) for name in ("pfc_only", "dcqcn_paper"))
    # Nothing but PFC holds senders back, so it has to; nothing is marked, and the queue is longer.
    assert pfc["fabric"]["pause_frames"] > dcqcn["fabric"]["pause_frames"]
    assert pfc["fabric"]["paused_share_mean"] > dcqcn["fabric"]["paused_share_mean"]
    assert pfc["fabric"]["ecn_marked_share"] == 0 < dcqcn["fabric"]["ecn_marked_share"]
    assert pfc["fabric"]["queue_max_bytes"] > dcqcn["fabric"]["queue_max_bytes"]
    # Senders slowed down by CNPs recover by 40 Mb/s a step: the receiver's link runs dry.
    slow, fast = (run["tenants"]["checkpoint"]["cct_mean_us"] for run in (dcqcn, pfc))
    assert slow > 1.05 * fast
    # Alone is measured with the same settings, whatever is under test.
    for tenant in pfc["tenants"]:
        assert pfc["tenants"][tenant]["cct_alone_us"] == dcqcn["tenants"][tenant]["cct_alone_us"]
    assert pfc["fabric"]["dropped_packets"] == dcqcn["fabric"]["dropped_packets"] == 0


def test_run__flows_of_one_tenant_need_no_reference(command, flows, monkeypatch):
    monkeypatch.setattr(cli_run, "get_references", None)
    found = json.loads(command("run", flows, "--json"))
    numbers = found["tenants"]["one"]
    assert (numbers["flows"], numbers["flows_completed"]) == (2, 1)
    frames = -(-1_000_000 // 4096)
    wire_us = (1_000_000 + frames * 82) * 8 / 1e5
    # Alone on its path: serialisation at line rate, then two links there and back.
    assert wire_us < numbers["fct_mean_us"] < wire_us + 6
    assert numbers["slowdown"] is numbers["interference"] is numbers["fct_alone_us"] is None
    assert "1 of 2" in command("run", flows)


def test_run__flows_of_two_tenants_are_compared(command, flows):
    flows.write_text(FLOWS.replace("control:", SECOND))
    found = json.loads(command("run", flows, "--preset", "pfc_only", "--json"))
    for numbers in found["tenants"].values():
        # Two senders share the link of one receiver.
        assert numbers["slowdown"] == pytest.approx(2.0, rel=0.05)
        assert numbers["fct_mean_us"] / numbers["fct_alone_us"] == numbers["slowdown"]


def test_run__drops_are_placed(command, flows):
    flows.write_text(
        FLOWS.replace("control:", "classes: [{lossless: false}]\n" + "control:").replace(
            "control:", "switch: {buffer_bytes: 100000}\ncontrol:"
        )
        + "nic: {retransmit_timeout_us: 200}\n"
    )
    text = flows.read_text().replace("tenants:\n", "tenants:\n" + SECOND.removesuffix("control:"))
    flows.write_text(text)
    found = json.loads(command("run", flows, "--preset", "pfc_only", "--json"))
    fabric = found["fabric"]
    assert fabric["dropped_packets"] == sum(place["packets"] for place in fabric["drops"]) > 0
    ports = {place["port"] for place in fabric["drops"]}
    assert ports <= {"host 0 -> switch 4", "host 1 -> switch 4"}
    assert {place["cause"] for place in fabric["drops"]} == {"buffer full"}
    assert "host 0 -> switch 4 (roce): buffer full" in command("run", flows, "--preset", "pfc_only")


# --------------------------------------------------------------------------- trace


def test_trace(command, tmp_path):
    path = tmp_path / "trace.csv"
    arguments = ("run", "regime_shift", "--duration-us", 1050, "--json", "--trace", path)
    found = json.loads(command(*arguments))
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [float(row["time_us"]) for row in rows] == [*range(100, 1100, 100), 1050]
    assert {float(row["interval_us"]) for row in rows} == {100, 50}
    assert all(len(row) == len(rows[0]) and None not in row for row in rows)
    for row in rows:
        assert all(value == "" or np.isfinite(float(value)) for value in row.values())

    def total(name):
        return sum(float(row[name]) for row in rows)

    prefix = "class/shared/"
    watermark = max(float(row[f"{prefix}SAI_QUEUE_STAT_SHARED_WATERMARK_BYTES"]) for row in rows)
    assert watermark == found["fabric"]["queue_max_bytes"]
    marked = total(f"{prefix}SAI_QUEUE_STAT_WRED_ECN_MARKED_PACKETS")
    share = marked / total(f"{prefix}SAI_QUEUE_STAT_PACKETS")
    assert share == pytest.approx(found["fabric"]["ecn_marked_share"])
    assert total(f"{prefix}rx_prio3_pause_duration") > 0
    for tenant, numbers in found["tenants"].items():
        assert total(f"tenant/{tenant}/rp_cnp_handled") == numbers["cnps"]
        assert total(f"tenant/{tenant}/completions") == numbers["rounds_completed"]
        delivered = total(f"tenant/{tenant}/delivered_bytes")
        assert delivered * 8 / 1050e3 == pytest.approx(numbers["goodput_gbps"])
    assert list(tmp_path.iterdir()) == [path]


def test_trace__replaces_only_if_told_to(command, tmp_path, capsys):
    path = tmp_path / "trace.csv"
    path.write_text("precious")
    arguments = ["run", "regime_shift", "--duration-us", "100", "--trace", str(path)]
    assert main(arguments) == 2
    assert capsys.readouterr().err == f"error: --trace: '{path}' exists; --force replaces it\n"
    assert path.read_text() == "precious"
    command(*arguments, "--force")
    assert path.read_text().startswith("time_us,")


# --------------------------------------------------------------------------- interruption


def test_interrupted__partial_results_are_reported(capsys, tmp_path, monkeypatch):
    path = tmp_path / "trace.csv"
    advance, calls = Fabric.advance, []

    def interrupted(self, **keys):
        calls.append(keys)
        if len(calls) == 3:
            os.kill(os.getpid(), signal.SIGINT)
        return advance(self, **keys)

    monkeypatch.setattr(Fabric, "advance", interrupted)
    before = signal.getsignal(signal.SIGINT)
    assert main(["run", "regime_shift", "--json", "--trace", str(path)]) == 130
    out, err = capsys.readouterr()
    found = json.loads(out)
    assert found["interrupted"] and found["duration_us"] == 300
    assert found["tenants"]["steady"]["cct_alone_us"] is None
    assert "interrupted: these results are partial" in err
    assert len(path.read_text().splitlines()) == 4
    assert signal.getsignal(signal.SIGINT) is before


def test_interrupted__while_tenants_run_alone(capsys, monkeypatch):
    def slow(*_):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(1)

    monkeypatch.setattr(cli_run, "get_references", slow)
    assert main(["run", "regime_shift", "--duration-us", "500", "--json"]) == 130
    found = json.loads(capsys.readouterr().out)
    assert found["interrupted"] and found["duration_us"] == 500


def test_progress__only_if_it_takes_long(capsys, monkeypatch):
    arguments = ["run", "regime_shift", "--duration-us", "500"]
    assert main(arguments) == 0
    capsys.readouterr()
    monkeypatch.setattr("roce_gym.cli.terminal._SILENT_S", 1e9)
    assert main(arguments) == 0
    assert capsys.readouterr().err == ""
    monkeypatch.setattr("roce_gym.cli.terminal._SILENT_S", 0.0)
    assert main(arguments) == 0
    assert "% simulated" in capsys.readouterr().err


# --------------------------------------------------------------------------- links that fail


def cut(*fields):
    """All that leaves the first of two leaves goes over one spine and one cable."""
    down = "{kind: down, between: [4, 6], start_us: 100" + "".join(f", {f}" for f in fields) + "}"
    lossy = "{kind: lossy, between: [5, 6], loss: 0.01}"
    return f"link_events=[{down}, {lossy}]"


@pytest.fixture
def two_leaves(tmp_path):
    path = tmp_path / "two_leaves.yaml"
    path.write_text("""\
name: two_leaves
topology: {kind: leaf_spine, leaves: 2, hosts_per_leaf: 2, spines: 1}
nic: {retransmit_timeout_us: 50, retry_limit: 2, mtu_bytes: 1024}
tenants:
  - name: one
    hosts: [0, 2]
    jobs: [{kind: flows, flows: [{src: 0, dst: 2, bytes: 9000000}, {src: 2, dst: 0, bytes: 90000}]}]
control: {horizon_us: 2000}
""")
    return path


def test_run__cut_off(capsys, two_leaves):
    """Nothing leads there: queue pairs fail, and every loss has its cause."""
    change = ("--set", cut())
    assert main(["run", str(two_leaves), "--json", *change]) == 0
    printed = capsys.readouterr()
    found = json.loads(printed.out)
    assert found["status"] == "failed" and "failed: these results are partial" in printed.err
    assert found["fabric"]["failed_queue_pairs"] > 0
    causes = {loss["port"]: loss["cause"] for loss in found["fabric"]["losses"]}
    assert causes["switch 4 -> switch 6"] == "link down"
    assert causes["switch 6 -> switch 5"] == "corrupted"
    assert main(["run", str(two_leaves), *change]) == 0
    text = capsys.readouterr().out
    assert "(queue pairs failed)" in text and "at switch 4 -> switch 6: link down" in text


def test_run__cut_off_but_not_yet_given_up(capsys, two_leaves):
    change = ("--set", cut(), "--set", "nic.retransmit_timeout_us=5000")
    assert main(["run", str(two_leaves), "--json", *change]) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out)["status"] == "unreachable"
    assert "unreachable: these results are partial" in printed.err
    assert main(["run", str(two_leaves), *change]) == 0
    wanted = "CUT OFF        2 queue pairs have no route; cables are down by link_events.0\n"
    assert wanted in capsys.readouterr().out


def test_run__a_link_that_comes_back(capsys, two_leaves):
    assert main(["run", str(two_leaves), "--json", "--set", cut("stop_us: 130")]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["status"] == "completed" and found["fabric"]["lost_packets"] > 0


def test_run__no_route(capsys, two_leaves):
    """Hop by hop, a switch finds out itself."""
    routing = "routing={policy: adaptive, reroute_delay_us: 20}"
    changes = ("--set", cut(), "--set", routing, "--set", "nic.out_of_order=true")
    assert main(["run", str(two_leaves), "--json", *changes]) == 0
    losses = json.loads(capsys.readouterr().out)["fabric"]["losses"]
    causes = {loss["port"]: loss["cause"] for loss in losses}
    assert causes["host 0 -> switch 4"] == "no route"
