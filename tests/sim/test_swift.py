"""Swift by hand, and what it is for."""

from __future__ import annotations

import pytest
from sender_runs import incast, mean_queue
from test_hand_computed import ACK, FRAME, LINE, PAYLOAD, D, S, build, ends, flow, flows, tenant

RTT = 2 * (S + D) + 2 * (ACK + D)
PLAIN = {"fs_range_us": 0, "hop_target_us": 0, "initial_cwnd": 1}


def one_flow(packets, **params):
    swift = {**PLAIN, **params}
    sender = tenant("a", [flows(flow(0, 1, packets * PAYLOAD))]) | {"cc": "swift", "swift": swift}
    return build(tenants=[sender])


@pytest.mark.nojit
def test_below_the_target_a_round_trip_adds_one_packet():
    # One packet, then two, the third of them when the first of the second round is acknowledged:
    # 1 + 1 + 1/2 packets, of which two fit. The fourth goes with the third acknowledged.
    fabric = one_flow(4, base_target_us=20)
    assert ends(fabric.advance(us=50)) == [3 * RTT]
    # 1 → 2 → 2.5 → 2.9 → 2.9 + 1 / 2.9
    cwnd = 2.5 + 1 / 2.5
    assert fabric._state.window[0] == int((cwnd + 1 / cwnd) * PAYLOAD) - PAYLOAD + 1


@pytest.mark.nojit
def test_above_the_target_the_window_shrinks_below_a_packet_and_paces():
    # The excess is (RTT - 2 us) / RTT; 0.8 of it is cut from one packet at each ACK, a round trip
    # apart. What is sent after the first cut waits for RTT / cwnd, what comes then for more.
    fabric = one_flow(3, base_target_us=2, max_mdf=0.9)
    kept = 1 - 0.8 * ((RTT - 2_000_000) / RTT)
    rate = int((FRAME + 20) * kept * 8e12 / RTT)
    assert rate < LINE
    second = RTT
    third = second + (FRAME + 20) * 8 * 10**12 // rate
    assert third > second + RTT
    assert ends(fabric.advance(us=50)) == [third + RTT]
    assert fabric.advance(us=1).rate_bps[0] == int((FRAME + 20) * kept**3 * 8e12 / RTT)


@pytest.mark.nojit
def test_a_switch_more_allows_its_share():
    # At a target of RTT - 1 us the window is cut, with 1 us for the switch it is just not below.
    short = one_flow(1, base_target_us=RTT / 1e6 - 1, hop_target_us=0)
    long = one_flow(1, base_target_us=RTT / 1e6 - 1, hop_target_us=1.1)
    for fabric in (short, long):
        fabric.advance(us=20)
    assert short._state.sender["rate_bps"][0] < LINE == long._state.sender["rate_bps"][0]


def test_the_queue_stays_at_the_target():
    # 20 us and 1 us for the switch, less the round trip of 4.7 us, at 12.5 GB/s: some 200 KB.
    interval = incast("swift", {"fs_range_us": 0}, skip_us=300)
    assert 0.8 * 204_000 < mean_queue(interval) < 1.1 * 204_000


def test_flow_scaling_lets_many_senders_share_fairly():
    # What the paper scales targets for. 100 senders have less than a packet each.
    def run(fs_range_us):
        params = {"base_target_us": 8, "fs_range_us": fs_range_us}
        return incast("swift", params, senders=100, skip_us=1000, us=2000).delivered_bytes

    def fairness(x):  # Jain's index
        return x.sum() ** 2 / (len(x) * (x**2).sum())

    without, scaled = run(0), run(40)
    assert fairness(scaled) > max(0.8, fairness(without) + 0.1)
    assert scaled.sum() > 0.9 * 12_500 * 2_000 * PAYLOAD / (FRAME + 20)
