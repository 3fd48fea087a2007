"""TIMELY, HPCC and windows: cases worked out by hand, invariants, bad input.

By hand: 100 Gb/s, 1,000 ns a cable, hosts on one switch. With payload 4,096 a data packet takes
S = 334,240 ps on a link, an ACK A = 6,880 ps; a round trip is 2 (S + A) + 4 us.
"""

from __future__ import annotations

import numpy as np
import pytest
from tiny_cases import make_case

from roce_gym.config import (
    HpccConfig,
    Settings,
    TimelyConfig,
    sender_settings,
    validate_scenario,
)
from roce_gym.errors import ConfigError, TuningError
from roce_gym.fabric import Fabric
from roce_gym.sim.types import HAS_WINDOW

S, A, US = 334_240, 6_880, 1_000_000
PAYLOAD = 4_096
ROUND_TRIP = 2 * (S + A) + 4 * US
LINE = 100_000_000_000
NO_ECN = {"enabled": False, "kmin_bytes": 0, "kmax_bytes": 0, "pmax": 0}
RED = {"kmin_bytes": 100_000, "kmax_bytes": 400_000, "pmax": 0.2}


def build(cc, flows, hosts=2, *, ecn=NO_ECN, nic=None, **tenant):
    raw = {
        "name": "senders",
        "topology": {
            "kind": "star",
            "hosts": hosts,
            "host_rate_gbps": 100,
            "link_delay_ns": 1_000,
        },
        "nic": {"ack_every": 1} | (nic or {}),
        "classes": [{"ecn": ecn}],
        "tenants": [
            {
                "name": "a",
                "hosts": list(range(hosts)),
                "cc": cc,
                "jobs": [{"kind": "flows", "flows": flows}],
            }
            | tenant
        ],
    }
    return Fabric(validate_scenario(raw), 1)


def flow(size, src=0, dst=1, start_us=0):
    return {"src": src, "dst": dst, "bytes": size, "start_us": start_us}


def rate_after(fabric, ps):
    return int(fabric.advance(ps=ps).rate_bps[0])


# --------------------------------------------------------------------------- by hand


@pytest.mark.nojit
@pytest.mark.parametrize("follows_rate", [False, True])
def test_window_of_one_packet__stop_and_wait(follows_rate):
    window = {"bytes": PAYLOAD, "follows_rate": follows_rate}
    fabric = build("dcqcn", [flow(5 * PAYLOAD)], window=window)
    (done,) = fabric.advance(us=100).completions
    assert done["end_ps"] == 5 * ROUND_TRIP


@pytest.mark.nojit
def test_window_of_one_bdp__exactly_the_round_trip():
    # 4 us there and back and 327,680 ps of payload on each link: 4,655,360 ps, 58,192 bytes. The
    # 15th packet closes it; the first ACK, after ROUND_TRIP = 4,682,240 ps < 15 S, opens it.
    fabric = build("hpcc", [flow(20 * PAYLOAD)], hpcc={"enabled": False})
    assert fabric._state.base_rtt.tolist() == [4_655_360]
    assert fabric._state.window.tolist() == [58_192]
    (done,) = fabric.advance(us=100).completions
    assert done["end_ps"] == 19 * S + ROUND_TRIP


@pytest.mark.nojit
def test_timely__round_trip_above_t_high():
    # The first ACK, at R, only records; the next one beyond what was sent by then, 15 packets (the
    # 15th began at 14 S < R), is that of packet 16, sent at 15 S: at 15 S + R.
    timely = {"t_low_us": 1, "t_high_us": 2, "beta": 0.5, "min_rate_mbps": 100}
    fabric = build("timely", [flow(100 * PAYLOAD)], timely=timely)
    assert rate_after(fabric, 15 * S + ROUND_TRIP - 1) == LINE
    assert rate_after(fabric, 1) == int(LINE * (1 - 0.5 * (1 - 2 * US / ROUND_TRIP)))


@pytest.mark.nojit
def test_timely__equal_round_trips_have_no_gradient():
    timely = {
        "t_low_us": 1,
        "t_high_us": 500,
        "rate_ai_mbps": 30,
        "rate_hai_mbps": 400,
        "hai_after": 1,
        "max_rate_mbps": 50_000,
    }
    fabric = build("timely", [flow(100 * PAYLOAD)], timely=timely)
    assert rate_after(fabric, 30 * US) == 50_000_000_000  # the highest already
    settings = fabric.settings
    faster = settings.senders["a"].model_copy(update={"max_rate_mbps": 0.0})
    fabric.apply(settings.model_copy(update={"senders": {"a": faster}}))
    # At 50 Gb/s a packet takes 2 S, so 8 of them a round trip: further updates about 2 R apart.
    rates = [rate_after(fabric, US) for _ in range(12)]
    assert sorted(set(rates) - {50_000_000_000}) == [50_400_000_000, 50_800_000_000]


@pytest.mark.nojit
def test_hpcc__first_reaction():
    # ACKs of the first two packets, S apart, each S after the other at the switch, with 4,158 bytes
    # of wire size between them (the gap is not counted) and no queue.
    hpcc = {"tx_unit_bytes": 1, "queue_unit_bytes": 1, "max_stage": 0, "rate_ai_mbps": 50}
    fabric = build("hpcc", [flow(10 * PAYLOAD)], hpcc=hpcc)
    assert rate_after(fabric, ROUND_TRIP) == LINE
    assert rate_after(fabric, S - 1) == LINE
    base_ns, age_ns = 4_655.36, 334.24
    most = 4_158 * 8 / (age_ns * 1e-9) / LINE
    average = (1.0 * (base_ns - age_ns) + most * age_ns) / base_ns
    assert rate_after(fabric, 1) == int(LINE / (average / 0.95)) + 50_000_000


@pytest.mark.nojit
def test_hpcc__counts_the_queue_it_leaves_behind():
    """Two senders at line rate: half of what they send waits, and both come below half the line."""
    fabric = build("hpcc", [flow(10**6, 0, 2), flow(10**6, 1, 2)], 3)
    rates = fabric.advance(us=25).rate_bps
    assert (rates < 0.6 * LINE).all()
    assert fabric.advance(us=25).queue_max_bytes.max() < 30_000


def test_the_packet_pool_grows_with_what_it_carries(monkeypatch):
    flows = [flow(300_000, src, 8) for src in range(8)]
    ends = []
    for packets in (4_096, 64):
        monkeypatch.setattr("roce_gym.assembly.pools.MIN_PACKETS", packets)
        fabric = build("hpcc", flows, 9, nic={"mtu_bytes": 512})
        if packets == 64:
            assert len(fabric._state.packet) < 1_000
        ends.append(fabric.advance(us=400).completions["end_ps"].tolist())
        assert len(fabric._state.seen) == len(fabric._state.packet) * 2
    assert ends[0] == ends[1]
    assert len(ends[0]) == 8


# --------------------------------------------------------------------------- windows


def largest_queue(cc, window):
    """Four senders into one host, one after the other, for 2 ms."""
    flows = [flow(10**9, i + 1, 0, 20 * i) for i in range(4)]
    ecn = RED if cc == "dcqcn" else NO_ECN
    fabric = build(cc, flows, 5, ecn=ecn, nic={"mtu_bytes": 1_024}, window=window)
    return int(fabric.advance(us=2_000).queue_max_bytes.max())


@pytest.mark.parametrize("cc", ["dcqcn", "hpcc", "timely"])
def test_window_bytes(cc):
    small, large = (
        largest_queue(cc, {"bytes": size, "follows_rate": cc == "hpcc"})
        for size in (10_000, 200_000)
    )
    assert small < 0.1 * large


# --------------------------------------------------------------------------- invariants


@pytest.mark.parametrize("number", range(300, 312))
@pytest.mark.parametrize("algorithm", ["dcqcn", "timely", "hpcc"])
def test_rates_and_windows_keep_their_bounds(algorithm, number):
    case = make_case(number, (algorithm,))
    fabric = Fabric(case.scenario, case.seed, network=case.network, plan=case.plan)
    mtu = case.scenario.nic.mtu_bytes
    least = (case.scenario.nic.ack_every - 1) * mtu + 1
    for _ in range(60):
        rates = fabric.advance(us=5).rate_bps
        state = fabric._state
        outstanding = state.sender["snd_nxt"] - state.sender["snd_una"]
        assert (rates <= state.qp["line_bps"]).all()
        for i, tenant in enumerate(case.scenario.tenants):
            chosen = sender_settings(tenant, fabric.settings)
            own = (state.qp["tenant"] == i) & (state.sender["cc"] != 0)
            highest = chosen.max_rate_mbps * 1e6 or rates.max(initial=1)
            assert (rates[own] >= min(chosen.min_rate_mbps * 1e6, highest, 300e6)).all()
        if len(state.window):
            has = state.sender["traits"] & HAS_WINDOW != 0
            full = np.maximum(state.window, least)
            assert (outstanding[has] < full[has] + mtu).all()


# --------------------------------------------------------------------------- settings, bad input


def test_settings_of_senders_act_and_are_kept():
    fabric = build("timely", [flow(10**9)])
    assert fabric.settings.senders == {"a": TimelyConfig()}
    slow = fabric.settings.model_copy(update={"senders": {"a": TimelyConfig(max_rate_mbps=10_000)}})
    fabric.apply(slow)
    assert rate_after(fabric, US) == 10_000_000_000
    # Left out, they are those of the scenario again.
    fabric.apply(slow.model_copy(update={"senders": {}}))
    fabric.advance(us=200)
    assert rate_after(fabric, US) > 10_000_000_000


@pytest.mark.parametrize("senders", [{"a": HpccConfig()}, {"b": TimelyConfig()}])
def test_settings_of_senders__another_algorithm_or_tenant(senders):
    fabric = build("timely", [flow(1_000)])
    with pytest.raises(TuningError, match=r"settings\.senders\.\w: .*allowed: a: TimelyConfig"):
        fabric.apply(fabric.settings.model_copy(update={"senders": senders}))


def test_settings_from_plain_values():
    raw = build("hpcc", [flow(1_000)]).settings.model_dump()
    assert Settings.model_validate(raw).senders == {"a": HpccConfig()}


@pytest.mark.parametrize(
    ("cc", "tenant", "message"),
    [
        ("cubic", {}, "cc: must be 'dcqcn', 'timely', 'hpcc'"),
        ("dcqcn", {"timely": {}}, "timely is given, but cc = 'dcqcn'"),
        ("timely", {"timely": {"t_low_us": 9, "t_high_us": 8}}, r"t_high_us = 8.*at least"),
        ("timely", {"timely": {"t_low": 9}}, "t_low"),
        ("hpcc", {"hpcc": {"target_utilisation": 1.5}}, "target_utilisation.*1.5"),
        ("hpcc", {"window": {"follows_rate": False}}, "follows_rate"),
        ("dcqcn", {"window": {"bytes": 0}}, r"window\.bytes"),
        ("dcqcn", {"window": {"bytes": "two"}}, r"window\.bytes"),
    ],
)
def test_bad_input(cc, tenant, message):
    with pytest.raises(ConfigError, match=message):
        build(cc, [flow(1_000)], **tenant)


def test_bad_input__a_window_that_closes_before_an_ack():
    window = {"bytes": PAYLOAD, "follows_rate": False}
    with pytest.raises(ConfigError, match=r"tenants\.a\.window\.bytes = 4096.*at least 12289"):
        build("dcqcn", [flow(1_000)], nic={"ack_every": 4}, window=window)
    # In proportion to the rate it is made large enough, so nothing waits for a timeout.
    fabric = build(
        "dcqcn",
        [flow(40 * PAYLOAD)],
        nic={"ack_every": 4},
        window=window | {"follows_rate": True},
    )
    assert len(fabric.advance(us=200).completions) == 1
