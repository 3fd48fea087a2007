"""The switches that a scenario's entries are about."""

from __future__ import annotations

from roce_gym.config import SwitchSelector
from roce_gym.errors import ConfigError
from roce_gym.topology.graph import NVSWITCH, Network


def ethernet_switches(network: Network) -> range:
    """Their nodes: all switches but those inside of servers."""
    return range(network.num_hosts + network.num_servers, len(network.node_label))


def select_switches(chosen: SwitchSelector, place: str, network: Network) -> set[int]:
    """Nodes that an entry is about.

    Args:
        chosen: says which.
        place: the entry's field in the scenario, for messages.
        network: whose Ethernet switches are meant.

    Raises:
        ConfigError: a tier or a switch does not exist.
    """
    nodes = ethernet_switches(network)
    if chosen.tier is not None:
        tiers = sorted({network.tier(node) for node in nodes} - {NVSWITCH})
        if chosen.tier not in tiers:
            raise ConfigError(f"{place}.tier = {chosen.tier!r} does not exist; allowed: {tiers}")
        return {node for node in nodes if network.tier(node) == chosen.tier}
    found = [network.node_of_label.get(label, -1) for label in chosen.switches]
    for label, node in zip(chosen.switches, found, strict=True):
        if node not in nodes:
            labels = network.node_label[nodes.start :]
            raise ConfigError(
                f"{place}.switches: node {label} is no switch; allowed: within "
                f"{labels.min()} … {labels.max()}"
            )
    return set(found)
