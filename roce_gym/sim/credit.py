"""Credits of a receiving host, at its line rate, to all who have something to send (rules, 8.9).

Olteanu et al., "An edge-queued datagram service for all datacenter traffic" (EQDS), NSDI 2022; the
receiver-credit congestion control of Ultra Ethernet is of that kind. A credit is an ACK; each ACK
of such a QP says up to which byte the sender may send.
"""

from __future__ import annotations

from numpy import int64

from roce_gym.sim.answers import send_ack
from roce_gym.sim.cc.credit import params_of
from roce_gym.sim.feedback import return_feedback
from roce_gym.sim.jit import helper, rare
from roce_gym.sim.scheduler import serve_later
from roce_gym.sim.types import ACK, NONE, ZERO
from roce_gym.sim.wheel import push_far

_BIT_PS_PER_BYTE = 8e12


@rare
def take_demand(s, host, qp, end, demand, limit, now):
    """A data packet was taken in that says what its sender has, and what it may send already."""
    record = s.credit_qp[qp]
    record["demand"] = max(record["demand"], demand)
    record["granted"] = max(record["granted"], end, min(limit, demand))
    _count(s, host, qp)
    _join(s, host, qp)
    _arm(s, host, now)


@helper
def _count(s, host, qp):
    record = s.credit_qp[qp]
    coming = max(record["granted"] - s.receiver[qp]["expected"], 0)
    s.credit_host[host]["coming"] += coming - record["counted"]
    record["counted"] = coming


@helper
def _join(s, host, qp):
    """Puts a QP at the end of the FIFO if it has more to send than was granted."""
    record = s.credit_qp[qp]
    if record["listed"] == 1 or record["demand"] <= record["granted"]:
        return
    record["listed"] = 1
    record["next"] = NONE
    waiting = s.credit_host[host]
    if waiting["head"] == NONE:
        waiting["head"] = qp
    else:
        s.credit_qp[waiting["tail"]]["next"] = qp
    waiting["tail"] = qp


@helper
def _arm(s, host, now):
    """Sets the host's timer if the first QP of the FIFO may get a credit."""
    waiting = s.credit_host[host]
    if waiting["armed"] == 1 or waiting["head"] == NONE:
        return
    if waiting["coming"] >= params_of(s, int64(waiting["head"]))["host_window_bytes"]:
        return
    waiting["armed"] = 1
    slot = s.params[0]["first_pfc_slot"] - s.credit_host.size + host
    push_far(s, slot, max(now, waiting["next_ps"]))


@rare
def on_credit_timer(s, host, now):
    """The first QP of the FIFO gets a credit, and goes to its end."""
    waiting = s.credit_host[host]
    waiting["armed"] = 0
    qp = int64(waiting["head"])
    record = s.credit_qp[qp]
    params = params_of(s, qp)
    waiting["head"] = record["next"]
    record["listed"] = 0
    size = min(params["credit_bytes"], record["demand"] - record["granted"])
    if size > 0:  # else the sender may send all it has without
        record["granted"] += size
        _count(s, host, qp)
        _send_credit(s, host, qp, now)
        link_bps = s.link_bps[s.host_link[host]]
        waiting["next_ps"] = now + int(
            _on_wire(s, size) * _BIT_PS_PER_BYTE / (link_bps * params["pace"])
        )
    _join(s, host, qp)
    _arm(s, host, now)
    serve_later(s, host)


@helper
def _on_wire(s, size):
    """Bytes that so much payload takes on the wire."""
    params = s.params[0]
    packets = (size + params["mtu"] - 1) // params["mtu"]
    return size + packets * (params["header"] + params["gap"])


@helper
def _send_credit(s, host, qp, now):
    """An ACK, as of all that has arrived, with the new limit."""
    ack = send_ack(s, int64(s.host_link[host]), qp, ACK, ZERO, now)
    return_feedback(s, ack, ack, now)
