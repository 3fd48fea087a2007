"""The throttle by occupancy, by hand; what each parameter does; that it keeps PFC from pausing."""

from __future__ import annotations

import pytest
from sender_runs import NO_ECN, delivered, incast, pauses
from test_hand_computed import ACK, FRAME, LINE, PAYLOAD, D, S, build, flow, flows, tenant

from roce_gym.sim import kernels

FIRST_ACK = 3 * S + 4 * D + 2 * ACK
"""Host 1's: its first packet waits for host 0's, see below."""
SECOND_ACK = FIRST_ACK + 2 * S

PARAMS = {"start_fraction": 0.2, "full_fraction": 0.6, "rate_ai_mbps": 1_000}


def two_to_one(threshold, **params):
    """Hosts 0 and 1 send two packets each to host 2, at once.

    Both arrive at S + D; that of host 0 goes on, the other one waits. At 2 S + D the second ones
    arrive, then the first of host 1 leaves, and behind it its second one is held. When the others
    leave, nothing is left at their inputs.
    """
    jobs = [flows(flow(0, 2, 2 * PAYLOAD), flow(1, 2, 2 * PAYLOAD))]
    sender = tenant("a", jobs, (0, 1, 2)) | {"cc": "int_throttle", "int_throttle": params}
    buffer = {"static_threshold_bytes": threshold, "reserved_bytes": 0}
    return build(tenants=[sender], nic={"ack_every": 1}, classes=[{"buffer": buffer}])


def rates(fabric, at_ps):
    return fabric.advance(ps=at_ps - fabric.now_ps).rate_bps.tolist()


@pytest.mark.nojit
@pytest.mark.parametrize("gain", [0.5, 1.0])
def test_the_rate_falls_in_proportion_between_the_fractions(gain):
    fabric = two_to_one(10_000, **PARAMS, gain=gain, update_interval_us=5)
    excess = (FRAME / 10_000 - 0.2) / (0.6 - 0.2)
    cut = int(LINE * (1 - gain * excess))
    assert rates(fabric, FIRST_ACK - 1) == [LINE, LINE]
    assert rates(fabric, FIRST_ACK) == [LINE, cut]
    # More than 5 us are over, so that the cut counts; the next packet met no queue.
    assert rates(fabric, SECOND_ACK) == [LINE, cut + 1_000_000_000]


@pytest.mark.nojit
def test_within_an_interval_every_ack_starts_from_the_same_rate():
    fabric = two_to_one(10_000, **PARAMS, update_interval_us=100)
    assert rates(fabric, FIRST_ACK)[1] < 0.5 * LINE
    assert rates(fabric, SECOND_ACK) == [LINE, LINE]


@pytest.mark.nojit
def test_what_is_in_headroom_counts_and_the_rate_has_a_floor():
    fabric = two_to_one(4_000, **PARAMS, min_rate_mbps=3_000)  # less than a packet
    assert rates(fabric, FIRST_ACK) == [LINE, 3_000_000_000]


@pytest.mark.nojit
def test_below_the_first_fraction_nothing_happens():
    fabric = two_to_one(10_000, start_fraction=0.42, full_fraction=0.6)
    assert rates(fabric, SECOND_ACK) == [LINE, LINE]


# --------------------------------------------------------------------------- PFC


PER_PACKET = {"nic": {"ack_every": 1}}
DYNAMIC, STATIC = {"alpha": 0.125}, {"static_threshold_bytes": 400_000}


def paused_and_throttled(senders, buffer, params, **run):
    run |= {"senders": senders, "size": 10**8, "us": 4_000}
    run |= {"classes": [{"ecn": NO_ECN, "buffer": buffer}]}
    return incast("none", {}, **run), incast("int_throttle", params, **run)


@pytest.mark.parametrize(
    ("senders", "buffer", "params"),
    [
        (4, DYNAMIC, {}),
        (8, DYNAMIC, {}),
        (4, STATIC, {}),
        (8, STATIC, {}),
        (16, DYNAMIC, {"start_fraction": 0.3, "full_fraction": 0.6}),
    ],
)
def test_it_keeps_an_incast_from_pausing_and_the_port_busy(senders, buffer, params):
    paused, throttled = paused_and_throttled(senders, buffer, params, **PER_PACKET)
    assert pauses(paused) > 100
    assert pauses(throttled) == 0
    assert delivered(throttled) > 0.95 * delivered(paused)


def test_coalesced_acks_are_early_enough_for_a_large_buffer():
    paused, throttled = paused_and_throttled(8, DYNAMIC, {}, nic={"ack_every": 16})
    assert pauses(paused) > 100
    assert pauses(throttled) == 0


def test_many_senders_at_once_need_earlier_fractions():
    # A sender hears something every 32 packets, in which 134 KB of its own may come. What is left
    # of the threshold is less from 60 % on, as it shrinks while all ports fill.
    early = {"start_fraction": 0.2, "full_fraction": 0.4}
    paused, late = paused_and_throttled(32, DYNAMIC, {}, **PER_PACKET)
    _, throttled = paused_and_throttled(32, DYNAMIC, early, **PER_PACKET)
    assert pauses(paused) > pauses(late) > 50 > 5 > pauses(throttled)


# --------------------------------------------------------------------------- none


@pytest.mark.nojit
def test_none_sends_at_the_rate_it_is_given_and_needs_no_full_kernel():
    def fabric_of(**params):
        jobs = [flows(flow(0, 1, 3 * PAYLOAD))]
        return build(tenants=[tenant("a", jobs) | {"cc": "none", "none": params}])

    full, half = fabric_of(), fabric_of(max_rate_mbps=50_000)
    assert kernels.is_plain(full._state)
    # The last packet starts two packets' times later, or four; its ACK comes back as ever.
    end = 2 * (S + D) + 2 * (ACK + D)
    assert full.advance(us=50).completions["end_ps"].tolist() == [end + 2 * S]
    assert half.advance(us=50).completions["end_ps"].tolist() == [end + 4 * S]


def test_none_is_what_dcqcn_is_that_is_switched_off():
    runs = [incast("none"), incast("dcqcn", {"enabled": False})]
    for name in ("tx_packets", "pause_frames", "delivered_bytes", "queue_max_bytes"):
        assert (getattr(runs[0], name) == getattr(runs[1], name)).all()
    assert runs[0].events == runs[1].events
