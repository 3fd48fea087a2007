"""The shipped scenarios on routing and failures show what they say, and change as they say."""

from __future__ import annotations

import numpy as np
import pytest
import scenario_runs

from roce_gym.scenario_file import load_scenario

IN_ORDER_OF_SERVERS = f"tenants.training.hosts={list(range(16))}"


def run(name, *changes, seed=0):
    """Times of all rounds in us, the interval, and the network."""
    found = scenario_runs.run(name, *changes, seed=seed)
    return found.times_us, found.intervals[0], found.network


def mean_us(name, *changes, seed=0):
    return float(np.mean(run(name, *changes, seed=seed)[0]))


@pytest.mark.shows("spray_vs_ecmp")
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_spray_vs_ecmp(seed):
    ecmp = mean_us("spray_vs_ecmp", seed=seed)
    ideal = 16e6 * 8 * (2 * 15 / 16) / 100e3
    for policy in ("adaptive", "spray_random", "spray_round_robin"):
        sprayed = mean_us("spray_vs_ecmp", f"routing.policy={policy}", seed=seed)
        assert ideal < sprayed < 1.2 * ideal < 1.5 * sprayed < ecmp
    queue_pairs = mean_us("spray_vs_ecmp", "tenants.training.jobs.0.channels=8", seed=seed)
    assert 1.4 * ideal < queue_pairs < 0.85 * ecmp


@pytest.mark.shows("spray_vs_ecmp")
def test_spray_vs_ecmp_in_order():
    in_order = ("routing.policy=spray_random", "nic.out_of_order=false")
    times, interval, _ = run("spray_vs_ecmp", *in_order)
    assert len(times) == 0 and interval.nacks.sum() > 1_000
    times, interval, _ = run("spray_vs_ecmp", in_order[0])
    assert len(times) >= 4 and interval.nacks.sum() == 0


@pytest.mark.shows("spray_vs_ecmp")
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_spray_vs_ecmp__some_cables_carry_two_or_three_flows_and_others_none(seed):
    _, interval, network = run("spray_vs_ecmp", seed=seed)
    leaves = np.isin(network.link_src, range(16, 20))
    upwards = np.flatnonzero(leaves & (network.link_dst >= 20))
    assert len(upwards) == interval.delivered_bytes.size == 16
    flows = interval.tx_bytes[upwards].sum(axis=1) / interval.delivered_bytes.mean()
    assert 1.9 < flows.max() < 3.1 and flows.min() < 0.05  # ACKs of others


def spine_bytes(interval, network):
    up = network.from_switch[network.link_dst[network.from_switch] >= network.num_hosts]
    return int(interval.tx_bytes[up].sum())


@pytest.mark.shows("rail_ring")
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


@pytest.mark.shows("gray_failure")
def test_gray_failure_is_gray():
    """Only the counter of the fibre tells; with go-back-0, the job does, too."""
    times, interval, network = run("gray_failure")
    bad = np.flatnonzero(interval.lost_packets)
    assert [(network.link_src[i], network.link_dst[i]) for i in bad] == [(11, 9)]
    healthy, _, _ = run("gray_failure", "link_events.0.loss=0")
    assert healthy.max() < times.max() < 1.02 * healthy.max()
    assert run("gray_failure", "nic.recovery=go_back_0")[0].max() > 1.5 * healthy.max()


@pytest.mark.shows("gray_failure")
def test_gray_failure_gets_worse_with_loss_and_better_with_recovery():
    mean = {
        recovery: mean_us("gray_failure", *LOSSY, f"nic.recovery={recovery}")
        for recovery in ("go_back_n", "go_back_0")
    }
    selective = mean_us("gray_failure", *LOSSY, *SELECTIVE)
    assert mean_us("gray_failure") < selective < mean["go_back_n"] < mean["go_back_0"] / 1.5


@pytest.mark.shows("gray_failure")
def test_gray_failure_hits_all_when_sprayed():
    """By ECMP some queue pairs to the second leaf meet the fibre, by spraying all 16 do."""
    _, by_hash, _ = run("gray_failure", *LOSSY)
    spraying = ("routing.policy=spray_random", "nic.out_of_order=true")
    _, sprayed, _ = run("gray_failure", *LOSSY, *spraying)
    assert 0 < np.count_nonzero(by_hash.nacks) < 16
    assert np.count_nonzero(sprayed.nacks) == 16


SPREAD = ("routing.policy=adaptive", "nic.out_of_order=true")


def before_and_after(seed, *changes):
    """The cable's event, and a run with an interval that ends when it begins."""
    (event,) = load_scenario("failing_fibre", seed).link_events
    return event, scenario_runs.run(
        "failing_fibre", *changes, seed=seed, stops_us=(event.start_us,)
    )


def after(found, start_us):
    """Mean times of rounds that ended after the cable became slow, by tenant."""
    ended = found.log["end_ps"] > start_us * 1e6
    return {name: found.times_us[ended & found.rounds(name)].mean() for name in found.cct_us}


@pytest.mark.shows("failing_fibre")
@pytest.mark.parametrize("seed", [0, 2, 3])
def test_failing_fibre__everybody_waits_for_the_cable(seed):
    event, failing = before_and_after(seed)
    _, healthy = before_and_after(seed, "link_events=[]")
    network, last = failing.network, failing.intervals[1]
    cable = [network.link_src, network.link_dst]
    links = np.flatnonzero(np.isin(cable, event.between).all(axis=0))
    carried_gbps = last.tx_bytes[links, 0] * 8e3 / (last.end_ps - last.start_ps)
    assert 0.95 * event.rate_gbps < carried_gbps.max() < event.rate_gbps
    busy = links[carried_gbps.argmax()]
    queue = [found.intervals[1].queue_mean_bytes[busy, 0] for found in (failing, healthy)]
    assert queue[0] > 400_000 and queue[0] > 5 * queue[1]
    assert last.ecn_marked_packets[busy, 0] > 100
    paused = [
        found.intervals[1].pause_frames[network.host_link].sum() for found in (failing, healthy)
    ]
    assert paused[0] > 10 * paused[1]
    times, usual = after(failing, event.start_us), after(healthy, event.start_us)
    assert all(times[name] > 1.1 * usual[name] for name in ("experts", "dense"))


@pytest.mark.shows("failing_fibre")
def test_failing_fibre__nobody_waits_where_the_hash_needs_less_of_it():
    event, failing = before_and_after(1)
    _, healthy = before_and_after(1, "link_events=[]")
    times, usual = after(failing, event.start_us), after(healthy, event.start_us)
    assert all(times[name] == pytest.approx(usual[name], rel=0.03) for name in times)


@pytest.mark.shows("failing_fibre")
@pytest.mark.parametrize("seed", [0, 1])
def test_failing_fibre__without_it_there_is_bandwidth_for_everybody(seed):
    assert scenario_runs.run("failing_fibre", "link_events=[]", *SPREAD, seed=seed).pauses == 0


@pytest.mark.shows("failing_fibre")
def test_failing_fibre__which_when_and_how_slow_differs():
    events = [load_scenario("failing_fibre", seed).link_events[0] for seed in range(16)]
    assert {event.between for event in events} == {(16, 20), (17, 21), (18, 22), (19, 23)}
    assert {event.rate_gbps for event in events} == {25, 50}
    assert len({event.start_us for event in events}) == 16
