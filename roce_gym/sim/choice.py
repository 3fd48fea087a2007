"""The class that is served next at one end of a link (rules, section 4)."""

from __future__ import annotations

from numpy import int64

from roce_gym.sim.jit import helper, rare
from roce_gym.sim.resend import requested_bytes
from roce_gym.sim.scheduler import next_ready
from roce_gym.sim.types import NONE, SELECTIVE
from roce_gym.sim.wheel import lowest_bit


@helper
def choose_class(s, link):
    """NONE, the first strict class, or the next in round robin, by packets or by bytes.

    PRECONDITION: the caller sends a packet of the class at once.
    """
    wire = s.link[link]
    eligible = int64(wire["waiting"]) & ~int64(wire["paused"])
    if eligible == 0:
        return NONE
    strict = eligible & s.params[0]["strict"]
    if strict != 0:
        return lowest_bit(strict)
    if not s.plain and s.params[0]["dwrr"] == 1:
        return _next_by_deficit(s, link, eligible)
    cls = _next_in_turn(eligible, int64(wire["last_rr"]))
    wire["last_rr"] = cls
    return cls


@helper
def _next_in_turn(eligible, last):
    later = eligible & ~((2 << last) - 1)
    return lowest_bit(later if later != 0 else eligible)


@rare
def _next_by_deficit(s, link, eligible):
    """DWRR (Shreedhar and Varghese 1996): a class is visited, gets its quantum, and sends.

    Its visit ends when its next packet is larger than its deficit, which it keeps, or when it has
    nothing it may send, and then it loses it.
    """
    wire = s.link[link]
    first = link * s.params[0]["num_classes"]
    cls = int64(wire["last_rr"])
    if (eligible >> cls) & 1 == 0:
        s.share[first + cls]["deficit"] = 0
    elif _spend(s.share[first + cls], _next_size(s, link, cls)):
        return cls
    while True:
        cls = _next_in_turn(eligible, cls)
        share = s.share[first + cls]
        share["deficit"] += share["quantum"]
        if _spend(share, _next_size(s, link, cls)):
            wire["last_rr"] = cls
            return cls


@helper
def _spend(share, size):
    if size > share["deficit"]:
        return False
    share["deficit"] -= size
    return True


@helper
def _next_size(s, link, cls):
    """Bytes of the packet that a class sends next; at a host, control packets come first."""
    params = s.params[0]
    head = int64(s.queue[link * params["num_classes"] + cls]["head"])
    if head != NONE:
        return int64(s.packet[head]["size"])
    scheduler = s.nic[s.link[link]["src"] * params["num_classes"] + cls]
    qp = scheduler["first_qp"] + next_ready(s, scheduler)
    if not s.plain and params["receiving"] == SELECTIVE and s.resend[qp]["first"] != NONE:
        return requested_bytes(s, qp) + params["header"]
    sender = s.sender[qp]
    return min(params["mtu"], sender["message_end"] - sender["snd_nxt"]) + params["header"]
