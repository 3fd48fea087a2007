"""Does an agent beat the presets? Said as the figures allow, not better."""

from __future__ import annotations

import math

from eval.report import interval
from eval.statistics import LEVEL, Estimate
from eval.summary import Summary

NOTICEABLE = 0.05
"""Share by which a tenant has to be slower to be named."""


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
    lines.append(_by_tenant(summary, agent, best))
    lines.append(
        f"In brackets: {LEVEL:.0%} bootstrap interval over {len(summary.seeds)} seeds the agent "
        "was not trained on; one training run, so other training seeds may do better or worse."
    )
    return lines


def _by_tenant(summary: Summary, agent: str, preset: str) -> str:
    """Who gains and who pays: a score can be bought at a tenant's expense."""
    rows = {row.policy: row for row in summary.rows}
    pairs = list(zip(summary.tenants, rows[preset].slowdown, rows[agent].slowdown, strict=True))
    changes = ", ".join(f"{name} {before:.2f} → {after:.2f}" for name, before, after in pairs)
    text = f"Slowdown of each tenant, from {preset} to the agent: {changes}."
    payers = [name for name, before, after in pairs if after > (1.0 + NOTICEABLE) * before]
    return text + (f" So {' and '.join(payers)} paid for it." if payers else "")


def is_below_zero(estimate: Estimate) -> bool:
    """Whether the whole interval is."""
    return not math.isnan(estimate.high) and estimate.high < 0.0


def is_above_zero(estimate: Estimate) -> bool:
    """Whether the whole interval is."""
    return not math.isnan(estimate.low) and estimate.low > 0.0


def _list(presets: list[str], differences: dict[str, Estimate]) -> str:
    return "; ".join(f"{preset} (ΔJ {interval(differences[preset], '+')})" for preset in presets)
