"""Timelines of counters, from a file or a run, as arrays.

A file is a table with a row for each sample and port. It needs the columns of :data:`PLACE`, and of
the counters of :mod:`roce_gym.counters` those that the rules read; rules whose counters are missing
are left out. Counters may begin anywhere and may be reset in between.
"""

from __future__ import annotations

import csv
import math
import re
from array import array
from collections.abc import Iterator, Sequence
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

MAX_ROWS = 5_000_000
"""A file has some 50 columns, and every cell takes 16 bytes in the end."""

MOST_HOLES = 10
"""Times as many cells as rows: what is sampled more unevenly is no table."""

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
    rows = _parquet_rows(path) if path.suffix == ".parquet" else _csv_rows(path)
    try:
        head = [str(name) for name in next(rows, [])]
        table = _Table(path, head)
        for row in rows:
            table.add(row)
    except OSError as error:
        raise TraceFileError(f"{path}: cannot be read: {error.strerror or error}") from None
    return table.timeline()


def _csv_rows(path: Path) -> Iterator[Sequence[Any]]:
    """The head, then all rows."""
    with path.open(encoding="utf-8", newline="") as file:
        try:
            yield from csv.reader(file, strict=True)
        except (UnicodeDecodeError, csv.Error) as error:
            raise TraceFileError(f"{path}: is not CSV: {error}") from None


def _parquet_rows(path: Path) -> Iterator[Sequence[Any]]:
    """The head, then all rows."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise ConfigError(
            f"{path}: Parquet files need pyarrow, which is not installed: "
            "pip install 'roce-gym[parquet]'"
        ) from None
    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            yield file.schema_arrow.names
            for batch in file.iter_batches():
                yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)
    except pyarrow.ArrowException as error:
        reason = str(error).splitlines()[0]
        raise TraceFileError(f"{path}: is not Parquet: {reason}") from None


class _Table:
    """Takes in rows in any order, and turns them into arrays."""

    def __init__(self, path: Path, head: list[str]) -> None:
        self._path, self._head = path, head
        missing = [name for name in PLACE if name not in head]
        if missing:
            raise TraceFileError(
                f"{path}: column {', '.join(missing)} is missing; a timeline has: "
                f"{', '.join(PLACE)}, and counters"
            )
        if len(set(head)) < len(head):
            twice = sorted({name for name in head if head.count(name) > 1})
            raise TraceFileError(f"{path}: there is more than one column {', '.join(twice)}")
        self._at = [head.index(name) for name in PLACE]
        text = (*PLACE, "neighbor_port")
        self._counters = [i for i, name in enumerate(head) if name not in text]
        self._index: dict[tuple[str, str], int] = {}
        self._places: list[Place] = []
        self._ports, self._times, self._values = array("q"), array("d"), array("d")

    def add(self, row: Sequence[Any]) -> None:
        """Takes in the next row."""
        line = len(self._ports) + 2
        if len(row) != len(self._head):
            raise TraceFileError(
                f"{self._path}:{line}: has {len(row)} cells, the head has {len(self._head)}"
            )
        if line > MAX_ROWS + 1:
            raise TraceFileError(f"{self._path}: has more than {MAX_ROWS:,} rows")
        time_us = self._number(line, row, self._at[0])
        if math.isnan(time_us):
            raise TraceFileError(f"{self._path}:{line}: time_us is empty")
        self._times.append(time_us)
        self._ports.append(self._port(line, row))
        self._values.extend(self._number(line, row, column) for column in self._counters)

    def _port(self, line: int, row: Sequence[Any]) -> int:
        _, device, port, neighbor, speed = self._at
        key = str(row[device]), str(row[port])
        if key not in self._index:
            gbps = self._number(line, row, speed)
            if not gbps > 0:
                shown = f"{self._path}:{line}: speed_gbps = {row[speed]!r}"
                raise TraceFileError(f"{shown} must be above 0")
            self._index[key] = len(self._places)
            self._places.append(Place(*key, str(row[neighbor]), gbps))
        return self._index[key]

    def _number(self, line: int, row: Sequence[Any], column: int) -> float:
        cell = row[column]
        if cell is None or cell == "":
            return math.nan
        try:
            value = float(cell)
        except (TypeError, ValueError):
            value = math.nan
        if not math.isfinite(value):
            name = self._head[column]
            raise TraceFileError(f"{self._path}:{line}: {name} = {cell!r} is not a number")
        return value

    def timeline(self) -> Timeline:
        """What was taken in."""
        times, sample = np.unique(np.array(self._times), return_inverse=True)
        if len(times) < 2:
            raise TraceFileError(
                f"{self._path}: has samples of {len(times)} moments; needs at least 2"
            )
        port = np.array(self._ports, np.int64)
        if len(times) * len(self._places) > MOST_HOLES * len(port):
            raise TraceFileError(
                f"{self._path}: {len(self._places)} ports are sampled at {len(times)} different "
                f"times in {len(port)} rows; ports have to be sampled at the same times"
            )
        cells, firsts = np.unique(sample * len(self._places) + port, return_index=True)
        if len(cells) < len(port):
            again = int(np.setdiff1d(np.arange(len(port)), firsts)[0]) + 2
            raise TraceFileError(f"{self._path}:{again}: is the second sample of its port and time")
        rows = np.array(self._values).reshape(len(port), len(self._counters))
        values: dict[str, Floats] = {}
        for number, column in enumerate(self._counters):
            table = np.full((len(times), len(self._places)), np.nan)
            table[sample, port] = rows[:, number]
            values[self._head[column]] = table
        return Timeline(times, tuple(self._places), values)
