"""Which hosts a tenant gets."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from roce_gym.config import Placement, Tenant
from roce_gym.errors import ConfigError, TopologyError
from roce_gym.topology.graph import Network
from roce_gym.workload.islands import island_levels, pick_islands


def place_tenants(tenants: Sequence[Tenant], network: Network, seed: int) -> list[tuple[int, ...]]:
    """The hosts of each tenant in rank order, as node ids.

    Tenants in islands come last, in their order, and get hosts that no tenant placed before them
    has while they are there.

    Raises:
        ConfigError: see :func:`place_hosts`; or too few hosts are left for an island.
    """
    hosts: dict[int, tuple[int, ...]] = {}
    islands = []
    for index, tenant in enumerate(tenants):
        if isinstance(tenant.hosts, Placement) and tenant.hosts.kind == "islands":
            islands.append((index, tenant, tenant.hosts.count))
        else:
            hosts[index] = place_hosts(tenant, index, network, seed)
    levels = island_levels(network) if islands else []
    for index, tenant, count in islands:
        taken = {
            host
            for other, given in hosts.items()
            if _meet(tenant, tenants[other])
            for host in given
        }
        free = [host for host in range(network.num_places) if host not in taken]
        if count > len(free):
            raise ConfigError(
                f"tenants.{tenant.name}.hosts.count = {count} is not allowed; {len(free)} of "
                f"{network.num_places} hosts are free while it is there"
            )
        hosts[index] = tuple(pick_islands(free, count, levels))
    return [hosts[index] for index in range(len(tenants))]


def _meet(a: Tenant, b: Tenant) -> bool:
    """Whether two tenants are there at the same time."""
    return (b.leave_us is None or a.arrive_us < b.leave_us) and (
        a.leave_us is None or b.arrive_us < a.leave_us
    )


def place_hosts(tenant: Tenant, index: int, network: Network, seed: int) -> tuple[int, ...]:
    """The hosts of a tenant that asks for no islands, in rank order, as node ids.

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
