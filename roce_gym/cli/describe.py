"""`roce-gym describe`: a scenario with everything resolved."""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from roce_gym.assembly.devices import headroom_bytes
from roce_gym.cli.case import Case, left_out_of, load_case
from roce_gym.cli.describe_network import describe_network
from roce_gym.cli.describe_text import describe_in_text
from roce_gym.cli.dscp_results import describe_dscp
from roce_gym.cli.text import to_json
from roce_gym.config import pool_numbers, pool_sizes
from roce_gym.knobs import KnobSpace
from roce_gym.switch_settings import by_switch


def describe(arguments: argparse.Namespace) -> int:
    """Prints a scenario; nothing is simulated."""
    case = load_case(arguments)
    found = resolve(case)
    print(to_json(found) if arguments.json else describe_in_text(case, found))
    return 0


def resolve(case: Case) -> dict[str, Any]:
    """Everything there is to say, as plain data."""
    return {
        "scenario": case.base.model_dump(mode="json"),
        "seed": case.seed,
        "preset": case.preset,
        "changes": list(case.changes),
        "settings": case.settings.model_dump(mode="json"),
        "network": describe_network(case.network),
        "buffer": _buffer(case),
        "dscp": describe_dscp(case.scenario, case.network),
        "tenants": _tenants(case),
        "left_out": left_out_of(case),
        "knobs": [
            {"name": k.name, "low": k.low, "high": k.high, "unit": k.unit, "is_log": k.is_log}
            for k in KnobSpace(case.scenario, case.network).knobs
        ],
    }


def _buffer(case: Case) -> dict[str, Any]:
    """Where each switch's buffer goes; totals are those of the switch with the most headroom."""
    net = case.network
    into = net.into_switch
    switch = net.link_dst[into] - net.num_hosts
    ports = np.bincount(switch, minlength=net.num_switches)
    headroom = {
        c.name: headroom_bytes(case.scenario, net, i)[into]
        for i, c in enumerate(case.scenario.classes)
    }
    sums = {
        name: np.bincount(switch, values, net.num_switches) for name, values in headroom.items()
    }
    kinds, kind_of = by_switch(case.settings, net)
    reserves = [sum(c.buffer.reserved_bytes for c in kind.values()) for kind in kinds]
    reserved = np.array(reserves)[kind_of[net.num_hosts :]]
    shared_headroom = case.scenario.switch.headroom_pool_bytes
    in_headroom = np.sum(list(sums.values()), axis=0)
    if shared_headroom is not None:
        in_headroom = shared_headroom * (ports > 0)
    taken = in_headroom + reserved * ports
    fullest = int(np.argmax(taken))
    room = int(case.scenario.switch.buffer_bytes - taken[fullest])
    return {
        "asic": case.scenario.switch.asic,
        "buffer_bytes": case.scenario.switch.buffer_bytes,
        "switch": net.describe(net.num_hosts + fullest),
        "ports": int(ports[fullest]),
        "headroom_bytes": int(in_headroom[fullest]),
        "reserved_bytes": int(reserved[fullest] * ports[fullest]),
        "shared_bytes": room,
        "pools": _pools(case, room),
        "classes": {
            name: {
                "headroom_per_port_min_bytes": int(values.min()),
                "headroom_per_port_max_bytes": int(values.max()),
                "headroom_total_bytes": int(sums[name][fullest]),
                "headroom_share": float(sums[name][fullest] / case.scenario.switch.buffer_bytes),
            }
            for name, values in headroom.items()
        },
    }


def _pools(case: Case, room: int) -> list[dict[str, Any]]:
    """Parts of the shared bytes, and whose they are; the common one first."""
    numbers = pool_numbers(case.scenario.classes)
    shares = [case.settings.classes[c.name].buffer.pool_share for c in case.scenario.classes]
    sizes = pool_sizes(case.scenario.classes, numbers, shares, room)
    names = [c.name for c in case.scenario.classes]
    owners: list[list[str]] = [[] for _ in sizes]
    for name, number in zip(names, numbers, strict=True):
        owners[number].append(name)
    return [{"classes": own, "bytes": size} for own, size in zip(owners, sizes, strict=True) if own]


def _tenants(case: Case) -> dict[str, Any]:
    """Hosts and queue pairs as planned; jobs are in the scenario."""
    jobs: dict[str, Any] = {}
    for index, tenant in enumerate(case.base.tenants):
        pairs = [pair for pair in case.plan.qps if pair.tenant == index]
        hosts = sorted({host for pair in pairs for host in (pair.src, pair.dst)})
        listed = tenant.hosts if isinstance(tenant.hosts, tuple) else None
        labels = sorted({int(case.network.node_label[host]) for host in hosts})
        jobs[tenant.name] = {
            "hosts": labels if listed is None else list(listed),
            "queue_pairs": len(pairs),
            "queue_pairs_on_nvlink": sum(pair.is_local for pair in pairs),
            "flows": sum(len(job.flow_bytes) for job in case.plan.jobs if job.tenant == index),
        }
    return jobs
