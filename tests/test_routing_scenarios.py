"""The shipped scenarios on routing and failures show what they say, and change as they say."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from roce_gym.fabric import Fabric
from roce_gym.scenario_file import load_scenario

IN_ORDER_OF_SERVERS = f"tenants.training.hosts={list(range(16))}"


@cache
def run(name, *changes, seed=0):
    """Times of all rounds in us, and the interval."""
    scenario = load_scenario(name, overrides=changes)
    fabric = Fabric(scenario, seed)
    interval = fabric.advance(us=scenario.control.horizon_us)
    log = interval.completions
    return (log["end_ps"] - log["start_ps"]) / 1e6, interval, fabric.network


def mean_us(name, *changes, seed=0):
    return float(np.mean(run(name, *changes, seed=seed)[0]))


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_spray_vs_ecmp(seed):
    ecmp = mean_us("spray_vs_ecmp", seed=seed)
    ideal = 16e6 * 8 * (2 * 15 / 16) / 100e3
    for policy in ("adaptive", "spray_random", "spray_round_robin"):
        sprayed = mean_us("spray_vs_ecmp", f"routing.policy={policy}", seed=seed)
        assert ideal < sprayed < 1.2 * ideal < 1.5 * sprayed < ecmp
    assert mean_us("spray_vs_ecmp", "tenants.training.jobs.0.channels=8", seed=seed) < ecmp


def test_spray_vs_ecmp_in_order():
    in_order = ("routing.policy=spray_random", "nic.out_of_order=false")
    times, interval, _ = run("spray_vs_ecmp", *in_order)
    assert len(times) == 0 and interval.nacks.sum() > 1_000
    times, interval, _ = run("spray_vs_ecmp", in_order[0])
    assert len(times) >= 4 and interval.nacks.sum() == 0


def spine_bytes(interval, network):
    up = network.from_switch[network.link_dst[network.from_switch] >= network.num_hosts]
    return int(interval.tx_bytes[up].sum())


def test_rail_ring():
    """On its rails it never meets a spine, so that routing makes no difference at all."""
    times, interval, network = run("rail_ring")
    assert spine_bytes(interval, network) == 0
    for policy in ("adaptive", "spray_random", "flowlet"):
        again, other, _ = run("rail_ring", f"routing.policy={policy}")
        assert np.array_equal(times, again)
        assert np.array_equal(interval.tx_packets, other.tx_packets)
    crossing, interval, network = run("rail_ring", IN_ORDER_OF_SERVERS)
    assert spine_bytes(interval, network) > 0
    assert crossing.mean() > 1.3 * times.mean()
    healed = mean_us("rail_ring", IN_ORDER_OF_SERVERS, "routing.policy=adaptive")
    assert healed == pytest.approx(times.mean(), rel=0.01)


LOSSY = ("link_events.0.loss=0.001", "control.horizon_us=20_000")
SELECTIVE = ("nic.out_of_order=true", "nic.recovery=selective_repeat", "nic.reorder_wait_us=0")


def test_gray_failure_is_gray():
    """Only the counter of the fibre tells; with go-back-0, the job does, too."""
    times, interval, network = run("gray_failure")
    bad = np.flatnonzero(interval.lost_packets)
    assert [(network.link_src[i], network.link_dst[i]) for i in bad] == [(11, 9)]
    healthy, _, _ = run("gray_failure", "link_events.0.loss=0")
    assert healthy.max() < times.max() < 1.02 * healthy.max()
    assert run("gray_failure", "nic.recovery=go_back_0")[0].max() > 1.5 * healthy.max()


def test_gray_failure_gets_worse_with_loss_and_better_with_recovery():
    mean = {
        recovery: mean_us("gray_failure", *LOSSY, f"nic.recovery={recovery}")
        for recovery in ("go_back_n", "go_back_0")
    }
    selective = mean_us("gray_failure", *LOSSY, *SELECTIVE)
    assert mean_us("gray_failure") < selective < mean["go_back_n"] < mean["go_back_0"] / 1.5


def test_gray_failure_hits_all_when_sprayed():
    """By ECMP some queue pairs to the second leaf meet the fibre, by spraying all 16 do."""
    _, by_hash, _ = run("gray_failure", *LOSSY)
    spraying = ("routing.policy=spray_random", "nic.out_of_order=true")
    _, sprayed, _ = run("gray_failure", *LOSSY, *spraying)
    assert 0 < np.count_nonzero(by_hash.nacks) < 16
    assert np.count_nonzero(sprayed.nacks) == 16
