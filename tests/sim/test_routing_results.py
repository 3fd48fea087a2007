"""What others have published about recovery, load balancing and gray failures."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from roce_gym.config import validate_scenario
from roce_gym.fabric import Fabric

MIB = 2**20


def goodput_gbps(recovery, loss, us=20_000):
    """Goodput of 4 MiB messages of 1,024 B packets at 40 Gb/s, and the rate of what is sent."""
    raw = {
        "name": "livelock",
        "topology": {"kind": "star", "hosts": 2, "host_rate_gbps": 40},
        "nic": {
            "mtu_bytes": 1024,
            "recovery": recovery,
            "out_of_order": recovery == "selective_repeat",
            "reorder_wait_us": 0,
            "retransmit_timeout_us": 1048.576,
            "nack_interval_us": 20,
        },
        "preset": "pfc_only",
        "link_events": [{"kind": "lossy", "between": [2, 0], "direction": "forward", "loss": loss}],
        "tenants": [
            {
                "name": "only",
                "hosts": [0, 1],
                "jobs": [{"kind": "incast", "bytes": 4 * MIB, "degree": 1, "period_us": 1}],
            }
        ],
    }
    fabric = Fabric(validate_scenario(raw))
    interval = fabric.advance(us=us)
    sent = interval.tx_bytes[fabric.network.host_link[1], 0]
    scale = 8 / (us * 1000)
    return len(interval.completions) * 4 * MIB * scale, float(sent) * scale


def test_go_back_0_livelocks():
    """Guo et al., SIGCOMM 2016, section 4.1: loss 1/256, 4 MB: a full link and no goodput."""
    goodput, sent = goodput_gbps("go_back_0", 1 / 256)
    assert goodput == 0
    assert sent > 30
    assert goodput_gbps("go_back_0", 0)[0] > 30
    go_back_n, sent_n = goodput_gbps("go_back_n", 1 / 256)
    selective, _ = goodput_gbps("selective_repeat", 1 / 256)
    assert 20 < go_back_n < selective
    assert selective > 33
    assert sent_n > 30


def ring(policy="ecmp", channels=1, seed=0, **nic):
    """Mean time of a ring all-reduce whose every step crosses the spines, and NACKs."""
    raw = {
        "name": "ring",
        "topology": {"kind": "leaf_spine", "leaves": 4, "hosts_per_leaf": 4, "spines": 4},
        "nic": {"out_of_order": True} | nic,
        "routing": {"policy": policy},
        "classes": [{"name": "roce", "buffer": {"alpha": 0.25}}],
        "preset": "pfc_only",
        "tenants": [
            {
                "name": "training",
                "hosts": [4 * (i % 4) + i // 4 for i in range(16)],
                "jobs": [
                    {
                        "kind": "ring_all_reduce",
                        "bytes": 8_000_000,
                        "channels": channels,
                        "rounds": 2,
                    }
                ],
            }
        ],
    }
    interval = Fabric(validate_scenario(raw), seed).advance(us=20_000)
    times = interval.completions["end_ps"] - interval.completions["start_ps"]
    return float(times.mean()) / 1e6 if len(times) else np.inf, int(interval.nacks.sum())


IDEAL_US = 8e6 * 8 * (2 * 15 / 16) / 100e3
SEEDS = range(4)
cached_ring = cache(ring)


def test_spraying_has_no_collisions():
    """Spraying and adaptive routing come close to the ideal; ECMP's collisions at least double it.

    The comparison is that of Dixit et al., INFOCOM 2013, and of reports on training clusters.
    """
    for policy in ("spray_random", "spray_round_robin", "adaptive"):
        assert IDEAL_US < cached_ring(policy)[0] < 1.3 * IDEAL_US
    collided = [cached_ring(seed=seed)[0] for seed in SEEDS]
    assert min(collided) > 1.4 * IDEAL_US
    assert np.mean(collided) > 2 * IDEAL_US


def test_more_queue_pairs_fewer_collisions():
    """Gangidi et al., SIGCOMM 2024: several QPs per connection even out what ECMP's hash does."""
    mean = [np.mean([cached_ring(channels=n, seed=s)[0] for s in SEEDS]) for n in (1, 2, 4, 8)]
    assert mean == sorted(mean, reverse=True)
    assert mean[-1] < 0.75 * mean[0]


def test_spraying_needs_receivers_of_any_order():
    """Each overtaken packet costs an in-order receiver a NACK and its sender a go-back."""
    slow, nacks = ring("spray_random", out_of_order=False)
    assert nacks > 1_000
    assert slow > 3 * cached_ring("spray_random")[0]
    assert cached_ring("spray_random")[1] == 0


def test_flowlets_are_between():
    """A short gap finds free ways between messages, a long one never changes: as ECMP."""
    assert ring("flowlet", seed=1)[0] < cached_ring(seed=1)[0]


@pytest.mark.parametrize("policy", ["ecmp", "spray_random"])
def test_a_bad_cable_holds_back_flows_that_never_cross_it(policy):
    """PFC spreads: Guo et al., 2016, section 4; here one cable that trained at a tenth of its rate.

    Flow 0 crosses it. Flow 1 shares with it a cable before that, and its host; flow 2 only the
    spine. All paths are given, so that the routing makes no difference.
    """
    raw = {
        "name": "victims",
        "topology": {"kind": "leaf_spine", "leaves": 3, "hosts_per_leaf": 2, "spines": 2},
        "switch": {"buffer_bytes": 2_000_000},
        "routing": {"policy": policy},
        "preset": "pfc_only",
        "tenants": [
            {
                "name": "flows",
                "hosts": [0, 1, 2, 3, 4, 5],
                "jobs": [
                    {
                        "kind": "flows",
                        "flows": [
                            {"src": 0, "dst": 4, "bytes": 2**30, "data_path": [0, 6, 9, 8, 4]},
                            {"src": 1, "dst": 2, "bytes": 2**30, "data_path": [1, 6, 9, 7, 2]},
                            {"src": 3, "dst": 5, "bytes": 2**30, "data_path": [3, 7, 10, 8, 5]},
                        ],
                    }
                ],
            }
        ],
    }
    bad = [{"kind": "slow", "between": [9, 8], "rate_gbps": 10, "direction": "forward"}]

    def rates(events):
        fabric = Fabric(validate_scenario(raw | {"link_events": events}))
        fabric.advance(us=2_000)
        interval = fabric.advance(us=4_000)
        order = np.argsort([pair.src for pair in fabric.plan.qps])
        return interval.acked_bytes[order] * 8 / 4e6, int(interval.pause_frames.sum())

    (before, _), (after, pauses) = rates([]), rates(bad)
    assert before[0] == pytest.approx(before[1], rel=0.05)
    assert before[:2].sum() > 90
    assert after[0] < 10
    assert after[1] < 15  # it has 90 Gb/s of its cable to itself, and does not get them
    assert after[2] == pytest.approx(before[2], rel=0.01) and after[2] > 90
    assert pauses > 100
