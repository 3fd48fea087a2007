"""Has the processor fetch what the next events need while this one is handled.

Nothing here has an influence on results. An event of a large fabric needs about five records that
no core's own cache holds, and would wait for each. They are found in steps: the event's link when
its bucket is opened (`wheel.py`), then the link's packet or queue, then what that packet concerns.
Where less is far, fewer steps are worth their instructions.
"""

from __future__ import annotations

from numpy import int64

from roce_gym.sim.handle import prefetch
from roce_gym.sim.jit import helper
from roce_gym.sim.sorting import SLOT_MASK
from roce_gym.sim.types import DATA, NONE, PAUSE
from roce_gym.sim.wheel import lowest_bit

_TO_PACKET = 2
_TO_LINK = 5
"""Events between the one handled now and the one whose packet or link is looked at."""


@helper
def fetch_packet(s, cursor):
    """The packet of the event at `cursor`, if that is an arrival."""
    if cursor < s.current.size:
        slot = s.current[cursor] & SLOT_MASK
        if slot < s.params[0]["num_links"]:
            p = int64(s.link[slot]["flight_head"])
            if p != NONE:
                prefetch(s.packet, p)


@helper
def look_for_qps(s, cursor):
    """Few links, many QPs: what the next event's packet concerns, and the next but one's packet."""
    if cursor < s.current.size:
        slot = s.current[cursor] & SLOT_MASK
        if slot < s.params[0]["num_links"]:
            _look_at_arrival(s, slot)
    if cursor + 1 < s.current.size:
        slot = s.current[cursor + 1] & SLOT_MASK
        links = s.params[0]["num_links"]
        if slot < links:
            p = int64(s.link[slot]["flight_head"])
            if p != NONE:
                prefetch(s.packet, p)
        elif slot < 2 * links:
            p = _first_waiting(s, slot - links)
            if p != NONE:
                prefetch(s.packet, p)


@helper
def look_into_bucket(s, core):
    """Large fabrics, for every event of a bucket just opened: its packet, or the queue to serve."""
    links = s.params[0]["num_links"]
    for i in range(core["cursor"], s.current.size):
        slot = s.current[i] & SLOT_MASK
        if slot < links:
            prefetch(s.packet, int64(s.link[slot]["flight_head"]))
        elif slot < 2 * links:
            _fetch_queue(s, slot - links)


@helper
def _fetch_queue(s, link):
    waiting = int64(s.link[link]["waiting"])
    if waiting != 0:
        prefetch(s.queue, link * s.params[0]["num_classes"] + lowest_bit(waiting))


@helper
def look_ahead(s, cursor):
    """Large fabrics, before each event: what two later ones need."""
    if cursor + _TO_PACKET < s.current.size:
        _look_at_packet(s, s.current[cursor + _TO_PACKET] & SLOT_MASK)
    if cursor + _TO_LINK < s.current.size:
        slot = (s.current[cursor + _TO_LINK] & SLOT_MASK) - s.params[0]["num_links"]
        if 0 <= slot < s.params[0]["num_links"]:
            p = _first_waiting(s, slot)
            if p != NONE:
                prefetch(s.packet, p)


@helper
def _first_waiting(s, link):
    """The packet a link is likely to send next."""
    waiting = int64(s.link[link]["waiting"])
    if waiting == 0:
        return NONE
    return int64(s.queue[link * s.params[0]["num_classes"] + lowest_bit(waiting)]["head"])


@helper
def _look_at_packet(s, slot):
    params = s.params[0]
    links = params["num_links"]
    if slot < links:
        _look_at_arrival(s, slot)
    elif slot < 2 * links and s.link[slot - links]["src"] >= params["num_hosts"]:
        p = _first_waiting(s, slot - links)
        if p != NONE:
            packet = s.packet[p]
            prefetch(s.ingress, packet["stamp"] * params["num_classes"] + packet["cls"])


@helper
def _look_at_arrival(s, link):
    p = int64(s.link[link]["flight_head"])
    if p == NONE or s.packet[p]["kind"] >= PAUSE:
        return
    params = s.params[0]
    packet = s.packet[p]
    qp = int64(packet["qp"])
    if s.link[link]["dst"] >= params["num_hosts"]:
        prefetch(s.path, 2 * qp * params["max_hops"])
        prefetch(s.ingress, link * params["num_classes"] + packet["cls"])
    elif packet["kind"] == DATA:
        prefetch(s.receiver, qp)
    else:
        prefetch(s.sender, qp)
