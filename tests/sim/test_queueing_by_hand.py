"""Schedulers, shapers and pools, worked out on paper; numbers as in test_hand_computed.py."""

from __future__ import annotations

import pytest
from test_hand_computed import BACK, FRAME, PAYLOAD, D, S, build, ends, flow, flows, tenant

pytestmark = pytest.mark.nojit

C = FRAME * 160
"""A frame's time at 50 Gb/s, without preamble and gap."""


def dwrr(**weights):
    """Classes by name, with rising priorities."""
    return [
        {"name": name, "priority": i, "scheduling": "dwrr", "weight": weight}
        for i, (name, weight) in enumerate(weights.items())
    ]


def from_two_hosts(classes, packets=100, **more):
    """Host 0 sends in class x, host 1 in class y, both to host 2, over link 5."""
    return build(
        classes=classes,
        tenants=[
            tenant(name, [flows(flow(i, 2, packets * PAYLOAD))], (i, 2), traffic_class=name)
            for i, name in enumerate("xy")
        ],
        **more,
    )


# --------------------------------------------------------------------------- DWRR


@pytest.mark.parametrize(("weights", "shares"), [((3, 1), (30, 10)), ((1, 1), (20, 20))])
def test_dwrr_shares_a_port_by_weight(weights, shares):
    # The least weight's quantum is a frame: three frames of x for one of y, from S + D on.
    fabric = from_two_hosts(dwrr(x=weights[0], y=weights[1]))
    interval = fabric.advance(ps=S + D + 40 * S - 1)
    assert interval.tx_packets[5].tolist() == list(shares)


def test_dwrr_shares_a_nic_by_weight():
    # x is posted first; one host, two classes. Visits: x x x y, within a packet at any time.
    fabric = build(
        classes=dwrr(x=3, y=1),
        tenants=[
            tenant(name, [flows(flow(0, 1, 100 * PAYLOAD))], traffic_class=name) for name in "xy"
        ],
    )
    for frames in (8, 13, 22, 40):
        fabric.advance(ps=frames * S - 1 - fabric.now_ps)
        sent = fabric._state.queue["tx_packets"].reshape(-1, 3)[0, 1:]
        assert sent.sum() == frames
        assert abs(sent[0] - 0.75 * frames) <= 1


@pytest.mark.parametrize("scheduling", ["dwrr", "round_robin"])
def test_dwrr_counts_bytes_and_round_robin_packets(scheduling):
    # Frames of 1,038 bytes (976 + 62) against 4,158: in round robin y gets four times as much.
    classes = [
        {"name": name, "priority": i, "scheduling": scheduling} for i, name in enumerate("xy")
    ]
    fabric = build(
        classes=classes,
        tenants=[
            tenant("x", [flows(*[flow(0, 1, 976)] * 100)], traffic_class="x"),
            tenant("y", [flows(flow(0, 1, 100 * PAYLOAD))], traffic_class="y"),
        ],
    )
    x, y = fabric.advance(ps=20 * S).tx_bytes[0].tolist()
    if scheduling == "dwrr":
        assert abs(x - y) <= FRAME
    else:
        assert abs(x - y * 1_038 / 4_158) <= FRAME


@pytest.mark.parametrize(("quantum", "run"), [(None, 1), (FRAME, 1), (8 * FRAME, 8)])
def test_a_larger_quantum_makes_longer_runs(quantum, run):
    # Both classes are posted before the NIC sends twice; with eight frames a visit, y waits.
    fabric = build(
        classes=dwrr(x=1, y=1),
        switch={"dwrr_quantum_bytes": quantum},
        tenants=[
            tenant(name, [flows(flow(0, 1, 100 * PAYLOAD))], traffic_class=name) for name in "xy"
        ],
    )
    interval = fabric.advance(ps=run * S - 1)
    assert interval.tx_packets[0].tolist() == [run, 0]
    assert fabric.advance(ps=run * S).tx_packets[0].tolist() == [0, run]


def test_a_quantum_smaller_than_a_frame_saves_up():
    # 1,000 bytes a round: a frame of 4,158 needs five; what is left is kept, the share is the same.
    fabric = from_two_hosts(dwrr(x=3, y=1), switch={"dwrr_quantum_bytes": 1_000})
    x, y = fabric.advance(ps=S + D + 40 * S - 1).tx_packets[5].tolist()
    assert x + y == 40 and abs(x - 30) <= 1


def test_weights_change_at_run_time():
    fabric = from_two_hosts(dwrr(x=3, y=1), packets=200)
    fabric.advance(ps=S + D + 40 * S - 1)
    settings = fabric.settings
    classes = {
        name: chosen.model_copy(update={"weight": {"x": 1, "y": 3}[name]})
        for name, chosen in settings.classes.items()
    }
    fabric.apply(settings.model_copy(update={"classes": classes}))
    x, y = fabric.advance(ps=40 * S).tx_packets[5].tolist()
    assert x + y == 40 and abs(x - 10) <= 2


# --------------------------------------------------------------------------- token buckets


@pytest.mark.parametrize(("frames", "last"), [(1, 9 * C), (3, 7 * C), (20, 9 * S)])
def test_departures_from_a_shaped_port(frames, last):
    # Ten frames arrive at 100 Gb/s, the class may leave with 50 and a burst of some frames. Frame k
    # is allowed (k - frames + 1) C after the first, and not before the link is free.
    fabric = build(
        flows(flow(0, 1, 10 * PAYLOAD)),
        classes=[{"shaper": {"rate_gbps": 50, "burst_bytes": frames * FRAME}}],
    )
    assert ends(fabric.advance(us=100)) == [S + D + last + S + D + BACK]


@pytest.mark.parametrize("rate_gbps", [1.0, 10.0, 40.0])
def test_the_port_sleeps_until_the_tokens_are_there(rate_gbps):
    # Three frames: a bucket event for the second and the third, and no looking in between.
    cost = round(FRAME * 8 * 1_000 / rate_gbps)
    fabric = build(
        flows(flow(0, 1, 3 * PAYLOAD)),
        classes=[{"shaper": {"rate_gbps": rate_gbps, "burst_bytes": FRAME}}],
        nic={"retransmit_timeout_us": 0},
    )
    interval = fabric.advance(us=200)
    assert ends(interval) == [S + D + 2 * cost + S + D + BACK]
    # 3 + 3 arrivals of data, 2 of the ACK; hosts: 3 TX_DONE at most for three frames; 1 job timer;
    # the port: 2 buckets, and TX_DONE where a frame came while it sent.
    assert interval.events <= 3 + 3 + 2 + 3 + 1 + 2 + 2


@pytest.mark.parametrize("queue_pairs", [1, 2, 5])
def test_departures_of_a_shaped_tenant(queue_pairs):
    # However many QPs: frame k of the tenant leaves the host k C after the first.
    fabric = build(
        tenants=[
            tenant("a", [flows(*[flow(0, 1, 10 // queue_pairs * PAYLOAD)] * queue_pairs)])
            | {"shaper": {"rate_gbps": 50, "burst_bytes": FRAME}}
        ],
    )
    interval = fabric.advance(us=100)
    assert ends(interval)[-1] == 9 * C + S + D + S + D + BACK
    assert interval.tx_packets[0].tolist() == [10]


def test_queue_pairs_of_a_shaped_tenant_take_turns():
    fabric = build(
        tenants=[
            tenant("a", [flows(*[flow(0, 1, 50 * PAYLOAD)] * 4)])
            | {"shaper": {"rate_gbps": 25, "burst_bytes": 2 * FRAME}}
        ],
    )
    for _ in range(5):
        fabric.advance(us=8)
        sent = fabric._state.sender["snd_nxt"] // PAYLOAD
        assert sent.max() - sent.min() <= 1


def test_a_shaped_tenant_leaves_the_rest_of_the_link_to_others():
    # 50 of 100 Gb/s; frames take 0.5 % more with their gap.
    fabric = build(
        tenants=[
            tenant("a", [flows(flow(0, 1, 400 * PAYLOAD))])
            | {"shaper": {"rate_gbps": 50, "burst_bytes": FRAME}},
            tenant("b", [flows(flow(0, 2, 400 * PAYLOAD))], (0, 2)),
        ],
    )
    fabric.advance(us=100)
    sent = fabric._state.sender["snd_nxt"] * FRAME // PAYLOAD * 8 / 100e3
    assert sent == pytest.approx([50, 49.5], abs=0.5)


def test_a_rate_of_zero_does_not_limit_and_can_be_turned_on():
    fabric = build(
        flows(flow(0, 1, 1_000 * PAYLOAD)),
        classes=[{"shaper": {"rate_gbps": 0, "burst_bytes": FRAME}}],
    )
    before = fabric.advance(us=50).tx_packets[3, 0]
    roce = fabric.settings.classes["roce"]
    slow = roce.model_copy(update={"shaper": roce.shaper.model_copy(update={"rate_gbps": 20.0})})
    fabric.apply(fabric.settings.model_copy(update={"classes": {"roce": slow}}))
    after = fabric.advance(us=50).tx_packets[3, 0]
    assert before >= 140
    assert after == pytest.approx(50e-6 * 20e9 / 8 / FRAME, abs=1)


# --------------------------------------------------------------------------- pools


def pools(fabric, name="pool"):
    return fabric._state.switch[name].tolist()


def test_pool_arithmetic():
    # Room: 2,000,000 less 2 classes x 3 ports x 50,000 of headroom and 3 x (4,096 + 1,000).
    fabric = build(
        classes=[
            {"name": "a", "headroom_bytes": 50_000, "buffer": {"pool_share": 0.3}},
            {
                "name": "b",
                "priority": 1,
                "headroom_bytes": 50_000,
                "buffer": {"reserved_bytes": 1_000},
            },
        ],
        tenants=[tenant("a", [flows(flow(0, 1, 1))], traffic_class="a")],
        switch={"buffer_bytes": 2_000_000},
    )
    room = 2_000_000 - 300_000 - 3 * 5_096
    assert pools(fabric) == [room - int(0.3 * room), int(0.3 * room)]


def test_classes_of_one_pool_add_their_shares():
    fabric = build(
        classes=[
            {"name": "a", "pool": "p", "buffer": {"reserved_bytes": 0, "pool_share": 0.25}},
            {"name": "b", "pool": "p", "priority": 1, "buffer": {"reserved_bytes": 0}},
            {"name": "c", "priority": 2, "buffer": {"reserved_bytes": 0, "pool_share": 0.5}},
            {"name": "d", "priority": 4, "buffer": {"reserved_bytes": 0}},
        ],
        tenants=[tenant("a", [flows(flow(0, 1, 1))], traffic_class="a")],
        switch={"buffer_bytes": 2_000_000, "headroom_pool_bytes": 400_000},
    )
    assert pools(fabric) == [400_000, 400_000, 800_000]


def test_numbers_of_the_dcqcn_paper():
    # Zhu et al. 2015, section 4: Trident II, 32 x 40G, 12 MB, 8 PFC classes, 22.4 KB of headroom
    # for each port and class. The largest static PFC threshold is 24.47 KB, of which the 32nd part
    # is less than a packet: ECN could never come first. With the dynamic one and beta 8 it does up
    # to 21.75 KB.
    ports, classes, beta = 32, 8, 8
    fabric = build(
        hosts=ports,
        classes=[
            {
                "name": f"c{i}",
                "priority": i,
                "headroom_bytes": 22_400,
                "buffer": {"reserved_bytes": 0, "alpha": beta / classes},
            }
            for i in range(classes)
        ],
        topology={"kind": "star", "hosts": ports, "host_rate_gbps": 40},
        switch={"buffer_bytes": 12_000_000},
        tenants=[tenant("a", [flows(flow(0, 1, 1))], traffic_class="c0")],
    )
    (pool,) = pools(fabric)
    assert pool / (classes * ports) == 24_475
    assert pool / (classes * ports) / ports < 1_500
    most = beta * pool / (classes * ports * (beta + 1))
    assert int(most / 10) == 2_175
    # At that point, n queues of each class hold t_ECN: what is left times alpha is as much as one
    # input port may hold, n t_ECN.
    alpha = fabric._state.ingress["alpha"].reshape(ports * 2, -1)[0, 1]
    assert alpha * (pool - classes * ports * most) == pytest.approx(ports * most)


def test_a_class_with_a_pool_of_its_own_does_not_feel_others():
    # Hosts 1 … 4 fill the buffer in class y; x needs 15 frames when host 0's burst meets a slow
    # cable. Without a share of its own x is paused.
    def pauses(share):
        fabric = build(
            classes=[
                {"name": "x", "priority": 1, "buffer": {"alpha": 2, "pool_share": share}},
                {"name": "y", "priority": 2, "buffer": {"alpha": 64}},
            ],
            tenants=[
                tenant("x", [flows(flow(0, 5, 15 * PAYLOAD, 60))], (0, 5), traffic_class="x"),
                tenant(
                    "y",
                    [flows(*(flow(i, 6, 2_000_000) for i in range(1, 5)))],
                    (1, 2, 3, 4, 6),
                    traffic_class="y",
                ),
            ],
            hosts=7,
            switch={"buffer_bytes": 7 * 2 * (37_618 + 4_096) + 400_000},
        )
        fabric._state.link["ps_per_kib"][11] *= 10
        return int(fabric.advance(us=120).pause_frames[:, 0].sum())

    assert pauses(None) > 0
    assert pauses(0.3) == 0


def test_reserved_bytes_of_a_pool_are_within_the_buffer():
    fabric = from_two_hosts(
        [
            {"name": "x", "buffer": {"pool_share": 0.6, "alpha": 8}},
            {"name": "y", "priority": 1, "buffer": {"pool_share": 0.2, "alpha": 8}},
        ],
        packets=400,
        switch={"buffer_bytes": 600_000},
    )
    for _ in range(40):
        interval = fabric.advance(us=5)
        assert interval.dropped_packets.sum() == 0
        assert (fabric._state.switch["shared"] <= fabric._state.switch["pool"]).all()


# --------------------------------------------------------------------------- headroom, egress


@pytest.mark.parametrize(("ports_worth", "drops"), [(1, True), (2, False)])
def test_shared_headroom(ports_worth, drops):
    # Without any shared buffer, both inputs fill up their headroom, 37,618 bytes each at most.
    fabric = build(
        flows(*(flow(i, 2, 100 * PAYLOAD) for i in (0, 1))),
        classes=[{"buffer": {"static_threshold_bytes": 0, "reserved_bytes": 0}}],
        switch={"headroom_pool_bytes": ports_worth * 37_618},
    )
    fabric._state.link["ps_per_kib"][5] *= 100
    interval = fabric.advance(us=50)
    assert (interval.dropped_packets.sum() > 0) == drops
    xoff = fabric._state.xoff[0]
    assert xoff["used"] == fabric._state.ingress["headroom_used"].sum() <= xoff["size"]


LOSSY = {"lossless": False, "buffer": {"alpha": 64, "reserved_bytes": 0}}


def overload(**buffer):
    fabric = build(
        flows(flow(0, 2, 4_000_000), flow(1, 2, 4_000_000)),
        classes=[LOSSY | {"buffer": LOSSY["buffer"] | buffer}],
        switch={"buffer_bytes": 600_000},
    )
    return fabric.advance(us=150)


def test_egress_limit_of_a_lossy_class():
    queues = []
    for limit in (20_000, 60_000):
        interval = overload(egress_limit_bytes=limit)
        assert limit - FRAME < interval.queue_max_bytes[5, 0] <= limit
        by_input, at_egress = interval.dropped_packets, interval.egress_dropped_packets
        assert at_egress[5].sum() == at_egress.sum() == by_input.sum() > 0
        assert (interval.dropped_at_egress_packets == by_input).all()
        queues.append(interval.queue_max_bytes[5, 0])
    assert queues == [4 * FRAME, 14 * FRAME]


@pytest.mark.parametrize("alpha", [0.25, 1.0])
def test_egress_alpha_of_a_lossy_class(alpha):
    # One queue q, of which all but the frame on the wire counts as shared: q = alpha (B - q).
    interval = overload(egress_alpha=alpha)
    expected = 600_000 * alpha / (1 + alpha)
    assert interval.queue_max_bytes[5, 0] == pytest.approx(expected, abs=FRAME)
    assert interval.dropped_packets.sum() > 0


def test_without_an_egress_bound_the_ingress_threshold_drops():
    interval = overload()
    assert interval.queue_max_bytes[5, 0] > 500_000
    assert interval.dropped_packets.sum() > 0
    assert not interval.dropped_at_egress_packets.any()
    assert not interval.egress_dropped_packets.any()


def test_what_either_limit_would_drop_counts_at_egress():
    # The frame that does not fit into the queue does not fit into the buffer either.
    interval = overload(egress_limit_bytes=20_000, static_threshold_bytes=20_000)
    dropped = interval.dropped_packets.sum()
    assert interval.dropped_at_egress_packets.sum() == dropped > 0


# --------------------------------------------------------------------------- published


def test_a_small_alpha_pauses_more_under_incast():
    # Guo et al., SIGCOMM 2016, section 6.2: alpha of 1/64 instead of 1/16, as in a new switch's
    # default, and a large incast made pauses rise; 1/16 cured it. Here 120 senders have 4.9 MB and
    # the shared buffer 6.1 MB: at 1/16 each may keep its 41 KB, at 1/64 less than half of it.
    def pauses(alpha):
        fabric = build(
            {"kind": "incast", "bytes": 40_960, "degree": 120, "period_us": 2_000, "rounds": 1},
            hosts=128,
            classes=[{"buffer": {"alpha": alpha, "reserved_bytes": 0}}],
            switch={"buffer_bytes": 9_000_000},
            topology={"kind": "star", "hosts": 128, "host_rate_gbps": 40},
        )
        interval = fabric.advance(us=1_500)
        assert len(interval.completions) == 1
        assert interval.dropped_packets.sum() == 0
        return int(interval.pause_frames.sum())

    assert pauses(1 / 64) >= 120
    assert pauses(1 / 16) == 0
