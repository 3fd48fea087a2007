"""Numbers and tables for terminals."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

UNKNOWN = "-"


def number(value: float | int | None, digits: int = 1) -> str:
    """A number with separators; whole numbers without decimals, None as a dash."""
    if value is None:
        return UNKNOWN
    return f"{value:,}" if isinstance(value, int) else f"{value:,.{digits}f}"


def short(value: float) -> str:
    """A setting as short as it can be told apart from others."""
    if value == int(value):
        return f"{int(value):,}"
    digits = max(0, 3 - math.floor(math.log10(abs(value))))
    return f"{value:,.{digits}f}".rstrip("0").rstrip(".")


def percent(share: float | None, digits: int = 2) -> str:
    """A share in per cent."""
    return UNKNOWN if share is None else f"{100.0 * share:,.{digits}f} %"


def table(head: Sequence[str], rows: Sequence[Sequence[str]], text_columns: int = 1) -> str:
    """An indented table; the first columns are text and left-aligned, the rest right-aligned."""
    lines = [list(head), *map(list, rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
    return "\n".join(
        "  "
        + "  ".join(
            cell.ljust(width) if i < text_columns else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def facts(rows: Sequence[tuple[str, str]]) -> str:
    """Indented lines of a name and what there is to say about it."""
    width = max(len(name) for name, _ in rows)
    return "\n".join(f"  {name.ljust(width)}  {text}".rstrip() for name, text in rows)


def to_json(tree: Any) -> str:
    """One JSON object. Raises ValueError for NaN and infinity, which JSON does not have."""
    return json.dumps(tree, indent=2, allow_nan=False, ensure_ascii=False)


def left_out(notes: list[dict[str, Any]]) -> str:
    """What of a trace is left out or changed."""
    if not notes:
        return "left out or changed: nothing"
    rows = [
        (f"{number(note['times'])} ×", " ".join([note.get("job", ""), note["text"]]).strip())
        for note in notes
    ]
    return "left out or changed\n" + facts(rows)
