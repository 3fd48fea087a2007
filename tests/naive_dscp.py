"""DSCP in the oracle: section 14 of `docs/rules.md`, looked up anew for every packet."""

from __future__ import annotations

from typing import Any


def _overrides(sim: Any, node: int) -> list[Any]:
    """Those that concern a switch."""
    network, label = sim.network, int(sim.network.node_label[node])
    return [
        one
        for one in sim.scenario.switch.dscp.overrides
        if label in one.switches or one.tier == network.tier(node)
    ]


def _is_mapped(sim: Any, node: int) -> bool:
    first = sim.network.num_hosts + sim.network.num_servers
    return sim.scenario.switch.dscp is not None and node >= first


def dscp_of(sim: Any, packet: Any) -> int:
    """What the NIC wrote into the packet."""
    classes = {c.name: c for c in sim.scenario.classes}
    plan = sim.qps[packet.qp].plan
    tenant = sim.scenario.tenants[plan.tenant]
    nccl = tenant.jobs[plan.job].nccl
    kind = {"DATA": None, "CNP": sim.nic.cnp_class}.get(packet.kind, sim.nic.ack_class)
    if kind is None and nccl is not None and nccl.NCCL_IB_TC is not None:
        return nccl.NCCL_IB_TC // 4
    if kind is None and tenant.dscp is not None:
        return tenant.dscp
    chosen = classes[kind or tenant.traffic_class]
    return 8 * chosen.priority if chosen.dscp is None else chosen.dscp


def class_at(sim: Any, node: int, packet: Any) -> int:
    """The internal class in which a switch takes a packet."""
    if not _is_mapped(sim, node):
        return packet.cls
    dscp = dscp_of(sim, packet)
    for one in reversed(_overrides(sim, node)):
        if dscp in one.map:
            return sim.internal_class[one.map[dscp]]
        if not one.inherit:
            break
    else:
        if dscp in sim.scenario.switch.dscp.map:
            return sim.internal_class[sim.scenario.switch.dscp.map[dscp]]
    return sim.internal_class[_default(sim, node, dscp)]


def _default(sim: Any, node: int, dscp: int) -> str:
    name = sim.scenario.switch.dscp.default
    for one in _overrides(sim, node):
        if not one.inherit:
            name = None
        name = one.default or name
    return name or next(c.name for c in sim.scenario.classes if c.priority == dscp // 8)


def _priority(sim: Any, node: int, name: str) -> int:
    given = next(c.priority for c in sim.scenario.classes if c.name == name)
    for one in _overrides(sim, node) if _is_mapped(sim, node) else ():
        given = one.priorities.get(name, given)
    return given


def class_heard(sim: Any, link: Any, c: int) -> int | None:
    """The internal class that the destination of a link takes a PFC frame for; None: for none."""
    if sim.scenario.switch.dscp is None:
        return c
    priority = _priority(sim, link.src, sim.classes[c].name)
    for i, chosen in enumerate(sim.classes):
        if i > 0 and chosen.lossless and _priority(sim, link.dst, chosen.name) == priority:
            return i
    return None
