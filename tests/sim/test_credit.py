"""Credits by hand, and what they are for."""

from __future__ import annotations

import pytest
from sender_runs import NO_ECN, delivered, incast, mean_queue
from test_hand_computed import ACK, PAYLOAD, D, S, build, ends, flow, flows, tenant

RTT = 2 * (S + D) + 2 * (ACK + D)


def fabric_with(*jobs, hosts=(0, 1), **params):
    sender = tenant("a", jobs, hosts) | {"cc": "credit", "credit": params}
    return build(tenants=[sender], hosts=4)


@pytest.mark.nojit
def test_beyond_the_initial_window_packets_wait_for_credits():
    # One packet goes without credit, the second when its credit has come: sent when the first one
    # arrived, so a round trip later. Credits are S apart: so are the others.
    fabric = fabric_with(flows(flow(0, 1, 4 * PAYLOAD)), initial_window_bytes=PAYLOAD, pace=1)
    assert ends(fabric.advance(us=50)) == [2 * RTT + 2 * S]


@pytest.mark.nojit
def test_pace_sets_the_distance_of_credits():
    fabric = fabric_with(flows(flow(0, 1, 4 * PAYLOAD)), initial_window_bytes=PAYLOAD, pace=0.5)
    assert ends(fabric.advance(us=50)) == [2 * RTT + 2 * 2 * S]


@pytest.mark.nojit
def test_a_host_grants_to_its_senders_in_turn():
    # Both send a packet; host 0's is there first, gets a credit and is again in the queue when that
    # of host 1 comes, S later. So credits go to 0, 0, 1, 0, 1, 1; what they allow comes S apart.
    both = flows(flow(0, 2, 4 * PAYLOAD), flow(1, 2, 4 * PAYLOAD))
    fabric = fabric_with(both, hosts=(0, 1, 2), initial_window_bytes=PAYLOAD, pace=1)
    got = sorted(ends(fabric.advance(us=50)))
    assert got == [2 * RTT + 3 * S, 2 * RTT + 5 * S]


@pytest.mark.nojit
def test_a_host_window_of_a_packet_allows_one_a_round_trip():
    params = {"initial_window_bytes": PAYLOAD, "host_window_bytes": PAYLOAD}
    fabric = fabric_with(flows(flow(0, 1, 4 * PAYLOAD)), **params)
    assert ends(fabric.advance(us=50)) == [4 * RTT]


def test_an_incast_is_fair_full_and_without_a_queue():
    run = {"senders": 32, "size": 10**7, "skip_us": 1_000, "us": 2_000}
    interval = incast("credit", {}, **run)
    got = interval.delivered_bytes
    assert delivered(interval) > 0.97 * 12_500 * 2_000 * PAYLOAD / 4_178
    assert mean_queue(interval) < 150_000 + 32 * 4_158
    assert got.max() < 1.2 * got.mean()


@pytest.mark.parametrize("loss", [0.01, 0.05])
def test_lost_credits_and_data_do_not_stop_it(loss):
    flow_list = flows(flow(0, 1, 400_000), flow(2, 1, 400_000))
    sender = tenant("a", [flow_list], (0, 1, 2)) | {"cc": "credit", "credit": {}}
    fabric = build(
        tenants=[sender],
        hosts=4,
        classes=[{"ecn": NO_ECN, "lossless": False}],
        loss={link: loss for link in range(6)},
        nic={"retransmit_timeout_us": 100, "nack_interval_us": 20},
    )
    fabric.advance(us=20_000)
    assert fabric.flows_done == 2
