"""The oracle itself against cases small enough to work out by hand.

All cases: star of hosts on one switch, 100 Gb/s, 1,000 ns a cable. A byte takes 80 ps, and every
frame has a gap of 20 bytes. With payload 4,096 a data packet takes S = (4,096 + 62 + 20) x 80 =
334,240 ps, an ACK or NACK (66 + 20) x 80 = 6,880 ps, a CNP (78 + 20) x 80 = 7,840 ps, and a PFC
frame (64 + 20) x 80 = 6,720 ps. D = 1,000,000 ps. Host i sends on link 2i and receives on 2i + 1.
"""

from __future__ import annotations

import numpy as np
import pytest
from naive import LOSS, NaiveSimulator, uniform

from roce_gym.config import Scenario, Settings, validate_scenario
from roce_gym.topology.graph import Network
from roce_gym.workload.plan import JobPlan, Plan, QueuePair

S, ACK, CNP, PFC, D = 334_240, 6_880, 7_840, 6_720, 1_000_000
BACK = 2 * (ACK + D)  # an ACK or NACK from host to host
US = 1_000_000
END = 100_000 * US

NO_ECN = {"enabled": False, "kmin_bytes": 0, "kmax_bytes": 0, "pmax": 0.0}
MARK_ALL = {"enabled": True, "kmin_bytes": 0, "kmax_bytes": 0, "pmax": 1.0}
BUFFER = {"alpha": 1.0, "reserved_bytes": 0}


def star(hosts: int, loss: dict[int, float] | None = None) -> Network:
    n = 2 * hosts
    src = np.array([i // 2 if i % 2 == 0 else hosts for i in range(n)], np.int32)
    dst = np.array([hosts if i % 2 == 0 else i // 2 for i in range(n)], np.int32)
    lost = np.zeros(n)
    for link, share in (loss or {}).items():
        lost[link] = share
    return Network(
        num_hosts=hosts,
        num_switches=1,
        link_src=src,
        link_dst=dst,
        link_rate_bps=np.full(n, 100_000_000_000, np.int64),
        link_delay_ps=np.full(n, D, np.int64),
        link_loss=lost,
        node_label=np.arange(hosts + 1, dtype=np.int32),
    )


def qp(src: int, dst: int) -> QueuePair:
    return QueuePair(src, dst, 0, 0, (2 * src, 2 * dst + 1), (2 * dst, 2 * src + 1))


def flows(*sizes: int) -> JobPlan:
    """One flow for each QP, all at 0."""
    n = len(sizes)
    return JobPlan(
        "flows", 0, (), (tuple(range(n)),), flow_start_ps=(0,) * n, flow_bytes=tuple(sizes)
    )


def scenario(hosts: int, nic: dict | None = None, traffic_class: dict | None = None) -> Scenario:
    return validate_scenario(
        {
            "name": "by hand",
            "topology": {"kind": "star", "hosts": hosts},
            "nic": nic or {},
            "classes": [traffic_class or {}],
            "tenants": [
                {
                    "name": "a",
                    "hosts": list(range(hosts)),
                    "jobs": [{"kind": "flows"}],
                }
            ],
        }
    )


def settings(ecn: dict = NO_ECN, buffer: dict = BUFFER, dcqcn: dict | None = None) -> Settings:
    return Settings.model_validate(
        {
            "classes": {"roce": {"ecn": ecn, "buffer": buffer}},
            "tenants": {"a": dcqcn or {"enabled": False}},
        }
    )


def simulator(
    qps: list[QueuePair],
    jobs: list[JobPlan],
    *,
    hosts: int,
    nic: dict | None = None,
    traffic_class: dict | None = None,
    loss: dict[int, float] | None = None,
    given: Settings | None = None,
    seed: int = 1,
) -> NaiveSimulator:
    return NaiveSimulator(
        scenario(hosts, nic, traffic_class),
        star(hosts, loss),
        Plan(tuple(qps), tuple(jobs)),
        given or settings(),
        seed,
        trace=True,
    )


def test_one_packet():
    # Data of (1,000 + 62 + 20) x 80 = 86,560 ps on two links, then the ACK on two links:
    # 2 x (86,560 + 1,000,000) + 2 x (6,880 + 1,000,000) = 4,186,880 ps.
    sim = simulator([qp(0, 1)], [flows(1_000)], hosts=2)
    sim.run(END)
    assert sim.completions == [(0, 0, 0, 4_186_880, 1_000)]
    assert [row[0] for row in sim.tx_packets] == [1, 1, 1, 1]
    assert [row[0] for row in sim.tx_bytes] == [1_062, 66, 66, 1_062]
    # Timers: QP 0's is 0, the job's is 1. The retransmission timer finds nothing outstanding.
    assert sim.events == [
        (0, "TIMER", 1),
        (86_560 + D, "ARRIVAL", 0),
        (2 * (86_560 + D), "ARRIVAL", 3),
        (2 * (86_560 + D) + ACK + D, "ARRIVAL", 2),
        (4_186_880, "ARRIVAL", 1),
        (67_108_864_000, "TIMER", 0),
    ]


def test_three_packets_follow_each_other():
    # The last leaves the host at 3 S and waits nowhere: 3 S + D + S + D, then its ACK.
    sim = simulator([qp(0, 1)], [flows(3 * 4_096)], hosts=2)
    sim.run(END)
    assert sim.completions == [(0, 0, 0, 4 * S + 2 * D + BACK, 3 * 4_096)]
    assert sim.tx_packets[2][0] == 1  # one ACK, for the last packet


TWO_TO_ONE = [qp(0, 2), qp(1, 2)]


def test_two_senders_share_a_port():
    # A1 and B1 arrive at S + D (link 0 first), A2 and B2 at 2 S + D, just before the port is free:
    # it sends A1, B1, A2, B2 back to back. The queue is longest with B1, A2, B2 in it.
    sim = simulator(TWO_TO_ONE, [flows(8_192, 8_192)], hosts=3)
    sim.run(END)
    first = S + D
    assert sim.completions == [
        (0, 0, 0, first + 3 * S + D + BACK, 8_192),
        (0, 1, 0, first + 4 * S + D + BACK, 8_192),
    ]
    assert sim.max_queue_bytes[5][0] == 3 * (4_096 + 62)


def test_pause_and_resume():
    # Threshold 8,000: input 1 holds B1 when B2 arrives at 2 S + D; 8,316 > 8,000, so B2 goes to
    # the headroom and PAUSE leaves on link 3. B1 starts at the same time and takes 4,158 off the
    # headroom; 4,158 + 3,072 <= 8,000, so RESUME follows one frame later. Input 0 holds A2 only.
    sim = simulator(
        TWO_TO_ONE,
        [flows(8_192, 8_192)],
        hosts=3,
        traffic_class={"headroom_bytes": 100_000},
        given=settings(buffer={"static_threshold_bytes": 8_000, "reserved_bytes": 0}),
    )
    pause_arrives = 2 * S + D + PFC + D
    sim.run(pause_arrives + 1_000)
    assert sim.paused_ps[2][0] == 1_000
    sim.run(END)
    assert [row[0] for row in sim.pauses] == [0, 0, 1, 0, 0, 0]
    assert [row[0] for row in sim.resumes] == [0, 0, 1, 0, 0, 0]
    assert sim.paused_ps[2][0] == PFC
    assert (pause_arrives, "ARRIVAL", 3) in sim.events
    assert sim.completions[1][3] == S + D + 4 * S + D + BACK


def test_pause_keeps_a_small_buffer_lossless():
    for traffic_class, lossless in (({}, True), ({"lossless": False}, False)):
        sim = simulator(
            TWO_TO_ONE,
            [flows(200 * 4_096, 200 * 4_096)],
            hosts=3,
            traffic_class=traffic_class,
            nic={"retransmit_timeout_us": 50},
            given=settings(buffer={"static_threshold_bytes": 30_000, "reserved_bytes": 4_096}),
        )
        sim.run(END)
        assert len(sim.completions) == 2
        assert (sum(row[0] for row in sim.drops) == 0) == lossless
        assert (sim.pauses[0][0] > 0) == (sim.resumes[0][0] > 0) == lossless
        assert all(i.bytes == i.headroom_used == 0 for i in sim.inputs.values())
        assert sim.switches[3].shared == [0]
        if lossless:  # 400 packets back to back through the port
            assert max(c[3] for c in sim.completions) == S + D + 400 * S + D + BACK


def losing_seed(link: int, share: float, packets: int) -> int:
    """A seed that loses the first packet on a link and none of those after it."""
    for seed in range(10_000):
        lost = [uniform(seed, LOSS, link, n) < share for n in range(packets)]
        if lost == [True] + [False] * (packets - 1):
            return seed
    raise AssertionError("no such seed")


def test_go_back_n():
    # Packet 1 is lost at the switch, 2 arrives at 3 S + 2 D and causes NACK(0); both are sent
    # again at 3 S + 2 D + BACK and the last of them is there 3 S + 2 D later.
    sim = simulator(
        [qp(0, 1)], [flows(8_192)], hosts=2, loss={0: 0.25}, seed=losing_seed(0, 0.25, 4)
    )
    sim.run(3 * S + 2 * D + BACK)
    assert (sim.qps[0].snd_una, sim.qps[0].snd_nxt) == (0, 4_096)
    sim.run(END)
    assert sim.completions == [(0, 0, 0, 2 * (3 * S + 2 * D + BACK), 8_192)]
    assert sim.lost == [1, 0, 0, 0]
    assert sim.qps[0].expected == 8_192


def test_timeout():
    # Nothing tells the sender about a single lost packet; the timer started at 0 does.
    sim = simulator(
        [qp(0, 1)],
        [flows(1_000)],
        hosts=2,
        nic={"retransmit_timeout_us": 100},
        loss={0: 0.25},
        seed=losing_seed(0, 0.25, 2),
    )
    sim.run(END)
    assert sim.completions == [(0, 0, 0, 100 * US + 4_186_880, 1_000)]


def test_failure():
    # Sent at 0, 100 and 200 us; two retries are allowed, so the timer at 300 us is the end.
    sim = simulator(
        [qp(0, 1)],
        [flows(1_000)],
        hosts=2,
        nic={"retransmit_timeout_us": 100, "retry_limit": 2},
        loss={0: 1.0},
    )
    sim.run(300 * US - 1)
    assert not sim.qps[0].failed
    sim.run(300 * US)
    assert sim.qps[0].failed
    sim.run(END)
    assert sim.lost[0] == 3
    assert not sim.completions


DCQCN = {
    "alpha_interval_us": 1,
    "decrease_interval_us": 4,
    "increase_timer_us": 300,
    "fast_recovery_times": 1,
    "g": 0.5,
    "initial_alpha": 1.0,
}


@pytest.mark.parametrize(("mode", "size"), [("packet", CNP), ("ack_echo", ACK)])
def test_first_cut(mode: str, size: int):
    # A packet is marked if another is behind it as it leaves: B1, at 2 S + D, and A2. B1 is at
    # its receiver at 3 S + 2 D and the CNP (or, with an ACK a packet, the ACK) back at host 1
    # 2 (size + D) later. The cut comes 4 us + 1 ns after that; alpha has then been halved four
    # times: 1/16. So the rate is cut to 1 - 1/32 = 96.875 Gb/s, and 300 us later grows half way.
    sim = simulator(
        TWO_TO_ONE,
        [flows(8_192, 8_192)],
        hosts=3,
        nic={"cnp_mode": mode, "ack_every": 1},
        given=settings(ecn=MARK_ALL, dcqcn=DCQCN),
    )
    sender = sim.qps[1]
    cnp = 3 * S + 2 * D + 2 * (size + D)
    sim.run(cnp - 1)
    assert sender.cnps == 0
    sim.run(cnp)
    assert (sender.cnps, sender.alpha) == (1, 1.0)
    cut = cnp + 4 * US + 1_000
    sim.run(cut - 1)
    assert (sender.rate_bps, sender.alpha) == (100_000_000_000, 1 / 16)
    sim.run(cut)
    assert (sender.rate_bps, sender.target_bps) == (96_875_000_000, 100_000_000_000)
    sim.run(cut + 300 * US - 1)
    assert sender.rate_bps == 96_875_000_000
    sim.run(cut + 300 * US)
    assert (sender.rate_bps, sender.target_bps) == (98_437_500_000, 100_000_000_000)
    assert sim.ecn_marks[5][0] == 2
    assert sim.qps[0].cnps == sender.cnps == 1


def test_pacing():
    # At 50 Gb/s packets start 2 S apart: the third at 4 S, after which it takes 2 S + 2 D.
    sim = simulator(
        [qp(0, 1)],
        [flows(3 * 4_096)],
        hosts=2,
        given=settings(dcqcn={"max_rate_mbps": 50_000}),
    )
    sim.run(END)
    assert sim.completions == [(0, 0, 0, 4 * S + 2 * S + 2 * D + BACK, 3 * 4_096)]


def test_window():
    # One packet of 4,096 in the window: the second leaves when the ACK of the first is back.
    sim = simulator(
        [qp(0, 1)], [flows(8_192)], hosts=2, nic={"window_bytes": 4_096, "ack_every": 1}
    )
    sim.run(END)
    assert sim.completions == [(0, 0, 0, 2 * (2 * S + 2 * D + BACK), 8_192)]


def test_ring_of_two():
    # M = 2 (n - 1) = 2 messages of 1,000 bytes. Each member sends one on entering at 5 us; when
    # the other's is there, its ACK goes out first (6,880 ps) and then the second message.
    one_way = 2 * (86_560 + D)
    ring = JobPlan(
        "ring_all_reduce",
        0,
        (0, 1),
        ((0, 1),),
        message_bytes=1_000,
        messages_per_round=2,
        chunks=1,
        compute_ps=2 * US,
        start_ps=3 * US,
        rounds=2,
    )
    sim = simulator([qp(0, 1), qp(1, 0)], [ring], hosts=2)
    sim.run(END)
    took = one_way + ACK + one_way
    # In the second round the ACK of the first is long gone.
    second = 5 * US + took + 2 * US
    assert sim.completions == [
        (0, 0, 5 * US, 5 * US + took, 0),
        (0, 1, second, second + took, 0),
    ]


def test_all_to_all_and_incast():
    # Two hosts: one message each way, at once. Then bursts each 10 us from both into host 2,
    # whose port takes the two packets (86,560 ps each) one after the other.
    exchange = JobPlan(
        "all_to_all", 0, (0, 1), ((0,), (2,)), message_bytes=1_000, messages_per_round=1, rounds=1
    )
    bursts = JobPlan(
        "incast",
        0,
        (0, 1),
        ((1, 3),),
        message_bytes=1_000,
        messages_per_round=2,
        start_ps=20 * US,
        period_ps=10 * US,
        rounds=2,
    )
    qps = [qp(0, 1), qp(0, 2), qp(1, 0), qp(1, 2)]
    sim = simulator(qps, [exchange, bursts], hosts=3)
    sim.run(END)
    one_way, burst = 2 * (86_560 + D), 3 * 86_560 + 2 * D
    assert sim.completions == [
        (0, 0, 0, one_way, 0),
        (1, 0, 20 * US, 20 * US + burst, 0),
        (1, 1, 30 * US, 30 * US + burst, 0),
    ]
