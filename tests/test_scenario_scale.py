"""Scenarios that grow with one number."""

import pytest

from roce_gym.config import validate_scenario
from roce_gym.errors import ConfigError
from roce_gym.scenario_file import apply_overrides, draw, load_raw, load_scenario
from roce_gym.topology import build_network
from roce_gym.workload.planner import make_plan

NAME = "case_study_8_tenants"


def tree(factor, scale=8):
    raw = {"name": "x", "parts": [{"count": {"times_scale": factor}}]}
    return raw if scale is None else raw | {"scale": scale}


@pytest.mark.parametrize(
    ("factor", "count"), [(1, 8), (0.5, 4), (0.3, 3), (0.01, 1), (3, 24), (1 / 3 * 3, 8)]
)
def test_product_is_rounded_up(factor, count):
    assert draw(tree(factor), 0)["parts"] == [{"count": count}]


def test_a_product_that_rounding_made_too_large():
    assert draw(tree(0.07, 100), 0)["parts"][0]["count"] == 7  # 7.000000000000001


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (tree(0.5, None), r"parts.0.count.times_scale = 0.5 needs scale, which is missing"),
        (tree(-1), r"parts.0.count.times_scale = -1 is not allowed; allowed: above 0"),
        (tree("all"), r"parts.0.count.times_scale = 'all' is not allowed"),
        (tree(True), r"parts.0.count.times_scale = True is not allowed"),
        (tree(1, 0), r"scale = 0 is not allowed; allowed: 1 … 1048576"),
        (tree(1, 1.5), r"scale = 1.5 is not allowed"),
        (tree(1, 10**9), r"scale = 1000000000 is not allowed"),
        (tree(1, True), r"scale = True is not allowed; allowed: 1 … 1048576"),
        (
            tree(1, 7) | {"scales": {"step": 4, "most": 19}},
            r"scale = 7 is not allowed; allowed: 4 … 16, in steps of 4$",
        ),
        (tree(1, 20) | {"scales": {"step": 4, "most": 19}}, r"scale = 20 is not allowed"),
        (tree(1) | {"scales": {"steps": 4}}, r"scales.steps: unknown key .* allowed: step, most"),
        (tree(1) | {"scales": {"step": 9, "most": 8}}, r"most = 8 is less than step = 9"),
    ],
)
def test_errors(raw, message):
    with pytest.raises(ConfigError, match=message):
        draw(raw, 0)


def test_scale_can_be_set_and_what_it_multiplies_replaced():
    assert load_scenario(NAME, overrides=["scale=1024"]).topology.pods == 4
    changed = load_scenario(NAME, overrides=["scale=1024", "topology.pods=5"])
    assert changed.topology.pods == 5 and changed.tenants[0].hosts.count == 128


@pytest.mark.parametrize("scale", [300, 255, 20_000, 16_640])
def test_case_study_is_not_made_larger_in_silence(scale):
    message = rf"scale = {scale} is not allowed; allowed: 256 … 16384, in steps of 256$"
    with pytest.raises(ConfigError, match=message):
        load_scenario(NAME, overrides=[f"scale={scale}"])


def test_a_drawn_scenario_stays_as_it_is():
    raw = draw(apply_overrides(load_raw(NAME), ["scale=512"]), 0)
    assert draw(raw, 0) == raw
    assert validate_scenario(validate_scenario(raw).model_dump()) == validate_scenario(raw)


@pytest.mark.parametrize("scale", [256, 1024, 16_384])
def test_case_study_at_any_scale(scale):
    """Every GPU is in one training job; groups do not grow."""
    scenario = load_scenario(NAME, overrides=[f"scale={scale}"])
    network = build_network(scenario.topology)
    assert network.num_hosts == scale
    plan = make_plan(scenario, network, 0)
    rings = [job for job in plan.jobs if job.graph is not None]
    hosts = [host for job in rings for host in job.hosts]
    assert len(rings) == 8 and len(hosts) == len(set(hosts)) == scale
    for job in rings:
        calls = job.graph.graph.collectives
        assert {len(call.ranks) for call in calls} == {32} and len(calls) == scale // 256
