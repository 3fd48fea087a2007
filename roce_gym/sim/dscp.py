"""The class in which a switch takes a packet, by its DSCP (rules, section 14).

Comes into play only where some switch takes some packet in another class than its sender's:
otherwise a packet keeps the class in which its NIC sent it.
"""

from __future__ import annotations

from numpy import int64

from roce_gym.sim.jit import rare
from roce_gym.sim.types import CNP, DATA


@rare
def class_here(s, node, p):
    """The class of a packet at a switch."""
    params = s.params[0]
    packet = s.packet[p]
    which = 0 if packet["kind"] == DATA else 2 if packet["kind"] == CNP else 1
    mark = s.mark[3 * int64(packet["qp"]) + which]
    return s.class_at[(node - params["num_hosts"]) * params["num_marks"] + mark]
