"""Reno and DCTCP by hand, and what they are for."""

from __future__ import annotations

import pytest
from sender_runs import (
    NO_ECN,
    delivered,
    incast,
    mean_queue,
)
from test_hand_computed import ACK, MARK_ALL, PAYLOAD, D, S, build, ends, flow, flows, tenant

from roce_gym.sim.cc.records import qp_records
from roce_gym.sim.cc.tcp import TCP

RTT = 2 * (S + D) + 2 * (ACK + D)


def one_flow(cc, packets, loss=None, ecn=NO_ECN, nic=None, topology=None, **params):
    sender = tenant("a", [flows(flow(0, 1, packets * PAYLOAD))]) | {"cc": cc, cc: params}
    classes = [{"ecn": ecn, "lossless": False}]
    return build(tenants=[sender], loss=loss, classes=classes, nic=nic, topology=topology)


def window(fabric):
    """Bytes: the window that holds `w` packets whole is `w - 1` packets and a byte."""
    return int(fabric._state.window[0]) + PAYLOAD - 1


@pytest.mark.nojit
def test_slow_start_doubles_the_window_each_round_trip():
    # 1 packet, then 2, then 4: the seventh is acknowledged three packets after the fourth.
    fabric = one_flow("reno", 7, initial_window_bytes=PAYLOAD)
    assert ends(fabric.advance(us=50)) == [3 * RTT + 3 * S]
    # Of the last four ACKs two find at least half of the window in use.
    assert window(fabric) == 6 * PAYLOAD


@pytest.mark.nojit
def test_above_the_threshold_a_round_trip_adds_one_packet():
    # 2 packets; each of their ACKs adds 4,096 x 4,096 / window.
    params = {"initial_window_bytes": 2 * PAYLOAD, "initial_ssthresh_bytes": PAYLOAD}
    fabric = one_flow("reno", 2, **params)
    fabric.advance(us=50)
    first = 2 * PAYLOAD + PAYLOAD * PAYLOAD / (2 * PAYLOAD)
    # When the second comes, one packet was outstanding: less than half of the window.
    assert window(fabric) == int(first)


@pytest.mark.nojit
def test_a_timeout_starts_slowly_from_one_packet():
    # Everything is lost on host 0's link. The threshold is that of the first timeout.
    params = {"initial_window_bytes": 8 * PAYLOAD}
    nic = {"retransmit_timeout_us": 50}
    fabric = one_flow("reno", 20, loss={0: 1.0}, nic=nic, **params)
    assert fabric.advance(us=49).tx_packets[0].sum() == 8
    for _ in range(2):
        assert fabric.advance(us=50).tx_packets[0].sum() == 1
        assert window(fabric) == PAYLOAD
    assert qp_records(fabric._state, TCP)["ssthresh"].tolist() == [4 * PAYLOAD]


@pytest.mark.nojit
@pytest.mark.parametrize(("alpha", "g"), [(1.0, 1 / 16), (0.5, 1 / 16), (1.0, 0.25)])
def test_a_mark_cuts_by_half_of_alpha(alpha, g):
    # Three packets go from 100 to 50 Gb/s; what leaves a packet behind in the queue is marked. The
    # second leaves when the third comes, so only it is. The first ACK ends the first window, in
    # which nothing was marked, and adds a packet. The second cuts, the third ends the window, in
    # which one packet of two was marked; it finds less than half of the window in use: no growth.
    fabric = one_flow(
        "dctcp",
        3,
        ecn=MARK_ALL,
        topology={"kind": "dumbbell", "hosts_per_side": 1, "trunk_rate_gbps": 50},
        initial_window_bytes=3 * PAYLOAD,
        initial_alpha=alpha,
        g=g,
    )
    interval = fabric.advance(us=50)
    assert interval.cnps.tolist() == [1]
    assert window(fabric) == int(4 * PAYLOAD * (1 - alpha * (1 - g) / 2))
    record = qp_records(fabric._state, TCP)[0]
    assert record["ssthresh"] == int(record["cwnd"])
    assert record["alpha"] == pytest.approx(alpha * (1 - g) ** 2 + g / 2)


LOSSY = {
    "classes": [
        {
            "lossless": False,
            "ecn": NO_ECN,
            "buffer": {"static_threshold_bytes": 50_000, "reserved_bytes": 0},
        }
    ],
    "nic": {"retransmit_timeout_us": 200},
}
MARKED = {"classes": [{"ecn": {"kmin_bytes": 100_000, "kmax_bytes": 100_000, "pmax": 1.0}}]}


def drops(interval):
    return float(interval.dropped_packets.sum())


def test_dctcp_keeps_the_queue_at_the_mark_and_loses_no_throughput():
    # As the paper has it, the queue is about K, and a little more with each sender.
    interval = incast("dctcp", size=10**8, skip_us=500, us=2_000, **MARKED)
    assert delivered(interval) > 0.97 * 12_500 * 2_000 * PAYLOAD / 4_178
    assert 70_000 < mean_queue(interval) < 130_000
    assert interval.cnps.sum() > 0
    assert interval.pause_frames.sum() == 0


def test_reno_fills_the_buffer_until_it_drops():
    interval = incast("reno", size=10**8, skip_us=500, us=2_000, **LOSSY)
    assert drops(interval) > 0
    assert interval.pause_frames.sum() == 0
    assert delivered(interval) > 0.5 * 12_500 * 2_000
