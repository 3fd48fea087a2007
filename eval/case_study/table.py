"""Theirs, ours before, ours after, and by how much ours differs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

Values = Sequence[Mapping[str, float]]
"""What each seed gave, by the key of a row."""


class Row(NamedTuple):
    """One quantity.

    Attributes:
        key: in `Measured.values`.
        name: with unit.
        before, after: as published; None: nothing was published.
        after_is_bound: "less than" was published.
        show: a value as text.
    """

    key: str
    name: str
    before: float | None
    after: float | None
    after_is_bound: bool
    show: Callable[[float], str]


def _count(value: float) -> str:
    return f"{value:,.0f}"


def _percent(value: float) -> str:
    return f"{100 * value:.1f} %"


ROWS = (
    Row("pfc_frames_per_s", "PFC frames/s, worst port", 85_000, 2_100, False, _count),
    Row("neighbour_slowdown", "slowdown of a neighbour", 0.47, 0.03, True, _percent),
    Row("packet_p99_us", "tail latency, packets p99, us", 1_200, 220, False, _count),
    Row("packet_p99_99_us", "tail latency, packets p99.99, us", 1_200, 220, False, _count),
    Row("effective_bandwidth", "effective bandwidth", 0.72, 0.94, False, _percent),
    Row("worst_neighbour_slowdown", "slowdown of the worst neighbour", None, None, False, _percent),
    Row(
        "neighbour_pfc_frames_per_s",
        "PFC frames/s, worst port, in classes of neighbours",
        None,
        None,
        False,
        _count,
    ),
    Row(
        "neighbour_packet_p99_99_us",
        "tail latency, packets of neighbours p99.99, us",
        None,
        None,
        False,
        _count,
    ),
    Row("message_p99_us", "messages p99, us", None, None, False, _count),
    Row("goodput_gbps", "goodput of all, Gb/s", None, None, False, _count),
    Row("dropped_packets", "dropped packets", None, None, False, _count),
)
"""The published figures come without a percentile, so that two are set beside the tail latency."""


def table(before: Values, after: Values) -> str:
    """A table in Markdown, and under it how ours differs from what was published."""
    head = ["", "published", "", "ours", ""]
    lines = [head, ["---"] * 5, ["", "before", "after", "before", "after"]]
    for row in ROWS:
        bound = "< " if row.after_is_bound else ""
        published = [
            "" if row.before is None else row.show(row.before),
            "" if row.after is None else bound + row.show(row.after),
        ]
        ours = [spread(row, before), spread(row, after)]
        lines.append([row.name, *published, *ours])
    rows = "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
    notes = "\n".join(f"* {line}" for line in differences(before, after))
    return f"{rows}\n\n{notes}\n"


def mean(row: Row, values: Values) -> float:
    """Over seeds; NaN if any is not known."""
    return float(np.mean([one[row.key] for one in values]))


def spread(row: Row, values: Values) -> str:
    """Mean over seeds, and the range where there are several."""
    every = [one[row.key] for one in values]
    middle = mean(row, values)
    if math.isnan(middle):
        return "-"
    low, high = row.show(min(every)), row.show(max(every))
    return row.show(middle) if low == high else f"{row.show(middle)} ({low} … {high})"


def differences(before: Values, after: Values) -> list[str]:
    """One line for each published figure."""
    out = []
    for row in ROWS:
        if row.before is None or row.after is None:
            continue
        for when, theirs, values in (("before", row.before, before), ("after", row.after, after)):
            ours = mean(row, values)
            is_bound = row.after_is_bound and when == "after"
            out.append(f"{row.name}, {when}: {_verdict(row, theirs, ours, is_bound)}")
    return out


def _verdict(row: Row, theirs: float, ours: float, is_bound: bool) -> str:
    if math.isnan(ours):
        return "nothing ended in time to compare"
    if is_bound and ours < theirs:
        return f"ours is {row.show(ours)}, within the published bound of {row.show(theirs)}"
    shown = f"{row.show(ours)} against {row.show(theirs)}"
    if ours <= 0:
        return f"ours is {shown}"
    ratio = ours / theirs
    if 0.9 <= ratio <= 1.1:
        return f"ours is {shown}, within 10 %"
    return f"ours is {'higher' if ratio > 1 else 'lower'}: {shown}, {ratio:.2g} times as much"
