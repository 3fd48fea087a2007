"""Next hops by destination, for switches that choose hop by hop (rules, section 12).

Destinations are grouped by their switch: a table has a row for each switch and a column for each
switch with hosts that something is sent to, and equal sets of links are kept once.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from roce_gym.config import RoutingPolicy, Scenario
from roce_gym.routing import Router
from roce_gym.sim import types as t
from roce_gym.topology.graph import Network
from roce_gym.workload.plan import Plan

POLICIES: dict[RoutingPolicy, int] = {
    "ecmp": int(t.ECMP),
    "spray_random": int(t.SPRAY_RANDOM),
    "spray_round_robin": int(t.SPRAY_ROUND_ROBIN),
    "adaptive": int(t.ADAPTIVE),
    "flowlet": int(t.FLOWLET),
}

_REMEMBERS = ("spray_round_robin", "flowlet")
"""Policies with something to remember of every QP at every hop."""


def is_hop_by_hop(scenario: Scenario) -> bool:
    """Whether switches look packets up; else all follow the path of their QP."""
    return scenario.routing.policy != "ecmp" or bool(scenario.link_events)


def groups(network: Network, plan: Plan) -> dict[int, int]:
    """By switch (node id) that a QP ends or begins at: a host on it."""
    switch = network.link_dst[network.host_link]
    hosts = {host for pair in plan.qps for host in (pair.src, pair.dst)}
    return {int(switch[host]): host for host in sorted(hosts, reverse=True)}


def make_tables(network: Network, router: Router, ends: dict[int, int]) -> dict[str, NDArray[Any]]:
    """Next hops from every switch to every group.

    Args:
        network: for its switches.
        router: for the routes there are at the moment.
        ends: see :func:`groups`.
    """
    table = np.zeros((network.num_switches, len(ends)), np.int32)
    number: dict[tuple[int, ...], int] = {(): 0}
    for column, (switch, host) in enumerate(ends.items()):
        for row in range(network.num_switches):
            node = network.num_hosts + row
            links = () if node == switch else router.next_links(node, host)
            table[row, column] = number.setdefault(links, len(number))
    sets = np.zeros(len(number), t.HOP_SET)
    sets["count"] = [len(links) for links in number]
    sets["first"] = np.cumsum(sets["count"]) - sets["count"]
    flat = [link for links in number for link in links]
    return {
        "hop_table": table.reshape(-1),
        "hop_set": sets,
        "hop_link": np.array(flat or [int(t.NONE)], np.int32),
    }


def make_routes(
    scenario: Scenario, network: Network, plan: Plan, max_hops: int
) -> dict[str, NDArray[Any]]:
    """Arrays of the state, for a network in which everything works; one element where not used."""
    choice = np.zeros(1, t.CHOICE)
    if not is_hop_by_hop(scenario):
        return {
            "route": np.zeros(1, t.ROUTE),
            "hop_table": np.zeros(1, np.int32),
            "hop_set": np.zeros(1, t.HOP_SET),
            "hop_link": np.zeros(1, np.int32),
            "hop_draws": np.zeros(1, np.int64),
            "choice": choice,
        }
    ends = groups(network, plan)
    if scenario.routing.policy in _REMEMBERS:
        choice = np.zeros(len(plan.qps) * max_hops, t.CHOICE)
    choice["sent_ps"] = -t.FOREVER
    choice["link"] = t.NONE
    return {
        "route": _make_route(network, plan, list(ends)),
        **make_tables(network, Router(network), ends),
        "hop_draws": np.zeros(network.num_switches, np.int64),
        "choice": choice,
    }


def _make_route(network: Network, plan: Plan, switches: list[int]) -> NDArray[Any]:
    column = {switch: i for i, switch in enumerate(switches)}
    uplink = network.host_link
    route = np.zeros((len(plan.qps), 2), t.ROUTE)
    for i, ends in enumerate(([pair.dst for pair in plan.qps], [pair.src for pair in plan.qps])):
        to = uplink[np.array(ends, np.intp)]
        route[:, i]["last"] = to ^ 1
        route[:, i]["group"] = [column[switch] for switch in network.link_dst[to].tolist()]
        route[:, i]["fixed"] = [pair.is_pinned[i] for pair in plan.qps]
    return route.reshape(-1)
