"""Free lists of packets and messages.

The engine stops before an event that might empty a pool, and `fabric.py` enlarges it, so taking
from a pool cannot fail.
"""

from __future__ import annotations

from roce_gym.sim.jit import helper
from roce_gym.sim.types import NONE


@helper
def new_packet(s, kind, qp, cls, size, seq, flags):
    """Takes a packet from the pool and fills it in; returns its index."""
    core = s.core[0]
    p = core["free_packet"]
    packet = s.packet[p]
    core["free_packet"] = packet["next"]
    core["packets_left"] -= 1
    packet["kind"] = kind
    packet["qp"] = qp
    packet["cls"] = cls
    packet["size"] = size
    packet["seq"] = seq
    packet["flags"] = flags
    packet["hop"] = 0
    packet["next"] = NONE
    return p


@helper
def free_packet(s, p):
    """Gives a packet back."""
    core = s.core[0]
    s.packet[p]["next"] = core["free_packet"]
    core["free_packet"] = p
    core["packets_left"] += 1


@helper
def new_message(s, size, end, tag, now):
    """Takes a message record from the pool and fills it in; returns its index."""
    core = s.core[0]
    m = core["free_message"]
    message = s.message[m]
    core["free_message"] = message["next"]
    core["messages_left"] -= 1
    message["bytes"] = size
    message["end"] = end
    message["tag"] = tag
    message["start_ps"] = now
    message["next"] = NONE
    return m


@helper
def free_message(s, m):
    """Gives a message record back."""
    core = s.core[0]
    s.message[m]["next"] = core["free_message"]
    core["free_message"] = m
    core["messages_left"] += 1
