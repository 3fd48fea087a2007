"""The shipped scenario of that name shows what its first lines say."""

import numpy as np
import pytest

from roce_gym.fabric import Fabric
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
