"""Timelines of counters, from a file or a run, as arrays.

A file is a table with a row for each sample and port. It needs the columns of :data:`PLACE`, and of
the counters of :mod:`roce_gym.counters` those that the rules read; rules whose counters are missing
are left out. Counters may begin anywhere and may be reset in between.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roce_gym.counters import Port, Sample, Sampler
from roce_gym.errors import ConfigError, TraceFileError

Floats = NDArray[np.float64]

PLACE = ("time_us", "device", "port", "neighbor", "speed_gbps")
"""Columns that a file must have: when (all ports at the same times), where, what is at the other
end (LLDP), nominal speed."""

MAX_ROWS = 20_000_000

_PRIORITY = re.compile(r"(?::|PFC_|prio)(\d)(?:_|$)")


@dataclass(frozen=True)
class Place:
    """A port; names as in :class:`roce_gym.counters.Port`."""

    device: str
    port: str
    neighbor: str
    speed_gbps: float

    def __str__(self) -> str:
        """As it stands in sentences."""
        return f"{self.device} {self.port} (to {self.neighbor})"


@dataclass(frozen=True)
class Timeline:
    """Samples of P ports at S moments.

    Attributes:
        time_us: shape (S,), float64, rising.
        places: P of them.
        values: shape (S, P), float64, by column; NaN where a port does not have it.
    """

    time_us: Floats
    places: tuple[Place, ...]
    values: dict[str, Floats]

    @property
    def interval_us(self) -> Floats:
        """Shape (S - 1,): time between samples."""
        return np.diff(self.time_us)

    @property
    def priorities(self) -> list[int]:
        """All that occur in names of columns."""
        found = (_PRIORITY.search(name) for name in self.values)
        return sorted({int(match[1]) for match in found if match})

    def gauge(self, name: str) -> Floats | None:
        """Shape (S, P); None if there is no such column."""
        return self.values.get(name)

    def growth(self, name: str) -> Floats | None:
        """Shape (S - 1, P): what a counter grew by; from 0 where it was reset. None: no column."""
        values = self.values.get(name)
        if values is None:
            return None
        steps = np.diff(values, axis=0)
        grown: Floats = np.where(steps < 0, values[1:], steps)
        return grown


class Recorder:
    """Turns the samples of a run into a timeline."""

    def __init__(self, sampler: Sampler) -> None:
        self._sampler = sampler
        self._samples: list[Sample] = [sampler.sample()]

    def add(self) -> None:
        """Takes the next sample."""
        self._samples.append(self._sampler.sample())

    def timeline(self) -> Timeline:
        """All samples so far."""
        ports = self._sampler.ports
        is_switch = np.array([port.is_switch for port in ports], np.bool_)
        values = {}
        for column in self._sampler.columns:
            rows = np.stack([sample.values[column.name] for sample in self._samples])
            owns = is_switch == (column.owner == "switch")
            values[column.name] = np.where(owns, rows.astype(np.float64), np.nan)
        times = np.array([sample.time_us for sample in self._samples])
        return Timeline(times, tuple(map(_place, ports)), values)


def _place(port: Port) -> Place:
    return Place(port.device, port.name, port.neighbor, port.speed_gbps)


# --------------------------------------------------------------------------- files


def read_timeline(path: Path) -> Timeline:
    """Reads a file; its name ends in .csv or .parquet.

    Raises:
        TraceFileError: it cannot be read, or is not such a table; names the line.
        ConfigError: pyarrow is not installed.
    """
    head, rows = _read_parquet(path) if path.suffix == ".parquet" else _read_csv(path)
    missing = [name for name in PLACE if name not in head]
    if missing:
        raise TraceFileError(
            f"{path}: column {', '.join(missing)} is missing; a timeline has: {', '.join(PLACE)}, "
            "and counters"
        )
    if len(set(head)) < len(head):
        twice = sorted({name for name in head if head.count(name) > 1})
        raise TraceFileError(f"{path}: there is more than one column {', '.join(twice)}")
    return _arrange(path, head, rows)


def _read_csv(path: Path) -> tuple[list[str], list[Sequence[Any]]]:
    try:
        with path.open(encoding="utf-8", newline="") as file:
            reader = csv.reader(file, strict=True)
            head = next(reader, [])
            rows: list[Sequence[Any]] = []
            for row in reader:
                if len(row) != len(head):
                    raise TraceFileError(
                        f"{path}:{reader.line_num}: has {len(row)} cells, the head has {len(head)}"
                    )
                rows.append(row)
                if len(rows) > MAX_ROWS:
                    raise TraceFileError(f"{path}: has more than {MAX_ROWS:,} rows")
    except OSError as error:
        raise TraceFileError(f"{path}: cannot be read: {error.strerror or error}") from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise TraceFileError(f"{path}: is not CSV: {error}") from None
    return head, rows


def _read_parquet(path: Path) -> tuple[list[str], list[Sequence[Any]]]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise ConfigError(
            f"{path}: Parquet files need pyarrow, which is not installed: "
            "pip install 'roce-gym[parquet]'"
        ) from None
    try:
        table = pyarrow.parquet.read_table(path)
    except (OSError, pyarrow.ArrowException) as error:
        raise TraceFileError(f"{path}: is not Parquet: {str(error).splitlines()[0]}") from None
    if table.num_rows > MAX_ROWS:
        raise TraceFileError(f"{path}: has more than {MAX_ROWS:,} rows")
    return table.column_names, list(zip(*(c.to_pylist() for c in table.columns), strict=True))


def _arrange(path: Path, head: list[str], rows: list[Sequence[Any]]) -> Timeline:
    """Rows in any order become arrays."""
    at = {name: head.index(name) for name in PLACE}
    times = np.array([_number(path, head, i, row, at["time_us"]) for i, row in enumerate(rows)])
    if np.isnan(times).any():
        line = int(np.flatnonzero(np.isnan(times))[0]) + 2
        raise TraceFileError(f"{path}:{line}: time_us is empty")
    moments, sample = np.unique(times, return_inverse=True)
    index: dict[tuple[str, str], int] = {}
    places: list[Place] = []
    port = np.zeros(len(rows), np.int64)
    for i, row in enumerate(rows):
        key = str(row[at["device"]]), str(row[at["port"]])
        if key not in index:
            index[key] = len(places)
            speed = _number(path, head, i, row, at["speed_gbps"])
            if not speed > 0:
                raise TraceFileError(
                    f"{path}:{i + 2}: speed_gbps = {row[at['speed_gbps']]!r} must be above 0"
                )
            places.append(Place(*key, str(row[at["neighbor"]]), speed))
        port[i] = index[key]
    if len(moments) < 2:
        raise TraceFileError(f"{path}: has samples of {len(moments)} moments; needs at least 2")
    cells, firsts = np.unique(sample * len(places) + port, return_index=True)
    if len(cells) < len(rows):
        again = int(np.setdiff1d(np.arange(len(rows)), firsts)[0])
        raise TraceFileError(f"{path}:{again + 2}: is the second sample of its port and time")
    values: dict[str, Floats] = {}
    for column, name in enumerate(head):
        if name in PLACE or name == "neighbor_port":
            continue
        table = np.full((len(moments), len(places)), np.nan)
        table[sample, port] = [_number(path, head, i, row, column) for i, row in enumerate(rows)]
        values[name] = table
    return Timeline(moments, tuple(places), values)


def _number(path: Path, head: list[str], i: int, row: Sequence[Any], column: int) -> float:
    cell = row[column]
    if cell is None or cell == "":
        return float("nan")
    try:
        value = float(cell)
    except (TypeError, ValueError):
        value = float("inf")
    if abs(value) == float("inf") or value != value:
        raise TraceFileError(f"{path}:{i + 2}: {head[column]} = {cell!r} is not a number")
    return value
