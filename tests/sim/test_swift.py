"""Swift by hand, and what each of its parameters does."""

from __future__ import annotations

import pytest
from sender_runs import delivered, incast, mean_queue, peak_queue, sent_packets, total_rate
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


def deep(**more):
    return {"initial_cwnd": 100, "base_target_us": 5, **more}


BUSY = [  # the receiver sends, too: an ACK waits for the packet under way and for its turn
    {"name": "roce", "priority": 3},
    {"name": "other", "priority": 5},
]
TALKER = {
    "name": "b",
    "hosts": [0, 5],
    "traffic_class": "other",
    "dcqcn": {"enabled": False},
    "jobs": [{"kind": "flows", "flows": [{"src": 0, "dst": 5, "bytes": 4_000_000}]}],
}
OFF = {"ecn": {"enabled": False, "kmin_bytes": 0, "kmax_bytes": 0, "pmax": 0.0}}
BUSY_RUN = {"classes": [c | OFF for c in BUSY], "background": [TALKER], "us": 300}

KNOBS = [
    # name, low, high, metric, whether the metric grows with it, how the fabric is set up
    ("base_target_us", 8, 40, mean_queue, True, {}),
    ("hop_target_us", 0, 20, mean_queue, True, {}),
    ("endpoint_target_us", 0.05, 20, delivered, True, BUSY_RUN),
    ("fs_range_us", 0, 100, mean_queue, True, {}),
    ("fs_min_cwnd", 0.01, 1, mean_queue, True, {}),
    ("fs_max_cwnd", 10, 1000, mean_queue, True, {}),
    ("ai", 0.1, 10, mean_queue, True, {}),
    ("beta", 0.1, 1, mean_queue, False, {}),
    ("max_mdf", 0.05, 0.9, mean_queue, False, {"params": deep()}),
    (
        "retransmit_reset",
        1,
        5,
        sent_packets,
        True,
        {
            "dead_link": 1,
            "senders": 1,
            "us": 190,
            "nic": {"retransmit_timeout_us": 60},
            "params": {"initial_cwnd": 100},
        },
    ),
    ("initial_cwnd", 1, 100, peak_queue, True, {}),
    ("min_cwnd", 0.01, 4, mean_queue, True, {"params": deep(initial_cwnd=5), "senders": 40}),
    ("max_cwnd", 10, 1000, mean_queue, True, {}),
    ("max_rate_mbps", 10_000, 90_000, total_rate, True, {}),
]


@pytest.mark.parametrize(("name", "low", "high", "metric", "grows", "run"), KNOBS)
def test_each_parameter_bites(name, low, high, metric, grows, run):
    common = dict(run)
    given = common.pop("params", {})
    values = [metric(incast("swift", {**given, name: x}, **common)) for x in (low, high)]
    assert (values[0] < values[1]) is grows, values
    assert abs(values[0] - values[1]) > 0.01 * max(values), values


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
