"""The shipped scenario of that name shows what its first lines say."""

import numpy as np
import pytest

from roce_gym.fabric import Fabric
from roce_gym.presets import resolve_settings
from roce_gym.reference import ALONE_PRESET
from roce_gym.scenario_file import load_scenario

TRAINING, STORAGE = 0, 1
SEEDS = (0, 1, 3)


def run(seed, cc):
    """An episode; mean times of rounds and of bursts, us."""
    overrides = [f"tenants.checkpoint.cc={cc}"]
    interval = Fabric(load_scenario("checkpoint_over_tcp", seed, overrides), seed).advance(
        us=10_000
    )
    log = interval.completions
    took = (log["end_ps"] - log["start_ps"]) / 1e6
    return interval, [float(np.mean(took[log["job"] == job])) for job in (0, 1)]


@pytest.mark.shows("checkpoint_over_tcp")
@pytest.mark.parametrize("seed", SEEDS)
def test_reno_drops_and_dctcp_does_not(seed):
    (reno, reno_times), (dctcp, dctcp_times) = run(seed, "reno"), run(seed, "dctcp")
    drops = [x.dropped_packets.sum(axis=0) for x in (reno, dctcp)]
    assert drops[0][STORAGE] > 300
    assert drops[1][STORAGE] == 0
    assert drops[0][TRAINING] == drops[1][TRAINING] == 0
    longest = [x.queue_max_bytes[:, STORAGE].max() for x in (reno, dctcp)]
    assert longest[1] < 3 * 100_000 < longest[0]
    pauses = [x.pause_frames.sum(axis=0) for x in (reno, dctcp)]
    assert pauses[1][TRAINING] < pauses[0][TRAINING]
    assert pauses[0][STORAGE] == 0
    assert dctcp_times[0] < reno_times[0]
    assert dctcp_times[1] < 0.95 * reno_times[1]
    assert reno.failed_qps == dctcp.failed_qps == 0


def test_alone_dctcp_has_its_marks():
    """The yardstick is PFC alone, but a lossy class has none: without marks DCTCP would drop."""
    scenario = load_scenario("checkpoint_over_tcp", 0, ["tenants.checkpoint.cc=dctcp"])
    fabric = Fabric(scenario, 0, preset=ALONE_PRESET, only_tenant="checkpoint")
    interval = fabric.advance(us=10_000)
    assert len(interval.completions) == 3
    assert interval.ecn_marked_packets.sum() > 0
    assert interval.dropped_packets.sum() == 0


@pytest.mark.parametrize("given", [True, False])
def test_marks_of_a_lossy_class_under_a_preset(given):
    overrides = [] if given else ["classes.storage.ecn=null"]
    scenario = load_scenario("checkpoint_over_tcp", 0, overrides)
    own, pfc_only, paper = (
        resolve_settings(scenario, 100, preset).classes
        for preset in (None, "pfc_only", "dcqcn_paper")
    )
    assert own["storage"].ecn.kmin_bytes == (100_000 if given else 400_000)
    assert pfc_only["storage"].ecn == own["storage"].ecn
    assert not pfc_only["training"].ecn.enabled
    assert paper["storage"].ecn == paper["training"].ecn != own["storage"].ecn
