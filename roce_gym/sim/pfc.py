"""PFC frames: sending them, heeding them, and how long they hold (rules, section 5).

A *port* here is a pair (link, class): the link's destination tells its source to pause the class.
All that can wait is told in `State.pfc`, timers are set no more than once for each port and looked
at when they fire (`pfc_timers.py`): a pause that is resumed in time costs no event.
"""

from __future__ import annotations

from numpy import int64

from roce_gym.sim.jit import helper, rare
from roce_gym.sim.pool import free_packet, new_packet
from roce_gym.sim.port import append, await_free, take, transmit
from roce_gym.sim.types import FOREVER, NONE, PAUSE, WATCH_FORWARD, WATCH_NOT, ZERO
from roce_gym.sim.wheel import push_far

_QUANTUM_BYTES = 64
"""512 bit times."""


@helper
def hold_ps(s, link):
    """How long a PAUSE holds on a link; PRECONDITION: pauses expire."""
    return (_QUANTUM_BYTES * s.params[0]["quanta"] * s.link[link]["ps_per_kib"]) >> 10


@helper
def refresh_ps(s, link):
    """How soon a PAUSE is sent again; PRECONDITION: pauses expire."""
    return int64(hold_ps(s, link) * s.params[0]["refresh_fraction"])


@helper
def hold_slot(s, port):
    """Timer: the end of a pause."""
    return s.params[0]["first_pfc_slot"] + port


@helper
def refresh_slot(s, port):
    """Timer: sending a PAUSE again."""
    return s.params[0]["first_pfc_slot"] + s.pfc.size + port


@helper
def watchdog_slot(s, port):
    """Timer: looking at a paused queue; PRECONDITION: there are watchdogs."""
    expiring = 2 * s.pfc.size if s.params[0]["quanta"] > 0 else 0
    return s.params[0]["first_pfc_slot"] + expiring + port


@helper
def send_pfc(s, link, cls, kind, now):
    """Sends a pause or resume frame: at once if the link is idle, else as the next packet."""
    p = new_packet(s, kind, NONE, cls, s.params[0]["pfc"], ZERO, ZERO)
    append(s, link, ZERO, p, now)
    wire = s.link[link]
    if wire["free_ps"] > now or wire["done_pending"] == 1:
        await_free(s, link)
    else:
        transmit(s, link, _take_pfc(s, link, now), now)


@helper
def _take_pfc(s, link, now):
    p = take(s, link, ZERO, now)
    if s.queue[link * s.params[0]["num_classes"]]["head"] == NONE:
        s.link[link]["waiting"] &= ~1
    return p


@helper
def tell_to_pause(s, link, cls, now):
    """The destination of a link has its source pause a class; sent again while that lasts."""
    port = link * s.params[0]["num_classes"] + cls
    state = s.pfc[port]
    s.ingress[port]["pauses"] += 1
    state["told_ps"] = now
    if state["first_pause_ps"] == FOREVER:
        state["first_pause_ps"] = now
    if s.params[0]["quanta"] > 0 and state["refresh_armed"] == 0:
        _arm_refresh(s, link, port, now)
    send_pfc(s, link ^ 1, cls, PAUSE, now)


@rare
def _arm_refresh(s, link, port, now):
    s.pfc[port]["refresh_armed"] = 1
    push_far(s, refresh_slot(s, port), now + refresh_ps(s, link))


@helper
def hear_pfc(s, link, p, now):
    """A PFC frame has arrived on a link. Returns the link to serve after a resume, else NONE."""
    packet = s.packet[p]
    out = link ^ 1
    cls = int64(packet["cls"])
    kind = packet["kind"]
    free_packet(s, p)
    if not s.plain and s.params[0]["maps_priorities"] == 1:
        cls = s.heard[link * s.params[0]["num_classes"] + cls]
        if cls == NONE:
            return NONE
    state = s.pfc[out * s.params[0]["num_classes"] + cls]
    if kind != PAUSE:
        end_pause(s, out, cls, state, now)
        return out
    if state["paused_since_ps"] == FOREVER:
        state["paused_since_ps"] = now
    if s.params[0]["heeds"] == 0 or _heed(s, out, cls, now):
        s.link[out]["paused"] |= 1 << cls
    return NONE


@helper
def end_pause(s, link, cls, state, now):
    """The source of a link may send a class again; the link has to be served."""
    if state["paused_since_ps"] != FOREVER:
        state["paused_ps"] += now - state["paused_since_ps"]
        state["paused_since_ps"] = FOREVER
    s.link[link]["paused"] &= ~(1 << cls)


@rare
def _heed(s, link, cls, now):
    """Sets the timers of a PAUSE; False if a watchdog has the class sent in spite of it."""
    params = s.params[0]
    port = link * params["num_classes"] + cls
    if params["quanta"] > 0:
        state = s.pfc[port]
        state["expires_ps"] = now + hold_ps(s, link)
        if state["hold_armed"] == 0:
            state["hold_armed"] = 1
            push_far(s, hold_slot(s, port), state["expires_ps"])
    if s.plain or params["watchdog"] == WATCH_NOT or s.watchdog[port]["watched"] == 0:
        return True
    dog = s.watchdog[port]
    dog["heard"] = 1
    if dog["armed"] == 0:
        dog["armed"] = 1
        push_far(s, watchdog_slot(s, port), (now // params["poll_ps"] + 1) * params["poll_ps"])
    return dog["storming"] == 0 or params["watchdog"] != WATCH_FORWARD


@rare
def is_watched_off(s, link, out, p):
    """Whether a watchdog drops a packet that came on `link` and goes to `out`; it is gone then.

    PRECONDITION: some watchdog drops packets.
    """
    for sends in (out, link ^ 1):
        dog = s.watchdog[sends * s.params[0]["num_classes"] + s.packet[p]["cls"]]
        if dog["storming"] == 1:
            dog["dropped"] += 1
            free_packet(s, p)
            return True
    return False
