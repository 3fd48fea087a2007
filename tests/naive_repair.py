"""Receivers and senders of the oracle that are not plain go-back-N (7), slow and plain."""

from __future__ import annotations

from typing import Any

from roce_gym.units import us_to_ps


def take_in(sim: Any, qp: Any, packet: Any, t: int) -> bool:
    """Takes in a data packet; whether an ACK or NACK was queued."""
    if sim.nic.recovery == "go_back_0":
        return _or_start_over(sim, qp, packet, t)
    if packet.seq == qp.expected:
        qp.held[packet.seq] = (packet, t)
        return _advance(sim, qp, packet, t)
    if packet.seq < qp.expected or packet.seq in qp.held:
        qp.ce_seen = qp.ce_seen or packet.ce
        sim._send_control("ACK", qp, packet, t)
        return True
    qp.held[packet.seq] = (packet, t)
    qp.ce_seen = qp.ce_seen or packet.ce
    return report(sim, qp, packet, t)


def _advance(sim: Any, qp: Any, packet: Any, t: int) -> bool:
    """Goes on to the next gap."""
    messages = 0
    qp.ce_seen = qp.ce_seen or packet.ce
    while qp.expected in qp.held:
        taken, _ = qp.held.pop(qp.expected)
        qp.expected += taken.payload
        qp.unacked_packets += 1
        messages += taken.last
    answered = messages > 0 or qp.unacked_packets >= sim.nic.ack_every
    if answered:
        sim._send_control("ACK", qp, packet, t)
    job, lane, position = sim.qp_job[qp.id]
    for _ in range(messages):
        job.on_delivered(lane, position, t)
    return answered


def gaps_of(qp: Any) -> list[tuple[int, int, int]]:
    """Start and end of each gap below something held, and since when that has been there."""
    gaps, reached = [], qp.expected
    for seq in sorted(qp.held):
        packet, since = qp.held[seq]
        if seq > reached:
            gaps.append((reached, seq, since))
        reached = seq + packet.payload
    return gaps


def report(sim: Any, qp: Any, packet: Any, t: int) -> bool:
    """Reports the first gap that is to be, if it is old enough; sees to the timer.

    `packet` is the data packet that came just now; None after a timer.
    """
    interval, wait = us_to_ps(sim.nic.nack_interval_us), us_to_ps(sim.nic.reorder_wait_us)
    selective = sim.nic.recovery == "selective_repeat"
    is_long_ago = t - (qp.last_nack[1] if qp.last_nack else 0) >= interval
    gaps = gaps_of(qp)
    if selective:
        if is_long_ago:
            qp.reported = qp.expected
        gaps = [gap for gap in gaps if gap[0] >= qp.reported]
    elif qp.last_nack and qp.last_nack[0] == qp.expected and not is_long_ago:
        return False
    if not gaps:
        return False
    start, end, since = gaps[0]
    if since + wait > t:
        _arm(sim, qp, since + wait)
        return False
    qp.last_nack = (qp.expected, t)
    sim._send_control("NACK", qp, packet, t).gap = (start, end)
    if selective:
        qp.reported = end
        if len(gaps) > 1:
            _arm(sim, qp, max(t, gaps[1][2] + wait))
    return True


def _arm(sim: Any, qp: Any, t: int) -> None:
    if not qp.reorder_timer:
        qp.reorder_timer = True
        sim.set_reorder_timer(qp, t)


def _or_start_over(sim: Any, qp: Any, packet: Any, t: int) -> bool:
    if packet.seq == qp.message_start:
        qp.expected = packet.seq
    if packet.seq == qp.expected:
        qp.last_nack = None
        if packet.last:
            qp.message_start = packet.seq + packet.payload
        qp.held[packet.seq] = (packet, t)
        return _advance(sim, qp, packet, t)
    if packet.seq < qp.expected:
        qp.ce_seen = qp.ce_seen or packet.ce
        sim._send_control("ACK", qp, packet, t)
        return True
    qp.expected = qp.message_start
    last, interval = qp.last_nack, us_to_ps(sim.nic.nack_interval_us)
    if last is not None and last[0] == qp.expected and t - last[1] < interval:
        return False
    qp.last_nack = (qp.expected, t)
    qp.ce_seen = qp.ce_seen or packet.ce
    sim._send_control("NACK", qp, packet, t)
    return True


def on_nack(sim: Any, qp: Any, packet: Any, before: int) -> None:
    """What a NACK makes the sender send again; `before` is `snd_una` before it came."""
    if sim.nic.recovery == "selective_repeat":
        if packet.seq >= before:
            qp.gaps.append(packet.gap)
    elif packet.seq >= before:
        qp.snd_nxt = qp.snd_una
    elif sim.nic.recovery == "go_back_0" and qp.messages and packet.seq >= message_start(qp):
        qp.snd_una = qp.snd_nxt = packet.seq


def message_start(qp: Any) -> int:
    """First byte of the sender's oldest message not acknowledged."""
    return qp.messages[0].end - qp.messages[0].bytes


def on_timeout(sim: Any, qp: Any) -> None:
    """Before a sender goes back to `snd_una`."""
    qp.gaps.clear()
    if sim.nic.recovery == "go_back_0":
        qp.snd_una = message_start(qp)
