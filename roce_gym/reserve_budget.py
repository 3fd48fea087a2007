"""How many bytes the knobs of the buffer split may share out."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from roce_gym.assembly.devices import headroom_bytes
from roce_gym.config import Scenario, Settings
from roce_gym.switch_settings import by_switch
from roce_gym.topology.graph import Network

MAX_RESERVED_BYTES = 40_000
"""Most that all classes together reserve at a port of 100 Gb/s; a tenth of 4 MB at 10 ports."""

MAX_RESERVED_SHARE = 0.5
"""Of what headroom leaves of a switch's buffer."""


def reserve_budget_bytes(
    scenario: Scenario, network: Network, base: Settings, scale: float
) -> float:
    """Bytes that may be reserved at each port, so that every switch keeps a shared pool.

    Args:
        scenario, network: with headroom and ports of every switch.
        base: with what is reserved at some switches whatever knobs say.
        scale: hosts' link rate over 100 Gb/s.
    """
    at_switch = network.into_switch
    into = network.link_dst - network.num_hosts
    taken = np.zeros(network.num_switches)
    for index in range(len(scenario.classes)):
        headroom = headroom_bytes(scenario, network, index)
        taken += np.bincount(into[at_switch], headroom[at_switch], network.num_switches)
    if scenario.switch.headroom_pool_bytes is not None:
        taken[:] = scenario.switch.headroom_pool_bytes
    ports = np.bincount(into[at_switch], minlength=network.num_switches)
    room = (scenario.switch.buffer_bytes - taken) / np.maximum(ports, 1)
    room -= _reserved_by_overrides(base, network)
    return float(min(MAX_RESERVED_BYTES * scale, MAX_RESERVED_SHARE * room[ports > 0].min()))


def _reserved_by_overrides(settings: Settings, network: Network) -> NDArray[np.int64]:
    """Shape (num_switches,): bytes at each port of a switch that stay, whatever classes reserve."""
    nothing = {"reserved_bytes": 0}
    classes = {
        name: c.model_copy(update={"buffer": c.buffer.model_copy(update=nothing)})
        for name, c in settings.classes.items()
    }
    kinds, kind_of = by_switch(settings.model_copy(update={"classes": classes}), network)
    reserved = [sum(c.buffer.reserved_bytes for c in kind.values()) for kind in kinds]
    return np.array(reserved, np.int64)[kind_of[network.num_hosts :]]
