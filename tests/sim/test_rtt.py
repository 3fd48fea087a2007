"""The plain RTT controller by hand, and what it is for."""

from __future__ import annotations

import pytest
from sender_runs import delivered, incast, mean_queue
from test_hand_computed import ACK, LINE, PAYLOAD, D, S, build, flow, flows, tenant

RTT = 2 * (S + D) + 2 * (ACK + D)


def one_flow(packets, **params):
    sender = tenant("a", [flows(flow(0, 1, packets * PAYLOAD))]) | {"cc": "rtt", "rtt": params}
    return build(tenants=[sender], nic={"ack_every": 1})


@pytest.mark.nojit
def test_a_cut_takes_its_share_of_the_excess_once_a_round_trip():
    # Four packets at line rate, all sent before the first ACK: only that one counts.
    fabric = one_flow(4, target_us=2, gain=0.5)
    rate = int(LINE * (1 - 0.5 * ((RTT - 2_000_000) / RTT)))
    assert fabric.advance(us=20).rate_bps.tolist() == [rate]


@pytest.mark.nojit
def test_an_increase_adds_a_constant_up_to_line_rate():
    fabric = one_flow(1, target_us=20, rate_ai_mbps=1_000, max_rate_mbps=50_000)
    assert fabric.advance(us=20).rate_bps.tolist() == [50_000_000_000]
    low = one_flow(1, target_us=RTT / 1e6, rate_ai_mbps=1_000)
    low._state.sender["rate_bps"] = 3_000_000_000
    assert low.advance(us=20).rate_bps.tolist() == [4_000_000_000]


@pytest.mark.nojit
def test_the_rate_has_a_floor():
    fabric = one_flow(1, target_us=1, gain=1, min_rate_mbps=40_000)
    assert fabric.advance(us=20).rate_bps.tolist() == [40_000_000_000]


def test_a_shared_port_is_used_and_queues_stay_short():
    run = {"size": 10**9, "skip_us": 8_000, "us": 4_000}
    interval = incast("rtt", {"rate_ai_mbps": 500}, **run)
    assert delivered(interval) > 0.85 * 12_500 * 4_000
    assert mean_queue(interval) < 12_500 * 40
