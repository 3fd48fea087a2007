"""What `run` reports of links that fail."""

import json

import pytest

from roce_gym.cli import main


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
    wanted = (
        "CUT OFF        2 queue pairs have no route: 2 of one; cables are down by link_events.0\n"
    )
    assert wanted in capsys.readouterr().out


def test_run__who_is_cut_off_and_who_fails(command, two_leaves):
    """Of three tenants two lose their only way; one of them has a longer timeout."""
    more = """\
  - name: two
    hosts: [1, 3]
    jobs:
      - {kind: flows, flows: [{src: 1, dst: 3, bytes: 9000000}], nccl: {NCCL_IB_TIMEOUT: 14}}
  - name: local
    hosts: [0, 1]
    jobs: [{kind: flows, flows: [{src: 0, dst: 1, bytes: 90000}]}]
control:"""
    two_leaves.write_text(two_leaves.read_text().replace("control:", more))
    found = json.loads(command("run", two_leaves, "--json", "--set", cut()))
    tenants = found["tenants"]
    failed = {name: numbers["failed_queue_pairs"] for name, numbers in tenants.items()}
    assert failed == {"one": found["fabric"]["failed_queue_pairs"], "two": 0, "local": 0}
    assert failed["one"] > 0
    apart = {name: numbers["unreachable_queue_pairs"] for name, numbers in tenants.items()}
    assert apart == {"one": 2, "two": 1, "local": 0}
    text = command("run", two_leaves, "--set", cut())
    assert "3 queue pairs have no route: 2 of one, 1 of two; cables" in text
    assert f"queue pairs passed retry limit: {failed['one']} of one\n" in text


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
