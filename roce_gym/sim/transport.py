"""Reliable transport: what a host does with a packet that arrives (rules, section 7)."""

from __future__ import annotations

from numpy import int64

from roce_gym.sim.answers import gap_is_new, send_ack, send_cnp, send_nack
from roce_gym.sim.cc import events
from roce_gym.sim.collective import delivered
from roce_gym.sim.credit import take_demand
from roce_gym.sim.feedback import return_feedback
from roce_gym.sim.jit import helper, rare
from roce_gym.sim.latency import count_latency, count_packet
from roce_gym.sim.nic import arm_retransmission, fail
from roce_gym.sim.pool import free_message, free_packet
from roce_gym.sim.reorder import take_in
from roce_gym.sim.resend import forget_requests, message_start, request, trim
from roce_gym.sim.scheduler import activate, next_send_moved, sendable, serve_later, withdraw
from roce_gym.sim.types import (
    ACK,
    ASKS,
    CC_NONE,
    CE,
    CNP,
    DATA,
    DEMANDS,
    ECHO,
    FAILED,
    FLOWS,
    FOREVER,
    GO_BACK_0,
    IN_ORDER,
    LAST,
    LATENCY_MESSAGE,
    NACK,
    NONE,
    OWN_WINDOW,
    RATE_WINDOW,
    SELECTIVE,
    TRACED,
    ZERO,
)


@helper
def receive(s, link, p, now):
    """A packet has arrived at a host. Returns the host's link if it should be served, or NONE."""
    packet = s.packet[p]
    kind = packet["kind"]
    qp = int64(packet["qp"])
    seq = packet["seq"]
    flags = int64(packet["flags"])
    if kind == DATA:
        payload = packet["size"] - s.params[0]["header"]
        if not s.plain and s.params[0]["latency"] == 1:
            count_packet(s, p, now)
        if not s.plain and s.params[0]["receiving"] != IN_ORDER:
            return take_in(s, link ^ 1, p, payload, now)
        free_packet(s, p)
        return _on_data(s, link ^ 1, p, qp, seq, payload, flags, now)
    if not s.plain and kind == NACK and s.params[0]["receiving"] >= SELECTIVE:
        _on_special_nack(s, p, now)
        return link ^ 1
    free_packet(s, p)
    if kind == CNP:
        _notify(s, qp, now)
        return NONE
    _take_answer(s, p, qp, seq, kind, flags, now)
    return link ^ 1


@helper
def _take_answer(s, p, qp, seq, kind, flags, now):
    if not s.plain and flags & TRACED != 0:
        _on_traced_ack(s, p, qp, seq, kind, flags, now)
    else:
        _on_ack(s, qp, seq, kind, flags, now)
        activate(s, qp, now)


@rare
def _on_special_nack(s, p, now):
    """A NACK that does not mean go-back-N: resend the gap it reports, or the whole message."""
    packet = s.packet[p]
    qp = int64(packet["qp"])
    seq = packet["seq"]
    stale = seq < s.sender[qp]["snd_una"]
    flags = int64(packet["flags"])
    if s.params[0]["receiving"] == SELECTIVE:
        if stale or s.sender[qp]["state"] == FAILED:
            free_packet(s, p)
        else:
            request(s, qp, p)
        _take_answer(s, p, qp, seq, ACK, flags, now)
        return
    free_packet(s, p)
    if stale and seq >= message_start(s, qp):
        s.sender[qp]["snd_una"] = seq
    _take_answer(s, p, qp, seq, NACK, flags, now)


@helper
def _on_data(s, out, p, qp, seq, payload, flags, now):
    """PRECONDITION: p was freed just now."""
    params = s.params[0]
    receiver = s.receiver[qp]
    answered = False
    ack = NONE
    demand = ZERO
    limit = ZERO
    if not s.plain and flags & DEMANDS != 0:
        demand = s.credit[2 * p]
        limit = s.credit[2 * p + 1]
    ce = flags & CE
    if ce != 0 and params["cnp_packets"] == 1 and flags & ASKS == 0:
        answered = send_cnp(s, out, qp, now)
        ce = ZERO
    if seq == receiver["expected"]:
        receiver["expected"] = seq + payload
        receiver["ce_seen"] |= ce
        receiver["unacked"] += 1
        last = flags & LAST
        if flags & (LAST | ASKS) != 0 or receiver["unacked"] >= params["ack_every"]:
            ack = send_ack(s, out, qp, ACK, ZERO, now)
        if last != 0:
            receiver["messages"] += 1
            delivered(s, qp, now)
    elif seq < receiver["expected"]:
        ack = send_ack(s, out, qp, ACK, ce, now)
    elif gap_is_new(receiver, now, params["nack_interval_ps"]):
        ack = send_nack(s, out, qp, ce, now)
    if ack != NONE:
        answered = True
        if not s.plain and flags & TRACED != 0:
            return_feedback(s, p, ack, now)
    if not s.plain and flags & DEMANDS != 0:
        take_demand(s, int64(s.link[out]["src"]), qp, seq + payload, demand, limit, now)
    return out if answered else NONE


@helper
def _notify(s, qp, now):
    s.qp[qp]["cnps"] += 1
    if s.sender[qp]["cc"] != CC_NONE:
        events.on_cnp(s, qp, now)


@helper
def _on_ack(s, qp, seq, kind, flags, now):
    sender = s.sender[qp]
    if flags & ECHO != 0:
        _notify(s, qp, now)
    stale = seq < sender["snd_una"]
    if seq > sender["snd_una"]:
        sender["snd_una"] = seq
        sender["progress_ps"] = now
        sender["retries"] = 0
        if sender["oldest_end"] <= seq:
            _complete(s, qp, now)
        if sender["snd_nxt"] < seq:  # an ACK of bytes sent before a go-back
            go_back(s, qp)
            if not sendable(s, qp):
                withdraw(s, qp)
        if not s.plain and s.params[0]["receiving"] == SELECTIVE:
            _close_gaps(s, qp)
    if kind == NACK and not stale:
        go_back(s, qp)


@rare
def _on_traced_ack(s, p, qp, seq, kind, flags, now):
    """The sender's algorithm takes in an ACK or NACK, too, which may change the rate."""
    _on_ack(s, qp, seq, kind, flags, now)
    if events.on_ack(s, qp, p, now):
        next_send_moved(s, qp, now)
    elif s.sender[qp]["traits"] & OWN_WINDOW != 0 and not sendable(s, qp):
        withdraw(s, qp)
    activate(s, qp, now)


@rare
def _close_gaps(s, qp):
    """Forgets gaps that are acknowledged, for which alone the QP may have been ready."""
    trim(s, qp)
    sender = s.sender[qp]
    shuts = sender["traits"] & RATE_WINDOW != 0 and sender["snd_nxt"] != sender["message_end"]
    if not shuts and not sendable(s, qp):
        withdraw(s, qp)


@rare
def _complete(s, qp, now):
    """Retires messages that are wholly acknowledged."""
    pair = s.qp[qp]
    sender = s.sender[qp]
    m = int64(pair["oldest"])
    while m != NONE and s.message[m]["end"] <= sender["snd_una"]:
        message = s.message[m]
        if s.job[pair["job"]]["kind"] == FLOWS:
            _log_flow(s, s.job[pair["job"]], pair["job"], message, now)
        if not s.plain and s.params[0]["latency"] == 1:
            count_latency(s, qp, LATENCY_MESSAGE, now - message["start_ps"])
        following = int64(message["next"])
        free_message(s, m)
        m = following
    pair["oldest"] = m
    sender["oldest_end"] = s.message[m]["end"] if m != NONE else FOREVER


@helper
def _log_flow(s, job, job_id, message, now):
    job["flows_done"] += 1
    core = s.core[0]
    entry = s.log[core["log_length"]]
    core["log_length"] += 1
    entry["job"] = job_id
    entry["index"] = message["tag"]
    entry["start_ps"] = message["start_ps"]
    entry["end_ps"] = now
    entry["bytes"] = message["bytes"]


@rare
def go_back(s, qp):
    """Go-back-N: the next byte to send is the first one not acknowledged."""
    sender = s.sender[qp]
    pair = s.qp[qp]
    sender["snd_nxt"] = sender["snd_una"]
    pair["sending"] = pair["oldest"]
    sender["message_end"] = sender["snd_nxt"]
    if pair["oldest"] != NONE:
        sender["message_end"] = sender["oldest_end"]


@rare
def on_retransmission_timer(s, qp, now):
    """The QP's timer has fired: stop it, move it, or resend (rules, section 7)."""
    params = s.params[0]
    sender = s.sender[qp]
    retry = s.retry[qp]
    sender["timer_armed"] = 0
    if sender["snd_una"] == sender["snd_nxt"] or sender["state"] == FAILED:
        return
    if sender["progress_ps"] + retry["rto_ps"] > now:
        arm_retransmission(s, qp, sender["progress_ps"] + retry["rto_ps"])
        return
    sender["retries"] += 1
    if sender["retries"] > retry["limit"]:
        fail(s, qp)
        return
    if not s.plain and params["receiving"] == GO_BACK_0:
        sender["snd_una"] = message_start(s, qp)
    elif not s.plain and params["receiving"] == SELECTIVE:
        forget_requests(s, qp)
    go_back(s, qp)
    arm_retransmission(s, qp, now + retry["rto_ps"])
    if sender["cc"] != CC_NONE:
        events.on_timeout(s, qp, ZERO, now)
    activate(s, qp, now)
    serve_later(s, s.qp[qp]["src"])
