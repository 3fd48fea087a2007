"""Latency histograms: exact against the oracle and by hand, and without effect on anything else."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from queueing_cases import Queueing
from sender_cases import DRAWN
from side_by_side import SideBySide, latency_bucket
from test_against_naive import LONG_WHEEL, checkpoints
from tiny_cases import make_case

from roce_gym import assembly
from roce_gym.config import validate_scenario
from roce_gym.fabric import Fabric
from roce_gym.latency import TOPS_PS, Histogram
from roce_gym.scenario_file import load_scenario
from roce_gym.sim import kernels

ALGORITHMS = ((), ("dcqcn", "timely", "hpcc"), tuple(DRAWN), ("dcqcn", *DRAWN))


@pytest.fixture(autouse=True)
def long_wheel(monkeypatch):
    monkeypatch.setattr(assembly.events, "MIN_BUCKETS", LONG_WHEEL)


def measured(scenario):
    simulator = scenario.simulator.model_copy(update={"latency_histograms": True})
    return scenario.model_copy(update={"simulator": simulator})


def check(case, steps):
    both = SideBySide(replace(case, scenario=measured(case.scenario)))
    for time in checkpoints(both.case, steps):
        assert both.advance(time) == [], time
    return both


@pytest.mark.parametrize("number", range(4000, 4040))
def test_agrees(number):
    extra = Queueing(number)
    both = check(make_case(number, ALGORITHMS[number % 4], extra, pfc=True, varied=True), 5)
    assert both.latency.counts.sum() == sum(map(len, sum(both.naive.latencies, ())))


@pytest.mark.parametrize("number", range(4100, 4130))
def test_agrees_where_the_plain_kernel_would_run(number):
    check(make_case(number), 5)


@pytest.mark.nojit
@pytest.mark.parametrize("number", range(4200, 4206))
def test_agrees_without_jit(number):
    check(make_case(number, varied=number % 2 == 0), 2)


# --------------------------------------------------------------------------- by hand

TWO_HOSTS = {
    "name": "two hosts",
    "topology": {"kind": "star", "hosts": 2, "host_rate_gbps": 100, "link_delay_ns": 1000},
    "nic": {"mtu_bytes": 1000, "header_bytes": 48, "ack_bytes": 60, "interframe_gap_bytes": 0},
    "preset": "pfc_only",
    "tenants": [
        {
            "name": "a",
            "hosts": [0, 1],
            "jobs": [{"kind": "flows", "flows": [{"src": 0, "dst": 1, "bytes": 1000}]}],
        }
    ],
    "simulator": {"latency_histograms": True},
}


def test_one_packet_by_hand():
    """1,048 bytes are 83,840 ps on a link of 100 Gb/s, an ACK of 60 bytes 4,800 ps; 1 us a link."""
    interval = Fabric(validate_scenario(TWO_HOSTS)).advance(us=10)
    packet, message = (interval.latency.of(what) for what in ("packet", "message"))
    one_way = 2 * (83_840 + 1_000_000)
    assert (packet.count, packet.sum_ps, packet.max_ps) == (1, one_way, one_way)
    assert packet.quantile_ps(0.5) == packet.quantile_ps(0.9999) == packet.mean_ps == one_way
    assert (message.count, message.sum_ps) == (1, one_way + 2 * (4_800 + 1_000_000))


def test_a_packet_behind_another_by_hand():
    """Times begin when a packet is sent, so that only the queue in the switch counts."""
    raw = TWO_HOSTS | {"topology": TWO_HOSTS["topology"] | {"hosts": 3}}
    flows = [{"src": 0, "dst": 2, "bytes": 1000}, {"src": 1, "dst": 2, "bytes": 2000}]
    jobs = [{"kind": "flows", "flows": flows}]
    raw |= {"tenants": [{"name": "a", "hosts": [0, 1, 2], "jobs": jobs}]}
    packet = Fabric(validate_scenario(raw)).advance(us=10).latency.of("packet")
    frame, way = 83_840, 2 * (83_840 + 1_000_000)
    assert (packet.sum_ps, packet.max_ps) == (way + 2 * (way + frame), way + frame)


# --------------------------------------------------------------------------- histograms


def test_buckets():
    """Each time is in a bucket whose top is not below it and less than 1/64 above."""
    times = np.unique(np.geomspace(1, 2**46, 20_000).astype(np.int64))
    buckets = np.array([latency_bucket(int(time)) for time in times])
    tops = TOPS_PS[buckets]
    assert (tops >= times).all()
    assert (np.diff(TOPS_PS) > 0).all()
    assert (tops[times >= 2**17] - times[times >= 2**17] < times[times >= 2**17] / 64).all()
    assert (tops - times < np.maximum(times / 64, 1024)).all()


@pytest.mark.parametrize("share", [0.0, 0.5, 0.99, 0.999, 0.9999, 1.0])
@pytest.mark.parametrize("size", [1, 2, 99, 100, 10_000])
def test_quantiles_are_nearest_ranks(share, size):
    times = np.sort(np.random.default_rng(size).pareto(1.2, size) * 1e6).astype(np.int64)
    counts = np.bincount([latency_bucket(int(time)) for time in times], minlength=len(TOPS_PS))
    found = Histogram(counts, int(times.sum()), int(times[-1])).quantile_ps(share)
    exact = times[max(0, math.ceil(share * size - 1e-9) - 1)]
    assert exact <= found <= max(exact * (1 + 1 / 64), exact + 1024)


def test_no_times():
    empty = Histogram(np.zeros(len(TOPS_PS), np.int64), 0, 0)
    assert empty.count == 0 and math.isnan(empty.mean_ps) and math.isnan(empty.quantile_ps(0.5))


# --------------------------------------------------------------------------- no effect


def test_measuring_changes_nothing():
    """Also not which bits of the counters are set; off, the plain kernel runs without arrays."""
    scenario = load_scenario("noisy_neighbor", seed=3)
    off, on = Fabric(scenario, 3), Fabric(measured(scenario), 3)
    assert kernels.is_plain(off._state) and not kernels.is_plain(on._state)
    assert len(off._state.latency) == len(off._state.latency_row) == len(off._state.sent) == 0
    for _ in range(3):
        one, other = off.advance(us=300), on.advance(us=300)
        assert one.latency is None
        assert np.array_equal(one.tx_packets, other.tx_packets)
        assert np.array_equal(one.rate_bps, other.rate_bps)
        assert one.events == other.events
    assert on._state.latency.sum() > 1000


def test_intervals_add_up():
    scenario = measured(load_scenario("noisy_neighbor", seed=3))
    whole = Fabric(scenario, 3).advance(us=900).latency
    fabric = Fabric(scenario, 3)
    parts = [fabric.advance(us=300).latency for _ in range(3)]
    total = parts[0] + parts[1] + parts[2]
    for name in ("counts", "sum_ps", "max_ps"):
        assert np.array_equal(getattr(total, name), getattr(whole, name))
    assert (parts[0].counts != parts[1].counts).any()


def test_times_of_sending_grow_with_the_pool(monkeypatch):
    """A queue of some 1,000 packets, in a pool that begins with less."""
    raw = TWO_HOSTS | {"topology": TWO_HOSTS["topology"] | {"hosts": 4}}
    jobs = [{"kind": "incast", "bytes": 500_000, "degree": 3, "rounds": 1, "period_us": 1}]
    raw |= {"tenants": [{"name": "a", "hosts": [0, 1, 2, 3], "jobs": jobs}]}
    whole = Fabric(validate_scenario(raw)).advance(us=500).latency
    monkeypatch.setattr(assembly.pools, "MIN_PACKETS", 64)
    fabric = Fabric(validate_scenario(raw))
    begun_with = len(fabric._state.packet)
    again = fabric.advance(us=500).latency
    assert begun_with == 256 < len(fabric._state.packet) == len(fabric._state.sent)
    assert np.array_equal(whole.counts, again.counts)
    assert np.array_equal(whole.sum_ps, again.sum_ps)
    assert whole.of("packet").count == 1500


def test_snapshot_goes_back():
    fabric = Fabric(measured(load_scenario("noisy_neighbor", seed=3)), 3)
    fabric.advance(us=200)
    then = fabric.snapshot()
    first = fabric.advance(us=200).latency
    fabric.restore(then)
    again = fabric.advance(us=200).latency
    assert np.array_equal(first.counts, again.counts)
    assert np.array_equal(first.max_ps, again.max_ps)
