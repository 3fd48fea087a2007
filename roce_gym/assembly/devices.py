"""Links, queues and the switches' accounting."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roce_gym.assembly.events import largest_frame_bytes
from roce_gym.config import NS_PER_M, Scenario
from roce_gym.errors import ConfigError
from roce_gym.headroom import simulator_headroom_bytes, sonic_headroom_bytes
from roce_gym.sim import types as t
from roce_gym.topology.graph import Network
from roce_gym.units import PS_PER_NS, PS_PER_S, ps_per_kib


def make_links(network: Network) -> NDArray[Any]:
    """Idle links."""
    link = np.zeros(network.num_links, t.LINK)
    link["delay_ps"] = network.link_delay_ps
    link["ps_per_kib"] = [ps_per_kib(int(rate)) for rate in network.link_rate_bps]
    link["flight_head"] = link["flight_tail"] = t.NONE
    link["src"] = network.link_src
    link["dst"] = network.link_dst
    link["loss"] = network.link_loss
    return link


def make_queues(num_ports: int) -> NDArray[Any]:
    """Empty queues that mark nothing."""
    queue = np.zeros(num_ports, t.QUEUE)
    queue["head"] = queue["tail"] = t.NONE
    queue["kmin"] = queue["kmax"] = np.iinfo(np.int32).max
    return queue


def headroom_bytes(scenario: Scenario, network: Network, class_index: int) -> NDArray[np.int64]:
    """Shape (num_links,), int64: headroom at each link's destination for one class.

    See :mod:`roce_gym.headroom` for the rules. NVLink has as much as it needs, in every class.

    Raises:
        ConfigError: SONiC's rule does not know ports of a link's rate.
    """
    out = np.zeros(network.num_links, np.int64)
    kinds, kind_of = network.cable_kinds
    for i, (rate, delay) in enumerate(kinds):
        own = kind_of == i
        inside = own & network.is_nvlink
        out[inside] = _simulator_headroom(scenario, rate, delay) if inside.any() else 0
        outside = own & ~network.is_nvlink
        if outside.any():
            out[outside] = _headroom(scenario, class_index, rate, delay)
    return out


def _headroom(scenario: Scenario, class_index: int, rate_bps: int, delay_ps: int) -> int:
    """Bytes of one class at a port, by the class's own rule."""
    chosen, asic = scenario.classes[class_index], scenario.switch.known
    if not chosen.lossless:
        return 0
    if chosen.headroom_rate_delays is not None:
        exact = Fraction(chosen.headroom_rate_delays) * rate_bps * delay_ps / (8 * PS_PER_S)
        return int(exact)
    if chosen.headroom_bytes == "auto":
        return _simulator_headroom(scenario, rate_bps, delay_ps)
    if chosen.headroom_bytes == "sonic" and asic is not None:
        try:
            return sonic_headroom_bytes(
                rate_bps,
                delay_ps / (NS_PER_M * PS_PER_NS),
                scenario.nic.mtu_bytes,
                cell_bytes=asic.cell_bytes,
                has_tiles=bool(asic.has_tiles),
            )
        except ConfigError as error:
            raise ConfigError(f"classes.{chosen.name}.{error}") from None
    return int(chosen.headroom_bytes)


def _simulator_headroom(scenario: Scenario, rate_bps: int, delay_ps: int) -> int:
    nic = scenario.nic
    pause = nic.pfc_bytes + nic.interframe_gap_bytes
    return simulator_headroom_bytes(rate_bps, delay_ps, largest_frame_bytes(nic), pause)


def make_ingress(scenario: Scenario, network: Network, order: tuple[int, ...]) -> NDArray[Any]:
    """Accounting of every (link, class) at the link's destination.

    Raises:
        ConfigError: the headroom of a switch exceeds its buffer.
    """
    ingress = np.zeros((network.num_links, len(order) + 1), t.INGRESS)
    ingress["static_threshold"] = t.NONE
    at_switch = network.link_dst >= network.num_hosts
    headroom = np.zeros(ingress.shape, np.int64)
    for i, c in enumerate(order):
        column = ingress[:, i + 1]
        column["xon_offset"] = scenario.classes[c].xon_offset_bytes
        column["flags"] = np.where(network.is_nvlink | scenario.classes[c].lossless, t.LOSSLESS, 0)
        headroom[:, i + 1] = np.where(at_switch, headroom_bytes(scenario, network, c), 0)
    _require_room(scenario, network, headroom)
    ingress["headroom"] = headroom
    return ingress.reshape(-1)


def _require_room(scenario: Scenario, network: Network, headroom: NDArray[np.int64]) -> None:
    """Headroom, shape (num_links, num_classes), must fit into the Ethernet switches' buffers."""
    ports = network.into_switch
    pool = scenario.switch.headroom_pool_bytes
    if pool is not None:
        most = int(headroom[ports].max(initial=0))
        if most > pool:
            raise ConfigError(
                f"switch.headroom_pool_bytes = {pool} is less than the headroom of one port and "
                f"class, {most} bytes; enlarge it or lower classes.headroom_bytes"
            )
        return
    per_switch = np.zeros(network.num_switches, np.int64)
    np.add.at(per_switch, network.link_dst[ports] - network.num_hosts, headroom[ports].sum(axis=1))
    if per_switch.size and per_switch.max() > scenario.switch.buffer_bytes:
        worst = int(per_switch.argmax())
        raise ConfigError(
            f"classes.headroom_bytes: {int(per_switch[worst])} bytes of headroom at switch "
            f"{int(network.node_label[network.num_hosts + worst])} exceed switch.buffer_bytes = "
            f"{scenario.switch.buffer_bytes}; lower the headroom or enlarge the buffer"
        )
