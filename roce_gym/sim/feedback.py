"""What a data packet brings to its receiver, and the ACK back to the sender (rules, section 7).

Kept beside the packets, as few algorithms need it. All of this is switched off (and the arrays are
empty) unless some tenant's algorithm asks for it.
"""

from __future__ import annotations

from numpy import int64

from roce_gym.sim.jit import rare
from roce_gym.sim.types import (
    ASKS,
    CC_NONE,
    CREDIT_WINDOW,
    DEMANDS,
    FEEDBACK_CREDIT,
    FEEDBACK_INT,
    FEEDBACK_LEVEL,
    FEEDBACK_RTT,
    FEEDBACK_WAIT,
    OWN_WINDOW,
    TRACED,
    ZERO,
)


@rare
def begin_feedback(s, p, now):
    """A data packet is about to be sent."""
    s.packet[p]["flags"] |= TRACED
    qp = int64(s.packet[p]["qp"])
    traits = s.sender[qp]["traits"]
    if traits & CREDIT_WINDOW != 0:
        if s.sender[qp]["cc"] != CC_NONE:
            s.packet[p]["flags"] |= DEMANDS
            s.credit[2 * p] = s.qp[qp]["posted"]
            s.credit[2 * p + 1] = s.sender[qp]["snd_una"] + s.window[qp]
    elif traits & OWN_WINDOW != 0:
        s.packet[p]["flags"] |= ASKS
    if s.params[0]["feedback"] & FEEDBACK_RTT != 0:
        s.sent[p] = now
    if s.params[0]["feedback"] & FEEDBACK_LEVEL != 0:
        s.level[p] = 0.0


@rare
def see_hop(s, p, link, now):
    """In-band telemetry: a data packet has left its queue at a switch (HPCC)."""
    if s.params[0]["feedback"] & FEEDBACK_INT == 0:
        return
    params = s.params[0]
    packet = s.packet[p]
    hop = s.seen[p * params["max_hops"] + packet["hop"]]
    tx_bytes, queue_bytes = -int64(packet["size"]), ZERO
    for cls in range(params["num_classes"]):
        queue = s.queue[link * params["num_classes"] + cls]
        tx_bytes += queue["tx_bytes"]
        queue_bytes += queue["bytes"]
    hop["time_ps"] = now
    hop["tx_bytes"] = tx_bytes
    hop["queue_bytes"] = queue_bytes


@rare
def see_level(s, p, held, limit):
    """In-band telemetry: how full the buffer is that a data packet has left, at its input.

    `held` bytes beyond the reserve, `limit` of which are the threshold of PFC. The packet carries
    the highest share on its way.
    """
    level = 1.0
    if held < limit:
        level = held / limit
    if level > s.level[p]:
        s.level[p] = level


@rare
def return_feedback(s, data, ack, now):
    """An ACK or NACK takes over what its data packet brought; that packet was freed just now."""
    params = s.params[0]
    s.packet[ack]["flags"] |= TRACED
    if params["feedback"] & FEEDBACK_WAIT != 0:
        s.waited[ack] = -now
    if params["feedback"] & FEEDBACK_CREDIT != 0:
        s.credit[2 * ack] = s.credit_qp[s.packet[ack]["qp"]]["granted"]
    if data == ack:
        return
    if params["feedback"] & FEEDBACK_RTT != 0:
        s.sent[ack] = s.sent[data]
    if params["feedback"] & FEEDBACK_LEVEL != 0:
        s.level[ack] = s.level[data]
    if params["feedback"] & FEEDBACK_INT != 0:
        for i in range(params["max_hops"]):
            source = s.seen[data * params["max_hops"] + i]
            target = s.seen[ack * params["max_hops"] + i]
            target["time_ps"] = source["time_ps"]
            target["tx_bytes"] = source["tx_bytes"]
            target["queue_bytes"] = source["queue_bytes"]


@rare
def end_waiting(s, p, now):
    """A control packet leaves its queue at a host's NIC."""
    if s.packet[p]["flags"] & TRACED != 0:
        s.waited[p] += now
