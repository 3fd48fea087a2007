"""The comparison as text and as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import groupby
from statistics import fmean

from eval.validate.ns3_compare import Row
from eval.validate.ns3_limits import Draws

_CLOSEST = 3
_TITLES: dict[Draws, str] = {
    "none": "no random numbers",
    "same": "same draws",
    "own": "own draws",
}


def heading(seeds: int, lossy_seeds: int, repeats: int) -> list[str]:
    """What the table shows, and the names of its columns.

    Args:
        seeds: of ours, with draws of our own.
        lossy_seeds: the same where packets are lost at random.
        repeats: seeds of the reference that its spread is measured from.
    """
    return [
        "Every run of the reference that this simulator can repeat, and how far we are from it.",
        "  no random numbers: one run each.",
        "  same draws: each run repeated with the reference's generator and its seed.",
        f"  own draws: mean over {seeds} seeds of ours ({lossy_seeds} where packets are lost at",
        "    random) against the mean over the 1 to 3 seeds that the reference has.",
        "  Where numbers are random, an error up to the spread of the reference's seeds is fine:",
        "  highest - lowest as a share of the mean. To measure it the reference is continued: its",
        f"  generator with seeds 1 to {repeats}, run here, which by the comparison of same draws",
        "  is what it would give. Its draws for losses are not known: there, the seeds it has.",
        "  In all of these simultaneous events have the reference's order, times its precision.",
        "",
        f"  {'metric':<16} {'ours':>15} {'theirs':>15} {'error':>9} {'limit':>8} {'spread':>8}",
    ]


def as_table(rows: Sequence[Row]) -> list[str]:
    """Lines of text, grouped by scenario, variant and draws."""
    lines = []
    for (scenario, variant, draws), group in groupby(
        rows, lambda row: (row.scenario, row.variant, row.draws)
    ):
        lines.append(f"{scenario}  {variant}  ({_TITLES[draws]})")
        lines += ["  " + _describe(row) for row in group]
    return lines


def _describe(row: Row) -> str:
    return (
        f"{row.metric:<16} {row.ours:>15,.1f} {row.theirs:>15,.1f} {row.error:>+9.2%} "
        f"{row.limit:>8.2%} {row.spread:>8.2%}  {'ok' if row.ok else 'FAILED'}"
    )


def summary(rows: Sequence[Row]) -> list[str]:
    """Counts, and the rows that failed, or else those closest to their limit."""
    failed = [row for row in rows if not row.ok]
    passed = len(rows) - len(failed)
    lines = [f"{passed} of {len(rows)} values are within their limits, {len(failed)} are not"]
    wide = [row for row in rows if row.ok and abs(row.error) > row.plain_limit]
    if wide:
        lines.append(f"{len(wide)} of these are within the spread only, not the plain limit")
    for draws, title in _TITLES.items():
        some = [row for row in rows if row.draws == draws]
        if not some:
            continue
        within = sum(row.ok for row in some)
        shown = [row for row in some if not row.ok]
        label = "Failed" if shown else "closest to their limit"
        shown = shown or sorted(some, key=lambda row: row.closeness, reverse=True)[:_CLOSEST]
        lines.append(f"{title}: {within} of {len(some)}; {label}:")
        lines += [f"  {row.scenario}/{row.variant}: {_describe(row)}" for row in shown]
    return lines


def default_rules(rows: Sequence[Row]) -> list[str]:
    """One line a metric: how far the default rules are from the reference; for information.

    Args:
        rows: of variants without random numbers, run with the default rules.
    """
    lines = [
        "For information, the runs without random numbers under the default rules "
        "(simulator.tie_order: id, clock_ps: 1):"
    ]
    for metric in dict.fromkeys(row.metric for row in rows):
        some = [row for row in rows if row.metric == metric]
        worst = max(some, key=lambda row: abs(row.error))
        mean = fmean(abs(row.error) for row in some)
        lines.append(
            f"  {metric:<16} {len(some):>4} runs   mean error {mean:>7.3%}   "
            f"largest {abs(worst.error):>7.2%}  {worst.scenario}/{worst.variant}: "
            f"{worst.ours:,.1f} for {worst.theirs:,.1f}"
        )
    return lines if rows else []


def as_json(rows: Sequence[Row]) -> list[Mapping[str, object]]:
    """Rows as plain mappings."""
    return [asdict(row) for row in rows]
