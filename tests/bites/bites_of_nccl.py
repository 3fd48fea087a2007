"""NCCL's variables: queue pairs, retransmission, class, and how collectives are done."""

from __future__ import annotations

from typing import Any

from bites import (
    NO_ECN,
    Bite,
    Raw,
    busy_queue_pairs,
    flow,
    mean_round_us,
    packets_of_first,
    packets_sent,
    star,
    tenant,
)

_CLASSES = [{"name": name, "priority": 3 + i, "ecn": NO_ECN} for i, name in enumerate("xy")]


def _variable(name: str, *rest: Any, **more: Any) -> Bite:
    return Bite(f"tenants.0.jobs.0.nccl.{name}", *rest, **more)


def _dead_end() -> Raw:
    """Nothing that host 1 sends arrives."""
    dead = {"kind": "lossy", "between": [6, 0], "loss": 1.0}
    own = tenant([flow(1, 0, 4_000)])
    own["jobs"][0]["nccl"] = {"NCCL_IB_TIMEOUT": 4}  # 65 us
    return star(own, link_events=[dead])


def _all_reduce(size: int, nccl: Raw | None = None, **fields: Any) -> Raw:
    """Over eight hosts on a switch."""
    job = {"kind": "collective", "operation": "all_reduce", "bytes": size, "nccl": nccl or {}}
    own = {
        "name": "a",
        "hosts": list(range(8)),
        "dcqcn": {"enabled": False},
        "jobs": [job | fields],
    }
    return star(own, hosts=8)


def _on_many_paths() -> Raw:
    """Every step of the ring crosses the spines, of which a hash chooses."""
    base = _all_reduce(500_000, {"NCCL_IB_QPS_PER_CONNECTION": 8})
    base["tenants"][0]["hosts"] = [0, 4, 1, 5, 2, 6, 3, 7]
    spines = {"spines": 4, "spine_rate_gbps": 100}
    return base | {"topology": {"kind": "leaf_spine", "leaves": 2, "hosts_per_leaf": 4, **spines}}


NCCL = [
    _variable("NCCL_IB_TIMEOUT", 4, 6, packets_sent, False, _dead_end()),
    _variable("NCCL_IB_RETRY_CNT", 1, 7, packets_sent, True, _dead_end()),
    # DSCP 32 and 24, that is priorities 4 and 3.
    _variable(
        "NCCL_IB_TC",
        128,
        96,
        packets_of_first,
        True,
        star(tenant([flow(1, 0)], traffic_class="x"), classes=_CLASSES),
    ),
    # Few bytes: what counts is the number of steps, 14 and 6.
    _variable("NCCL_ALGO", "tree", "ring", mean_round_us, True, _all_reduce(4_000)),
    _variable("NCCL_PROTO", "simple", "ll", mean_round_us, True, _all_reduce(1_000_000)),
    # A tree passes pieces on as they come.
    _variable(
        "NCCL_BUFFSIZE",
        2**18,
        2**23,
        mean_round_us,
        True,
        _all_reduce(1_000_000, {"NCCL_ALGO": "tree"}),
    ),
    *(
        _variable(f"NCCL_MIN_{unit}", 1, 4, busy_queue_pairs, True, _all_reduce(1_000_000))
        for unit in ("NCHANNELS", "CTAS")
    ),
    *(
        _variable(
            f"NCCL_MAX_{unit}", 1, 4, busy_queue_pairs, True, _all_reduce(1_000_000, channels=8)
        )
        for unit in ("NCHANNELS", "CTAS")
    ),
    _variable("NCCL_IB_QPS_PER_CONNECTION", 1, 4, busy_queue_pairs, True, _all_reduce(1_000_000)),
    # A step of all of them ends with the one on the slowest path.
    _variable("NCCL_IB_SPLIT_DATA_ON_QPS", 0, 1, mean_round_us, True, _on_many_paths()),
]
