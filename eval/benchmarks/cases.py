"""The fixed workloads that are timed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from roce_gym.config import Scenario, validate_scenario

# Frame sizes of the ns-3 reference, so that a packet is the same amount of work as there.
_NIC: dict[str, Any] = {
    "mtu_bytes": 1000,
    "header_bytes": 48,
    "ack_bytes": 60,
    "pfc_bytes": 43,
    "interframe_gap_bytes": 0,
    "retransmit_timeout_us": 0,
}
_PER_PACKET_ACK = {"ack_every": 1, "cnp_mode": "ack_echo"}
_COALESCED_ACK = {"ack_every": 16, "cnp_mode": "packet"}
_GROUP = 32
_EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "my_sender.py"

_VARIANTS: dict[str, dict[str, Any]] = {
    "spraying": {"routing": {"policy": "spray_random"}, "nic": {"out_of_order": True}},
    "HPCC": {"tenant": {"cc": "hpcc"}},
    "Swift": {"tenant": {"cc": "swift"}},
    "user function": {
        "tenant": {
            "cc": "user",
            "user": {
                "file": str(_EXAMPLE),
                "function": "delay_and_cnp",
                "params": [25.0, 0.8, 0.001],
            },
        }
    },
}
"""What is different from the plain workload, by name."""

_VARIED = "128 hosts, all-to-all"

_USER_FUNCTION_SHARE = 0.7
"""A function of a user's own may cost 30 % of the speed."""


@dataclass(frozen=True)
class Case:
    """A workload.

    Attributes:
        name: row of the table.
        scenario: what runs; without end, so that every moment is alike.
        warm_us: simulated time before the clock starts.
        timed_us: simulated time that is timed.
        aim: packet-hops a second, on one core; 0 = none.
        plain: the workload that this one is compared with.
        plain_aim: its speed as a share of that one's; 0 = none.
    """

    name: str
    scenario: Scenario
    warm_us: float
    timed_us: float
    aim: float = 0.0
    plain: Case | None = None
    plain_aim: float = 0.0


def _scenario(
    topology: dict[str, Any],
    tenants: list[dict[str, Any]],
    ack: dict[str, Any],
    preset: str,
) -> Scenario:
    return validate_scenario(
        {
            "name": "benchmark",
            "topology": topology,
            "nic": {**_NIC, **ack},
            "classes": [{"name": "roce", "headroom_rate_delays": 3}],
            "preset": preset,
            "tenants": tenants,
        }
    )


def _leaf_spine(leaves: int, hosts: int, spines: int) -> dict[str, Any]:
    return {"kind": "leaf_spine", "leaves": leaves, "hosts_per_leaf": hosts, "spines": spines}


def _across_leaves(leaves: int, hosts: int) -> list[int]:
    """All hosts, so that neighbours in a ring are never on one leaf."""
    return [leaf * hosts + i for i in range(hosts) for leaf in range(leaves)]


def _ring(members: list[int], megabytes: int) -> list[dict[str, Any]]:
    job = {"kind": "ring_all_reduce", "bytes": megabytes * 10**6}
    return [{"name": "ring", "hosts": members, "jobs": [job]}]


def _all_to_all(members: list[int], megabytes: int) -> list[dict[str, Any]]:
    groups = [members[i : i + _GROUP] for i in range(0, len(members), _GROUP)]
    if len(members) <= 4 * _GROUP:
        groups = [members]
    job = {"kind": "all_to_all", "bytes": megabytes * 10**6}
    return [{"name": f"group{i}", "hosts": g, "jobs": [job]} for i, g in enumerate(groups)]


def _incast(senders: int) -> list[dict[str, Any]]:
    job = {"kind": "incast", "bytes": 2_000_000, "degree": senders, "period_us": 1}
    return [{"name": "incast", "hosts": list(range(senders + 1)), "jobs": [job]}]


def cases(quick: bool = False) -> list[Case]:
    """All workloads; `quick` leaves out those with 1,024 hosts."""
    star = {"kind": "star", "hosts": 33}
    small, middle, large = (4, 4, 4), (8, 16, 16), (32, 32, 32)
    out: list[Case] = []
    for ack, label, near, far in (
        (_PER_PACKET_ACK, "ACK a packet", 4.5e6, 2.5e6),
        (_COALESCED_ACK, "ACK per 16", 8e6, 4e6),
    ):
        spread = {shape: _across_leaves(shape[0], shape[1]) for shape in (small, middle, large)}
        rows: list[tuple[str, dict[str, Any], list[dict[str, Any]], float, float]] = [
            ("star, incast 32:1", star, _incast(32), 20_000, near),
            ("16 hosts, ring", _leaf_spine(*small), _ring(spread[small], 8), 1000, near),
            ("16 hosts, all-to-all", _leaf_spine(*small), _all_to_all(spread[small], 8), 600, near),
            ("128 hosts, ring", _leaf_spine(*middle), _ring(spread[middle], 64), 200, near),
            (
                "128 hosts, all-to-all",
                _leaf_spine(*middle),
                _all_to_all(spread[middle], 64),
                150,
                near,
            ),
            ("1,024 hosts, ring", _leaf_spine(*large), _ring(spread[large], 512), 60, far),
            (
                f"1,024 hosts, all-to-all in groups of {_GROUP}",
                _leaf_spine(*large),
                _all_to_all(spread[large], 16),
                60,
                far,
            ),
        ]
        for name, topology, tenants, timed_us, aim in rows:
            if quick and "1,024" in name:
                continue
            scenario = _scenario(topology, tenants, ack, "hpcc_production")
            out.append(Case(f"{name}, {label}", scenario, 60.0, timed_us, aim))
        out += _variants(next(case for case in out if case.name == f"{_VARIED}, {label}"), label)
    return out


def machine_cases() -> list[Case]:
    """Collectives, each beside a list of flows that never end, on the same links.

    Both as operation graphs and as the loops; ACKs are few, so that machines weigh most. On one
    switch, since both carry the same packets only where no paths collide: a ring is as fast as its
    slowest link, and bookkeeping of fewer packets takes no less time.
    """
    n = 16
    around = [(i, (i + 1) % n) for i in range(n)]
    mesh = [(i, (i + k) % n) for i in range(n) for k in range(1, n)]
    size = {"bytes": 32_000_000}
    graph = size | {"kind": "collective"}
    workloads: dict[str, tuple[list[tuple[int, int]], dict[str, dict[str, Any]]]] = {
        "ring all-reduce": (
            around,
            {
                "operation graph": graph | {"operation": "all_reduce", "algorithm": "ring"},
                "loop": size | {"kind": "ring_all_reduce", "chunks_per_step": 4},
            },
        ),
        "direct all-to-all": (
            mesh,
            {
                "operation graph": graph | {"operation": "all_to_all", "algorithm": "direct"},
                "loop": size | {"kind": "all_to_all"},
            },
        ),
    }

    def case(name: str, job: dict[str, Any], plain: Case | None = None) -> Case:
        tenants = [{"name": "t", "hosts": list(range(n)), "jobs": [job]}]
        topology = {"kind": "star", "hosts": n}
        scenario = _scenario(topology, tenants, _COALESCED_ACK, "hpcc_production")
        return Case(f"star of 16, {name}", scenario, 60.0, 1000.0, plain=plain)

    out = []
    for name, (pairs, jobs) in workloads.items():
        flows = [{"src": a, "dst": b, "bytes": 10**9} for a, b in pairs]
        plain = case(f"{name}, flow list", {"kind": "flows", "flows": flows})
        out += [case(f"{name}, {kind}", job, plain) for kind, job in jobs.items()]
    return out


def _variants(plain: Case, label: str) -> list[Case]:
    """The same workload with other routing or senders."""
    raw = plain.scenario.model_dump(exclude_unset=True)
    cases = []
    for name, change in _VARIANTS.items():
        tenants = [tenant | change.get("tenant", {}) for tenant in raw["tenants"]]
        nic = raw["nic"] | change.get("nic", {})
        changed = raw | {"tenants": tenants, "nic": nic, "routing": change.get("routing", {})}
        case = Case(
            f"{_VARIED}, {label}, {name}",
            validate_scenario(changed),
            plain.warm_us,
            plain.timed_us,
            plain=plain,
            plain_aim=_USER_FUNCTION_SHARE if name == "user function" else 0.0,
        )
        cases.append(case)
    return cases
