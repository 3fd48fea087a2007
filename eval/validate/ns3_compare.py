"""Limits between our results and the reference's, and the rows of the report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Literal

from eval.validate.ns3_params import Parameters
from eval.validate.ns3_reference import Reference, Results

Kind = Literal["exact", "rounded", "marked", "random"]


@dataclass(frozen=True)
class Limit:
    """Largest error: a share of the reference's value, or an absolute difference if larger."""

    share: float
    absolute: float = 0.0


LIMITS: dict[Kind, dict[str, Limit]] = {
    # Neither random numbers nor congestion control; the reference's clock counts picoseconds.
    "exact": {
        "mean_fct_ns": Limit(0.002),
        "max_fct_ns": Limit(0.002),
        "pause_frames": Limit(0.01, 2),
        "max_queue_bytes": Limit(0.01),
    },
    # The same with a clock of nanoseconds, to which every transmission time is rounded.
    "rounded": {
        "mean_fct_ns": Limit(0.005),
        "max_fct_ns": Limit(0.005),
        "pause_frames": Limit(0.03, 3),
        "max_queue_bytes": Limit(0.02),
    },
    # DCQCN, but no random numbers: queues are marked beyond a single threshold.
    "marked": {
        "mean_fct_ns": Limit(0.02),
        "max_fct_ns": Limit(0.03),
        "marked_packets": Limit(0.03),
    },
    # Marked or lost at random, or DCQCN with a clock of nanoseconds: means over seeds.
    "random": {
        "mean_fct_ns": Limit(0.03),
        "max_fct_ns": Limit(0.05),
        "pause_frames": Limit(0.10, 5),
    },
}


@dataclass(frozen=True)
class Row:
    """One metric of one variant.

    Attributes:
        scenario, variant, metric: what was compared.
        ours, theirs: means over seeds.
        error: share of theirs (of 1 where theirs is 0).
        limit: as `error`, the spread included.
        spread: between the reference's seeds, (highest - lowest) / mean; 0 where unknown.
        ok: the error is within the limit.
    """

    scenario: str
    variant: str
    metric: str
    ours: float
    theirs: float
    error: float
    limit: float
    spread: float
    ok: bool


def kind_of(parameters: Parameters, draws: bool) -> Kind:
    """Which limits hold for a variant.

    Args:
        parameters: of the variant.
        draws: its results depend on random numbers.
    """
    if draws:
        return "random"
    if parameters.has_dcqcn:
        return "marked" if parameters.picoseconds else "random"
    return "exact" if parameters.picoseconds else "rounded"


def seed_groups(reference: Reference) -> dict[str, list[str]]:
    """Variants that differ in their seed only, by the first of them.

    Those that another variant repeats and carries on (sampled more finely, say) are left out.
    """
    groups: dict[str, list[str]] = {}
    for variant, parameters in reference.parameters.items():
        if any(parameters.is_start_of(other) for other in reference.parameters.values()):
            continue
        groups.setdefault(parameters.settings, []).append(variant)
    return {variants[0]: variants for variants in groups.values()}


def compare(
    scenario: str,
    variant: str,
    kind: Kind,
    ours: Sequence[Results],
    theirs: Sequence[Results],
    relatives: Sequence[Sequence[Results]] = (),
) -> list[Row]:
    """All metrics of one group of variants.

    Where flows are cut off by the end of the run, goodput stands in for completion times.

    Args:
        scenario, variant: for the report.
        kind: which limits hold.
        ours, theirs: one entry a seed.
        relatives: groups that tell the reference's spread where `theirs` is a single run: those
            of the same scenario and senders, with other switches or another clock.
    """
    sources = [theirs] if kind != "random" or len(theirs) > 1 else relatives
    rows = [_flows_done(scenario, variant, ours, theirs)]
    cut_off = any(result.goodput_gbps > 0 for result in theirs)
    for metric, limit in LIMITS[kind].items():
        if cut_off and metric == "max_fct_ns":
            continue
        name = "goodput_gbps" if cut_off and metric == "mean_fct_ns" else metric
        spread = max((_spread(_values(group, name)) for group in sources), default=0.0)
        means = fmean(_values(ours, name)), fmean(_values(theirs, name))
        rows.append(judge(scenario, variant, name, limit, *means, spread))
    return rows


def judge(
    scenario: str,
    variant: str,
    metric: str,
    limit: Limit,
    ours: float,
    theirs: float,
    spread: float = 0.0,
) -> Row:
    """Compares the means of one metric."""
    scale = abs(theirs) or 1.0
    error = (ours - theirs) / scale
    largest = max(limit.share, limit.absolute / scale, spread)
    ok = abs(error) <= largest
    return Row(scenario, variant, metric, ours, theirs, error, largest, spread, ok)


def _spread(values: Sequence[float]) -> float:
    return (max(values) - min(values)) / (abs(fmean(values)) or 1.0)


def _values(results: Sequence[Results], metric: str) -> list[float]:
    return [float(getattr(result, metric)) for result in results]


def _flows_done(
    scenario: str, variant: str, ours: Sequence[Results], theirs: Sequence[Results]
) -> Row:
    """A run that hangs where the reference's did not makes all other metrics worthless."""
    means = fmean(_values(ours, "flows_done")), fmean(_values(theirs, "flows_done"))
    return judge(scenario, variant, "flows_done", Limit(0.0), *means)


def as_table(rows: Sequence[Row]) -> list[str]:
    """Lines of text, grouped by scenario and variant."""
    lines = []
    before: tuple[str, str] | None = None
    for row in rows:
        if (row.scenario, row.variant) != before:
            before = (row.scenario, row.variant)
            lines.append(f"{row.scenario}  {row.variant}")
        lines.append("  " + describe(row))
    return lines


HEADER = f"  {'metric':<16} {'ours':>15} {'theirs':>15} {'error':>9} {'limit':>8} {'spread':>8}"


def describe(row: Row) -> str:
    """The numbers of a row."""
    return (
        f"{row.metric:<16} {row.ours:>15,.1f} {row.theirs:>15,.1f} {row.error:>+9.2%} "
        f"{row.limit:>8.2%} {row.spread:>8.2%}  {'ok' if row.ok else 'FAILED'}"
    )


def summary(rows: Sequence[Row]) -> list[str]:
    """Counts, and the rows that failed, or else those closest to their limit."""
    failed = [row for row in rows if not row.ok]
    passed = len(rows) - len(failed)
    lines = [f"{passed} of {len(rows)} values are within their limits, {len(failed)} are not"]

    def closeness(row: Row) -> float:
        return abs(row.error) / row.limit if row.limit else float(row.error != 0)

    shown = failed or sorted(rows, key=closeness, reverse=True)[:5]
    lines.append("Failed:" if failed else "Closest to their limit:")
    lines += [f"  {row.scenario}/{row.variant}: {describe(row)}" for row in shown]
    return lines


def as_json(rows: Sequence[Row]) -> list[Mapping[str, object]]:
    """Rows as plain mappings."""
    return [vars(row) for row in rows]
