"""Timers of PFC: ends of pauses, refreshes, watchdogs, storms (rules, section 5).

Slots, from `first_pfc_slot` on: the ends of pauses and the refreshes of all ports, if pauses
expire; polls of all ports, if there are watchdogs; storms.
"""

from __future__ import annotations

from numpy import int64

from roce_gym.sim.jit import helper, rare
from roce_gym.sim.pfc import (
    end_pause,
    hold_slot,
    refresh_ps,
    refresh_slot,
    send_pfc,
    tell_to_pause,
    watchdog_slot,
)
from roce_gym.sim.pool import free_packet
from roce_gym.sim.port import integrate
from roce_gym.sim.switch import pool_of, release
from roce_gym.sim.types import (
    FOREVER,
    NONE,
    PAUSE,
    RESUME,
    TOLD_TO_PAUSE,
    WATCH_DROP,
    WATCH_FORWARD,
    WATCH_NOT,
)
from roce_gym.sim.wheel import push_far


@helper
def _storm_slot(s, number):
    params = s.params[0]
    watched = s.pfc.size if params["watchdog"] != WATCH_NOT else 0
    expiring = 2 * s.pfc.size if params["quanta"] > 0 else 0
    return params["first_pfc_slot"] + expiring + watched + number


@rare
def start_storms(s):
    """Arms every storm's beginning, at time 0."""
    for number in range(s.storm.size):
        push_far(s, _storm_slot(s, number), s.storm[number]["start_ps"])


@rare
def on_pfc_timer(s, timer, now):
    """A timer of PFC, counted from the first, has fired. Returns the link to serve, or NONE."""
    ports = s.pfc.size
    if s.params[0]["quanta"] > 0:
        if timer < ports:
            return _on_hold(s, timer, now)
        if timer < 2 * ports:
            return _on_refresh(s, timer - ports, now)
        timer -= 2 * ports
    if not s.plain and s.params[0]["watchdog"] != WATCH_NOT:
        if timer < ports:
            return _on_poll(s, timer, now)
        timer -= ports
    _on_storm(s, timer, now)
    return NONE


@rare
def _on_hold(s, port, now):
    """A pause ends, unless it was refreshed or resumed."""
    state = s.pfc[port]
    state["hold_armed"] = 0
    if state["paused_since_ps"] == FOREVER:
        return NONE
    if state["expires_ps"] > now:
        state["hold_armed"] = 1
        push_far(s, hold_slot(s, port), state["expires_ps"])
        return NONE
    classes = s.params[0]["num_classes"]
    end_pause(s, port // classes, port % classes, state, now)
    return int64(port // classes)


@rare
def _on_refresh(s, port, now):
    """A switch that still has to pause sends another PAUSE."""
    state = s.pfc[port]
    state["refresh_armed"] = 0
    if s.ingress[port]["flags"] < TOLD_TO_PAUSE:
        return NONE
    classes = s.params[0]["num_classes"]
    link = port // classes
    due_ps = state["told_ps"] + refresh_ps(s, link)
    if due_ps > now:
        state["refresh_armed"] = 1
        push_far(s, refresh_slot(s, port), due_ps)
    else:
        tell_to_pause(s, link, port % classes, now)
    return NONE


@rare
def _on_storm(s, number, now):
    """A NIC in a storm sends its next PAUSE; at the end, it resumes if pauses do not expire."""
    storm = s.storm[number]
    port = storm["port"]
    classes = s.params[0]["num_classes"]
    link, cls = port // classes, port % classes
    expires = s.params[0]["quanta"] > 0
    if now >= storm["stop_ps"]:
        if not expires:
            s.ingress[port]["resumes"] += 1
            send_pfc(s, link ^ 1, cls, RESUME, now)
        return
    s.ingress[port]["pauses"] += 1
    if s.pfc[port]["first_pause_ps"] == FOREVER:
        s.pfc[port]["first_pause_ps"] = now
    send_pfc(s, link ^ 1, cls, PAUSE, now)
    again_ps = storm["stop_ps"]
    if expires:
        again_ps = min(again_ps, now + refresh_ps(s, link))
    if again_ps < FOREVER:
        push_far(s, _storm_slot(s, number), again_ps)


@rare
def _on_poll(s, port, now):
    """A watchdog looks at its queue; it goes on while that is paused or in a storm."""
    dog = s.watchdog[port]
    is_paused = s.pfc[port]["paused_since_ps"] != FOREVER
    served = NONE
    if dog["storming"] == 0:
        if _is_stalled(s, port, now):
            dog["stalled_ps"] += s.params[0]["poll_ps"]
        else:
            dog["stalled_ps"] = 0
        if dog["stalled_ps"] >= s.params[0]["detection_ps"]:
            served = _act(s, port, now)
    elif is_paused or dog["heard"] == 1:
        dog["quiet_ps"] = 0
    else:
        dog["quiet_ps"] += s.params[0]["poll_ps"]
        if dog["quiet_ps"] >= s.params[0]["restoration_ps"]:
            _restore(s, dog)
    dog["heard"] = 0
    dog["armed"] = 0
    if is_paused or dog["storming"] == 1:
        dog["armed"] = 1
        push_far(s, watchdog_slot(s, port), now + s.params[0]["poll_ps"])
    return served


@helper
def _is_stalled(s, port, now):
    """Paused since the last poll or longer, with packets waiting."""
    since_ps = s.pfc[port]["paused_since_ps"]
    return since_ps <= now - s.params[0]["poll_ps"] and s.queue[port]["head"] != NONE


@helper
def _act(s, port, now):
    """A storm is found. Returns the link to serve, or NONE."""
    dog = s.watchdog[port]
    dog["storming"] = 1
    dog["storms"] += 1
    dog["stalled_ps"] = 0
    dog["quiet_ps"] = 0
    action = s.params[0]["watchdog"]
    classes = s.params[0]["num_classes"]
    if action == WATCH_DROP:
        s.core[0]["dropping"] += 1
        _discard(s, port // classes, port % classes, now)
    elif action == WATCH_FORWARD:
        s.link[port // classes]["paused"] &= ~(1 << (port % classes))
        return int64(port // classes)
    return NONE


@helper
def _restore(s, dog):
    dog["storming"] = 0
    dog["restored"] += 1
    if s.params[0]["watchdog"] == WATCH_DROP:
        s.core[0]["dropping"] -= 1


@rare
def _discard(s, link, cls, now):
    """Drops all packets of an output queue, the first one first."""
    params = s.params[0]
    port = link * params["num_classes"] + cls
    queue = s.queue[port]
    number = s.link[link]["src"] - params["num_hosts"]
    switch = s.switch[pool_of(s, number, cls)]
    integrate(queue, now)
    p = int64(queue["head"])
    queue["head"] = NONE
    queue["bytes"] = 0
    s.link[link]["waiting"] &= ~(1 << cls)
    while p != NONE:
        packet = s.packet[p]
        following, size, came_on = int64(packet["next"]), packet["size"], packet["stamp"]
        free_packet(s, p)
        ingress = s.ingress[came_on * params["num_classes"] + cls]
        release(s, ingress, switch, number, size, came_on, cls, now)
        s.watchdog[port]["dropped"] += 1
        p = following
