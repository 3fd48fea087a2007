"""Results worked out on paper, to the picosecond.

Unless stated otherwise: hosts on one switch, 100 Gb/s, 1,000 ns a cable, no DCQCN, no marking. A
byte takes 80 ps; every frame has a gap of 20 bytes. A data packet with 4,096 bytes of payload takes
S = (4,096 + 62 + 20) x 80 = 334,240 ps, an ACK (66 + 20) x 80 = 6,880 ps, a CNP (78 + 20) x 80 =
7,840 ps, a PFC frame (64 + 20) x 80 = 6,720 ps. Host i sends on link 2i and receives on 2i + 1.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from naive import LOSS, uniform

from roce_gym.config import validate_scenario
from roce_gym.fabric import Fabric
from roce_gym.topology import build_network

US = 1_000_000
S, ACK, CNP, PFC, D = 334_240, 6_880, 7_840, 6_720, 1_000_000
BACK = 2 * (ACK + D)
PAYLOAD = 4_096
FRAME = 4_158
LINE = 100_000_000_000

NO_ECN = {"enabled": False, "kmin_bytes": 0, "kmax_bytes": 0, "pmax": 0.0}
MARK_ALL = {"kmin_bytes": 0, "kmax_bytes": 0, "pmax": 1.0}
OFF = {"enabled": False}

pytestmark = pytest.mark.nojit


def flow(src, dst, size, start_us=0.0):
    return {"src": src, "dst": dst, "bytes": size, "start_us": start_us}


def flows(*given):
    return {"kind": "flows", "flows": list(given)}


def tenant(name, jobs, hosts=(0, 1), traffic_class="roce", dcqcn=OFF):
    return {
        "name": name,
        "hosts": list(hosts),
        "traffic_class": traffic_class,
        "dcqcn": dcqcn,
        "jobs": list(jobs),
    }


def build(*jobs, hosts=3, topology=None, nic=None, classes=None, dcqcn=OFF, loss=None, **more):
    """A fabric with one tenant, or `tenants`, on a star."""
    classes = classes or [{}]
    seed, tenants = more.pop("seed", 1), more.pop("tenants", None)
    raw = {
        "name": "by hand",
        "topology": topology or {"kind": "star", "hosts": hosts},
        "nic": nic or {},
        "classes": [{"ecn": NO_ECN} | given for given in classes],
        "tenants": tenants or [tenant("a", jobs, range(hosts), dcqcn=dcqcn)],
    }
    scenario = validate_scenario(raw | more)
    network = build_network(scenario.topology)
    if loss:
        lossy = np.zeros(network.num_links)
        lossy[list(loss)] = list(loss.values())
        network = replace(network, link_loss=lossy)
    return Fabric(scenario, seed, network=network)


def ends(interval):
    """When each completion came, in order."""
    return [int(end) for end in interval.completions["end_ps"]]


# --------------------------------------------------------------------------- one flow


@pytest.mark.parametrize(("gbps", "ps"), [(25, 320), (100, 80), (400, 20)])
def test_one_packet_over_a_star(gbps, ps):
    # Data of 1,000 + 62 + 20 bytes over two links, an ACK of 66 + 20 bytes back.
    fabric = build(
        flows(flow(0, 1, 1_000)),
        topology={"kind": "star", "hosts": 3, "host_rate_gbps": gbps},
    )
    interval = fabric.advance(us=100)
    assert ends(interval) == [2 * (1_082 * ps + D) + 2 * (86 * ps + D)]
    assert interval.tx_bytes[:4, 0].tolist() == [1_062, 66, 66, 1_062]
    assert fabric.flows_done == 1


@pytest.mark.parametrize(("gbps", "ps"), [(25, 320), (100, 80), (400, 20)])
def test_a_message_over_leaf_and_spine(gbps, ps):
    # Ten packets over four links: the last leaves the host after 10 frames, then crosses three
    # more links; nothing waits. Its ACK crosses four links. Hosts 0 and 2 are on different leaves.
    fabric = build(
        flows(flow(0, 2, 10 * PAYLOAD)),
        hosts=4,
        topology={
            "kind": "leaf_spine",
            "leaves": 2,
            "hosts_per_leaf": 2,
            "spines": 1,
            "host_rate_gbps": gbps,
            "spine_rate_gbps": gbps,
        },
    )
    one_way = (10 + 3) * 4_178 * ps + 4 * D
    assert ends(fabric.advance(us=200)) == [one_way + 4 * (86 * ps + D)]


def test_a_faster_second_link_adds_only_its_own_time():
    # 100 Gb/s to a trunk of 400 Gb/s: the trunk's frame takes S / 4.
    fabric = build(
        flows(flow(0, 1, PAYLOAD)),
        topology={"kind": "dumbbell", "hosts_per_side": 1, "trunk_rate_gbps": 400},
        hosts=2,
    )
    there = 2 * S + S // 4 + 3 * D
    back = 2 * ACK + ACK // 4 + 3 * D
    assert ends(fabric.advance(us=100)) == [there + back]


def test_acks_are_coalesced():
    # 33 packets: ACKs after 16 and 32, and for the last of the message.
    interval = build(flows(flow(0, 1, 33 * PAYLOAD))).advance(us=100)
    assert interval.tx_packets[[0, 2], 0].tolist() == [33, 3]
    interval = build(flows(flow(0, 1, 33 * PAYLOAD)), nic={"ack_every": 1}).advance(us=100)
    assert interval.tx_packets[2, 0] == 33


def test_a_window_of_one_packet():
    # Each packet waits for the ACK of the one before.
    fabric = build(flows(flow(0, 1, 3 * PAYLOAD)), nic={"window_bytes": PAYLOAD, "ack_every": 1})
    assert ends(fabric.advance(us=100)) == [3 * (2 * S + 2 * D + BACK)]


def test_pacing_at_half_the_line():
    # Packets start 2 S apart, the tenth at 18 S.
    fabric = build(flows(flow(0, 1, 10 * PAYLOAD)), dcqcn={"max_rate_mbps": 50_000})
    assert ends(fabric.advance(us=100)) == [18 * S + 2 * S + 2 * D + BACK]


# --------------------------------------------------------------------------- sharing


def test_two_to_one_takes_turns():
    # 2 x 50 packets through one port, without a gap.
    interval = build(flows(flow(0, 2, 50 * PAYLOAD), flow(1, 2, 50 * PAYLOAD))).advance(us=300)
    assert ends(interval) == [S + D + k * S + D + BACK for k in (99, 100)]
    # The port starts at S + D. As the last pair arrives, at 50 S + D, it has started 49 frames and
    # starts the next one only after all arrivals of that time.
    assert interval.queue_max_bytes[5, 0] == (100 - 49) * FRAME
    assert interval.queue_mean_bytes[5, 0] < interval.queue_max_bytes[5, 0]


def test_strict_priority_goes_first():
    # Host 0 has 40 packets of each class; the strict one is done as if it were alone.
    fabric = build(
        classes=[
            {"name": "low", "priority": 1},
            {"name": "high", "priority": 0, "scheduling": "strict"},
        ],
        tenants=[
            tenant("a", [flows(flow(0, 1, 40 * PAYLOAD))], traffic_class="low"),
            tenant("b", [flows(flow(0, 1, 40 * PAYLOAD))], traffic_class="high"),
        ],
    )
    interval = fabric.advance(us=100)
    alone = 40 * S + S + 2 * D + BACK
    high, low = sorted(interval.completions["end_ps"].tolist())
    # Both are posted at 0, "low" first; hosts are served when a job's posting is over, so one
    # packet of "low" is on the wire before "high" is posted.
    assert (high, low) == (alone + S, alone + 40 * S)


def test_round_robin_shares_equally():
    # Three classes, 30 packets each, from three hosts into one: at any time each has a third.
    names = ["x", "y", "z"]
    fabric = build(
        classes=[{"name": n, "priority": i} for i, n in enumerate(names)],
        tenants=[
            tenant(n, [flows(flow(i, 3, 30 * PAYLOAD))], hosts=(i, 3), traffic_class=n)
            for i, n in enumerate(names)
        ],
        hosts=4,
    )
    # The port works from S + D on; after 45 frames each class has sent 15.
    interval = fabric.advance(ps=S + D + 45 * S - 1)
    assert interval.tx_packets[7].tolist() == [15, 15, 15]


# --------------------------------------------------------------------------- buffer, PFC, ECN


@pytest.mark.parametrize(("ports", "alpha"), [(1, 1.0), (2, 0.5), (4, 2.0)])
def test_dynamic_threshold_fixed_point(ports, alpha):
    # Choudhury and Hahne 1998: with N congested ports of a lossy class each holds
    # alpha x B / (1 + alpha x N) of the shared buffer B. Here each of N senders overloads its own
    # slow cable (25 Gb/s behind 100 Gb/s), so N input ports fill up, to within a packet.
    pool = 600_000
    fabric = build(
        flows(*(flow(i, ports + i, 3_000_000) for i in range(ports))),
        hosts=2 * ports,
        classes=[{"lossless": False, "buffer": {"alpha": alpha, "reserved_bytes": 0}}],
        switch={"buffer_bytes": pool},
        nic={"mtu_bytes": 1_024},
    )
    state = fabric._state
    state.link["ps_per_kib"][[2 * (ports + i) + 1 for i in range(ports)]] *= 4
    interval = fabric.advance(us=100)
    held = interval.ingress_bytes[[2 * i for i in range(ports)], 0]
    expected = alpha * pool / (1 + alpha * ports)
    assert np.abs(held - expected).max() <= 2 * 1_086 * max(1.0, alpha) * ports
    assert interval.dropped_packets.sum() > 0


def test_pause_after_the_threshold_and_resume():
    # Threshold 8,000: input 2 (of host 1) holds B1 when B2 arrives at 2 S + D; 8,316 > 8,000, so
    # B2 goes to the headroom and PAUSE leaves. B1 starts at the same time and empties the headroom,
    # 4,158 + 3,072 <= 8,000, so RESUME follows behind. Host 1 is paused for one PFC frame.
    fabric = build(
        flows(flow(0, 2, 2 * PAYLOAD), flow(1, 2, 2 * PAYLOAD)),
        classes=[{"buffer": {"static_threshold_bytes": 8_000, "reserved_bytes": 0}}],
    )
    paused_at = 2 * S + D + PFC + D
    early = fabric.advance(ps=paused_at + 1_000)
    late = fabric.advance(us=50)
    assert (early.pause_frames[2, 0], early.paused_ps[2, 0]) == (1, 1_000)
    assert late.paused_ps[2, 0] == PFC - 1_000
    assert (early.resume_frames + late.resume_frames)[:, 0].tolist() == [0, 0, 1, 0, 0, 0]
    assert early.pause_frames.sum() + late.pause_frames.sum() == 1


@pytest.mark.parametrize(("kmax", "pmax"), [(400_000, 0.5), (0, 1.0)])
def test_ecn_marks_along_the_line(kmax, pmax):
    # 2:1 for 100 packets each. As packet k leaves, the queue holds q(k) bytes behind it: it is
    # marked with certainty beyond kmax, with pmax x q / kmax below (kmin 0).
    fabric = build(
        flows(flow(0, 2, 100 * PAYLOAD), flow(1, 2, 100 * PAYLOAD)),
        classes=[{"ecn": {"kmin_bytes": 0, "kmax_bytes": kmax, "pmax": pmax}}],
        nic={"cnp_mode": "ack_echo"},
    )
    left, marks = [], 0
    for k in range(200):
        # Packets of both arrive at (1 + i) S + D; frame k starts at (1 + k) S + D.
        arrived = 1 if k == 0 else min(2 * (k + 1), 200)
        left.append((arrived - k - 1) * FRAME)
    for k, q in enumerate(left):
        share = 1.0 if q > kmax else pmax * q / max(kmax, 1)
        marks += q > 0 and uniform(1, 0, 5 * 2 + 1, k) < share
    interval = fabric.advance(us=300)
    assert interval.ecn_marked_packets[5, 0] == marks
    assert marks > 40


# --------------------------------------------------------------------------- DCQCN

DCQCN = {
    "alpha_interval_us": 1,
    "decrease_interval_us": 4,
    "increase_timer_us": 50,
    "fast_recovery_times": 1,
    "rate_ai_mbps": 400,
    "rate_hai_mbps": 2_000,
    "g": 0.5,
    "initial_alpha": 1.0,
}


@pytest.mark.parametrize(("mode", "size"), [("packet", CNP), ("ack_echo", ACK)])
def test_first_cut_and_recovery(mode, size):
    # Flow 1's first packet has one behind it as it leaves the port at 2 S + D; it is at its
    # receiver at 3 S + 2 D and the CNP (or ACK) back at host 1 2 (size + D) later. The cut comes
    # 4 us + 1 ns later. Alpha was halved four times by then: the rate falls by 1/32. Then, each
    # 50 us: fast recovery (half way to 100 G), additive increase (target stays at the line: half
    # way again), hyper increase likewise.
    fabric = build(
        flows(flow(0, 2, 2 * PAYLOAD), flow(1, 2, 2 * PAYLOAD)),
        classes=[{"ecn": MARK_ALL}],
        nic={"cnp_mode": mode, "ack_every": 1},
        dcqcn=DCQCN,
    )
    cnp = 3 * S + 2 * D + 2 * (size + D)
    cut = cnp + 4 * US + 1_000
    seen = []
    for time in (cnp - 1, cnp, cut - 1, cut, *(cut + k * 50 * US for k in (1, 2, 3))):
        interval = fabric.advance(ps=time - fabric.now_ps)
        seen.append((int(interval.cnps[1]), int(interval.rate_bps[1])))
    assert seen == [
        (0, LINE),
        (1, LINE),
        (0, LINE),
        (0, 96_875_000_000),
        (0, 98_437_500_000),
        (0, 99_218_750_000),
        (0, 99_609_375_000),
    ]


def test_first_cnp_rate_and_all_three_increases():
    # The CNP sets rate and target to 40 Gb/s; the cut takes 1/32 off the rate: 38.75. Each 50 us:
    # fast recovery, half way to 40; additive, half way to 40.4; hyper, half way to 42.4.
    fabric = build(
        flows(flow(0, 2, 2 * PAYLOAD), flow(1, 2, 2 * PAYLOAD)),
        classes=[{"ecn": MARK_ALL}],
        dcqcn=DCQCN | {"first_cnp_rate_mbps": 40_000},
    )
    cnp = 3 * S + 2 * D + 2 * (CNP + D)
    assert fabric.advance(ps=cnp).rate_bps[1] == 40_000_000_000
    assert fabric.advance(ps=4 * US + 1_000).rate_bps[1] == 38_750_000_000
    rates = [int(fabric.advance(us=50).rate_bps[1]) for _ in range(3)]
    assert rates == [39_375_000_000, 39_887_500_000, 41_143_750_000]


def test_cnps_of_a_qp_keep_their_distance():
    # Every packet of 2 x 300 but the last is marked, for some 200 us; CNPs of a QP are 20 us apart:
    # one each at the first marked packet and then every 20 us.
    fabric = build(
        flows(flow(0, 2, 300 * PAYLOAD), flow(1, 2, 300 * PAYLOAD)),
        classes=[{"ecn": MARK_ALL}],
        nic={"cnp_interval_us": 20},
    )
    interval = fabric.advance(us=400)
    # QP 1's marked packets reach host 2 at (3 + 2 i) S + 2 D. 20 us are 59.8 frames, so a CNP goes
    # out every 60 frames: i = 0, 30, 60, …, 270. QP 0's begin two frames later: 1, 31, …, 271.
    assert interval.cnps.tolist() == [10, 10]


# --------------------------------------------------------------------------- loss


def losing_seed(link, share, packets, lost):
    """A seed that loses exactly the given of the first packets on a link."""
    for seed in range(100_000):
        if [n for n in range(packets) if uniform(seed, LOSS, link, n) < share] == lost:
            return seed
    raise AssertionError("no such seed")


def test_go_back_n_resends_everything_from_the_gap():
    # The second of five packets is lost. The third is at host 1 at 4 S + 2 D, the NACK at host 0
    # BACK later, and packets 2 to 5 are sent again (the rest had left long before).
    seed = losing_seed(0, 0.2, 9, [1])
    fabric = build(flows(flow(0, 1, 5 * PAYLOAD)), loss={0: 0.2}, seed=seed)
    interval = fabric.advance(us=100)
    assert ends(interval) == [4 * S + 2 * D + BACK + (4 + 1) * S + 2 * D + BACK]
    assert (interval.tx_packets[0, 0], interval.lost_packets[0]) == (9, 1)
    assert interval.tx_packets[2, 0] == 2  # NACK and last ACK
    assert interval.delivered_bytes[0] == interval.acked_bytes[0] == 5 * PAYLOAD


def test_a_timeout_resends():
    seed = losing_seed(0, 0.25, 2, [0])
    fabric = build(
        flows(flow(0, 1, 1_000)), nic={"retransmit_timeout_us": 100}, loss={0: 0.25}, seed=seed
    )
    assert ends(fabric.advance(us=500)) == [100 * US + 2 * (1_082 * 80 + D) + BACK]


def test_the_retry_limit_fails_the_qp():
    # Sent at 0, 100 and 200 us; two retries are allowed, so the timer at 300 us is the end.
    fabric = build(
        flows(flow(0, 1, 1_000)),
        nic={"retransmit_timeout_us": 100, "retry_limit": 2},
        loss={0: 1.0},
    )
    before = fabric.advance(ps=300 * US - 1)
    after = fabric.advance(ps=1)
    assert (before.failed_qps, after.failed_qps) == (0, 1)
    assert before.lost_packets[0] == 3
    assert fabric.advance(us=1_000).tx_packets.sum() == 0


def test_a_late_ack_of_bytes_sent_before_a_timeout():
    # The timer fires at 5 us, when all four packets are on their way; the sender goes back to 0.
    # The ACK of all four comes at 5 S + 2 D + BACK = 5.68 us and ends it: nothing is sent any more.
    fabric = build(flows(flow(0, 1, 4 * PAYLOAD)), nic={"retransmit_timeout_us": 5})
    acked = 5 * S + 2 * D + BACK
    interval = fabric.advance(us=100)
    assert ends(interval) == [acked]
    resent = 1 + (acked - 5 * US - 1) // S
    assert interval.tx_packets[0, 0] == 4 + resent
    assert interval.delivered_bytes[0] == 4 * PAYLOAD


# --------------------------------------------------------------------------- jobs


@pytest.mark.parametrize("n", [2, 3, 5])
def test_ring_all_reduce(n):
    # 2 (n - 1) steps of one packet to the next member. A step takes 2 (p + D), p = (1,000 + 82) x
    # 80; as the message arrives an ACK is queued and goes before the next one: + 6,880 between two.
    fabric = build(
        {
            "kind": "ring_all_reduce",
            "bytes": 1_000 * n,
            "compute_us": 10,
            "rounds": 1,
        },
        hosts=n,
    )
    interval = fabric.advance(us=100)
    steps = 2 * (n - 1)
    took = steps * 2 * (1_082 * 80 + D) + (steps - 1) * ACK
    assert interval.completions.tolist() == [(0, 0, 10 * US, 10 * US + took, 0)]
    assert interval.job_busy_ps.tolist() == [took]
    assert interval.tx_packets[::2, 0].tolist() == [2 * steps] * n


def test_all_to_all():
    # Each of four sends 25,000 bytes (7 packets) to each other, taking turns: rank + 1, + 2, + 3
    # all the time. Each port gets 21 data packets; nothing is shared but the sender's link.
    n = 4
    fabric = build({"kind": "all_to_all", "bytes": 100_000, "rounds": 1}, hosts=n)
    interval = fabric.advance(us=100)
    (completion,) = interval.completions
    # 18 full frames and three with 25,000 - 6 x 4,096 = 424 bytes: all of the sender's bytes go
    # over its own link and, evenly, over each port; ACKs of other pairs come in between.
    least = 18 * S + 3 * (424 + 82) * 80 + 2 * D
    assert completion["start_ps"] == 0
    assert least < completion["end_ps"] < least + 2 * S + 6 * ACK
    assert interval.delivered_bytes.tolist() == [25_000] * (n * (n - 1))


def test_incast_bursts():
    # Two senders of one packet of 1,000 bytes each: the port takes them one after the other.
    fabric = build(
        {"kind": "incast", "bytes": 1_000, "degree": 2, "period_us": 10, "rounds": 3},
    )
    took = 3 * 86_560 + 2 * D
    interval = fabric.advance(us=100)
    assert interval.completions.tolist() == [
        (0, k, k * 10 * US, k * 10 * US + took, 0) for k in range(3)
    ]
