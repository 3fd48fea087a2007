"""Schedulers, shapers and buffer pools; arrays of what the scenario does not use are empty."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from roce_gym.config import Scenario, TrafficClass, class_order, pool_numbers
from roce_gym.sim import types as t
from roce_gym.topology.graph import Network


def _in_order(scenario: Scenario) -> list[TrafficClass]:
    """Classes as the simulator numbers them, from 1 on."""
    return [scenario.classes[c] for c in class_order(scenario)]


def _mask(chosen: list[bool]) -> int:
    """Bit c for class c, where `chosen` begins with class 1."""
    return sum(1 << (i + 1) for i, is_chosen in enumerate(chosen) if is_chosen)


def scheduling_params(scenario: Scenario) -> dict[str, int]:
    """Which of the optional rules apply, and to which classes."""
    classes = _in_order(scenario)
    num_pools = 1 + max(pool_numbers(scenario.classes))
    lossy = _mask([not c.lossless for c in classes])
    shaped = _mask([c.shaper is not None for c in classes])
    dwrr, tenants_shaped = _has_dwrr(scenario), _has_tenant_shaper(scenario)
    return {
        "strict": 1 | _mask([c.scheduling == "strict" for c in classes]),
        "dwrr": int(dwrr),
        "special": int(num_pools > 1 or lossy != 0 or shaped != 0 or dwrr or tenants_shaped),
        "num_pools": num_pools,
        "shared_headroom": int(scenario.switch.headroom_pool_bytes is not None),
        "lossy": lossy,
        "shaped": shaped,
        "tenants_shaped": int(tenants_shaped),
        "num_tenants": len(scenario.tenants),
    }


def _has_dwrr(scenario: Scenario) -> bool:
    return any(c.scheduling == "dwrr" for c in scenario.classes)


def _has_tenant_shaper(scenario: Scenario) -> bool:
    return any(tenant.shaper is not None for tenant in scenario.tenants)


def make_switches(scenario: Scenario, network: Network) -> NDArray[Any]:
    """Empty pools, those of a switch together."""
    return np.zeros(network.num_switches * (1 + max(pool_numbers(scenario.classes))), t.SWITCH)


def class_pools(scenario: Scenario) -> NDArray[np.int64]:
    """Shape (num_classes,), int64: the pool of each class; that of class 0 is not used."""
    numbers = pool_numbers(scenario.classes)
    return np.array([0, *(numbers[c] for c in class_order(scenario))], np.int64)


def make_xoff(scenario: Scenario, network: Network, ingress: NDArray[Any]) -> NDArray[Any]:
    """Headroom that a switch's ports share; NVLink's switches have as much as they need."""
    xoff = np.zeros(network.num_switches, t.XOFF)
    if scenario.switch.headroom_pool_bytes is None:
        return xoff
    xoff["size"] = scenario.switch.headroom_pool_bytes
    at_switch = network.link_dst >= network.num_hosts
    per_link = ingress["headroom"].reshape(network.num_links, -1)[at_switch].sum(axis=1)
    own = np.bincount(
        network.link_dst[at_switch] - network.num_hosts, per_link, network.num_switches
    )
    xoff["size"][: network.num_servers] = own[: network.num_servers]
    return xoff


def make_egress(num_classes: int) -> NDArray[Any]:
    """Egress queues without a bound."""
    egress = np.zeros(num_classes, t.EGRESS)
    egress["limit"] = t.FOREVER
    return egress


def make_shares(scenario: Scenario, network: Network) -> NDArray[Any]:
    """Deficits of DWRR, all nothing."""
    ports = network.num_links * (len(scenario.classes) + 1)
    return np.zeros(ports if _has_dwrr(scenario) else 0, t.SHARE)


def make_buckets(scenario: Scenario, network: Network) -> NDArray[Any]:
    """Full buckets of every (link, class), without a rate."""
    ports = network.num_links * (len(scenario.classes) + 1)
    return _full(ports if any(c.shaper is not None for c in scenario.classes) else 0)


def make_tenant_buckets(scenario: Scenario, network: Network) -> NDArray[Any]:
    """Full buckets of every (host, tenant), without a rate."""
    pairs = network.num_hosts * len(scenario.tenants)
    return _full(pairs if _has_tenant_shaper(scenario) else 0)


def _full(count: int) -> NDArray[Any]:
    bucket = np.zeros(count, t.BUCKET)
    bucket["head"] = bucket["tail"] = bucket["granted"] = t.NONE
    return bucket
