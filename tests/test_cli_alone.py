"""Warnings about numbers that are compared with a tenant alone."""

import json

import pytest

from roce_gym.fabric import Fabric
from roce_gym.reference import compute_references
from roce_gym.scenario_file import load_scenario

LOSSY = """\
name: lossy
topology: {kind: star, hosts: 6}
switch: {buffer_bytes: 2000000}
classes:
  - {name: roce, priority: 3}
  - {name: tcp, priority: 1, lossless: false, buffer: {alpha: 0.02}}
tenants:
  - name: ring
    traffic_class: roce
    hosts: [0, 1, 2]
    jobs: [{kind: ring_all_reduce, bytes: 100000}]
  - name: storage
    traffic_class: tcp
    hosts: [3, 4, 5]
    jobs: [{kind: incast, degree: 2, bytes: 300000, period_us: 500}]
control: {horizon_us: 2000}
"""


@pytest.fixture
def lossy(tmp_path):
    path = tmp_path / "lossy.yaml"
    path.write_text(LOSSY)
    return path


def dropped_alone(path, timeout_us):
    change = [f"nic.retransmit_timeout_us={timeout_us}"]
    fabric = Fabric(
        load_scenario(str(path), 0, change), 0, preset="pfc_only", only_tenant="storage"
    )
    interval = fabric.advance(us=2000)
    return int(interval.dropped_packets.sum()), len(interval.completions)


def check(command, lossy, timeout_us, reasons):
    dropped, ended = dropped_alone(lossy, timeout_us)
    assert dropped > 0 and (ended == 0) == ("no_round_alone" in reasons)
    run = ("run", lossy, "--set", f"nic.retransmit_timeout_us={timeout_us}")
    warnings = json.loads(command(*run, "--json"))["warnings"]
    assert [(w["tenant"], w["reason"]) for w in warnings] == [("storage", r) for r in reasons]
    assert (warnings[0]["packets"], warnings[0]["job"]) == (dropped, None)
    assert f"{dropped:,} packets were dropped in its run alone" in warnings[0]["text"]
    lines = command(*run).splitlines()
    assert [line for line in lines if line.startswith("warning: ")] == [
        f"warning: {w['text']}" for w in warnings
    ]
    return warnings


def test_a_run_alone_that_drops(command, lossy):
    (warning,) = check(command, lossy, 200, ["dropped_alone"])
    assert "lower nic.retransmit_timeout_us = 200 " in warning["text"]


def test_a_run_alone_that_ends_no_round(command, lossy):
    _, warning = check(command, lossy, 50_000, ["dropped_alone", "no_round_alone"])
    assert (warning["packets"], warning["job"]) == (None, "incast")
    assert "control.horizon_us = 2,000" in warning["text"]


def test_nothing_to_warn_about(command, lossy):
    lossy.write_text(LOSSY.replace("lossless: false, ", ""))
    assert json.loads(command("run", lossy, "--json"))["warnings"] == []
    assert "warning" not in command("run", lossy)


def test_flows_that_drop_alone(command, lossy):
    flows = "[{src: 3, dst: 5, bytes: 300000}, {src: 4, dst: 5, bytes: 300000}]"
    old = LOSSY[LOSSY.index("{kind: incast") : LOSSY.index("]\ncontrol")]
    lossy.write_text(LOSSY.replace(old, f"{{kind: flows, flows: {flows}}}"))
    check_drops, _ = dropped_alone(lossy, 50_000)
    (warning,) = json.loads(command("run", lossy, "--json"))["warnings"]
    assert (warning["tenant"], warning["packets"]) == ("storage", check_drops)


def test_blame(command, lossy):
    change = ("--set", "nic.retransmit_timeout_us=50000")
    dropped, _ = dropped_alone(lossy, 50_000)
    found = json.loads(command("blame", lossy, *change, "--json"))
    assert [(w["tenant"], w["reason"], w["packets"]) for w in found["warnings"]] == [
        ("storage", "dropped_alone", dropped),
        ("storage", "no_round_alone", None),
    ]
    text = command("blame", lossy, *change)
    assert all(f"\nwarning: {w['text']}" in text for w in found["warnings"])
    lossy.write_text(LOSSY.replace("lossless: false, ", ""))
    assert json.loads(command("blame", lossy, "--json"))["warnings"] == []


def test_references_know(lossy):
    alone = compute_references(load_scenario(str(lossy), 0), 0).alone
    dropped, _ = dropped_alone(lossy, 67_108.864)
    assert alone.dropped_packets == (0, dropped)
    assert alone.rounds[0] > 0 == alone.rounds[1]


def test_no_timeout_at_all(command, lossy):
    warnings = json.loads(command("run", lossy, "--json", "--set", "nic.retransmit_timeout_us=0"))[
        "warnings"
    ]
    assert "set nic.retransmit_timeout_us, which is 0 (never)" in warnings[0]["text"]
