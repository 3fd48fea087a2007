"""Which hosts a tenant gets."""

from __future__ import annotations

import numpy as np

from roce_gym.config import Placement, Tenant
from roce_gym.errors import ConfigError, TopologyError
from roce_gym.topology.graph import Network


def place_hosts(tenant: Tenant, index: int, network: Network, seed: int) -> tuple[int, ...]:
    """The hosts of a tenant in rank order, as node ids.

    Args:
        tenant: its host list holds labels of the network; a placement counts positions.
        index: the tenant's position in the scenario.
        network: where the hosts are.
        seed: of the run. A random placement draws from the `index`-th child of its
            `numpy.random.SeedSequence`, so that no tenant changes the draw of another.

    Raises:
        ConfigError: a host that does not exist, is a switch or is listed twice; a placement that
            does not fit.
    """
    field = f"tenants.{tenant.name}.hosts"
    if isinstance(tenant.hosts, Placement):
        return _draw(tenant.hosts, field, index, network.num_places, seed)
    if not tenant.hosts:
        raise ConfigError(f"{field}: is empty; at least one host is needed")
    hosts = []
    for label in tenant.hosts:
        try:
            hosts.append(network.host_of_label(label))
        except TopologyError as error:
            raise ConfigError(f"{field}: {error}") from None
    if len(set(hosts)) < len(hosts):
        repeated = sorted({label for label in tenant.hosts if tenant.hosts.count(label) > 1})
        raise ConfigError(f"{field}: listed more than once: {repeated}")
    return tuple(hosts)


def _draw(
    placement: Placement, field: str, index: int, num_hosts: int, seed: int
) -> tuple[int, ...]:
    count = placement.count
    if placement.kind == "random":
        if count > num_hosts:
            raise ConfigError(f"{field}.count = {count} is not allowed; allowed: 1 … {num_hosts}")
        rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(index,)))
        return tuple(rng.permutation(num_hosts)[:count].tolist())
    stride = placement.stride if placement.kind == "strided" else 1
    last = placement.first + (count - 1) * stride
    if last >= num_hosts:
        raise ConfigError(
            f"{field}: {count} hosts from position {placement.first} on in steps of {stride} "
            f"reach position {last}; the last host is at {num_hosts - 1}"
        )
    return tuple(range(placement.first, last + 1, stride))
