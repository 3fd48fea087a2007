"""Shared-buffer switch: admission, ECN marking, when to pause and resume (rules, 4 and 5)."""

from __future__ import annotations

from numpy import int64

from roce_gym.sim.jit import helper
from roce_gym.sim.pfc import is_watched_off, send_pfc, tell_to_pause
from roce_gym.sim.pool import free_packet
from roce_gym.sim.port import append, choose_class, take
from roce_gym.sim.rng import next_mrg32k3a, uniform
from roce_gym.sim.types import (
    CE,
    DATA,
    LOSSLESS,
    NONE,
    RESUME,
    STREAM_ECN,
    TOLD_TO_PAUSE,
)

_MAX_INT32 = 2**31 - 1


@helper
def forward(s, link, p, now):
    """A packet has arrived at a switch. Returns the output link to serve, or NONE."""
    params = s.params[0]
    packet = s.packet[p]
    hop = packet["hop"] + 1
    packet["hop"] = hop
    route = 2 * packet["qp"] + (0 if packet["kind"] == DATA else 1)
    out = int64(s.path[route * params["max_hops"] + hop])
    if s.core[0]["dropping"] > 0 and is_watched_off(s, link, out, p):
        return NONE
    cls = int64(packet["cls"])
    port = link * params["num_classes"] + cls
    switch = s.switch[s.link[link]["dst"] - params["num_hosts"]]
    if not _admit(s.ingress[port], switch, packet["size"]):
        s.ingress[port]["drops"] += 1
        free_packet(s, p)
        return NONE
    packet["stamp"] = link
    append(s, out, cls, p, now)
    _pause_if_needed(s, s.ingress[port], switch, link, cls, now)
    return out


@helper
def _threshold(ingress, switch):
    """Shared bytes the (port, class) may hold: static, or alpha x free shared (HPCC, DT)."""
    if ingress["static_threshold"] != NONE:
        return int64(ingress["static_threshold"])
    free = switch["pool"] - switch["shared"]
    return int(ingress["alpha"] * free) if free > 0 else 0


@helper
def _shared_part(buffered, reserved):
    return buffered - reserved if buffered > reserved else 0


@helper
def _admit(ingress, switch, size):
    """Takes a packet into the accounting; False if it has to be dropped."""
    buffered = int64(ingress["bytes"])
    used = _shared_part(buffered, ingress["reserved"])
    after = _shared_part(buffered + size, ingress["reserved"])
    if after > 0:
        limit = _threshold(ingress, switch)
        if after > limit or after - used > switch["pool"] - switch["shared"]:
            if size + ingress["headroom_used"] > ingress["headroom"]:
                return False
            ingress["headroom_used"] += size
            if ingress["headroom_used"] > ingress["peak_headroom"]:
                ingress["peak_headroom"] = ingress["headroom_used"]
            return True
        if buffered + size > ingress["peak_bytes"]:
            ingress["peak_bytes"] = buffered + size
            ingress["peak_limit"] = min(ingress["reserved"] + limit, _MAX_INT32)
    ingress["bytes"] = buffered + size
    switch["shared"] += after - used
    return True


@helper
def _pause_if_needed(s, ingress, switch, link, cls, now):
    if ingress["flags"] != LOSSLESS:  # lossy, or told already
        return
    used = _shared_part(int64(ingress["bytes"]), ingress["reserved"])
    if ingress["headroom_used"] > 0 or used >= _threshold(ingress, switch):
        ingress["flags"] = LOSSLESS | TOLD_TO_PAUSE
        tell_to_pause(s, link, cls, now)


@helper
def release(s, ingress, switch, size, link, cls, now):
    """A packet leaves: gives back headroom, then shared, then reserve; resumes if it may."""
    from_headroom = min(ingress["headroom_used"], size)
    used = _shared_part(int64(ingress["bytes"]), ingress["reserved"])
    ingress["headroom_used"] -= from_headroom
    ingress["bytes"] -= size - from_headroom
    still_used = _shared_part(int64(ingress["bytes"]), ingress["reserved"])
    switch["shared"] -= used - still_used
    if ingress["flags"] < TOLD_TO_PAUSE or ingress["headroom_used"] > 0:
        return
    if still_used == 0 or still_used + ingress["xon_offset"] <= _threshold(ingress, switch):
        ingress["flags"] = LOSSLESS
        ingress["resumes"] += 1
        send_pfc(s, link ^ 1, cls, RESUME, now)


@helper
def next_from_switch(s, link, now):
    """Takes the packet an output sends next; NONE if it has none to send."""
    cls = choose_class(s, link)
    if cls == NONE:
        return NONE
    params = s.params[0]
    port = link * params["num_classes"] + cls
    queue = s.queue[port]
    sent_before = int64(queue["tx_packets"])
    p = take(s, link, cls, now)
    if queue["head"] == NONE:
        s.link[link]["waiting"] &= ~(1 << cls)
    if cls == 0:
        return p
    packet = s.packet[p]
    came_on = packet["stamp"]
    switch = s.switch[s.link[link]["src"] - params["num_hosts"]]
    ingress = s.ingress[came_on * params["num_classes"] + cls]
    release(s, ingress, switch, packet["size"], came_on, cls, now)
    left = int64(queue["bytes"])
    if left > queue["kmin"] and _marks(s, queue, left, port, sent_before):
        packet["flags"] |= CE
        queue["marks"] += 1
    return p


@helper
def _marks(s, queue, left, port, sent_before):
    """RED on the instantaneous queue (DCQCN 3.1); PRECONDITION: left > kmin."""
    if left > queue["kmax"]:
        return True
    share = queue["pmax"] * (left - queue["kmin"]) / (queue["kmax"] - queue["kmin"])
    if s.params[0]["mrg32k3a"] == 1:
        return next_mrg32k3a(s.mrg) < share
    return uniform(s.params[0]["seed"], STREAM_ECN, port, sent_before) < share
