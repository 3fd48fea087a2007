"""Iteration times and exposed communication, by hand."""

import json
import re
from importlib import import_module

import pytest
from small import completions, make_interval, parts

from roce_gym.cli.iteration_results import iteration_results
from roce_gym.cli.tally import Tally
from roce_gym.workload.plan import JobPlan

PAIRS = """\
name: pairs
topology: {kind: star, hosts: 8, link_delay_ns: 1000}
tenants:
  - name: ring
    hosts: [0, 1]
    jobs: [{kind: ring_all_reduce, bytes: 2000, chunks_per_step: 1, compute_us: 20, rounds: 5}]
  - name: stages
    hosts: [2, 3]
    arrive_us: 7
    jobs:
      - kind: pipeline
        bytes: 1000
        micro_batches: 2
        forward_us: 10
        backward_us: 20
        rounds: 3
  - name: bursts
    hosts: [4, 5]
    jobs: [{kind: incast, degree: 1, bytes: 1000, period_us: 100}]
  - name: late
    hosts: [6, 7]
    jobs: [{kind: all_to_all, bytes: 2000, compute_us: 2000}]
control: {horizon_us: 1000}
"""
MESSAGE_US = 2 * (1.0 + (1000 + 62 + 20) * 8 / 100e3)
"""Two links, store and forward: 1 us each, and a frame with its gap at 100 Gb/s."""
ACK_US = (66 + 20) * 8 / 100e3


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    path = tmp_path_factory.mktemp("pairs") / "pairs.yaml"
    path.write_text(PAIRS)
    return path


def test_two_hosts(command, pairs):
    """A ring of two is two messages one after the other, the second one behind an ACK.

    Of two stages with two micro-batches, as 1F1B, the critical path is forward 0 - message -
    forward 0, backward 0, forward 1, backward 1 - message - backward 1: 90 us and two messages.
    So stage 0's bubble is not exposed, and neither is a message that nobody waits for.
    """
    tenants = json.loads(command("run", pairs, "--json"))["tenants"]
    ring, stages, bursts, late = (tenant["jobs"][0] for tenant in tenants.values())
    cct_us = ring["cct_mean_us"]
    assert cct_us == pytest.approx(2 * MESSAGE_US + ACK_US, rel=1e-6)
    assert ring["iteration_mean_us"] == pytest.approx(20 + cct_us)
    assert ring["exposed_share"] == pytest.approx(cct_us / (20 + cct_us))
    assert stages["iteration_mean_us"] == pytest.approx(90 + 2 * MESSAGE_US, rel=1e-6)
    assert stages["exposed_share"] == pytest.approx(1 - 90 / stages["iteration_mean_us"])
    for job in (bursts, late):
        assert job["iteration_mean_us"] is None and job["exposed_share"] is None
    assert bursts["rounds_completed"] > 0 == late["rounds_completed"]


def test_in_text(command, pairs):
    text = command("run", pairs)
    found = json.loads(command("run", pairs, "--json"))["tenants"]
    rows = re.search(r"^iterations .*\n.*\n((?:  .*\n)*)", text, re.M)[1].splitlines()
    assert [row.split()[:3] for row in rows] == [
        ["ring", "ring_all_reduce", "5"],
        ["stages", "pipeline", "3"],
    ]
    for row in rows:
        job = found[row.split()[0]]["jobs"][0]
        mean, share = f"{job['iteration_mean_us']:.1f}", f"{100 * job['exposed_share']:.1f}"
        assert row.split()[3:] == [mean, share, "%"]


def results(job, *rounds):
    """Of rounds (begun, end) in us, logged in two intervals; those of another job do not count."""
    tally = Tally()
    rows = [(0, k, begun, end) for k, (begun, end) in enumerate(rounds)]
    for part in (rows[:1], [*rows[1:], (1, 0, 0, 99)]):
        tally.add(make_interval(*parts(), completions=completions(*part)))
    return iteration_results(tally, job, 0)


def test_iterations_are_counted_from_the_start_of_the_job():
    """10 … 20 begin; rounds of 5, 10 and 6 in 35 us: computing 14 us."""
    job = JobPlan("all_to_all", 0, (0, 1), ((0,), (1,)), start_ps=10 * 10**6)
    assert results(job, (13, 18), (22, 32), (39, 45)) == {
        "iteration_mean_us": pytest.approx(35 / 3),
        "exposed_share": pytest.approx(21 / 35),
    }


def test_a_share_is_never_negative(monkeypatch):
    """As when ranks have gone ahead into a round before the last one enters it."""
    module = import_module("roce_gym.cli.iteration_results")
    monkeypatch.setattr(module, "ideal_round_ps", lambda job: 12 * 10**6)
    job = JobPlan("graph", 0, (0, 1), ((),))
    assert results(job, (0, 14), (14, 24))["exposed_share"] == 0.0
    assert results(job, (0, 14), (14, 27))["exposed_share"] == pytest.approx(3 / 27)
