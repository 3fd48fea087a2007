"""Loss, reordering and changing cables, with times worked out on paper.

One message of six packets over a switch: 8 Gb/s is a nanosecond a byte, a packet has 1,000 bytes
and no header, cables have no delay. Packet `k` leaves the sender until `k + 1` us and is at the
receiver at `k + 2` us. Packet 2 is lost: the receiver's cable is down from 3.5 to 4.5 us. An ACK or
NACK has one byte and takes 2 ns.
"""

from __future__ import annotations

import pytest

from roce_gym.config import validate_scenario
from roce_gym.fabric import Fabric

pytestmark = pytest.mark.nojit

PACKETS = 6
LOST = {"kind": "down", "between": [2, 0], "start_us": 3.5, "stop_us": 4.5}
NIC = {
    "mtu_bytes": 1000,
    "header_bytes": 0,
    "ack_bytes": 1,
    "interframe_gap_bytes": 0,
    "ack_every": 1,
}


def run(*events, us=100, **nic):
    raw = {
        "name": "by hand",
        "topology": {"kind": "star", "hosts": 2, "host_rate_gbps": 8, "link_delay_ns": 0},
        "nic": NIC | nic,
        "preset": "pfc_only",
        "link_events": list(events),
        "tenants": [
            {
                "name": "only",
                "hosts": [0, 1],
                "jobs": [
                    {
                        "kind": "incast",
                        "bytes": PACKETS * 1000,
                        "degree": 1,
                        "period_us": 1,
                        "rounds": 1,
                    }
                ],
            }
        ],
    }
    fabric = Fabric(validate_scenario(raw))
    interval = fabric.advance(us=us)
    ends = interval.completions["end_ps"] / 1e6
    sent = int(interval.tx_packets[fabric.network.host_link[1], 0])
    return pytest.approx(ends.tolist()), sent, int(interval.nacks.sum()), interval


def test_nothing_happens():
    ends, sent, nacks, _ = run()
    assert (ends, sent, nacks) == ([PACKETS + 1], PACKETS, 0)


def test_go_back_n():
    """NACK at 5 us; packet 5 is under way; from 6 us on 2, 3, 4, 5 again."""
    ends, sent, nacks, interval = run(LOST)
    assert (ends, sent, nacks) == ([6 + 4 + 1], PACKETS + 4, 1)
    assert interval.lost_packets.sum() == 1


def test_go_back_0():
    """From 6 us on, everything again."""
    ends, sent, nacks, _ = run(LOST, recovery="go_back_0")
    assert (ends, sent, nacks) == ([6 + 6 + 1], PACKETS + 6, 1)


def test_selective_repeat():
    """From 6 us on, packet 2 only; it is the last to arrive."""
    ends, sent, nacks, _ = run(
        LOST, recovery="selective_repeat", out_of_order=True, reorder_wait_us=0
    )
    assert (ends, sent, nacks) == ([6 + 1 + 1], PACKETS + 1, 1)


def test_go_back_n_to_a_receiver_that_kept_the_rest():
    """2, 3 and 4 again; then the ACK of everything is there, at 8.002 us."""
    ends, sent, nacks, _ = run(LOST, out_of_order=True, reorder_wait_us=0)
    assert (ends, sent, nacks) == ([6 + 1 + 1], PACKETS + 3, 1)


def test_a_gap_is_reported_when_it_is_old_enough():
    """Packet 3 is there at 5 us, its gap a loss at 6.5 us; resent at 6.502 us."""
    ends, sent, nacks, _ = run(
        LOST, recovery="selective_repeat", out_of_order=True, reorder_wait_us=1.5
    )
    assert (ends, sent, nacks) == ([6.502 + 2], PACKETS + 1, 1)


def test_two_gaps_are_two_reports():
    """Packets 2 and 4 are lost. 3 reports [2] at 5 us, 5 reports [4] at 7 us, 7.002 us at home."""
    again = LOST | {"start_us": 5.5, "stop_us": 6.5}
    ends, sent, nacks, _ = run(
        LOST, again, recovery="selective_repeat", out_of_order=True, reorder_wait_us=0
    )
    assert (ends, sent, nacks) == ([7.002 + 2], PACKETS + 2, 2)


def test_a_lost_tail_waits_for_the_timeout():
    """Packet 5 is lost. Nothing comes after it; the last ACK is home at 6.002 us."""
    tail = LOST | {"start_us": 6.5, "stop_us": 7.5}
    for recovery, out_of_order in (("go_back_n", False), ("selective_repeat", True)):
        ends, sent, nacks, _ = run(
            tail, recovery=recovery, out_of_order=out_of_order, retransmit_timeout_us=20
        )
        assert (ends, sent, nacks) == ([6.002 + 20 + 2], PACKETS + 1, 0)


def test_a_slow_cable():
    """From 2.5 us on the switch needs 2 us a packet: packets 2 to 5."""
    slow = {"kind": "slow", "between": [2, 0], "start_us": 2.5, "rate_gbps": 4}
    assert run(slow)[0] == [3 + 2 * 4]
    assert run(slow | {"stop_us": 4})[0] == [3 + 2 + 3]


def test_the_way_of_acks_only():
    """A loss of all in one direction: data is there in time, nobody says so."""
    lossy = {"kind": "lossy", "between": [0, 2], "loss": 1.0, "direction": "forward"}
    ends, _, _, interval = run(lossy)
    assert ends == [PACKETS + 1]
    assert interval.acked_bytes.sum() == 0
    assert interval.delivered_bytes.sum() == PACKETS * 1000


def test_loss_from_the_beginning_holds_for_the_first_packet():
    """Packet 1 is there at 3 us; the NACK finds 3 under way; from 4 us on all again."""
    ends, sent, nacks, _ = run({"kind": "lossy", "between": [1, 2], "loss": 1.0, "stop_us": 1.5})
    assert (ends, sent, nacks) == ([4 + 6 + 1], 4 + 6, 1)


def test_the_window_of_a_receiver_of_any_order():
    """Two packets, then the sender waits for the ACK of the first, which is there at 2.002 us."""
    ends, sent, *_ = run(out_of_order=True, reorder_window_packets=2)
    assert sent == PACKETS
    assert ends == [2.002 * 2 + 3]
