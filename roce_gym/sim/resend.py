"""Senders that do not go back to a gap: selective repeat and go-back-0 (rules, section 7).

A NACK of selective repeat reports one gap. Its packet record is kept in the QP's FIFO of gaps until
they are filled; what is in them is sent before anything new.
"""

from __future__ import annotations

from numpy import int64

from roce_gym.sim.jit import rare
from roce_gym.sim.pool import free_packet, new_packet
from roce_gym.sim.types import DATA, LAST, NONE, ZERO


@rare
def request(s, qp, p):
    """Appends the gap that a NACK reports."""
    gaps = s.resend[qp]
    s.packet[p]["next"] = NONE
    if gaps["first"] == NONE:
        gaps["first"] = p
    else:
        s.packet[gaps["last"]]["next"] = p
    gaps["last"] = p
    trim(s, qp)


@rare
def trim(s, qp):
    """Drops gaps from the head that are acknowledged or sent, and the acknowledged part of one."""
    gaps = s.resend[qp]
    una = s.sender[qp]["snd_una"]
    while gaps["first"] != NONE:
        p = int64(gaps["first"])
        span = s.span[p]
        if span["start"] < una:
            span["start"] = una
        if span["start"] < span["end"]:
            return
        gaps["first"] = s.packet[p]["next"]
        free_packet(s, p)


@rare
def forget_requests(s, qp):
    """Empties the FIFO: after a timeout everything is sent again."""
    gaps = s.resend[qp]
    while gaps["first"] != NONE:
        p = int64(gaps["first"])
        gaps["first"] = s.packet[p]["next"]
        free_packet(s, p)


@rare
def _message_end(s, qp, seq):
    """End of the message that holds a byte not acknowledged."""
    m = int64(s.qp[qp]["oldest"])
    while s.message[m]["end"] <= seq:
        m = int64(s.message[m]["next"])
    return s.message[m]["end"]


@rare
def requested_bytes(s, qp):
    """Payload of the first packet of the first gap. PRECONDITION: there is one."""
    seq = s.span[s.resend[qp]["first"]]["start"]
    return min(s.params[0]["mtu"], _message_end(s, qp, seq) - seq)


@rare
def next_requested(s, qp, cls):
    """The first packet of the first gap. PRECONDITION: there is one."""
    span = s.span[s.resend[qp]["first"]]
    seq = span["start"]
    end = seq + requested_bytes(s, qp)
    span["start"] = end
    flags = LAST if end == _message_end(s, qp, seq) else ZERO
    p = new_packet(s, DATA, qp, cls, end - seq + s.params[0]["header"], seq, flags)
    trim(s, qp)
    return p


@rare
def message_start(s, qp):
    """First byte of the oldest message not acknowledged; `snd_una` if there is none."""
    m = int64(s.qp[qp]["oldest"])
    if m == NONE:
        return s.sender[qp]["snd_una"]
    return s.message[m]["end"] - s.message[m]["bytes"]
