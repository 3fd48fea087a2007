"""What PFC alone does to fairness and to bystanders, and that DCQCN cures it.

Zhu et al., "Congestion Control for Large-Scale RDMA Deployments", SIGCOMM 2015, section 2.2
(figures 3 and 4) and section 6 (figures 8 and 9), links of 40 Gb/s.
"""

from __future__ import annotations

from statistics import fmean, median
from typing import Any

from eval.validate.published.claim import Claim, Verdict, goodput_gbps, scenario_of, steady

_RATE_GBPS = 40.0
_SEEDS = range(1, 17)  # of ECMP hashes
_SOURCE = "Zhu et al., SIGCOMM 2015, figures {}"


def _leaf_spine(leaves: int, spines: int) -> dict[str, Any]:
    return {
        "kind": "leaf_spine",
        "leaves": leaves,
        "hosts_per_leaf": 5,
        "spines": spines,
        "host_rate_gbps": _RATE_GBPS,
        "spine_rate_gbps": _RATE_GBPS,
    }


def _alone_over_others(preset: str) -> float:
    """Three senders that share a port of the receiver's switch, and one that has its own."""
    pairs = [(0, 5), (1, 5), (2, 5), (6, 5)]
    scenario = scenario_of(10, pairs, preset, topology=_leaf_spine(leaves=2, spines=1))
    rates = goodput_gbps(*steady(scenario, 1, warm_us=20_000, us=40_000))
    return rates[6, 5] / fmean(rates[src, 5] for src in (0, 1, 2))


def parking_lot() -> list[Verdict]:
    """Goodput of the sender that is alone on its port over that of those who share one."""
    pfc, dcqcn = _alone_over_others("pfc_only"), _alone_over_others("dcqcn_paper")
    return [
        Verdict(
            "PFC only: the lone sender gets more", f"{pfc:.2f} x", "3 +- 5 %", 2.85 < pfc < 3.15
        ),
        Verdict("DCQCN: four equal shares", f"{dcqcn:.2f} x", "0.67 - 1.5", 2 / 3 < dcqcn < 1.5),
    ]


def _victim_gbps(preset: str, extra: int) -> float:
    """Goodput of a flow that shares uplinks with an incast, not its receiver; median of hashes."""
    incast = [(src, 15) for src in range(4)] + [(10 + i, 15) for i in range(extra)]
    scenario = scenario_of(20, [*incast, (4, 5)], preset, topology=_leaf_spine(leaves=4, spines=2))
    runs = (steady(scenario, seed, warm_us=5_000, us=10_000) for seed in _SEEDS)
    return median(goodput_gbps(*run)[4, 5] for run in runs)


def victim_flow() -> list[Verdict]:
    """The more senders an incast has elsewhere, the less a bystander gets under PFC only."""
    pfc = [_victim_gbps("pfc_only", extra) for extra in (0, 1, 2)]
    dcqcn = [_victim_gbps("dcqcn_paper", extra) for extra in (0, 1, 2)]
    falls = pfc[0] > pfc[1] > pfc[2] and pfc[2] < 0.6 * pfc[0]
    stays = min(dcqcn) > 0.8 * dcqcn[0] and min(dcqcn) > 1.5 * pfc[0]
    return [
        Verdict(
            "PFC only: falls with 0, 1, 2 more senders elsewhere, to about 5 Gb/s",
            " ".join(f"{rate:.1f}" for rate in pfc) + " Gb/s",
            "falls, by 40 % at least",
            falls,
        ),
        Verdict(
            "DCQCN: does not depend on them",
            " ".join(f"{rate:.1f}" for rate in dcqcn) + " Gb/s",
            "keeps 80 %, 1.5 x PFC",
            stays,
        ),
    ]


CLAIMS = [
    Claim("parking-lot unfairness", _SOURCE.format("3 and 8"), parking_lot),
    Claim("victim flow", _SOURCE.format("4 and 9"), victim_flow),
]
