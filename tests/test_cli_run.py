"""What `run` reports, as JSON and as text."""

import json
from importlib import import_module

import numpy as np
import pytest

from roce_gym.fabric import Fabric
from roce_gym.scenario_file import available_scenarios, load_scenario

cli_alone = import_module("roce_gym.cli.alone")

TIMES = {f"{kind}_{part}_us" for kind in ("cct", "fct") for part in ("mean", "p99", "max", "alone")}
COUNTS = {"rounds_completed", "flows_completed", "flows"}
JOB_KEYS = (
    TIMES
    | COUNTS
    | {"kind", "slowdown", "interference", "round_under_way_us", "collectives"}
    | {"iteration_mean_us", "exposed_share", "requests", "starts_after_end"}
)
TENANT_KEYS = (
    TIMES
    | COUNTS
    | {"traffic_class", "slowdown", "interference", "goodput_gbps", "cnps", "jobs", "latency"}
    | {"requests", "failed_queue_pairs", "unreachable_queue_pairs"}
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
    "warnings",
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
    monkeypatch.setattr(cli_alone, "get_references", None)
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


def test_run__drops_by_the_limit_of_an_egress_queue(command, flows):
    """They are placed at the queue's port, beside what finds no room at an input."""
    classes = "classes: [{lossless: false, buffer: {egress_limit_bytes: 30000, alpha: 0.02}}]\n"
    flows.write_text(
        FLOWS.replace("control:", SECOND).replace(
            "control:", classes + "switch: {buffer_bytes: 900000}\ncontrol:"
        )
        + "nic: {retransmit_timeout_us: 200}\n"
    )
    run = ("run", flows, "--preset", "pfc_only")
    fabric = json.loads(command(*run, "--json"))["fabric"]
    assert fabric["dropped_packets"] == sum(place["packets"] for place in fabric["drops"])
    by_cause = {}
    for place in fabric["drops"]:
        by_cause.setdefault(place["cause"], set()).add(place["port"])
    assert by_cause.pop("egress queue limit") == {"switch 4 -> host 2"}
    assert by_cause["buffer full"] <= {"host 0 -> switch 4", "host 1 -> switch 4"}
    assert "at switch 4 -> host 2 (roce): egress queue limit" in command(*run)


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
