"""A run as a file of counters: one row for each sample and port, one at the start of the run.

What a port does not have is empty. See :mod:`roce_gym.counters` for the columns.
"""

from __future__ import annotations

import csv
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from roce_gym.cli.output_file import OutputFile
from roce_gym.counters import Port, Sample, Sampler
from roce_gym.errors import ConfigError

PLACE = ("time_us", "device", "port", "neighbor", "neighbor_port", "speed_gbps")
"""Columns before the counters: when, where, what LLDP says is at the other end, nominal speed."""

_ROWS_AT_ONCE = 50_000
FORMATS = (".csv", ".parquet")


class TimelineFile:
    """Writes samples; the file appears whole when the run is over."""

    def __init__(self, path: Path, force: bool, sampler: Sampler) -> None:
        """Opens the file.

        Raises:
            ConfigError: its name says no format that is known, what writes that is not installed,
                it exists and may not be replaced, or cannot be written.
        """
        if path.suffix not in FORMATS:
            allowed = " or ".join(FORMATS)
            raise ConfigError(f"--timeline: {path.name!r} is not allowed; allowed: *{allowed}")
        self._sampler = sampler
        is_csv = path.suffix == ".csv"
        make: Any = _Csv if is_csv else _Parquet
        if not is_csv:
            import_pyarrow("--timeline")
        self._output = OutputFile(path, "--timeline", force)
        self._writer: _Csv | _Parquet = make(self._output, sampler)

    def __enter__(self) -> TimelineFile:
        self.add(self._sampler.sample())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Puts the file in its place, or removes it if something went wrong."""
        self._output.close(self._writer.close, kind)

    def add(self, sample: Sample) -> None:
        """Writes a row for each port.

        Raises:
            ConfigError: the disk is full, or the like.
        """
        try:
            self._writer.add(sample)
        except OSError as error:
            raise self._output.unwritable(error) from None


def place_of(time_us: float, port: Port) -> tuple[Any, ...]:
    """Values of :data:`PLACE`."""
    return (time_us, port.device, port.name, port.neighbor, port.neighbor_port, port.speed_gbps)


class _Csv:
    """Comma-separated values."""

    def __init__(self, output: OutputFile, sampler: Sampler) -> None:
        self._sampler = sampler
        self._file = output.partial.open("w", encoding="utf-8", newline="")
        self._writer = csv.writer(self._file, lineterminator="\n")
        self._writer.writerow([*PLACE, *(column.name for column in sampler.columns)])

    def add(self, sample: Sample) -> None:
        columns = [
            (sample.values[column.name].tolist(), column.owner == "switch")
            for column in self._sampler.columns
        ]
        for number, port in enumerate(self._sampler.ports):
            cells = [
                values[number] if of_switch == port.is_switch else ""
                for values, of_switch in columns
            ]
            self._writer.writerow([*place_of(sample.time_us, port), *cells])

    def close(self) -> None:
        self._file.close()


class _Parquet:
    """Apache Parquet, in row groups of some ten thousand rows."""

    def __init__(self, output: OutputFile, sampler: Sampler) -> None:
        self._pyarrow, self._parquet = import_pyarrow("--timeline")
        self._sampler = sampler
        self._path = output.partial
        self._samples: list[Sample] = []
        self._file: Any = None

    def add(self, sample: Sample) -> None:
        self._samples.append(sample)
        if len(self._samples) * len(self._sampler.ports) >= _ROWS_AT_ONCE:
            self._flush()

    def _flush(self) -> None:
        arrow, ports, samples = self._pyarrow, self._sampler.ports, self._samples
        places = list(
            zip(*(place_of(s.time_us, port) for s in samples for port in ports), strict=True)
        )
        table: dict[str, Any] = dict(zip(PLACE, map(list, places), strict=True))
        is_switch = np.array([port.is_switch for port in ports], np.bool_)
        for column in self._sampler.columns:
            values = np.concatenate([s.values[column.name] for s in samples])
            kind = arrow.float64() if column.field == "paused_us" else arrow.int64()
            missing = np.tile(is_switch != (column.owner == "switch"), len(samples))
            table[column.name] = arrow.array(values, kind, mask=missing, safe=False)
        rows = arrow.table(table)
        if self._file is None:
            self._file = self._parquet.ParquetWriter(self._path, rows.schema)
        self._file.write_table(rows)
        self._samples = []

    def close(self) -> None:
        if self._samples:
            self._flush()
        if self._file is not None:
            self._file.close()


def import_pyarrow(option: str) -> tuple[Any, Any]:
    """The package and its module for Parquet files.

    Raises:
        ConfigError: it is not installed.
    """
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise ConfigError(
            f"{option}: Parquet files need pyarrow, which is not installed: "
            "pip install 'roce-gym[parquet]'; .csv needs nothing"
        ) from None
    return pyarrow, pyarrow.parquet
