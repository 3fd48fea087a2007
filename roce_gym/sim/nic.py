"""Sending side of a host's NIC: which QP sends next, when, and what (rules, section 6)."""

from __future__ import annotations

from numpy import int64

from roce_gym.sim.cc import dcqcn
from roce_gym.sim.jit import helper, rare
from roce_gym.sim.pool import new_message, new_packet
from roce_gym.sim.port import append, choose_class, on_clock, take
from roce_gym.sim.types import (
    CC_NONE,
    DATA,
    FAILED,
    FOREVER,
    IDLE,
    LAST,
    NONE,
    PACED,
    READY,
    ZERO,
)
from roce_gym.sim.wheel import cancel, lowest_bit, push_far, schedule

_BIT_PS_PER_BYTE = 8 * 10**12


@helper
def next_from_host(s, link, now):
    """The packet a host sends next: control packets of a class before its QPs; NONE if none."""
    params = s.params[0]
    host = int64(s.link[link]["src"])
    release_paced(s, host, now)
    cls = _first_control(s, link)
    if cls != NONE:
        return _take_control(s, link, cls, now)
    cls = choose_class(s, link)
    if cls == NONE:
        arm_for_paced(s, host, now)
        return NONE
    if s.queue[link * params["num_classes"] + cls]["head"] != NONE:
        return _take_control(s, link, cls, now)
    return _next_data(s, link, host, cls, now)


@helper
def _first_control(s, link):
    """The first class with a control packet, where those ignore pauses (`ack_ignores_pause`)."""
    params = s.params[0]
    if params["ack_ignores_pause"] == 0 or s.link[link]["waiting"] == 0:
        return NONE
    for cls in range(1, params["num_classes"]):
        if s.queue[link * params["num_classes"] + cls]["head"] != NONE:
            return int64(cls)
    return NONE


@helper
def _take_control(s, link, cls, now):
    p = take(s, link, cls, now)
    _update_waiting(s, link, cls)
    return p


@helper
def _update_waiting(s, link, cls):
    """Clears the class's bit if neither a control packet nor a ready QP is left."""
    params = s.params[0]
    queue = s.queue[link * params["num_classes"] + cls]
    scheduler = s.nic[s.link[link]["src"] * params["num_classes"] + cls]
    if queue["head"] == NONE and scheduler["num_ready"] == 0:
        s.link[link]["waiting"] &= ~(1 << cls)


@helper
def queue_control(s, link, cls, p, now):
    """Queues an ACK, NACK or CNP on a host's link."""
    append(s, link, cls, p, now)


@helper
def _next_data(s, link, host, cls, now):
    params = s.params[0]
    scheduler = s.nic[host * params["num_classes"] + cls]
    local = _next_ready(s, scheduler)
    scheduler["last_served"] = local
    qp = scheduler["first_qp"] + local
    sender = s.sender[qp]
    payload = min(params["mtu"], sender["message_end"] - sender["snd_nxt"])
    end = sender["snd_nxt"] + payload
    flags = LAST if end == sender["message_end"] else ZERO
    size = payload + params["header"]
    if sender["snd_una"] == sender["snd_nxt"]:
        s.qp[qp]["progress_ps"] = now
    if params["rto_ps"] > 0 and s.receiver[qp]["timer_armed"] == 0:
        arm_retransmission(s, qp, now + params["rto_ps"])
    p = new_packet(s, DATA, qp, cls, size, sender["snd_nxt"], flags)
    sender["snd_nxt"] = end
    if flags == LAST and end < sender["posted"]:
        following = s.message[s.qp[qp]["sending"]]["next"]
        s.qp[qp]["sending"] = following
        sender["message_end"] = s.message[following]["end"]
    queue = s.queue[link * params["num_classes"] + cls]
    queue["tx_bytes"] += size
    queue["tx_packets"] += 1
    return p


@helper
def _next_ready(s, scheduler):
    """Round robin over the ready QPs of a (host, class): the first one after the last served."""
    first_word = scheduler["first_word"]
    num_words = (scheduler["num_qps"] + 31) >> 5
    start = scheduler["last_served"] + 1
    if start == scheduler["num_qps"]:
        start = 0
    word = start >> 5
    bits = s.ready[first_word + word] & ~((1 << (start & 31)) - 1)
    while bits == 0:
        word += 1
        if word == num_words:
            word = 0
        bits = s.ready[first_word + word]
    return (word << 5) + lowest_bit(bits)


@helper
def after_send(s, link, qp, now):
    """Paces a QP that has just sent, and decides whether it may go on, must wait or is done."""
    params = s.params[0]
    sender = s.sender[qp]
    free_ps = s.link[link]["free_ps"]
    if sender["cc"] == CC_NONE:
        sender["next_send_ps"] = free_ps
    else:
        size = s.packet[s.link[link]["flight_tail"]]["size"]
        dcqcn.catch_up(s, qp, now)
        if sender["rate_bps"] >= s.qp[qp]["line_bps"]:
            sender["next_send_ps"] = free_ps
        else:
            on_wire = size + params["gap"]
            gap_ps = on_wire * _BIT_PS_PER_BYTE // sender["rate_bps"]
            sender["next_send_ps"] = now + on_clock(s, gap_ps)
        dcqcn.count_bytes(s, qp, size)
    if not sendable(s, qp):
        _leave_ready(s, qp)
        sender["state"] = IDLE
    elif sender["next_send_ps"] > free_ps:
        _leave_ready(s, qp)
        _push_paced(s, qp)


@helper
def more_to_send(s, link, now):
    """Whether a host's link should be served when it is free; else arms the next wake-up."""
    wire = s.link[link]
    if int64(wire["waiting"]) & ~int64(wire["paused"]) != 0 or _first_control(s, link) != NONE:
        return True
    heap = s.paced[wire["src"]]
    if heap["size"] == 0:
        return False
    if s.sender[s.paced_qp[heap["first"]]]["next_send_ps"] <= wire["free_ps"]:
        return True
    arm_for_paced(s, int64(wire["src"]), now)
    return False


@helper
def sendable(s, qp):
    """Bytes are posted and the window is open."""
    sender = s.sender[qp]
    window = s.params[0]["window"]
    if sender["snd_nxt"] >= sender["posted"]:
        return False
    return window == 0 or sender["snd_nxt"] - sender["snd_una"] < window


@helper
def activate(s, qp, now):
    """Makes an idle QP ready or paced if it can send."""
    sender = s.sender[qp]
    if sender["state"] != IDLE or not sendable(s, qp):
        return
    free_ps = s.link[s.host_link[s.qp[qp]["src"]]]["free_ps"]
    if sender["next_send_ps"] <= max(now, free_ps):
        _join_ready(s, qp)
    else:
        _push_paced(s, qp)


@helper
def _scheduler_of(s, qp):
    return s.nic[s.qp[qp]["src"] * s.params[0]["num_classes"] + s.qp[qp]["cls"]]


@helper
def _join_ready(s, qp):
    scheduler = _scheduler_of(s, qp)
    local = qp - scheduler["first_qp"]
    s.ready[scheduler["first_word"] + (local >> 5)] |= 1 << int64(local & 31)
    scheduler["num_ready"] += 1
    s.sender[qp]["state"] = READY
    s.link[s.host_link[s.qp[qp]["src"]]]["waiting"] |= 1 << int64(s.qp[qp]["cls"])


@helper
def _leave_ready(s, qp):
    scheduler = _scheduler_of(s, qp)
    local = qp - scheduler["first_qp"]
    s.ready[scheduler["first_word"] + (local >> 5)] &= ~(1 << int64(local & 31))
    scheduler["num_ready"] -= 1
    _update_waiting(s, int64(s.host_link[s.qp[qp]["src"]]), int64(s.qp[qp]["cls"]))


@helper
def _paced_before(s, a, b):
    due_a, due_b = s.sender[a]["next_send_ps"], s.sender[b]["next_send_ps"]
    return due_a < due_b or (due_a == due_b and a < b)


@helper
def _push_paced(s, qp):
    """Adds a QP to its host's heap of paced QPs."""
    s.sender[qp]["state"] = PACED
    heap = s.paced[s.qp[qp]["src"]]
    first = heap["first"]
    i = heap["size"]
    heap["size"] = i + 1
    while i > 0:
        parent = (i - 1) >> 1
        if not _paced_before(s, qp, int64(s.paced_qp[first + parent])):
            break
        s.paced_qp[first + i] = s.paced_qp[first + parent]
        i = parent
    s.paced_qp[first + i] = qp


@helper
def _pop_paced(s, heap):
    first = heap["first"]
    last = heap["size"] - 1
    heap["size"] = last
    moved = int64(s.paced_qp[first + last])
    i = 0
    child = 1
    while child < last:
        low = int64(s.paced_qp[first + child])
        if child + 1 < last and _paced_before(s, int64(s.paced_qp[first + child + 1]), low):
            child += 1
            low = int64(s.paced_qp[first + child])
        if _paced_before(s, moved, low):
            break
        s.paced_qp[first + i] = low
        i = child
        child = 2 * i + 1
    s.paced_qp[first + i] = moved


@rare
def _drop_paced(s, qp):
    """Takes a QP out of its host's heap, wherever it is: the others are pushed anew."""
    heap = s.paced[s.qp[qp]["src"]]
    size = heap["size"]
    heap["size"] = 0
    for i in range(size):
        other = int64(s.paced_qp[heap["first"] + i])
        if other != qp:
            _push_paced(s, other)


@helper
def release_paced(s, host, now):
    """Paced QPs whose time has come become ready."""
    heap = s.paced[host]
    while heap["size"] > 0:
        qp = int64(s.paced_qp[heap["first"]])
        if s.sender[qp]["next_send_ps"] > now:
            return
        _pop_paced(s, heap)
        _join_ready(s, qp)


@helper
def wake_at(s, host, due_ps, now):
    """Makes sure that the host's WAKE event comes no later than `due_ps`.

    It comes sooner where that is farther ahead than the wheel reaches, and is armed again then.
    """
    slot = 2 * s.params[0]["num_links"] + host
    if s.event_ps[slot] <= due_ps:
        return
    if s.params[0]["scheduled_order"] == 1:  # as in ns-3, a wake-up is never moved
        if s.event_ps[slot] == FOREVER:
            push_far(s, slot, due_ps)
        return
    if s.event_ps[slot] != FOREVER:
        cancel(s, slot)
    schedule(s, slot, min(due_ps, now + s.params[0]["horizon_ps"]))


@helper
def arm_for_paced(s, host, now):
    """Wakes the host when its first paced QP may send."""
    heap = s.paced[host]
    if heap["size"] > 0:
        due_ps = s.sender[s.paced_qp[heap["first"]]]["next_send_ps"]
        wake_at(s, host, max(due_ps, now), now)


@helper
def serve_later(s, host):
    """Has a host's link served when the current event is over."""
    core = s.core[0]
    end = core["end_posted"]
    if end == core["first_posted"] or s.posted[end - 1] != host:
        s.posted[end] = host
        core["end_posted"] = end + 1


@rare
def post(s, qp, size, tag, now):
    """Appends a message to a QP; its host is served after the current event."""
    sender = s.sender[qp]
    pair = s.qp[qp]
    end = sender["posted"] + size
    m = new_message(s, size, end, tag, now)
    if pair["oldest"] == NONE:
        pair["oldest"] = m
    else:
        s.message[pair["newest"]]["next"] = m
    pair["newest"] = m
    if sender["snd_nxt"] == sender["posted"]:
        pair["sending"] = m
        sender["message_end"] = end
    sender["posted"] = end
    activate(s, qp, now)
    serve_later(s, pair["src"])


@rare
def arm_retransmission(s, qp, due_ps):
    """Starts the QP's retransmission timer."""
    s.receiver[qp]["timer_armed"] = 1
    params = s.params[0]
    push_far(s, 2 * params["num_links"] + params["num_hosts"] + qp, due_ps)


@rare
def withdraw(s, qp):
    """Takes a QP that cannot send any more from the ready or paced ones."""
    sender = s.sender[qp]
    if sender["state"] == READY:
        _leave_ready(s, qp)
        sender["state"] = IDLE
    elif sender["state"] == PACED:
        _drop_paced(s, qp)
        sender["state"] = IDLE


@rare
def fail(s, qp):
    """The retry limit is passed: the QP sends no more."""
    withdraw(s, qp)
    s.sender[qp]["state"] = FAILED
    s.core[0]["failed_qps"] += 1
