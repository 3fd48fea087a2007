"""Suspects: found where a fault was planted, and nowhere else."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from roce_gym.counters import Sampler
from roce_gym.diagnose import RULES, Recorder, Timeline, diagnose
from roce_gym.diagnose.suspect import longest_run, poisson_tail
from roce_gym.diagnose.timeline import Place
from roce_gym.diagnose.view import View
from roce_gym.fabric import Fabric
from roce_gym.scenario_file import load_scenario


@cache
def timeline_of(name, seed=0, *changes):
    scenario = load_scenario(name, seed, changes)
    fabric = Fabric(scenario, seed)
    sampler = Sampler(scenario, fabric.network, fabric.plan)
    recorder = Recorder(sampler)
    while fabric.now_ps < scenario.control.horizon_us * 1e6 and not fabric.is_deadlocked:
        sampler.add(fabric.advance(us=scenario.control.interval_us))
        recorder.add()
    return recorder.timeline()


def found(*case):
    return [(s.rule, s.device) for s in diagnose(timeline_of(*case))]


# --------------------------------------------------------------------------- scenarios


@pytest.mark.parametrize("seed", range(8))
def test_gray_failure(seed):
    """The fibre from switch 11 to switch 9."""
    timeline = timeline_of("gray_failure", seed)
    lost = np.nansum(timeline.values["SAI_PORT_STAT_IF_IN_ERRORS"][-1])
    assert lost > 0
    (one,) = diagnose(timeline)
    assert (one.rule, one.device, one.port) == ("corrupting_link", "switch 11", "Ethernet1")
    assert "from switch 11 to switch 9" in one.verdict
    assert f"received {lost:.0f} packets with a wrong checksum" in one.evidence[0]


SLOW = (
    "link_events=[{kind: slow, between: [11, 9], direction: forward, rate_gbps: 60}]",
    "control.horizon_us=20_000",
)


@pytest.mark.parametrize("seed", range(2))
def test_a_slow_fibre(seed):
    """Pauses rise, throughput does not."""
    first = diagnose(timeline_of("gray_failure", seed, *SLOW))[0]
    assert (first.rule, first.device, first.port) == ("slow_link", "switch 11", "Ethernet1")
    assert "sent at 60.0 Gb/s, 30 % of its speed" in first.evidence[0]


@pytest.mark.parametrize("seed", range(3))
def test_pfc_storm(seed):
    (one,) = diagnose(timeline_of("pfc_storm", seed))
    assert (one.rule, one.device, one.port) == ("storming_nic", "host 0", "eth0")
    assert "paused 100 % of the time for 10,000 us from 2,000 us on" in one.evidence[0]
    assert one.evidence[1].endswith("all other NICs together 0")


def test_pfc_storm_with_a_watchdog():
    watched = ("pfc.watchdog.enabled=true",)
    assert ("storming_nic", "host 0") in found("pfc_storm", 0, *watched)


def test_pfc_deadlock():
    (one,) = diagnose(timeline_of("pfc_deadlock"))
    assert one.rule == "pfc_deadlock"
    assert one.evidence[0].count("(to switch") == 3


def test_incast():
    suspects = diagnose(timeline_of("noisy_neighbor"))
    (hot,) = {s.device + s.port for s in suspects if s.rule == "incast"}
    storage = load_scenario("noisy_neighbor").tenants[1].hosts[0]
    assert [s.verdict for s in suspects] == [
        f"incast into host {storage}: more is sent to it than its link carries"
    ]
    assert hot


def test_ecmp_collision():
    assert set(found("spray_vs_ecmp")) == {("ecmp_collision", f"switch {i}") for i in range(16, 20)}
    assert found("spray_vs_ecmp", 0, "routing.policy=adaptive") == []


def test_exhausted_pool():
    assert ("exhausted_pool", "switch 12") in found("checkpoint_shared_buffer")
    larger = ("switch.buffer_bytes=64_000_000",)
    assert ("exhausted_pool", "switch 12") not in found("checkpoint_shared_buffer", 0, *larger)


def test_lossless_drops():
    few = ("classes.roce.headroom_bytes=0", "faults.storms=[]")
    suspects = [
        s for s in diagnose(timeline_of("pfc_storm", 0, *few)) if s.rule == "exhausted_pool"
    ]
    assert suspects == []  # headroom 0: SONiC would not call that lossless
    few = ("classes.roce.headroom_bytes=5000", "faults.storms=[]")
    suspects = [
        s for s in diagnose(timeline_of("pfc_storm", 0, *few)) if s.rule == "exhausted_pool"
    ]
    assert suspects and all("which is lossless" in s.evidence[-1] for s in suspects)


def test_silent_loss():
    """Packets overtake each other, and receivers take that for loss."""
    overtaking = ("routing.policy=spray_random", "nic.out_of_order=false")
    (one,) = [
        s for s in diagnose(timeline_of("spray_vs_ecmp", 0, *overtaking)) if s.rule == "silent_loss"
    ]
    assert "16 NICs were told of" in one.evidence[0]


HEALTHY = [
    ("gray_failure", "link_events=[]", "control.horizon_us=20_000"),
    ("pfc_storm", "faults.storms=[]"),
    ("spray_vs_ecmp", "routing.policy=adaptive"),
    ("rail_ring",),
]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("case", HEALTHY, ids=[case[0] for case in HEALTHY])
def test_nothing_suspicious(case, seed):
    name, *changes = case
    assert found(name, seed, *changes) == []


# --------------------------------------------------------------------------- made up


NAMES = {
    "sent": "SAI_QUEUE_STAT_BYTES:3",
    "packets": "SAI_QUEUE_STAT_PACKETS:3",
    "queue": "SAI_QUEUE_STAT_CURR_OCCUPANCY_BYTES:3",
    "peak": "SAI_QUEUE_STAT_SHARED_WATERMARK_BYTES:3",
    "paused": "SAI_PORT_STAT_PFC_3_RX_PAUSE_DURATION_US",
    "pfc": "SAI_PORT_STAT_PFC_3_TX_PKTS",
    "octets": "SAI_PORT_STAT_IF_IN_OCTETS",
    "good": "SAI_PORT_STAT_IF_IN_UCAST_PKTS",
    "errors": "SAI_PORT_STAT_IF_IN_ERRORS",
}
PLACES = (
    *(Place("leaf", f"Ethernet{i}", f"host {i}", 100.0) for i in range(2)),
    *(Place("leaf", f"Ethernet{2 + i}", f"spine {i}", 100.0) for i in range(2)),
    *(Place(f"spine {i}", "Ethernet0", "leaf", 100.0) for i in range(2)),
)
STEP_US, STEPS = 100.0, 20
FULL_BYTES = 100e9 / 8 * STEP_US * 1e-6


def made_up(**by_interval):
    """A timeline of switches only; values by interval and port, 0 unless given."""
    values = {}
    for key, name in NAMES.items():
        rows = np.zeros((STEPS, len(PLACES)))
        rows += by_interval.get(key, 0.0)
        first = np.zeros((1, len(PLACES)))
        is_gauge = key in ("queue", "peak")
        values[name] = np.vstack([rows[:1] if is_gauge else first, rows])
        if not is_gauge:
            values[name] = np.cumsum(values[name], axis=0)
    return Timeline(STEP_US * np.arange(STEPS + 1), PLACES, values)


def rows(port, value, steps=STEPS, other=0.0):
    out = np.full((STEPS, len(PLACES)), other)
    out[:steps, port] = value
    return out


def rules_of(timeline):
    return [suspect.rule for suspect in diagnose(timeline)]


def test_an_idle_fabric():
    assert rules_of(made_up()) == []


@pytest.mark.parametrize(
    ("errors", "gigabytes", "named"), [(1, 1, True), (1, 100, False), (9, 100, True)]
)
def test_errors_that_a_good_link_has(errors, gigabytes, named):
    """A bit error rate of 1e-12 is 0.8 packets in 100 GB."""
    octets = rows(3, gigabytes * 1e9 / STEPS)
    timeline = made_up(errors=rows(3, errors, steps=1), octets=octets, good=octets / 1000)
    assert rules_of(timeline) == ["corrupting_link"] * named
    if named:
        assert diagnose(timeline)[0].device == "spine 1"


@pytest.mark.parametrize(
    ("share", "queue", "paused", "steps", "named"),
    [
        (0.5, 1e6, 0.0, 3, True),
        (0.5, 1e6, 0.0, 2, False),
        (0.8, 1e6, 0.0, 20, False),
        (0.5, 5e4, 0.0, 20, False),
        (0.5, 1e6, 0.2, 20, False),
    ],
)
def test_slow_link(share, queue, paused, steps, named):
    """Needs a backlog, no pause, low throughput, all of it for a while."""
    timeline = made_up(
        sent=rows(3, share * FULL_BYTES),
        queue=rows(3, queue, steps),
        paused=rows(3, paused * STEP_US),
    )
    # A gauge stands at both ends of an interval, so that n samples in a row span n - 1 intervals,
    # and the first sample is there twice.
    assert rules_of(timeline) == ["slow_link"] * named


@pytest.mark.parametrize(("us", "named"), [(900, False), (1100, True)])
def test_storms_are_longer_than_three_holds(us, named):
    """65,535 quanta of 512 bits are 335.5 us at 100 Gb/s."""
    timeline = made_up(paused=rows(0, STEP_US, steps=us // 100))
    assert rules_of(timeline) == ["storming_nic"] * named


def test_two_ports_that_pause_each_other_are_no_deadlock():
    """Both ways may be full, but nothing goes back where it came from."""
    paused = rows(2, STEP_US) + rows(4, STEP_US)
    assert rules_of(made_up(paused=paused)) == []


TRIANGLE = [(0, 1), (1, 2), (2, 0)]


@pytest.mark.parametrize(
    ("stuck", "storm", "expected"),
    [
        (TRIANGLE, False, ["pfc_deadlock"]),
        (TRIANGLE[:2], False, []),
        (TRIANGLE, True, ["storming_nic"]),
    ],
)
def test_deadlock_is_a_circle_that_no_nic_explains(stuck, storm, expected):
    ends = [*TRIANGLE, *((b, a) for a, b in TRIANGLE)]
    places = [Place(f"s{a}", f"to{b}", f"s{b}", 100.0) for a, b in ends]
    places += [Place(f"s{i}", "down", f"host {i}", 100.0) for i in range(3)]
    shares = np.zeros((STEPS, len(places)))
    shares[:, [ends.index(pair) for pair in stuck]] = STEP_US
    shares[:, 6] = STEP_US * storm
    first = np.zeros((1, len(places)))
    values = {
        NAMES["paused"]: np.cumsum(np.vstack([first, shares]), axis=0),
        NAMES["sent"]: np.zeros((STEPS + 1, len(places))),
        NAMES["packets"]: np.zeros((STEPS + 1, len(places))),
    }
    timeline = Timeline(STEP_US * np.arange(STEPS + 1), tuple(places), values)
    assert rules_of(timeline) == expected


def test_a_slow_receiver_is_no_storm():
    assert rules_of(made_up(paused=rows(0, 0.8 * STEP_US))) == []


@pytest.mark.parametrize(
    ("full", "other", "steps", "peak_us", "named"),
    [
        (1.0, 0.3, 20, 12, True),
        (1.0, 0.6, 20, 12, False),
        (0.9, 0.3, 20, 12, False),
        (1.0, 0.3, 2, 12, False),
        (1.0, 0.3, 20, 8, False),
    ],
)
def test_ecmp_collision_needs_a_queue_and_room_elsewhere(full, other, steps, peak_us, named):
    sent = rows(2, full * FULL_BYTES, steps) + rows(3, other * FULL_BYTES)
    timeline = made_up(sent=sent, peak=rows(2, 100e9 / 8e6 * peak_us))
    assert rules_of(timeline) == ["ecmp_collision"] * named


def test_a_paused_uplink_is_no_room():
    sent = rows(2, FULL_BYTES) + rows(3, 0.3 * FULL_BYTES)
    peak = rows(2, 100e9 / 8e6 * 12)
    assert rules_of(made_up(sent=sent, peak=peak, paused=rows(3, 0.5 * STEP_US))) == []


@pytest.mark.parametrize(
    ("peak_us", "feeding", "named"), [(60, (2, 3), True), (40, (2, 3), False), (60, (2,), False)]
)
def test_incast_needs_a_queue_and_several_who_feed_it(peak_us, feeding, named):
    octets = sum(rows(port, 0.5 * FULL_BYTES) for port in feeding)
    timeline = made_up(sent=rows(0, FULL_BYTES), peak=rows(0, 100e9 / 8e6 * peak_us), octets=octets)
    assert rules_of(timeline) == ["incast"] * named


def test_rules_do_without_columns():
    """Each counter may be missing; what needs it is silent then, and nothing fails."""
    full = timeline_of("pfc_storm")
    for name in full.values:
        values = {key: value for key, value in full.values.items() if key != name}
        rules = rules_of(replace(full, values=values))
        assert rules == ([] if name.endswith("RX_PAUSE_DURATION_US") else ["storming_nic"]), name
    assert rules_of(replace(full, values={})) == []


def test_only_what_operators_have():
    """No rule reads anything but the columns of the timeline."""
    names = {name.replace("3", "{p}") for name in timeline_of("pfc_storm").values}
    assert "SAI_PORT_STAT_PFC_{p}_TX_PKTS" in names
    assert not any("tenant" in name or "qp" in name for name in names)


# --------------------------------------------------------------------------- helpers


def test_parallel_cables_face_each_other_in_order():
    places = [Place("a", f"p{i}", "b", 1.0) for i in range(2)]
    places += [Place("b", f"q{i}", "a", 1.0) for i in range(2)] + [Place("a", "p2", "c", 1.0)]
    view = View(Timeline(np.arange(2.0), tuple(places), {}))
    assert view.facing.tolist() == [2, 3, 0, 1, -1]


def test_longest_run():
    mask = np.array([1, 0, 1, 1, 0, 1, 1], bool)
    assert np.flatnonzero(longest_run(mask)).tolist() == [2, 3]
    assert not longest_run(np.zeros(3, bool)).any()


@pytest.mark.parametrize(
    ("count", "expected", "value"),
    [(1, 0.5, 0.3934693), (3, 1.0, 0.0803014), (1, 1e-9, 1e-9), (2, 1e-9, 5e-19), (3, 5.0, 1.0)],
)
def test_poisson_tail(count, expected, value):
    """P(X >= n) from tables; where more is expected than was seen, 1 is good enough."""
    assert poisson_tail(count, expected) == pytest.approx(value, rel=1e-3)


def test_every_rule_has_a_word_about_itself():
    assert all(rule.__doc__ for rule in RULES.values())
