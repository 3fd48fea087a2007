"""Counters at the end of a run in Prometheus' text exposition format, version 0.0.4.

A file such as node_exporter's textfile collector takes. Names are those of the devices, with the
device, its port, the neighbour and, where the name does not say it, the queue as labels.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any

from roce_gym.counters import Column, Port, Sample, Sampler


def exposition(sampler: Sampler, sample: Sample) -> str:
    """The whole text; the samples of a metric stand together, as the format demands."""
    columns = sorted(sampler.columns, key=lambda column: column.metric)
    lines: list[str] = []
    for metric, group in groupby(columns, key=lambda column: column.metric):
        same = list(group)
        lines.append(f"# HELP {metric} {_help(same[0])}")
        lines.append(f"# TYPE {metric} {same[0].kind}")
        for column in same:
            lines += _samples(column, sampler.ports, sample)
    lines.append("# HELP roce_gym_simulated_seconds Simulated time since the start of the run.")
    lines.append("# TYPE roce_gym_simulated_seconds gauge")
    lines.append(f"roce_gym_simulated_seconds {sample.time_us / 1e6!r}")
    return "\n".join(lines) + "\n"


def _samples(column: Column, ports: list[Port], sample: Sample) -> Iterator[str]:
    values: list[Any] = sample.values[column.name].tolist()
    for port, value in zip(ports, values, strict=True):
        if port.is_switch != (column.owner == "switch"):
            continue
        labels = {"device": port.device, "port": port.name, "neighbor": port.neighbor}
        if column.queue is not None:
            labels["queue"] = column.queue
        shown = ",".join(f'{name}="{_escaped(text)}"' for name, text in labels.items())
        yield f"{column.metric}{{{shown}}} {value!r}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _help(column: Column) -> str:
    return column.help.replace("\\", "\\\\").replace("\n", "\\n")
