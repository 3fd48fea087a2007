"""The event loop: take the next event, hand it to its owner, serve the link it concerns."""

from __future__ import annotations

from numpy import int64

from roce_gym.sim.bucket_width import adapt_width
from roce_gym.sim.cc.events import catch_up
from roce_gym.sim.collective import on_job_timer, on_member_timer
from roce_gym.sim.credit import on_credit_timer
from roce_gym.sim.held import on_tenant_bucket
from roce_gym.sim.jit import helper, rare
from roce_gym.sim.lookahead import fetch_packet, look_ahead, look_for_qps, look_into_bucket
from roce_gym.sim.nic import after_send, more_to_send, next_from_host
from roce_gym.sim.pfc import hear_pfc
from roce_gym.sim.pfc_timers import on_pfc_timer
from roce_gym.sim.pool import free_packet
from roce_gym.sim.port import await_free, transmit
from roce_gym.sim.reorder import on_reorder_timer
from roce_gym.sim.rng import uniform
from roce_gym.sim.shaper import on_port_bucket
from roce_gym.sim.sorting import KEY_SHIFT, SLOT_MASK
from roce_gym.sim.switch import forward, next_from_switch
from roce_gym.sim.transport import on_retransmission_timer, receive
from roce_gym.sim.types import (
    DATA,
    DOWN,
    FAR_LINKS,
    FAR_QPS,
    FOREVER,
    LOG_FULL,
    MESSAGES_LOW,
    NONE,
    OK,
    PACKETS_LOW,
    PAUSE,
    STREAM_LOSS,
    WHEEL_OVERRUN,
    WIDTH_DUE,
)
from roce_gym.sim.wheel import next_bucket_ps, open_bucket, schedule

PACKET_RESERVE = 8
"""More than the packets one event can create (ACK, CNP, pause, resume, data), not counting the one
that each host may send for which it posts messages."""


@helper
def _on_arrival(s, link, now):
    """A packet has crossed a link. Returns the link to serve next, or NONE."""
    wire = s.link[link]
    p = int64(wire["flight_head"])
    packet = s.packet[p]
    following = int64(packet["next"])
    wire["flight_head"] = following
    if following != NONE:
        if not s.plain and s.params[0]["scheduled_order"] == 1:
            s.event_order[link] = s.packet_order[following]
        schedule(s, link, packet["stamp"])
    if packet["kind"] >= PAUSE:
        if wire["loss"] < DOWN:
            return hear_pfc(s, link, p, now)
        _is_lost(s, link)
        free_packet(s, p)
        return NONE
    if wire["loss"] > 0.0 and _is_lost(s, link):
        free_packet(s, p)
        return NONE
    if wire["dst"] < s.params[0]["num_hosts"]:
        return receive(s, link, p, now)
    return forward(s, link, p, now)


@rare
def _is_lost(s, link):
    arrivals = s.link_packets[link]
    s.link_packets[link] = arrivals + 1
    if uniform(s.params[0]["seed"], STREAM_LOSS, link, arrivals) >= s.link[link]["loss"]:
        return False
    s.link_losses[link] += 1
    return True


@helper
def _serve(s, link, now):
    """Sends the next packet of a link if it is idle (rules, section 3)."""
    wire = s.link[link]
    if wire["free_ps"] > now:
        await_free(s, link)
        return
    if wire["done_pending"] == 1:
        return
    if wire["src"] < s.params[0]["num_hosts"]:
        p = next_from_host(s, link, now)
        if p == NONE:
            return
        kind = s.packet[p]["kind"]
        transmit(s, link, p, now)
        if kind == DATA:
            after_send(s, link, int64(s.packet[p]["qp"]), now)
        if wire["done_pending"] == 0 and more_to_send(s, link, now):
            await_free(s, link)
    else:
        p = next_from_switch(s, link, now)
        if p == NONE:
            return
        transmit(s, link, p, now)
        if int64(wire["waiting"]) & ~int64(wire["paused"]) != 0:
            await_free(s, link)


@helper
def _on_timer(s, timer, now):
    """A timer has fired. Returns the link to serve, or NONE."""
    params = s.params[0]
    first_pfc = params["first_pfc_slot"] - 2 * params["num_links"] - params["num_hosts"]
    if timer >= first_pfc:
        return on_pfc_timer(s, timer - first_pfc, now)
    if timer < params["num_qps"]:
        on_retransmission_timer(s, timer, now)
    elif timer < params["num_qps"] + params["num_members"]:
        on_member_timer(s, timer - params["num_qps"], now)
    else:
        _on_late_timer(s, timer - params["num_qps"] - params["num_members"], now)
    return NONE


@rare
def _on_late_timer(s, timer, now):
    """A job's timer, one of reordering, or one of credits."""
    params = s.params[0]
    before = 2 * params["num_links"] + params["num_hosts"] + params["num_qps"]
    credits = params["first_pfc_slot"] - s.credit_host.size - before - params["num_members"]
    if s.plain or timer < s.job.size:
        on_job_timer(s, timer, now)
    elif timer >= credits:
        on_credit_timer(s, timer - credits, now)
    else:
        on_reorder_timer(s, timer - s.job.size, now)


@rare
def _on_bucket(s, bucket):
    """A token bucket has what its first packet needs. Returns the link to serve, or NONE."""
    if bucket < s.tenant_bucket.size:
        return on_tenant_bucket(s, bucket)
    return on_port_bucket(s, bucket - s.tenant_bucket.size)


@helper
def _next_posted(s, core):
    """A link of the hosts to serve after this event; NONE when all are done."""
    first = core["first_posted"]
    if first == core["end_posted"]:
        core["first_posted"] = 0
        core["end_posted"] = 0
        return NONE
    core["first_posted"] = first + 1
    return int64(s.host_link[s.posted[first]])


@helper
def _handle(s, slot, now):
    """Hands an event to its owner. Returns the link to serve, or NONE."""
    params = s.params[0]
    links = params["num_links"]
    link = NONE
    if slot < links:
        link = _on_arrival(s, slot, now)
    elif slot < 2 * links:
        link = slot - links
        s.link[link]["done_pending"] = 0
    elif slot < 2 * links + params["num_hosts"]:
        link = int64(s.host_link[slot - 2 * links])
    elif slot < params["first_bucket"]:
        link = _on_timer(s, slot - 2 * links - params["num_hosts"], now)
    elif not s.plain:
        link = _on_bucket(s, slot - params["first_bucket"])
    return link


@helper
def _shortage(s):
    """A status if the next event might find a pool or the log exhausted, else OK."""
    core = s.core[0]
    params = s.params[0]
    if core["packets_left"] < PACKET_RESERVE + params["message_reserve"]:
        return PACKETS_LOW
    if core["messages_left"] < params["message_reserve"]:
        return MESSAGES_LOW
    if core["log_length"] + params["log_reserve"] > s.log.size:
        return LOG_FULL
    return OK


@rare
def _settle(s, now):
    """Brings every sender's timers up to date, so that its rate can be read or re-tuned."""
    for qp in range(s.sender.size):
        catch_up(s, qp, now)


@helper
def run_until(s, until_ps):
    """Handles all events up to and including `until_ps`. Returns a status.

    A status other than OK is returned before the event that met the shortage, so that the caller
    can mend it and call again.
    """
    status = WIDTH_DUE
    while status == WIDTH_DUE:
        status = _run(s, until_ps)
        if status == WIDTH_DUE:
            adapt_width(s, s.core[0], s.core[0]["events"])
    return status


@rare
def _run(s, until_ps):
    core = s.core[0]
    far = s.params[0]["far"]
    status = OK
    events = 0
    look = core["width_look"] - core["events"]
    while status == OK:
        if core["cursor"] == s.current.size:
            if events >= look:
                status = WIDTH_DUE
                break
            start_ps = next_bucket_ps(s, core)
            if start_ps > until_ps:
                break
            open_bucket(s, core, start_ps)
            if far == FAR_LINKS:
                look_into_bucket(s, core)
            continue
        key = s.current[core["cursor"]]
        now = core["bucket_ps"] + (key >> KEY_SHIFT)
        if now > until_ps:
            break
        status = _shortage(s)
        if status != OK:
            break
        core["cursor"] += 1
        if far == FAR_LINKS:
            look_ahead(s, core["cursor"])
        elif far == FAR_QPS:
            look_for_qps(s, core["cursor"])
        else:
            fetch_packet(s, core["cursor"])
        slot = key & SLOT_MASK
        s.event_ps[slot] = FOREVER
        if now < core["now_ps"]:
            status = WHEEL_OVERRUN
            break
        core["now_ps"] = now
        link = _handle(s, slot, now)
        if link == NONE:
            link = _next_posted(s, core)
        while link != NONE:
            _serve(s, link, now)
            link = _next_posted(s, core)
        events += 1
    core["events"] += events
    if status == OK:
        core["now_ps"] = until_ps
        _settle(s, until_ps)
    core["status"] = status
    return status
