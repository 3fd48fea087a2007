"""What step machines cost: collectives beside lists of flows with the same bytes on the same links.

    python -m eval.benchmarks.machines

Both are run in turns, in processor time, so that other processes on the machine disturb both alike.
"""

from __future__ import annotations

import statistics
import sys
import time
from typing import Any

import numpy as np

from roce_gym.config import validate_scenario
from roce_gym.fabric import Fabric

_HOSTS = 16
_TOTAL = 32_000_000
_CHUNK = 1 << 17
_REPEAT = 9


def _scenario(jobs: list[dict[str, Any]]) -> dict[str, Any]:
    hosts = [4 * (i % 4) + i // 4 for i in range(_HOSTS)]  # neighbours are on different leaves
    return {
        "name": "machines",
        "topology": {"kind": "leaf_spine", "leaves": 4, "hosts_per_leaf": 4, "spines": 4},
        "nic": {"mtu_bytes": 1024},
        "preset": "hpcc_production",
        "tenants": [{"name": "t", "hosts": hosts, "jobs": jobs}],
    }


def _flows(pairs: list[tuple[int, int]], size: int) -> dict[str, Any]:
    hosts = _scenario([])["tenants"][0]["hosts"]
    flows = [{"src": hosts[a], "dst": hosts[b], "bytes": size} for a, b in pairs]
    return _scenario([{"kind": "flows", "flows": flows}])


def _collective(operation: str, algorithm: str) -> dict[str, Any]:
    job = {"kind": "collective", "operation": operation, "algorithm": algorithm, "bytes": _TOTAL}
    return _scenario([job | {"chunk_bytes": _CHUNK, "rounds": 1}])


def _loop(job: dict[str, Any]) -> dict[str, Any]:
    return _scenario([job | {"bytes": _TOTAL, "rounds": 1}])


def _rates(scenarios: list[dict[str, Any]]) -> list[float]:
    """Packet-hops per second of processor time, by scenario."""
    rates: list[list[float]] = [[] for _ in scenarios]
    parsed = [validate_scenario(raw) for raw in scenarios]
    for repetition in range(_REPEAT + 1):
        for place, scenario in enumerate(parsed):
            fabric = Fabric(scenario, seed=1)
            links = np.array([len(pair.data_links) for pair in fabric.plan.qps])
            begun = time.process_time()
            interval = fabric.advance(us=20_000)
            elapsed = time.process_time() - begun
            assert len(interval.completions) > 0
            if repetition:  # the first may compile
                packets = interval.delivered_bytes / scenario.nic.mtu_bytes
                rates[place].append(float((packets * links).sum()) / elapsed)
    return [statistics.median(values) for values in rates]


def main() -> int:
    """Prints the table; 1 if a machine is more than 5 % slower than flows."""
    n = _HOSTS
    around = [(i, (i + 1) % n) for i in range(n)]
    mesh = [(i, (i + k) % n) for i in range(n) for k in range(1, n)]
    rows = {
        "ring all-reduce": (
            _flows(around, 2 * (n - 1) * _TOTAL // n),
            _collective("all_reduce", "ring"),
            _loop({"kind": "ring_all_reduce", "chunks_per_step": 16}),
        ),
        "direct all-to-all": (
            _flows(mesh, _TOTAL // n),
            _collective("all_to_all", "direct"),
            _loop({"kind": "all_to_all"}),
        ),
    }
    slow = 0
    print(f"{'':20} {'flows':>10} {'machine':>10} {'loop':>10}  machine/flows")
    for name, scenarios in rows.items():
        flows, machine, loop = _rates(list(scenarios))
        slow += machine < 0.95 * flows
        figures = " ".join(f"{rate / 1e6:8.2f} M" for rate in (flows, machine, loop))
        print(f"{name:20} {figures}  {machine / flows:.3f}")
    return int(slow > 0)


if __name__ == "__main__":
    sys.exit(main())
