"""What `run` says about requests of inference jobs."""

import json
import re

import numpy as np
import pytest

from roce_gym.fabric import Fabric
from roce_gym.scenario_file import load_scenario
from roce_gym.workload.llm.requests import request_times

SERVING = """\
name: serving
topology: {kind: star, hosts: 6}
tenants:
  - name: service
    hosts: [0, 1, 2, 3]
    arrive_us: 200
    jobs:
      - &job
        kind: inference
        model: {layers: 2, hidden: 256, ffn_hidden: 512, heads: 4, kv_heads: 4, vocabulary: 100}
        tensor: 2
        requests_per_s: 5000
        requests: 8
        output_tokens: 4
      - {<<: *job, tensor: 1, disaggregated: true, requests_per_s: 300}
  - name: bulk
    hosts: [4, 5, 0]
    jobs: [{kind: incast, degree: 2, bytes: 300000, period_us: 100}]
control: {horizon_us: 4000}
"""


@pytest.fixture(scope="module")
def serving(tmp_path_factory):
    path = tmp_path_factory.mktemp("serving") / "serving.yaml"
    path.write_text(SERVING)
    return path


def numbers(times_ps):
    us = np.concatenate(times_ps) / 1e6
    shares = np.percentile(us, [50, 99])
    return {
        "count": len(us),
        "mean_us": pytest.approx(us.mean()),
        "p50_us": pytest.approx(shares[0]),
        "p99_us": pytest.approx(shares[1]),
        "max_us": us.max(),
    }


def test_json_and_text(command, serving):
    found = json.loads(command("run", serving, "--json"))["tenants"]
    fabric = Fabric(load_scenario(str(serving)), 0)
    marks = fabric.advance(us=4000).marks
    jobs = [
        request_times(fabric.plan.jobs[i].graph.graph, marks[marks["job"] == i]) for i in (0, 1)
    ]
    assert jobs[0].arrived > jobs[1].arrived > 0 < len(jobs[1].e2e_ps)
    for shown, times in (
        (found["service"]["jobs"][0]["requests"], jobs[:1]),
        (found["service"]["jobs"][1]["requests"], jobs[1:]),
        (found["service"]["requests"], jobs),
    ):
        assert shown == {
            "arrived": sum(job.arrived for job in times),
            "ttft": numbers([job.ttft_ps for job in times]),
            "e2e_latency": numbers([job.e2e_ps for job in times]),
        }
        assert shown["ttft"]["max_us"] < shown["e2e_latency"]["max_us"]
    assert found["bulk"]["requests"] is None and found["bulk"]["jobs"][0]["requests"] is None
    section = re.search(r"^requests .*\n.*\n((?:  .*\n)*)", command("run", serving), re.M)[1]
    rows = [re.split(r" {2,}", row.strip()) for row in section.splitlines()]
    expected = [
        ["service", "inference", what, f"{job['arrived']:,}", f"{job[key]['count']:,}"]
        + [f"{job[key][f'{part}_us']:,.1f}" for part in ("mean", "p50", "p99", "max")]
        for job in (job["requests"] for job in found["service"]["jobs"])
        for what, key in (("time to first token", "ttft"), ("end-to-end latency", "e2e_latency"))
    ]
    assert rows == expected


def test_no_request_is_done(command, serving):
    found = json.loads(command("run", serving, "--json", "--duration-us", 100))
    nothing = {"count": 0, **dict.fromkeys(("mean_us", "p50_us", "p99_us", "max_us"))}
    expected = {"arrived": 0, "ttft": nothing, "e2e_latency": nothing}
    assert found["tenants"]["service"]["requests"] == expected
    assert "time to first token" in command("run", serving, "--duration-us", 100)
