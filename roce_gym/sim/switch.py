"""Shared-buffer switch: admission, ECN marking, when to pause and resume (rules, 4 and 5)."""

from __future__ import annotations

from numpy import int64

from roce_gym.sim.choice import choose_class
from roce_gym.sim.dscp import class_here
from roce_gym.sim.feedback import see_hop, see_level
from roce_gym.sim.jit import helper, rare
from roce_gym.sim.pfc import is_watched_off, send_pfc, tell_to_pause
from roce_gym.sim.pool import free_packet
from roce_gym.sim.port import append, take
from roce_gym.sim.rng import next_mrg32k3a, uniform
from roce_gym.sim.routing import next_hop
from roce_gym.sim.shaper import spend, withhold
from roce_gym.sim.types import (
    CE,
    DATA,
    FEEDBACK_LEVEL,
    LOSSLESS,
    NONE,
    RESUME,
    STREAM_ECN,
    TOLD_TO_PAUSE,
    TRACED,
)

_MAX_INT32 = 2**31 - 1


@helper
def forward(s, link, p, now):
    """A packet has arrived at a switch. Returns the output link to serve, or NONE."""
    params = s.params[0]
    packet = s.packet[p]
    hop = packet["hop"] + 1
    packet["hop"] = hop
    if not s.plain and params["num_marks"] > 0:
        packet["cls"] = class_here(s, int64(s.link[link]["dst"]), p)
    if not s.plain and params["hop_by_hop"] == 1:
        out = next_hop(s, link, p, now)
        if out == NONE:
            s.link_losses[link] += 1
            free_packet(s, p)
            return NONE
    else:
        route = 2 * packet["qp"] + (0 if packet["kind"] == DATA else 1)
        out = int64(s.path[route * params["max_hops"] + hop])
    if not s.plain and s.core[0]["dropping"] > 0 and is_watched_off(s, link, out, p):
        return NONE
    cls = int64(packet["cls"])
    port = link * params["num_classes"] + cls
    number = s.link[link]["dst"] - params["num_hosts"]
    pool = number
    fits = True
    if not s.plain and params["special"] == 1:
        pool = pool_of(s, number, cls)
        fits = _fits_egress(s, s.ingress[port], s.switch[pool], out, cls, packet["size"])
    switch = s.switch[pool]
    if not (fits and _admit(s, s.ingress[port], switch, number, packet["size"])):
        s.ingress[port]["drops"] += 1
        free_packet(s, p)
        return NONE
    packet["stamp"] = link
    append(s, out, cls, p, now)
    _pause_if_needed(s, s.ingress[port], switch, link, cls, now)
    return out


@helper
def pool_of(s, number, cls):
    """Index of the pool that a class uses at a switch."""
    return number * s.params[0]["num_pools"] + s.class_pool[cls]


@rare
def _fits_egress(s, ingress, switch, out, cls, size):
    """Whether a packet fits into its egress queue, or is counted as dropped there.

    Queues of lossless classes have no bound.
    """
    if (s.params[0]["lossy"] >> cls) & 1 == 0:
        return True
    bound = s.egress[cls]
    limit = bound["limit"]
    if limit == NONE:
        free = switch["pool"] - switch["shared"]
        limit = int(bound["alpha"] * free) if free > 0 else 0
    port = out * s.params[0]["num_classes"] + cls
    if s.queue[port]["bytes"] + size <= limit:
        return True
    ingress["drops_at_egress"] += 1
    s.egress_drops[port] += 1
    return False


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
def _admit(s, ingress, switch, number, size):
    """Takes a packet into the accounting; False if it has to be dropped."""
    buffered = int64(ingress["bytes"])
    used = _shared_part(buffered, ingress["reserved"])
    after = _shared_part(buffered + size, ingress["reserved"])
    if after > 0:
        limit = _threshold(ingress, switch)
        if after > limit or after - used > switch["pool"] - switch["shared"]:
            if size + ingress["headroom_used"] > ingress["headroom"]:
                return False
            if s.params[0]["shared_headroom"] == 1 and not _take_headroom(s.xoff[number], size):
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


@rare
def _take_headroom(xoff, size):
    """Takes headroom that all ports and classes of a switch share, if there is any left."""
    if size + xoff["used"] > xoff["size"]:
        return False
    xoff["used"] += size
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
def release(s, ingress, switch, number, size, link, cls, now):
    """A packet leaves: gives back headroom, then shared, then reserve; resumes if it may."""
    used = _shared_part(int64(ingress["bytes"]), ingress["reserved"])
    if ingress["headroom_used"] > 0:
        size -= _return_headroom(s, ingress, number, size)
    ingress["bytes"] -= size
    still_used = _shared_part(int64(ingress["bytes"]), ingress["reserved"])
    switch["shared"] -= used - still_used
    if ingress["flags"] < TOLD_TO_PAUSE or ingress["headroom_used"] > 0:
        return
    if still_used == 0 or still_used + ingress["xon_offset"] <= _threshold(ingress, switch):
        ingress["flags"] = LOSSLESS
        ingress["resumes"] += 1
        send_pfc(s, link ^ 1, cls, RESUME, now)


@rare
def _return_headroom(s, ingress, number, size):
    """Gives back headroom for a packet; returns how much."""
    back = min(int64(ingress["headroom_used"]), size)
    ingress["headroom_used"] -= back
    if s.params[0]["shared_headroom"] == 1:
        s.xoff[number]["used"] -= back
    return back


@helper
def next_from_switch(s, link, now):
    """Takes the packet an output sends next; NONE if it has none to send."""
    params = s.params[0]
    if not s.plain and params["shaped"] != 0:
        withhold(s, link, now)
    cls = choose_class(s, link)
    if cls == NONE:
        return NONE
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
    number = s.link[link]["src"] - params["num_hosts"]
    pool = number
    if not s.plain and params["special"] == 1:
        pool = pool_of(s, number, cls)
        if (params["shaped"] >> cls) & 1 == 1:
            spend(s.bucket[port], int64(packet["size"]), now)
    ingress = s.ingress[came_on * params["num_classes"] + cls]
    release(s, ingress, s.switch[pool], number, int64(packet["size"]), came_on, cls, now)
    left = int64(queue["bytes"])
    if left > queue["kmin"] and _marks(s, queue, left, port, sent_before):
        packet["flags"] |= CE
        queue["marks"] += 1
    if not s.plain and packet["flags"] & TRACED != 0 and packet["kind"] == DATA:
        see_hop(s, p, link, now)
        if params["feedback"] & FEEDBACK_LEVEL != 0:
            held = _shared_part(int64(ingress["bytes"]), ingress["reserved"])
            held += ingress["headroom_used"]
            see_level(s, p, held, _threshold(ingress, s.switch[pool]))
    return p


@helper
def _marks(s, queue, left, port, sent_before):
    """RED on the instantaneous queue (DCQCN 3.1); PRECONDITION: left > kmin."""
    if left > queue["kmax"]:
        return True
    share = queue["pmax"] * (left - queue["kmin"]) / (queue["kmax"] - queue["kmin"])
    if not s.plain and s.params[0]["mrg32k3a"] == 1:
        return next_mrg32k3a(s.mrg) < share
    return uniform(s.params[0]["seed"], STREAM_ECN, port, sent_before) < share
