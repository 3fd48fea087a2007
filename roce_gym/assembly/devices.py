"""Links, queues and the switches' accounting."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roce_gym.assembly.events import largest_frame_bytes
from roce_gym.config import Scenario
from roce_gym.errors import ConfigError
from roce_gym.sim import types as t
from roce_gym.topology.graph import Network
from roce_gym.units import PS_PER_S, ps_per_kib


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

    "auto" covers what can arrive after a pause frame was decided: a frame being sent on the way
    back, the pause frame, both propagation delays, the frame the sender finishes and the frame
    that passed the threshold (IEEE 802.1Qbb annex O, in this simulator's terms).
    """
    chosen = scenario.classes[class_index]
    out = np.zeros(network.num_links, np.int64)
    if not chosen.lossless:
        return out
    nic = scenario.nic
    for link in range(network.num_links):
        rate, delay = int(network.link_rate_bps[link]), int(network.link_delay_ps[link])
        if chosen.headroom_rate_delays is not None:
            exact = Fraction(chosen.headroom_rate_delays) * rate * delay / (8 * PS_PER_S)
            out[link] = int(exact)
        elif chosen.headroom_bytes == "auto":
            in_flight = -(-2 * rate * delay // (8 * PS_PER_S))
            frames = 3 * largest_frame_bytes(nic) + nic.pfc_bytes + nic.interframe_gap_bytes
            out[link] = in_flight + frames
        else:
            out[link] = chosen.headroom_bytes
    return out


def make_ingress(scenario: Scenario, network: Network, order: tuple[int, ...]) -> NDArray[Any]:
    """Accounting of every (link, class) at the link's destination.

    Raises:
        ConfigError: the headroom of a switch exceeds its buffer.
    """
    ingress = np.zeros((network.num_links, len(order) + 1), t.INGRESS)
    ingress["static_threshold"] = t.NONE
    ingress["paused_since_ps"] = t.FOREVER
    at_switch = network.link_dst >= network.num_hosts
    for i, c in enumerate(order):
        column = ingress[:, i + 1]
        column["xon_offset"] = scenario.classes[c].xon_offset_bytes
        column["headroom"] = np.where(at_switch, headroom_bytes(scenario, network, c), 0)
        column["flags"] = t.LOSSLESS if scenario.classes[c].lossless else 0
    per_switch = np.zeros(network.num_switches, np.int64)
    into = network.link_dst[at_switch] - network.num_hosts
    np.add.at(per_switch, into, ingress["headroom"][at_switch].sum(axis=1))
    if per_switch.size and per_switch.max() > scenario.switch.buffer_bytes:
        worst = int(per_switch.argmax())
        raise ConfigError(
            f"classes.headroom_bytes: {int(per_switch[worst])} bytes of headroom at switch "
            f"{int(network.node_label[network.num_hosts + worst])} exceed switch.buffer_bytes = "
            f"{scenario.switch.buffer_bytes}; lower the headroom or enlarge the buffer"
        )
    return ingress.reshape(-1)
