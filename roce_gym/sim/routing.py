"""Where a switch sends a packet that has no path of its own, or is not on it (rules, section 12).

Comes into play only where a policy decides packet by packet, or where cables change during a run:
otherwise `forward` reads the next link of the QP's path and never comes here.
"""

from __future__ import annotations

from numpy import int64

from roce_gym.sim.jit import rare
from roce_gym.sim.rng import uniform
from roce_gym.sim.types import (
    ADAPTIVE,
    DATA,
    ECMP,
    FLOWLET,
    FOREVER,
    NONE,
    SPRAY_ROUND_ROBIN,
    STREAM_ROUTE,
)


@rare
def next_hop(s, link, p, now):
    """The output link of a packet that came in on `link`; NONE if there is no way."""
    params = s.params[0]
    packet = s.packet[p]
    qp = int64(packet["qp"])
    hop = int64(packet["hop"])
    node = int64(s.link[link]["dst"])
    which = 2 * qp + (0 if packet["kind"] == DATA else 1)
    route = s.route[which]
    by_path = route["fixed"] == 1 or params["routing"] == ECMP or packet["kind"] != DATA
    if by_path and hop < params["max_hops"]:
        out = int64(s.path[which * params["max_hops"] + hop])
        if out != NONE and s.link[out]["src"] == node:
            return out
    if s.link[route["last"]]["src"] == node:
        return int64(route["last"])
    row = (node - params["num_hosts"]) * params["num_groups"]
    choices = s.hop_set[s.hop_table[row + route["group"]]]
    first = int64(choices["first"])
    count = int64(choices["count"])
    if count == 0:
        return NONE
    if count == 1:
        return int64(s.hop_link[first])
    if by_path:
        return int64(s.hop_link[first + qp % count])
    return _choose(s, node - params["num_hosts"], first, count, qp, hop, now)


@rare
def _choose(s, switch, first, count, qp, hop, now):
    policy = s.params[0]["routing"]
    hop = min(hop, s.params[0]["max_hops"] - 1)
    if policy == ADAPTIVE:
        return _least_loaded(s, switch, first, count)
    if policy == SPRAY_ROUND_ROBIN:
        choice = s.choice[qp * s.params[0]["max_hops"] + hop]
        turn = int64(choice["turn"])
        choice["turn"] = turn + 1 if turn < 2**30 else 0
        return int64(s.hop_link[first + (qp + turn) % count])
    if policy == FLOWLET:
        return _flowlet(s, switch, first, count, qp, hop, now)
    return _draw(s, switch, first, count)


@rare
def _draw(s, switch, first, count):
    draws = s.hop_draws[switch]
    s.hop_draws[switch] = draws + 1
    u = uniform(s.params[0]["seed"], STREAM_ROUTE, switch, draws)
    return int64(s.hop_link[first + int64(u * count)])


@rare
def _least_loaded(s, switch, first, count):
    """The shortest output queue, over all classes; the first look rotates, which breaks ties."""
    num_classes = s.params[0]["num_classes"]
    draws = s.hop_draws[switch]
    s.hop_draws[switch] = draws + 1
    best = NONE
    least = FOREVER
    for k in range(count):
        out = int64(s.hop_link[first + (draws + k) % count])
        load = int64(0)
        for cls in range(num_classes):
            load += s.queue[out * num_classes + cls]["bytes"]
        if load < least:
            least = load
            best = out
    return best


@rare
def _flowlet(s, switch, first, count, qp, hop, now):
    """The link of the QP's last packet here, unless that is too long ago or no way any more."""
    choice = s.choice[qp * s.params[0]["max_hops"] + hop]
    out = NONE
    if now - choice["sent_ps"] < s.params[0]["flowlet_gap_ps"]:
        for k in range(count):
            if s.hop_link[first + k] == choice["link"]:
                out = int64(choice["link"])
    if out == NONE:
        out = _draw(s, switch, first, count)
    choice["sent_ps"] = now
    choice["link"] = out
    return out
