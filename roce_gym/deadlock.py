"""Finds PFC deadlocks: ports that wait for each other in a circle and can never go on.

A port (link, class) is *stuck* if the link's source is paused, its destination has told it to, and
every packet that the destination holds from it waits for a port that is stuck as well. As a switch
resumes a port only when a packet from there leaves (docs/rules.md, section 5), none of these will
ever be resumed; following any of them leads into a circle. Source of the definition: cyclic buffer
dependency, Hu et al., "Deadlocks in Datacenter Networks", HotNets 2016; there it is necessary, and
with the state of all packets at hand it is sufficient, too.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from roce_gym.config import MAX_QUANTA
from roce_gym.headroom import PAUSE_QUANTUM_BYTES
from roce_gym.sim import types as t
from roce_gym.units import KIB


def find_deadlock(state: t.State) -> list[tuple[int, int]]:
    """A circle of stuck ports, each of which waits for the next one and the last for the first.

    Only ports paused for longer than one pause holds are looked at: where pauses expire, these
    have been refreshed in time and will be.

    Returns:
        (link, internal class), from the lowest on; empty if there is none.
    """
    candidates = _long_paused(state)
    if len(candidates) < 2:  # a circle has more, and most of the time there are none
        return []
    waiting = {port: _bytes_by_input(state, port) for port in candidates}
    stuck = set(candidates)
    while True:
        free = {port for port in stuck if not _is_stuck(state, port, stuck, waiting)}
        if not free:
            return _circle(state, stuck, waiting)
        stuck -= free


def _long_paused(state: t.State) -> list[int]:
    """Ports whose source has been paused for long by their destination, a switch."""
    told = np.flatnonzero(state.ingress["flags"] >= t.TOLD_TO_PAUSE)
    if len(told) < 2:
        return []
    params: Any = state.params[0]
    classes = int(params["num_classes"])
    links = state.link[told // classes]
    queues = np.array([queue_of(state, int(port)) for port in told])
    hold_ps = PAUSE_QUANTUM_BYTES * (int(params["quanta"]) or MAX_QUANTA) * links["ps_per_kib"]
    is_paused = (links["paused"] >> (queues % classes)) & 1 != 0
    is_paused &= queues != t.NONE
    since_ps = state.pfc["paused_since_ps"][queues]
    is_long = since_ps < int(state.core[0]["now_ps"]) - hold_ps // KIB
    found: NDArray[np.intp] = told[is_paused & is_long]
    return [int(port) for port in found]


def queue_of(state: t.State, port: int) -> int:
    """The output queue that a port pauses; NONE: its pauses mean no class to the other end."""
    params: Any = state.params[0]
    if params["maps_priorities"] == 0:
        return port
    classes = int(params["num_classes"])
    link, cls = divmod(port, classes)
    heard = int(state.heard[(link ^ 1) * classes + cls])
    return int(t.NONE) if heard == t.NONE else link * classes + heard


def _bytes_by_input(state: t.State, port: int) -> dict[int, int]:
    """Bytes that wait in an output queue, by the port that they came from."""
    num_hosts, classes = int(state.params[0]["num_hosts"]), int(state.params[0]["num_classes"])
    out: dict[int, int] = {}
    if state.link[port // classes]["src"] < num_hosts:
        return out
    queue = queue_of(state, port)
    p = int(state.queue[queue]["head"])
    while p != t.NONE:
        packet: Any = state.packet[p]
        came_from = int(packet["stamp"]) * classes + queue % classes
        out[came_from] = out.get(came_from, 0) + int(packet["size"])
        p = int(packet["next"])
    return out


def _is_stuck(
    state: t.State, port: int, stuck: set[int], waiting: dict[int, dict[int, int]]
) -> bool:
    """Whether all that came from a port waits for ports thought to be stuck."""
    ingress: Any = state.ingress[port]
    held = int(ingress["bytes"]) + int(ingress["headroom_used"])
    return held == sum(waiting[out].get(port, 0) for out in stuck)


def _circle(
    state: t.State, stuck: set[int], waiting: dict[int, dict[int, int]]
) -> list[tuple[int, int]]:
    if not stuck:
        return []
    path = [min(stuck)]
    while path[-1] not in path[:-1]:
        path.append(min(out for out in stuck if path[-1] in waiting[out]))
    circle = path[path.index(path[-1]) : -1]
    first = circle.index(min(circle))
    classes = int(state.params[0]["num_classes"])
    return [(port // classes, port % classes) for port in circle[first:] + circle[:first]]
