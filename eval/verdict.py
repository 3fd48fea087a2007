"""Does an agent beat the presets? Said as the figures allow, not better."""

from __future__ import annotations

import math

from eval.report import interval
from eval.statistics import LEVEL, Estimate
from eval.summary import Summary


def verdict(summary: Summary, agent: str) -> list[str]:
    """Sentences about an agent and every preset that was evaluated.

    An agent beats a preset if the whole interval of the difference of J, seed by seed, lies below
    zero; it is worse if it lies above; else nothing is shown.
    """
    presets = [row.policy for row in summary.rows if row.policy.startswith("preset:")]
    differences = {preset: summary.difference(agent, preset) for preset in presets}
    beaten = [preset for preset in presets if is_below_zero(differences[preset])]
    better = [preset for preset in presets if is_above_zero(differences[preset])]
    open_ = [preset for preset in presets if preset not in (*beaten, *better)]
    best = presets[0]
    of_best = f"the best of them is {best}, ΔJ {interval(differences[best], '+')}"
    if len(beaten) == len(presets):
        head = f"The agent beats every preset ({len(presets)} of {len(presets)}): {of_best}."
    else:
        head = f"The agent does not beat every preset ({len(beaten)} of {len(presets)}): {of_best}."
    lines = [head]
    lines += [f"No difference shown to {_list(open_, differences)}."] if open_ else []
    lines += [f"Worse than {_list(better, differences)}."] if better else []
    lines.append(
        f"In brackets: {LEVEL:.0%} bootstrap interval over {len(summary.seeds)} seeds the agent "
        "was not trained on; one training run, so other training seeds may do better or worse."
    )
    return lines


def is_below_zero(estimate: Estimate) -> bool:
    """Whether the whole interval is."""
    return not math.isnan(estimate.high) and estimate.high < 0.0


def is_above_zero(estimate: Estimate) -> bool:
    """Whether the whole interval is."""
    return not math.isnan(estimate.low) and estimate.low > 0.0


def _list(presets: list[str], differences: dict[str, Estimate]) -> str:
    return "; ".join(f"{preset} (ΔJ {interval(differences[preset], '+')})" for preset in presets)
