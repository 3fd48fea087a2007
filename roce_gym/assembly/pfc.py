"""Pauses, watchdogs and storms at time 0."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from roce_gym.config import PfcConfig, Scenario
from roce_gym.errors import ConfigError, TopologyError
from roce_gym.sim import types as t
from roce_gym.topology.graph import Network
from roce_gym.units import us_to_ps

_ACTIONS = {"drop": t.WATCH_DROP, "forward": t.WATCH_FORWARD, "alert": t.WATCH_ALERT}


def pfc_params(pfc: PfcConfig) -> dict[str, Any]:
    """Values of :data:`roce_gym.sim.types.PARAMS`."""
    dog = pfc.watchdog
    return {
        "quanta": pfc.quanta,
        "refresh_fraction": pfc.refresh_fraction,
        "heeds": pfc.quanta > 0 or dog.enabled,
        "watchdog": _ACTIONS[dog.action] if dog.enabled else t.WATCH_NOT,
        "detection_ps": us_to_ps(dog.detection_us),
        "restoration_ps": us_to_ps(dog.restoration_us),
        "poll_ps": max(1, us_to_ps(dog.poll_us)),
    }


def make_pfc_ports(num_ports: int) -> NDArray[Any]:
    """Ports that nobody paused."""
    ports = np.zeros(num_ports, t.PFC_PORT)
    ports["first_pause_ps"] = ports["paused_since_ps"] = t.FOREVER
    return ports


def make_watchdogs(scenario: Scenario, network: Network) -> NDArray[Any]:
    """Watchdogs of all ports of Ethernet switches, if there are any."""
    num_classes = len(scenario.classes) + 1
    dogs = np.zeros((network.num_links, num_classes), t.WATCHDOG)
    dogs["watched"][network.from_switch] = 1
    return dogs.reshape(-1) if scenario.pfc.watchdog.enabled else dogs.reshape(-1)[:0]


def make_storms(scenario: Scenario, network: Network, internal: dict[str, int]) -> NDArray[Any]:
    """Storms, each at the link towards its NIC.

    Raises:
        ConfigError: there is no such host.
    """
    storms = np.zeros(len(scenario.faults.storms), t.STORM)
    for i, given in enumerate(scenario.faults.storms):
        try:
            host = network.host_of_label(given.host)
        except TopologyError as error:
            raise ConfigError(f"faults.storms.{i}.host: {error}") from None
        towards_host = int(network.host_link[host]) ^ 1
        port = towards_host * (len(scenario.classes) + 1) + internal[given.traffic_class]
        stop_ps = t.FOREVER if given.stop_us is None else us_to_ps(given.stop_us)
        storms[i] = (port, us_to_ps(given.start_us), stop_ps)
    return storms
