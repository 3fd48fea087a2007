"""Tables from records, without simulating anything: `python -m eval.report OUT`.

Writes table.md, table.csv and table.txt into OUT, and prints the last one.
"""

from __future__ import annotations

import argparse
import csv
import io
import math
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path

from agents.files import write_whole
from eval.records import read_choice, read_records
from eval.statistics import LEVEL, Estimate
from eval.summary import DEFAULT, Row, Summary, summarize
from roce_gym.errors import RoceGymError

Cells = list[list[str]]


def as_markdown(summary: Summary, title: str = "") -> str:
    """The table as Markdown."""
    header, *rows = _cells(summary)
    lines = [f"# {title}", ""] if title else []
    lines += [_markdown_row(header), _markdown_row([":--", *["--:"] * (len(header) - 1)])]
    lines += [_markdown_row(row) for row in rows]
    return "\n".join([*lines, "", *notes(summary)]) + "\n"


def as_text(summary: Summary) -> str:
    """The table with aligned columns, for a terminal."""
    cells = _cells(summary)
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = [
        "  ".join(
            cell.rjust(width) if index else cell.ljust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in cells
    ]
    return "\n".join([lines[0], "-" * len(lines[0]), *lines[1:], "", *notes(summary)]) + "\n"


def as_csv(summary: Summary) -> str:
    """The table as CSV: one figure a column, full precision."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    by_tenant = ("slowdown", "interference", "cct_us")
    writer.writerow(
        [
            *("policy", "seeds", "score_mean", "score_low", "score_high"),
            *("difference_mean", "difference_low", "difference_high"),
            *("return_mean", "return_low", "return_high", "pfc_frames_per_s", "failures"),
            *(f"{what}/{tenant}" for what in by_tenant for tenant in summary.tenants),
        ]
    )
    for row in summary.rows:
        figures = [row.score, row.difference, row.total_reward]
        writer.writerow(
            [
                row.policy,
                len(summary.seeds),
                *(value for figure in figures for value in _plain(figure)),
                row.pfc_frames_per_s,
                row.failures,
                *(_number(value) for what in by_tenant for value in getattr(row, what)),
            ]
        )
    return buffer.getvalue()


def notes(summary: Summary) -> list[str]:
    """What a reader has to know: lines of one Markdown paragraph."""
    seeds = summary.seeds
    text = (
        f"J: weighted mean over tenants of ln(slowdown), plus the cost of PFC; lower is better. "
        f"Means over {len(seeds)} seeds ({_ranges(seeds)}); in brackets {LEVEL:.0%} bootstrap "
        f"intervals over seeds. *By tenant: {' / '.join(summary.tenants)}. Slowdown: collective "
        "time (CCT) over that of the tenant alone; interference: slowdown less 1. "
        f"{DEFAULT} is what the scenario starts with ({summary.default_preset})."
    )
    if summary.compared_with:
        text += f" ΔJ: difference to {summary.compared_with}, seed by seed."
    if summary.left_out:
        text += f" {summary.left_out} records are left out: not every policy has their seeds."
    if len(seeds) < 2:
        text += " One seed gives no interval."
    return textwrap.wrap(text, 110)


def write_tables(summary: Summary, out: Path, title: str) -> None:
    """Writes all three forms."""
    write_whole(out / "table.md", as_markdown(summary, title).encode())
    write_whole(out / "table.csv", as_csv(summary).encode())
    write_whole(out / "table.txt", as_text(summary).encode())


def _cells(summary: Summary) -> Cells:
    header = ["policy", "J", *(["ΔJ"] if summary.compared_with else []), "return"]
    header += ["slowdown*", "CCT µs*", "interference*", "PFC/s/port"]
    has_failures = any(row.failures for row in summary.rows)
    header += ["failed"] if has_failures else []
    return [header, *(_row_cells(row, summary, has_failures) for row in summary.rows)]


def _row_cells(row: Row, summary: Summary, has_failures: bool) -> list[str]:
    cells = [row.policy, interval(row.score)]
    if summary.compared_with:
        cells.append("–" if row.difference is None else interval(row.difference, "+"))
    cells += [
        f"{row.total_reward.mean:+.2f}",
        _by_tenant(row.slowdown, ".2f"),
        _by_tenant(row.cct_us, ",.0f"),
        _by_tenant(row.interference, ".0%"),
        f"{row.pfc_frames_per_s:,.0f}",
    ]
    return cells + ([str(row.failures)] if has_failures else [])


def _by_tenant(values: Sequence[float], form: str) -> str:
    return " / ".join("–" if math.isnan(value) else f"{value:{form}}" for value in values)


def interval(estimate: Estimate, sign: str = "") -> str:
    """As `0.554 [0.521, 0.590]`."""
    text = f"{estimate.mean:{sign}.3f}"
    if math.isnan(estimate.low):
        return text
    return f"{text} [{estimate.low:{sign}.3f}, {estimate.high:{sign}.3f}]"


def _plain(estimate: Estimate | None) -> list[float | str]:
    if estimate is None:
        return ["", "", ""]
    return [_number(value) for value in (estimate.mean, estimate.low, estimate.high)]


def _number(value: float) -> float | str:
    return "" if math.isnan(value) else value


def _markdown_row(cells: list[str]) -> str:
    return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"


def _ranges(seeds: Sequence[int]) -> str:
    if list(seeds) == list(range(seeds[0], seeds[-1] + 1)) and len(seeds) > 2:
        return f"{seeds[0]} … {seeds[-1]}"
    return ", ".join(map(str, seeds))


def main(argv: Sequence[str] | None = None) -> int:
    """Writes and prints tables; exit code 0: done, 2: refused."""
    parser = argparse.ArgumentParser(prog="python -m eval.report", description=__doc__)
    parser.add_argument("out", type=Path, help="the --out of eval.evaluate")
    parser.add_argument("--compare", default=DEFAULT, help=f"policy to compare with ({DEFAULT})")
    arguments = parser.parse_args(argv)
    try:
        choice = read_choice(arguments.out)
        summary = summarize(read_records(arguments.out), arguments.compare)
    except RoceGymError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    write_tables(summary, arguments.out, " ".join([choice.env, *choice.overrides]))
    print(as_text(summary), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
