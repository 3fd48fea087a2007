"""One end of a link: its queues, and putting a packet on the wire."""

from __future__ import annotations

from numpy import int64

from roce_gym.sim.jit import helper
from roce_gym.sim.types import NONE
from roce_gym.sim.wheel import next_order, schedule


@helper
def on_clock(s, length_ps):
    """Rounds a time to the clock's resolution (1 ps unless compared with a coarser simulator)."""
    if s.plain:
        return length_ps
    clock_ps = s.params[0]["clock_ps"]
    if clock_ps == 1:
        return length_ps
    return (length_ps + clock_ps // 2) // clock_ps * clock_ps


@helper
def await_free(s, link):
    """Makes sure that a TX_DONE event comes when the link is free."""
    wire = s.link[link]
    if wire["done_pending"] == 0:
        wire["done_pending"] = 1
        schedule(s, s.params[0]["num_links"] + link, wire["free_ps"])


@helper
def _take_places(s, link, p):
    """Ties in order of scheduling: TX_DONE is scheduled with every packet, then its arrival."""
    s.event_order[s.params[0]["num_links"] + link] = next_order(s)
    await_free(s, link)
    place = next_order(s)
    s.packet_order[p] = place
    if s.link[link]["flight_head"] == NONE:
        s.event_order[link] = place


@helper
def transmit(s, link, p, now):
    """Puts a packet on an idle link (rules, section 3)."""
    wire = s.link[link]
    packet = s.packet[p]
    on_wire = packet["size"] + s.params[0]["gap"]
    free_ps = now + on_clock(s, (on_wire * wire["ps_per_kib"]) >> 10)
    arrival_ps = free_ps + wire["delay_ps"]
    wire["free_ps"] = free_ps
    if not s.plain and s.params[0]["scheduled_order"] == 1:
        _take_places(s, link, p)
    packet["next"] = NONE
    if wire["flight_head"] == NONE:
        wire["flight_head"] = p
        schedule(s, link, arrival_ps)
    else:
        last = s.packet[wire["flight_tail"]]
        last["next"] = p
        last["stamp"] = arrival_ps
    wire["flight_tail"] = p


@helper
def append(s, link, cls, p, now):
    """Puts a packet at the end of a queue."""
    queue = s.queue[link * s.params[0]["num_classes"] + cls]
    if queue["head"] == NONE:
        queue["head"] = p
        s.link[link]["waiting"] |= 1 << cls
    else:
        s.packet[queue["tail"]]["next"] = p
    queue["tail"] = p
    s.packet[p]["next"] = NONE
    integrate(queue, now)
    occupied = queue["bytes"] + s.packet[p]["size"]
    queue["bytes"] = occupied
    if occupied > queue["max_bytes"]:
        queue["max_bytes"] = occupied


@helper
def take(s, link, cls, now):
    """Removes the first packet of a queue that is not empty; counts it as sent."""
    queue = s.queue[link * s.params[0]["num_classes"] + cls]
    p = int64(queue["head"])
    packet = s.packet[p]
    queue["head"] = packet["next"]
    integrate(queue, now)
    queue["bytes"] -= packet["size"]
    queue["tx_bytes"] += packet["size"]
    queue["tx_packets"] += 1
    return p


@helper
def integrate(queue, now):
    """Brings the integral of a queue's length up to date, before it changes."""
    queue["area"] += (queue["bytes"] * (now - queue["changed_ps"])) >> 10
    queue["changed_ps"] = now
