"""Pauses that expire, storms and watchdogs, worked out on paper; see `test_hand_computed.py`.

With 1,000 quanta a pause holds 64,000 bytes x 80 ps = 5.12 us and is sent again after half of it.
A PAUSE that host 1 sends at 0 stops link 3, from the switch to host 1, at PFC + D = 1,006,720 ps.
"""

from __future__ import annotations

import pytest
from test_hand_computed import BACK, FRAME, PFC, D, S, build, ends, flow, flows

US = 1_000_000
HOLD = 5_120_000
STOPS = PFC + D
TO_1 = (3, 0)  # switch to host 1: link and class

pytestmark = pytest.mark.nojit


def storm(start_us=0.0, stop_us=None, host=1):
    given = {"host": host, "traffic_class": "roce", "start_us": start_us, "stop_us": stop_us}
    return {"storms": [given]}


def watchdog(action="drop", **more):
    times = {"poll_us": 10, "detection_us": 20, "restoration_us": 10}
    return {"enabled": True, "action": action} | times | more


def stormy(*jobs, quanta=1_000, dog=None, stop_us=None, **more):
    pfc = {"quanta": quanta, "watchdog": dog or {}}
    return build(*jobs, pfc=pfc, faults=storm(stop_us=stop_us), **more)


ONE_PACKET = flows(flow(0, 1, 4_096))
TWO_PACKETS = flows(flow(0, 1, 2 * 4_096))


# --------------------------------------------------------------------------- pauses


def test_a_pause_expires():
    # PAUSEs at 0 and 2.56 us; the second one holds for 5.12 us after it has arrived.
    interval = stormy(ONE_PACKET, stop_us=4).advance(us=100)
    over = HOLD // 2 + STOPS + HOLD
    assert ends(interval) == [over + S + D + BACK]
    assert interval.pause_frames[TO_1] == 2 and interval.resume_frames[TO_1] == 0
    assert interval.paused_ps[TO_1] == over - STOPS
    assert interval.first_pause_ps[TO_1] == 0
    assert (interval.first_pause_ps >= 0).sum() == 1


def test_a_pause_without_quanta_holds_until_resumed():
    # One PAUSE at 0, one RESUME at 4 us.
    interval = stormy(ONE_PACKET, quanta=0, stop_us=4).advance(us=100)
    assert ends(interval) == [4 * US + STOPS + S + D + BACK]
    assert interval.pause_frames[TO_1] == interval.resume_frames[TO_1] == 1
    assert stormy(ONE_PACKET, quanta=0).advance(us=1_000).delivered_bytes.sum() == 0


@pytest.mark.parametrize("quanta", [500, 1_000, 65_535])
def test_more_quanta_pause_longer_with_fewer_frames(quanta):
    interval = stormy(ONE_PACKET, quanta=quanta, stop_us=4).advance(us=1_000)
    hold = quanta * 5_120
    frames = -(-4 * US // (hold // 2))
    assert interval.pause_frames[TO_1] == frames
    assert interval.paused_ps[TO_1] == (frames - 1) * (hold // 2) + hold


def test_a_switch_refreshes_while_it_has_to_pause():
    # Nothing leaves for host 1. The second packet from host 0 passes the threshold at 2 S + D; the
    # PAUSE arrives when the ninth packet has just been started. Then there are refreshes only.
    fabric = stormy(
        flows(flow(0, 1, 10**6)),
        classes=[{"buffer": {"static_threshold_bytes": 8_000, "reserved_bytes": 0}}],
    )
    interval = fabric.advance(us=20)
    told = 2 * S + D
    assert 8 * S < told + STOPS < 9 * S
    assert interval.tx_packets[0, 0] == 9
    assert interval.pause_frames[0, 0] == 1 + (20 * US - told) // (HOLD // 2) == 8
    assert interval.first_pause_ps[0, 0] == told
    assert interval.paused_ps[0, 0] == 20 * US - told - STOPS
    # One packet fits below the threshold, the second and all that follow are in headroom.
    assert interval.ingress_max_bytes[0, 0] == FRAME
    assert interval.ingress_max_limit_bytes[0, 0] == 8_000
    assert interval.headroom_max_bytes[0, 0] == interval.headroom_bytes[0, 0] == 8 * FRAME
    assert interval.dropped_packets.sum() == 0
    later = fabric.advance(us=20)
    assert later.tx_packets[0, 0] == 0 and later.ingress_max_bytes[0, 0] == FRAME
    assert later.first_pause_ps[0, 0] == told


@pytest.mark.parametrize(("fraction", "has_drops"), [(0.5, False), (0.99, True)])
def test_a_refresh_that_comes_too_late_costs_packets(fraction, has_drops):
    # Host 2 sends to host 0: a refresh may wait for a frame of 334 ns. At 0.99 it has 51 ns.
    fabric = build(
        flows(flow(0, 1, 10**7), flow(2, 0, 10**7)),
        classes=[{"buffer": {"static_threshold_bytes": 8_000, "reserved_bytes": 0}}],
        pfc={"quanta": 1_000, "refresh_fraction": fraction},
        faults=storm(),
    )
    assert (fabric.advance(us=400).dropped_packets.sum() > 0) == has_drops


# --------------------------------------------------------------------------- watchdog


def test_a_watchdog_finds_a_storm_at_its_third_poll():
    # Paused since 1 us: not for all of the poll interval at 10 us; at 20 and 30 us it is.
    fabric = stormy(TWO_PACKETS, dog=watchdog())
    assert fabric.advance(ps=30 * US - 1).watchdog_storms.sum() == 0
    interval = fabric.advance(ps=1)
    assert interval.watchdog_storms[TO_1] == interval.watchdog_storms.sum() == 1
    assert interval.watchdog_dropped_packets[TO_1] == 2
    assert interval.queue_bytes[TO_1] == interval.ingress_bytes.sum() == 0
    assert interval.dropped_packets.sum() == 0


@pytest.mark.parametrize(("poll", "detection", "found"), [(10, 10, 20), (10, 50, 60), (5, 5, 10)])
def test_a_storm_is_found_after_the_detection_time(poll, detection, found):
    fabric = stormy(TWO_PACKETS, dog=watchdog(poll_us=poll, detection_us=detection))
    assert fabric.advance(ps=found * US - 1).watchdog_storms.sum() == 0
    assert fabric.advance(ps=1).watchdog_storms.sum() == 1


@pytest.mark.parametrize(("restoration", "over"), [(10, 50), (30, 70)])
def test_a_storm_is_over_after_the_restoration_time(restoration, over):
    # The last PAUSE, sent at 33.28 us, is heard before the poll at 40 us: quiet from there on.
    fabric = stormy(TWO_PACKETS, dog=watchdog(restoration_us=restoration), stop_us=35)
    assert fabric.advance(ps=over * US - 1).watchdog_restored.sum() == 0
    assert fabric.advance(ps=1).watchdog_restored[TO_1] == 1
    assert fabric._state.core[0]["dropping"] == 0
    # Nobody is dropped any more: go-back-N after a timeout would get through.
    assert fabric.advance(us=100).watchdog_storms.sum() == 0


def test_drop__what_goes_to_the_port_and_what_comes_in_there():
    late = flows(
        flow(0, 1, 2 * 4_096), flow(0, 1, 4_096, start_us=32), flow(1, 2, 4_096, start_us=32)
    )
    fabric = stormy(late, dog=watchdog())
    interval = fabric.advance(us=60)
    assert interval.watchdog_dropped_packets[TO_1] == 2 + 1 + 1
    assert interval.watchdog_dropped_packets.sum() == 4
    assert interval.delivered_bytes.sum() == 0


def test_drop__ends_with_the_storm():
    # The retransmission timers bring back what was dropped.
    fabric = stormy(TWO_PACKETS, dog=watchdog(), stop_us=35, nic={"retransmit_timeout_us": 100})
    interval = fabric.advance(us=200)
    assert interval.watchdog_storms[TO_1] == interval.watchdog_restored[TO_1] == 1
    assert interval.delivered_bytes.sum() == 2 * 4_096
    assert fabric.flows_done == 1


def test_forward__sends_in_spite_of_pauses():
    interval = stormy(TWO_PACKETS, dog=watchdog("forward")).advance(us=200)
    assert ends(interval) == [30 * US + 2 * S + D + BACK]
    assert interval.watchdog_storms[TO_1] == 1
    assert interval.watchdog_dropped_packets.sum() == 0
    assert interval.paused_ps[TO_1] == 200 * US - STOPS  # what the far end says is counted


def test_alert__only_counts():
    interval = stormy(TWO_PACKETS, dog=watchdog("alert")).advance(us=200)
    assert interval.watchdog_storms[TO_1] == 1
    assert interval.watchdog_dropped_packets.sum() == interval.delivered_bytes.sum() == 0


def test_a_queue_that_is_paused_and_empty_is_not_in_a_storm():
    interval = stormy(flows(flow(0, 2, 10**6)), dog=watchdog()).advance(us=200)
    assert interval.watchdog_storms.sum() == 0
    assert interval.delivered_bytes.sum() == 10**6


def test_pauses_that_end_in_time_are_no_storm():
    # An incast is paused and resumed all the time, with packets waiting.
    many = flows(*(flow(i, 0, 10**6) for i in (1, 2)))
    pfc = {"watchdog": watchdog()}
    buffer = {"static_threshold_bytes": 8_000}
    interval = build(many, pfc=pfc, classes=[{"buffer": buffer}]).advance(us=300)
    assert interval.pause_frames.sum() > 20
    assert interval.watchdog_storms.sum() == interval.dropped_packets.sum() == 0
