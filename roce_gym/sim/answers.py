"""What a receiver sends back: ACKs, NACKs and CNPs (rules, section 7)."""

from __future__ import annotations

from numpy import int64

from roce_gym.sim.jit import helper
from roce_gym.sim.pool import new_packet
from roce_gym.sim.port import append
from roce_gym.sim.types import CNP, ECHO, NACK, ZERO


@helper
def gap_is_new(receiver, now, interval_ps):
    """Whether the gap at `expected` has not been reported, or so long ago that it should be."""
    return receiver["nack_seq"] != receiver["expected"] or now - receiver["nack_ps"] >= interval_ps


@helper
def send_ack(s, out, qp, kind, ce, now):
    """ACK or NACK of all bytes before `expected`, with the echo of CE bits seen since the last."""
    receiver = s.receiver[qp]
    flags = ECHO if (receiver["ce_seen"] | ce) != 0 else ZERO
    receiver["ce_seen"] = 0
    receiver["unacked"] = 0
    cls = int64(receiver["ack_cls"])
    p = new_packet(s, kind, qp, cls, s.params[0]["ack"], receiver["expected"], flags)
    append(s, out, cls, p, now)
    return p


@helper
def send_nack(s, out, qp, ce, now):
    """Reports the gap at `expected`."""
    receiver = s.receiver[qp]
    receiver["nack_seq"] = receiver["expected"]
    receiver["nack_ps"] = now
    receiver["nacks"] += 1
    return send_ack(s, out, qp, NACK, ce, now)


@helper
def send_cnp(s, out, qp, now):
    """A CNP, unless the last one of this QP is too recent; whether it was sent."""
    receiver = s.receiver[qp]
    if now - receiver["cnp_ps"] < s.params[0]["cnp_interval_ps"]:
        return False
    receiver["cnp_ps"] = now
    cls = int64(receiver["cnp_cls"])
    p = new_packet(s, CNP, qp, cls, s.params[0]["cnp"], ZERO, ZERO)
    append(s, out, cls, p, now)
    return True
