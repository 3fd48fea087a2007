"""ECMP puts several queue pairs on one cable; spraying and more queue pairs even that out.

Dixit et al., "On the Impact of Packet Spraying in Data Center Networks", INFOCOM 2013; Gangidi et
al., "RDMA over Ethernet for Distributed AI Training at Meta Scale", SIGCOMM 2024 (several queue
pairs a connection). The load is a ring all-reduce of 16 hosts at 100 Gb/s, each step of which
crosses the spines of a fabric without oversubscription.
"""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from statistics import fmean

from eval.validate.published.claim import Claim, Verdict
from roce_gym.config import RoutingPolicy, validate_scenario
from roce_gym.fabric import Fabric

_BYTES = 8_000_000
_HOSTS = 16
_RATE_GBPS = 100
_SEEDS = range(4)
_CHANNELS = (1, 2, 4, 8)
_PER_PACKET: tuple[RoutingPolicy, ...] = ("spray_random", "spray_round_robin", "adaptive")

IDEAL_US = _BYTES * 8 * 2 * (_HOSTS - 1) / _HOSTS / (_RATE_GBPS * 1000)
"""Each host sends and receives 2 (n - 1) / n of the buffer at line rate."""


@cache
def ring(
    policy: str = "ecmp", channels: int = 1, seed: int = 0, out_of_order: bool = True
) -> tuple[float, int]:
    """Mean time of a ring all-reduce in us (infinite, if none ends in 20 ms), and NACKs."""
    job = {"kind": "ring_all_reduce", "bytes": _BYTES, "channels": channels, "rounds": 2}
    scenario = {
        "name": "ring",
        "topology": {"kind": "leaf_spine", "leaves": 4, "hosts_per_leaf": 4, "spines": 4},
        "nic": {"out_of_order": out_of_order},
        "routing": {"policy": policy},
        "classes": [{"name": "roce", "buffer": {"alpha": 0.25}}],
        "preset": "pfc_only",
        "tenants": [
            {
                "name": "training",
                "hosts": [4 * (i % 4) + i // 4 for i in range(_HOSTS)],
                "jobs": [job],
            }
        ],
    }
    interval = Fabric(validate_scenario(scenario), seed).advance(us=20_000)
    times = (interval.completions["end_ps"] - interval.completions["start_ps"]) / 1e6
    return fmean(times.tolist()) if len(times) else float("inf"), int(interval.nacks.sum())


def spraying() -> list[Verdict]:
    """Time of the ring over that of idle cables."""
    sprayed = [ring(policy)[0] / IDEAL_US for policy in _PER_PACKET]
    hashed = [ring(seed=seed)[0] / IDEAL_US for seed in _SEEDS]
    return [
        Verdict(
            "spraying at random, in turn, adaptively: near the ideal",
            " ".join(f"{ratio:.2f}" for ratio in sprayed) + " x ideal",
            "1 - 1.3 x",
            all(1 < ratio < 1.3 for ratio in sprayed),
        ),
        Verdict(
            "ECMP: hashes collide",
            f"{min(hashed):.2f} - {max(hashed):.2f} x, mean {fmean(hashed):.2f} x",
            "each > 1.4 x, mean > 2 x",
            min(hashed) > 1.4 and fmean(hashed) > 2,
        ),
    ]


def queue_pairs() -> list[Verdict]:
    """Time of the ring by the number of queue pairs from host to host."""
    means = [fmean(ring(channels=n, seed=s)[0] / IDEAL_US for s in _SEEDS) for n in _CHANNELS]
    falls = all(more < fewer for fewer, more in pairwise(means))
    return [
        Verdict(
            "ECMP, 1, 2, 4, 8 queue pairs a connection: ever faster, by up to 40 %",
            " ".join(f"{mean:.2f}" for mean in means) + " x ideal",
            "falls, by 25 % at least",
            falls and means[-1] < 0.75 * means[0],
        )
    ]


CLAIMS = [
    Claim("spraying against ECMP collisions", "Dixit et al., INFOCOM 2013", spraying),
    Claim("QP scaling under ECMP", "Gangidi et al., SIGCOMM 2024", queue_pairs),
]
