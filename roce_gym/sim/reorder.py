"""Receivers other than the plain in-order one (rules, section 7).

Out of order, what lies beyond the first gap is kept as *spans*: the packet record of the first
arrival of each, chained by rising start, which stands for all that follows without a gap. There are
no more spans than gaps, and not more than the sender's window lets there be.
"""

from __future__ import annotations

from numpy import int64

from roce_gym.sim.answers import gap_is_new, send_ack, send_cnp, send_nack
from roce_gym.sim.collective import delivered
from roce_gym.sim.feedback import return_feedback
from roce_gym.sim.jit import rare
from roce_gym.sim.pool import free_packet
from roce_gym.sim.scheduler import serve_later
from roce_gym.sim.types import ACK, CE, GO_BACK_0, LAST, NONE, SELECTIVE, TRACED, ZERO
from roce_gym.sim.wheel import push_far


@rare
def take_in(s, out, p, payload, now):
    """A data packet has arrived. Returns the host's link if something was queued, or NONE."""
    params = s.params[0]
    packet = s.packet[p]
    qp = int64(packet["qp"])
    seq = packet["seq"]
    last = 1 if int64(packet["flags"]) & LAST != 0 else 0
    ce = int64(packet["flags"]) & CE
    traced = int64(packet["flags"]) & TRACED != 0
    notified = False
    if ce != 0 and params["cnp_packets"] == 1:
        notified = send_cnp(s, out, qp, now)
        ce = ZERO
    if params["receiving"] == GO_BACK_0:
        free_packet(s, p)
        answer = _or_start_over(s, out, qp, seq, payload, last, ce, now)
    else:
        answer = _in_any_order(s, out, p, payload, last, ce, now)
    if answer == NONE:
        return out if notified else NONE
    if traced:
        return_feedback(s, p, answer, now)
    return out


@rare
def _in_any_order(s, out, p, payload, last, ce, now):
    """Takes a packet in, or keeps it for later. Returns the ACK or NACK queued, or NONE."""
    qp = int64(s.packet[p]["qp"])
    seq = s.packet[p]["seq"]
    expected = s.receiver[qp]["expected"]
    if seq == expected:
        free_packet(s, p)
        return _in_order(s, out, qp, seq + payload, last, ce, now)
    if seq < expected or _is_held(s, qp, seq):
        free_packet(s, p)
        return send_ack(s, out, qp, ACK, ce, now)
    s.receiver[qp]["ce_seen"] |= ce
    _hold(s, qp, p, payload, last, now)
    return _report(s, out, qp, now)


@rare
def _or_start_over(s, out, qp, seq, payload, last, ce, now):
    """Go-back-0: a gap makes the message start over. Returns the ACK or NACK queued, or NONE."""
    receiver = s.receiver[qp]
    if seq == receiver["message_start"]:
        receiver["expected"] = seq
    if seq == receiver["expected"]:
        receiver["nack_seq"] = NONE
        ack = _in_order(s, out, qp, seq + payload, last, ce, now)
        if last == 1:
            receiver["message_start"] = seq + payload
        return ack
    if seq < receiver["expected"]:
        return send_ack(s, out, qp, ACK, ce, now)
    receiver["expected"] = receiver["message_start"]
    if not gap_is_new(receiver, now, s.params[0]["nack_interval_ps"]):
        return NONE
    return send_nack(s, out, qp, ce, now)


@rare
def _in_order(s, out, qp, end, messages, ce, now):
    """Takes in a packet at `expected`, and the first span if it follows."""
    receiver = s.receiver[qp]
    packets = 1
    if s.params[0]["receiving"] != GO_BACK_0:
        p = int64(s.held[qp]["first"])
        if p != NONE and s.span[p]["start"] == end:
            span = s.span[p]
            end = span["end"]
            packets += span["packets"]
            messages += span["messages"]
            s.held[qp]["first"] = s.packet[p]["next"]
            free_packet(s, p)
    receiver["expected"] = end
    receiver["ce_seen"] |= ce
    receiver["unacked"] += packets
    ack = NONE
    if messages > 0 or receiver["unacked"] >= s.params[0]["ack_every"]:
        ack = send_ack(s, out, qp, ACK, ZERO, now)
    for _ in range(messages):
        receiver["messages"] += 1
        delivered(s, qp, now)
    return ack


@rare
def _is_held(s, qp, seq):
    p = int64(s.held[qp]["first"])
    while p != NONE and s.span[p]["end"] <= seq:
        p = int64(s.packet[p]["next"])
    return p != NONE and s.span[p]["start"] <= seq


@rare
def _hold(s, qp, p, payload, last, now):
    """Adds a packet to the spans: to the one before it, or as a new one; joins it to the next."""
    seq = s.packet[p]["seq"]
    before = NONE
    after = int64(s.held[qp]["first"])
    while after != NONE and s.span[after]["start"] < seq:
        before = after
        after = int64(s.packet[after]["next"])
    if before != NONE and s.span[before]["end"] == seq:
        free_packet(s, p)
        span = s.span[before]
        span["end"] = seq + payload
        span["packets"] += 1
        span["messages"] += last
        p = before
    else:
        span = s.span[p]
        span["start"] = seq
        span["end"] = seq + payload
        span["packets"] = 1
        span["messages"] = last
        s.packet[p]["stamp"] = now
        s.packet[p]["next"] = after
        if before == NONE:
            s.held[qp]["first"] = p
        else:
            s.packet[before]["next"] = p
    if after != NONE and s.span[after]["start"] == span["end"]:
        following = s.span[after]
        span["end"] = following["end"]
        span["packets"] += following["packets"]
        span["messages"] += following["messages"]
        s.packet[p]["next"] = s.packet[after]["next"]
        free_packet(s, after)


@rare
def _report(s, out, qp, now):
    """Reports the first gap old enough; sees to the next one's timer. Returns the NACK, or NONE."""
    params = s.params[0]
    receiver = s.receiver[qp]
    selective = params["receiving"] == SELECTIVE
    if selective and now - receiver["nack_ps"] >= params["nack_interval_ps"]:
        receiver["nack_seq"] = receiver["expected"]
    p = int64(s.held[qp]["first"])
    gap = receiver["expected"]
    if selective:
        while p != NONE and gap < receiver["nack_seq"]:
            gap = s.span[p]["end"]
            p = int64(s.packet[p]["next"])
    elif not gap_is_new(receiver, now, params["nack_interval_ps"]):
        return NONE
    if p == NONE:
        return NONE
    if s.packet[p]["stamp"] + params["reorder_wait_ps"] > now:
        _arm(s, qp, s.packet[p]["stamp"] + params["reorder_wait_ps"])
        return NONE
    nack = send_nack(s, out, qp, ZERO, now)
    if selective:
        s.span[nack]["start"] = gap
        s.span[nack]["end"] = s.span[p]["start"]
        receiver["nack_seq"] = s.span[p]["start"]
        following = int64(s.packet[p]["next"])
        if following != NONE:
            _arm(s, qp, max(now, s.packet[following]["stamp"] + params["reorder_wait_ps"]))
    return nack


@rare
def _arm(s, qp, due_ps):
    if s.held[qp]["timer_armed"] == 1:
        return
    s.held[qp]["timer_armed"] = 1
    params = s.params[0]
    before = params["num_hosts"] + params["num_qps"] + params["num_members"] + s.job.size
    push_far(s, 2 * params["num_links"] + before + qp, due_ps)


@rare
def on_reorder_timer(s, qp, now):
    """A gap has been there for long: it is reported if it still is."""
    s.held[qp]["timer_armed"] = 0
    host = int64(s.held[qp]["host"])
    if _report(s, int64(s.host_link[host]), qp, now) != NONE:
        serve_later(s, host)
