"""Token buckets: at a (switch port, class), and of a tenant at a host (rules, sections 4 and 6).

A bucket is kept as the time at which it will be full, so that no number depends on when it is
looked at: a packet takes `cost` of that time, and may start as soon as the time left until the
bucket is full, its own cost included, is at most that from empty to full. Whoever lacks tokens is
left alone until an event at that very moment.
"""

from __future__ import annotations

from numpy import int64

from roce_gym.sim.jit import helper, rare
from roce_gym.sim.types import FOREVER, NONE
from roce_gym.sim.wheel import lowest_bit, push_far

_BIT_PS_PER_BYTE = 8 * 10**12


@helper
def _cost_ps(bucket, size):
    """Time in which the bucket gets the tokens of a packet, rounded up."""
    rate_bps = bucket["rate_bps"]
    return (size * _BIT_PS_PER_BYTE + rate_bps - 1) // rate_bps


@helper
def allowed_ps(bucket, size):
    """When a packet may start, in the past if it may now."""
    if bucket["rate_bps"] == 0:
        return int64(0)
    return bucket["full_ps"] + _cost_ps(bucket, size) - bucket["burst_ps"]


@helper
def spend(bucket, size, now):
    """A packet starts."""
    if bucket["rate_bps"] > 0:
        bucket["full_ps"] = max(bucket["full_ps"], now) + _cost_ps(bucket, size)


# --------------------------------------------------------------------------- switch ports


@helper
def _port_slot(s, port):
    params = s.params[0]
    return params["first_bucket"] + s.tenant_bucket.size + port


@rare
def withhold(s, link, now):
    """Classes of a switch port whose first packet lacks tokens are no longer waiting."""
    wire = s.link[link]
    params = s.params[0]
    shaped = int64(wire["waiting"]) & ~int64(wire["paused"]) & params["shaped"]
    while shaped != 0:
        cls = lowest_bit(shaped)
        shaped &= shaped - 1
        port = link * params["num_classes"] + cls
        due_ps = allowed_ps(s.bucket[port], int64(s.packet[s.queue[port]["head"]]["size"]))
        if due_ps > now:
            wire["waiting"] &= ~(1 << cls)
            if s.event_ps[_port_slot(s, port)] == FOREVER:
                push_far(s, _port_slot(s, port), due_ps)


@rare
def on_port_bucket(s, port):
    """A withheld class is waiting again. Returns its link, to be served."""
    num_classes = s.params[0]["num_classes"]
    link = port // num_classes
    if s.queue[port]["head"] != NONE:
        s.link[link]["waiting"] |= 1 << (port - link * num_classes)
    return link


# --------------------------------------------------------------------------- tenants at hosts


@helper
def bucket_of(s, qp):
    """Index of the bucket of a QP's tenant at its host."""
    pair = s.qp[qp]
    return pair["src"] * s.params[0]["num_tenants"] + pair["tenant"]


@helper
def may_pass(s, qp, now):
    """Whether a QP may send: no other is held before it, and tokens for a whole packet are there.

    A packet of any size needs tokens for the largest one, so that it does not matter which QP's
    turn it is when tokens come; it takes only its own.
    """
    bucket = s.tenant_bucket[bucket_of(s, qp)]
    if bucket["rate_bps"] == 0:
        return True
    if bucket["granted"] != qp and (bucket["granted"] != NONE or bucket["head"] != NONE):
        return False
    return allowed_ps(bucket, s.params[0]["mtu"] + s.params[0]["header"]) <= now


@rare
def arm_bucket(s, index, now):
    """Makes sure that the first QP held is looked at when it may send, if it can have a grant."""
    bucket = s.tenant_bucket[index]
    slot = s.params[0]["first_bucket"] + index
    if bucket["head"] != NONE and bucket["granted"] == NONE and s.event_ps[slot] == FOREVER:
        due_ps = allowed_ps(bucket, s.params[0]["mtu"] + s.params[0]["header"])
        push_far(s, slot, max(now, due_ps))


@rare
def take_tenant_tokens(s, qp, size, now):
    """A packet of a QP starts: the next one held may get a grant."""
    index = bucket_of(s, qp)
    bucket = s.tenant_bucket[index]
    spend(bucket, size, now)
    if bucket["granted"] == qp:
        bucket["granted"] = NONE
    arm_bucket(s, index, now)


@rare
def give_up_grant(s, qp):
    """A QP with a grant will not send now; it goes to the first one held."""
    index = bucket_of(s, qp)
    if s.tenant_bucket[index]["granted"] == qp:
        s.tenant_bucket[index]["granted"] = NONE
        arm_bucket(s, index, s.core[0]["now_ps"])


@rare
def append_held(s, qp):
    """Puts a QP at the end of those held."""
    bucket = s.tenant_bucket[bucket_of(s, qp)]
    s.held_next[qp] = NONE
    if bucket["head"] == NONE:
        bucket["head"] = qp
    else:
        s.held_next[bucket["tail"]] = qp
    bucket["tail"] = qp


@rare
def drop_held(s, qp):
    """Takes a QP out of those held, wherever it is."""
    bucket = s.tenant_bucket[bucket_of(s, qp)]
    before = NONE
    one = int64(bucket["head"])
    while one != qp:
        before = one
        one = int64(s.held_next[one])
    if before == NONE:
        bucket["head"] = s.held_next[qp]
    else:
        s.held_next[before] = s.held_next[qp]
    if bucket["tail"] == qp:
        bucket["tail"] = before
