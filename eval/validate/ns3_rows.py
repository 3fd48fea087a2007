"""Rows of CSV files, with faults that name the file."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from roce_gym.errors import TraceFileError


def rows_of(path: Path, columns: Sequence[str]) -> list[dict[str, str]]:
    """The rows of a CSV file that has at least the given columns.

    Raises:
        TraceFileError: names the file, and what it lacks.
    """
    try:
        with path.open(encoding="utf-8", newline="") as file:
            reader = csv.DictReader(file)
            rows: list[dict[str, Any]] = list(reader)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        reason = getattr(error, "strerror", None) or error
        raise TraceFileError(f"{path}: cannot be read: {reason}") from None
    missing = sorted(set(columns) - set(reader.fieldnames or ()))
    if missing:
        raise TraceFileError(f"{path}: has no column {', '.join(missing)}")
    for number, row in enumerate(rows, start=2):
        if any(row[column] is None for column in columns):
            raise TraceFileError(f"{path}, line {number}: has too few fields")
    return rows


def number_in(path: Path, row: Mapping[str, str], column: str) -> float:
    """A field that must be a number.

    Raises:
        TraceFileError: it is none; names file, column and value.
    """
    try:
        return float(row[column])
    except ValueError:
        raise TraceFileError(f"{path}: {column} = {row[column]!r} is not a number") from None
