"""Sending side of a host's NIC: what goes out next, and when a QP may go on (rules, section 6)."""

from __future__ import annotations

from numpy import int64

from roce_gym.sim.cc.events import catch_up, on_send
from roce_gym.sim.cc.records import pacing_of
from roce_gym.sim.choice import choose_class
from roce_gym.sim.feedback import begin_feedback, end_waiting
from roce_gym.sim.held import hold_back
from roce_gym.sim.jit import helper, rare
from roce_gym.sim.pool import new_message, new_packet
from roce_gym.sim.port import take
from roce_gym.sim.resend import next_requested
from roce_gym.sim.scheduler import (
    activate,
    arm_for_paced,
    has_shut,
    next_ready,
    pace,
    reconsider,
    release_paced,
    reopen_as_ns3,
    serve_later,
    update_waiting,
    withdraw,
)
from roce_gym.sim.shaper import take_tenant_tokens
from roce_gym.sim.types import (
    CC_NONE,
    DATA,
    FAILED,
    FEEDBACK_WAIT,
    LAST,
    NONE,
    RATE_WINDOW,
    SELECTIVE,
    TRACED,
    ZERO,
)
from roce_gym.sim.wheel import push_far

_BIT_PS_PER_BYTE = 8 * 10**12


@helper
def next_from_host(s, link, now):
    """The packet a host sends next: control packets of a class before its QPs; NONE if none."""
    params = s.params[0]
    host = int64(s.link[link]["src"])
    release_paced(s, host, now)
    if not s.plain and params["tenants_shaped"] == 1:
        hold_back(s, link, now)
    cls = _first_control(s, link)
    if cls != NONE:
        return _take_control(s, link, cls, now)
    while True:
        cls = choose_class(s, link)
        if cls == NONE:
            if not s.plain and params["scheduled_order"] == 1 and reopen_as_ns3(s, host, now):
                continue
            arm_for_paced(s, host, now)
            return NONE
        if s.queue[link * params["num_classes"] + cls]["head"] != NONE:
            return _take_control(s, link, cls, now)
        p = _next_data(s, link, host, cls, now)
        if p == NONE:  # that QP's window has closed
            if not s.plain and params["tenants_shaped"] == 1:
                hold_back(s, link, now)
            continue
        if not s.plain and params["tenants_shaped"] == 1:
            take_tenant_tokens(s, int64(s.packet[p]["qp"]), int64(s.packet[p]["size"]), now)
        return p


@helper
def _first_control(s, link):
    """The first class with a control packet or PFC frame, where those ignore pauses."""
    params = s.params[0]
    if s.plain or params["ack_ignores_pause"] == 0 or s.link[link]["waiting"] == 0:
        return NONE
    for cls in range(params["num_classes"]):
        if s.queue[link * params["num_classes"] + cls]["head"] != NONE:
            return int64(cls)
    return NONE


@helper
def _take_control(s, link, cls, now):
    p = take(s, link, cls, now)
    update_waiting(s, link, cls)
    if not s.plain and s.params[0]["feedback"] & FEEDBACK_WAIT != 0:
        end_waiting(s, p, now)
    return p


@helper
def _next_data(s, link, host, cls, now):
    """The packet of the QP whose turn it is; NONE if its window closed since it was ready."""
    params = s.params[0]
    scheduler = s.nic[host * params["num_classes"] + cls]
    local = next_ready(s, scheduler)
    qp = scheduler["first_qp"] + local
    sender = s.sender[qp]
    if not s.plain and sender["traits"] & RATE_WINDOW != 0 and has_shut(s, qp, now):
        return NONE
    scheduler["last_served"] = local
    if sender["snd_una"] == sender["snd_nxt"]:
        sender["progress_ps"] = now
    if params["rto_ps"] > 0 and sender["timer_armed"] == 0:
        arm_retransmission(s, qp, now + s.retry[qp]["rto_ps"])
    if not s.plain and params["receiving"] == SELECTIVE and s.resend[qp]["first"] != NONE:
        return _send_again(s, link, qp, cls, now)
    payload = min(params["mtu"], sender["message_end"] - sender["snd_nxt"])
    end = sender["snd_nxt"] + payload
    flags = LAST if end == sender["message_end"] else ZERO
    size = payload + params["header"]
    p = new_packet(s, DATA, qp, cls, size, sender["snd_nxt"], flags)
    if not s.plain and sender["traits"] & TRACED != 0:
        begin_feedback(s, p, now)
    if not s.plain and params["latency"] == 1:
        s.sent[p] = now
    sender["snd_nxt"] = end
    if flags == LAST and end < s.qp[qp]["posted"]:
        following = s.message[s.qp[qp]["sending"]]["next"]
        s.qp[qp]["sending"] = following
        sender["message_end"] = s.message[following]["end"]
    _count_sent(s, link, cls, size)
    return p


@rare
def _send_again(s, link, qp, cls, now):
    p = next_requested(s, qp, cls)
    if s.sender[qp]["traits"] & TRACED != 0:
        begin_feedback(s, p, now)
    if s.params[0]["latency"] == 1:
        s.sent[p] = now
    _count_sent(s, link, cls, int64(s.packet[p]["size"]))
    return p


@helper
def _count_sent(s, link, cls, size):
    queue = s.queue[link * s.params[0]["num_classes"] + cls]
    queue["tx_bytes"] += size
    queue["tx_packets"] += 1


@helper
def after_send(s, link, qp, now):
    """Paces a QP that has just sent, and decides whether it may go on, must wait or is done."""
    sender = s.sender[qp]
    packet = s.packet[s.link[link]["flight_tail"]]
    free_ps = s.link[link]["free_ps"]
    may_go = True
    if sender["cc"] != CC_NONE:
        size = packet["size"]
        catch_up(s, qp, now)
        scheduler = s.nic[s.link[link]["src"] * s.params[0]["num_classes"] + packet["cls"]]
        if sender["rate_bps"] < scheduler["line_bps"]:
            pace(s, qp, now, (size + s.params[0]["gap"]) * _BIT_PS_PER_BYTE)
            may_go = s.qp[qp]["next_send_ps"] <= free_ps and pacing_of(s, qp)["owed"] == 0
        on_send(s, qp, size, now)
    reconsider(s, qp, may_go)


@helper
def more_to_send(s, link, now):
    """Whether a host's link should be served when it is free; else arms the next wake-up."""
    wire = s.link[link]
    if int64(wire["waiting"]) & ~int64(wire["paused"]) != 0 or _first_control(s, link) != NONE:
        return True
    heap = s.paced[wire["src"]]
    if heap["size"] == 0:
        return False
    if s.paced_qp[heap["first"]]["due_ps"] <= wire["free_ps"]:
        return True
    arm_for_paced(s, int64(wire["src"]), now)
    return False


@rare
def post(s, qp, size, tag, now):
    """Appends a message to a QP; its host is served after the current event."""
    sender = s.sender[qp]
    pair = s.qp[qp]
    end = pair["posted"] + size
    m = new_message(s, size, end, tag, now)
    if pair["oldest"] == NONE:
        pair["oldest"] = m
        sender["oldest_end"] = end
    else:
        s.message[pair["newest"]]["next"] = m
    pair["newest"] = m
    if sender["snd_nxt"] == pair["posted"]:
        pair["sending"] = m
        sender["message_end"] = end
    pair["posted"] = end
    activate(s, qp, now)
    serve_later(s, pair["src"])


@rare
def arm_retransmission(s, qp, due_ps):
    """Starts the QP's retransmission timer."""
    s.sender[qp]["timer_armed"] = 1
    params = s.params[0]
    push_far(s, 2 * params["num_links"] + params["num_hosts"] + qp, due_ps)


@rare
def fail(s, qp):
    """The retry limit is passed: the QP sends no more."""
    withdraw(s, qp)
    s.sender[qp]["state"] = FAILED
    s.core[0]["failed_qps"] += 1
