"""Values of knobs as people read them."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from roce_gym.config import Settings

_LABELS = {
    "kmin": ("ECN kmin, KB", 1e-3),
    "kmax_ratio": ("ECN kmax / kmin", 1.0),
    "pmax": ("ECN pmax, %", 100.0),
    "buffer_alpha": ("buffer alpha", 1.0),
    "buffer_split": ("reserve, logit", 1.0),
    "weight": ("DWRR weight", 1.0),
    "pool_share": ("pool share, %", 100.0),
    "shaper_rate": ("shaper, Gb/s", 1.0),
    "initial_alpha": ("initial alpha", 1.0),
    "alpha_cap": ("alpha cap", 1.0),
    "g": ("gain g", 1.0),
    "increase_timer": ("increase timer, us", 1.0),
    "rate_ai": ("rate step, Mb/s", 1.0),
}
"""Row label with unit, and factor from the knob's unit to it."""


class Cell(NamedTuple):
    """One knob: its owner, value, and position in [0, 1]; NaN where there is none."""

    owner: str
    text: str
    share: float


class Row(NamedTuple):
    """One setting of several owners; kind is `class`, `tenant`, or `switch`: a class at one."""

    kind: str
    label: str
    cells: list[Cell]


def knob_rows(knobs: Any, settings: Settings) -> list[Row]:
    """All knobs by setting; empty for knobs of a user's own that know no values."""
    if not hasattr(knobs, "values"):
        return []
    rows: dict[tuple[str, str], list[Cell]] = {}
    positions = (knobs.encode(settings).astype(float) + 1.0) / 2.0
    for knob, value, share in zip(knobs.knobs, knobs.values(settings), positions, strict=True):
        kind, owner, setting = knob.name.split("/")
        if kind.startswith("switch "):
            kind, owner = "switch", f"{kind} {owner}"
        is_on = math.isfinite(value) and (value > 0 or not knob.is_log)
        text = short(value * _LABELS[setting][1]) if is_on else "off"
        rows.setdefault((kind, setting), []).append(
            Cell(owner, text, float(share) if is_on else math.nan)
        )
    return [Row(kind, _LABELS[setting][0], cells) for (kind, setting), cells in rows.items()]


def short(value: float) -> str:
    """Three digits at most, without exponents where they can be avoided."""
    size = abs(value)
    if size >= 1e6:
        return f"{value / 1e6:.3g}M"
    if size >= 1000:
        return f"{value / 1000:.3g}k" if size >= 10_000 else f"{value:.0f}"
    if size >= 100:
        return f"{value:.0f}"
    return f"{value:.2g}" if size < 1 else f"{value:.3g}"
