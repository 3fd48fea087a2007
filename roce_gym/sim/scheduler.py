"""Which QPs of a host may send: those *ready* now, those *paced* until a time (rules, section 6).

Ready QPs are bits, one word of 32 for QPs of the same host and class, served round robin. Paced
ones wait in a heap per host (`paced.py`). Both sets belong to the NIC; nothing else changes them.
QPs of a tenant without tokens are *held* (`shaper.py`).
"""

from __future__ import annotations

from numpy import int64

from roce_gym.sim.cc.events import catch_up
from roce_gym.sim.cc.records import pacing_of
from roce_gym.sim.handle import prefetch
from roce_gym.sim.jit import helper, rare
from roce_gym.sim.paced import drop_paced, pop_paced, push_paced
from roce_gym.sim.port import on_clock
from roce_gym.sim.shaper import (
    drop_held,
    give_up_grant,
)
from roce_gym.sim.types import (
    FAILED,
    FOREVER,
    HAS_WINDOW,
    HELD,
    IDLE,
    NONE,
    PACED,
    RATE_WINDOW,
    READY,
    SELECTIVE,
)
from roce_gym.sim.wheel import cancel, lowest_bit, pull_far, push_far, schedule
from roce_gym.sim.window import window_of


@helper
def sendable(s, qp):
    """Bytes are posted and the window is open; or a gap was reported (selective repeat)."""
    sender = s.sender[qp]
    if sender["snd_nxt"] != sender["message_end"] and (
        s.plain
        or sender["traits"] & HAS_WINDOW == 0
        or sender["snd_nxt"] - sender["snd_una"] < window_of(s, qp)
    ):
        return True
    if not s.plain and s.params[0]["receiving"] == SELECTIVE:
        return _knows_a_gap(s, qp)
    return False


@rare
def _knows_a_gap(s, qp):
    return s.resend[qp]["first"] != NONE


@helper
def pace(s, qp, from_ps, owed):
    """Sets when a QP may go that has to wait for `owed` (1e-12 bit) at its rate, from `from_ps`.

    Where the increase timer fires before, the QP is looked at then, and waits for the rest at its
    new rate: a QP that was cut to 1 Mb/s does not sleep 33 ms while its rate recovers.
    """
    rate_bps = s.sender[qp]["rate_bps"]
    due_ps = from_ps + on_clock(s, owed // rate_bps)
    state = pacing_of(s, qp)
    increase_ps = state["increase_due_ps"]
    if increase_ps < due_ps and (s.plain or s.params[0]["scheduled_order"] == 0):
        state["owed"] = owed - rate_bps * (increase_ps - from_ps)
        s.qp[qp]["next_send_ps"] = increase_ps
    else:
        state["owed"] = 0
        s.qp[qp]["next_send_ps"] = due_ps


@helper
def _may_go(s, qp, by_ps):
    """Whether a QP's waiting time is over by then."""
    return s.qp[qp]["next_send_ps"] <= by_ps and pacing_of(s, qp)["owed"] == 0


@rare
def _update_rate(s, qp, now):
    catch_up(s, qp, now)


@helper
def activate(s, qp, now):
    """Makes an idle QP ready or paced if it can send."""
    sender = s.sender[qp]
    if sender["state"] != IDLE:
        return
    if not s.plain and sender["traits"] & RATE_WINDOW != 0:
        _update_rate(s, qp, now)
    if not sendable(s, qp):
        return
    free_ps = s.link[s.host_link[s.qp[qp]["src"]]]["free_ps"]
    if _may_go(s, qp, max(now, free_ps)):
        join_ready(s, qp)
    else:
        push_paced(s, qp)


@helper
def reconsider(s, qp, may_go):
    """A ready QP has sent: it stays ready, waits for its time, or is done."""
    sender = s.sender[qp]
    if not sendable(s, qp):
        leave_ready(s, qp)
        sender["state"] = IDLE
    elif not may_go:
        leave_ready(s, qp)
        push_paced(s, qp)


@rare
def withdraw(s, qp):
    """Takes a QP that cannot send any more from the ready or paced ones."""
    sender = s.sender[qp]
    if sender["state"] == READY:
        leave_ready(s, qp)
        sender["state"] = IDLE
        if not s.plain and s.params[0]["tenants_shaped"] == 1:
            give_up_grant(s, qp)
    elif sender["state"] == PACED:
        drop_paced(s, qp)
        sender["state"] = IDLE
    elif not s.plain and sender["state"] == HELD:
        drop_held(s, qp)
        sender["state"] = IDLE


@helper
def next_ready(s, scheduler):
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
    prefetch(s.sender, scheduler["first_qp"] + (word << 5) + lowest_bit(bits & (bits - 1)))
    return (word << 5) + lowest_bit(bits)


@rare
def has_shut(s, qp, now):
    """Whether a ready QP's window has closed since, as its rate fell; it is not ready then."""
    catch_up(s, qp, now)
    if sendable(s, qp):
        return False
    withdraw(s, qp)
    return True


@helper
def update_waiting(s, link, cls):
    """Clears the class's bit if neither a control packet nor a ready QP is left."""
    params = s.params[0]
    queue = s.queue[link * params["num_classes"] + cls]
    scheduler = s.nic[s.link[link]["src"] * params["num_classes"] + cls]
    if queue["head"] == NONE and scheduler["num_ready"] == 0:
        s.link[link]["waiting"] &= ~(1 << cls)


@helper
def _scheduler_of(s, qp):
    return s.nic[s.qp[qp]["src"] * s.params[0]["num_classes"] + s.qp[qp]["cls"]]


@helper
def join_ready(s, qp):
    """A QP may send."""
    scheduler = _scheduler_of(s, qp)
    local = qp - scheduler["first_qp"]
    s.ready[scheduler["first_word"] + (local >> 5)] |= 1 << int64(local & 31)
    scheduler["num_ready"] += 1
    s.sender[qp]["state"] = READY
    s.link[s.host_link[s.qp[qp]["src"]]]["waiting"] |= 1 << int64(s.qp[qp]["cls"])


@helper
def leave_ready(s, qp):
    """A QP may not send any more for now."""
    scheduler = _scheduler_of(s, qp)
    local = qp - scheduler["first_qp"]
    s.ready[scheduler["first_word"] + (local >> 5)] &= ~(1 << int64(local & 31))
    scheduler["num_ready"] -= 1
    update_waiting(s, int64(s.host_link[s.qp[qp]["src"]]), int64(s.qp[qp]["cls"]))


@helper
def release_paced(s, host, now):
    """Paced QPs whose time has come become ready."""
    heap = s.paced[host]
    while heap["size"] > 0:
        due_ps = s.paced_qp[heap["first"]]["due_ps"]
        qp = s.paced_qp[heap["first"]]["qp"]
        if due_ps > now:
            return
        pop_paced(s, heap)
        owed = pacing_of(s, qp)["owed"]
        if owed > 0:
            catch_up(s, qp, now)
            pace(s, qp, due_ps, owed)
            push_paced(s, qp)
        else:
            join_ready(s, qp)


@helper
def wake_at(s, host, due_ps, now):
    """Makes sure that the host's WAKE event comes no later than `due_ps`.

    It comes sooner where that is farther ahead than the wheel reaches, and is armed again then.
    """
    slot = 2 * s.params[0]["num_links"] + host
    if s.event_ps[slot] <= due_ps:
        return
    if not s.plain and s.params[0]["scheduled_order"] == 1:
        _sleep_as_ns3(s, host, now)
        return
    if s.event_ps[slot] != FOREVER:
        cancel(s, slot)
    schedule(s, slot, min(due_ps, now + s.core[0]["horizon_ps"]))


@helper
def arm_for_paced(s, host, now):
    """Wakes the host when its first paced QP may send."""
    heap = s.paced[host]
    if heap["size"] > 0:
        due_ps = s.paced_qp[heap["first"]]["due_ps"]
        wake_at(s, host, max(due_ps, now), now)
    elif not s.plain and s.params[0]["scheduled_order"] == 1:
        _sleep_as_ns3(s, host, now)


@rare
def _sleep_as_ns3(s, host, now):
    """ns-3: wakes at the least `next_send` of all QPs with bytes to send, windows or not.

    Where that is past, the QP is blocked by its window: no wake-up is set, and the host waits for
    an ACK. A wake-up that is pending stays.
    """
    slot = 2 * s.params[0]["num_links"] + host
    if s.event_ps[slot] != FOREVER:
        return
    due_ps = FOREVER
    for i in range(s.params[0]["num_classes"]):
        scheduler = s.nic[host * s.params[0]["num_classes"] + i]
        for qp in range(scheduler["first_qp"], scheduler["first_qp"] + scheduler["num_qps"]):
            if s.sender[qp]["snd_nxt"] < s.qp[qp]["posted"] and s.sender[qp]["state"] != FAILED:
                due_ps = min(due_ps, s.qp[qp]["next_send_ps"])
    if now < due_ps < FOREVER:
        push_far(s, slot, due_ps)


@rare
def reopen_as_ns3(s, host, now):
    """ns-3: windows are looked at whenever a host may send; whether one is open that was not."""
    found = False
    for i in range(s.params[0]["num_classes"]):
        scheduler = s.nic[host * s.params[0]["num_classes"] + i]
        for qp in range(scheduler["first_qp"], scheduler["first_qp"] + scheduler["num_qps"]):
            if s.sender[qp]["traits"] & RATE_WINDOW != 0 and s.sender[qp]["state"] == IDLE:
                activate(s, qp, now)
                found = found or s.sender[qp]["state"] == READY
    return found


@rare
def next_send_moved(s, qp, now):
    """The time at which a QP may go has changed; PRECONDITION: `activate` follows."""
    sender = s.sender[qp]
    if sender["state"] == READY or sender["state"] == PACED:
        withdraw(s, qp)
    if not s.plain and s.params[0]["scheduled_order"] == 1:
        slot = 2 * s.params[0]["num_links"] + s.qp[qp]["src"]
        due_ps = s.qp[qp]["next_send_ps"]
        if due_ps < s.event_ps[slot] < FOREVER:  # as in ns-3, this moves a wake-up
            pull_far(s, slot, max(due_ps, now))


@helper
def serve_later(s, host):
    """Has a host's link served when the current event is over."""
    core = s.core[0]
    end = core["end_posted"]
    if end == core["first_posted"] or s.posted[end - 1] != host:
        s.posted[end] = host
        core["end_posted"] = end + 1
