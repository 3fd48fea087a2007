"""The copy of the reference that this project carries: four text files for all scenarios.

* `cables.csv`: a cable a line, as in the topology files; `h` is a host, `s` a switch.
* `flows.csv`: a flow a line, with the nodes that its data and its ACKs pass.
* `settings.json`: parameters by name, each as its difference from those under `common`.
* `results.csv`: a run a line: its settings, its seed, its end, and what it came to.
"""

from __future__ import annotations

import csv
import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from eval.validate.ns3_params import Parameters, parse_parameters
from eval.validate.ns3_rows import number_in, rows_of
from eval.validate.ns3_types import FlowPaths, Reference, Results
from roce_gym.errors import TraceFileError
from roce_gym.topology.graph import Network, network_from_cables
from roce_gym.workload.flow_file import FlowRecord

_CABLES, _FLOWS, _SETTINGS, _RESULTS = "cables.csv", "flows.csv", "settings.json", "results.csv"
_CABLE = ("scenario", "src", "dst", "rate_bps", "delay_ps", "loss")
_FLOW = ("scenario", "priority", "dport", "bytes", "start_ps", "data_path", "ack_path")
_METRICS = tuple(field.name for field in fields(Results))
_RUN = ("scenario", "variant", "settings", "seed", "stop_s", *_METRICS)
_OF_RUN = ("RNG_SEED", "SIMULATOR_STOP_TIME")


def is_table(folder: Path) -> bool:
    """Whether the folder is a table, not one of scenarios in folders of their own."""
    return all((folder / name).is_file() for name in (_CABLES, _FLOWS, _SETTINGS, _RESULTS))


def read_table(folder: Path, only: str = "") -> list[Reference]:
    """Reads all scenarios whose name contains `only`, by name.

    Raises:
        TraceFileError: a file is malformed; names it.
    """
    cables = _by_scenario(folder / _CABLES, _CABLE, only)
    flows = _by_scenario(folder / _FLOWS, _FLOW, only)
    runs = _by_scenario(folder / _RESULTS, _RUN, only)
    settings = _read_settings(folder / _SETTINGS)
    references = []
    for name in sorted(runs):
        for part, rows in ((_CABLES, cables), (_FLOWS, flows)):
            if name not in rows:
                raise TraceFileError(f"{folder / part}: has nothing of scenario {name}")
        records, paths = _read_flows(folder / _FLOWS, flows[name])
        parameters = {row["variant"]: _parameters(folder, row, settings) for row in runs[name]}
        results = {row["variant"]: _results(folder / _RESULTS, row) for row in runs[name]}
        network = _read_network(folder / _CABLES, cables[name])
        references.append(Reference(name, network, records, paths, parameters, results))
    return references


def write_table(references: Iterable[Reference], folder: Path) -> None:
    """Writes scenarios in the form that :func:`read_table` reads."""
    folder.mkdir(parents=True, exist_ok=True)
    known = list(references)
    names = _name_settings(known)
    _write_settings(folder / _SETTINGS, names)
    _write(folder / _CABLES, _CABLE, [row for r in known for row in _cable_rows(r)])
    _write(folder / _FLOWS, _FLOW, [row for r in known for row in _flow_rows(r)])
    _write(folder / _RESULTS, _RUN, [row for r in known for row in _run_rows(r, names)])


# --------------------------------------------------------------------------- reading


def _by_scenario(path: Path, columns: Sequence[str], only: str) -> dict[str, list[dict[str, str]]]:
    """Rows by scenario; each also has its number in the file, under `line`."""
    out: dict[str, list[dict[str, str]]] = defaultdict(list)
    for line, row in enumerate(rows_of(path, columns), start=2):
        if only in row["scenario"]:
            out[row["scenario"]].append(row | {"line": str(line)})
    return out


def _read_network(path: Path, rows: list[dict[str, str]]) -> Network:
    ends = [(row["src"], row["dst"]) for row in rows]
    try:
        nodes = sorted({(end[0], int(end[1:])) for pair in ends for end in pair})
        node = {f"{kind}{label}": index for index, (kind, label) in enumerate(nodes)}
        cables = [(node[src], node[dst]) for src, dst in ends]
    except (ValueError, KeyError, IndexError):
        raise TraceFileError(f"{path}: src and dst must be h or s and a number: {ends}") from None
    num_hosts = sum(kind == "h" for kind, _ in nodes)
    return network_from_cables(
        num_hosts=num_hosts,
        num_switches=len(nodes) - num_hosts,
        ends=cables,
        rate_bps=[int(number_in(path, row, "rate_bps")) for row in rows],
        delay_ps=[int(number_in(path, row, "delay_ps")) for row in rows],
        loss=[number_in(path, row, "loss") for row in rows],
        node_label=[label for _, label in nodes],
    )


def _read_flows(
    path: Path, rows: list[dict[str, str]]
) -> tuple[tuple[FlowRecord, ...], tuple[FlowPaths, ...]]:
    records, paths = [], []
    for row in rows:
        try:
            data, ack = (
                tuple(map(int, row[column].split("-"))) for column in ("data_path", "ack_path")
            )
        except ValueError as error:
            raise TraceFileError(f"{path}, line {row['line']}: {error}") from None
        numbers = [int(number_in(path, row, column)) for column in _FLOW[1:5]]
        records.append(FlowRecord(data[0], data[-1], *numbers, line=int(row["line"])))
        paths.append((data, ack))
    return tuple(records), tuple(paths)


def _read_settings(path: Path) -> dict[str, dict[str, Any]]:
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
        return {name: raw["common"] | raw["changes"][name] for name in raw["changes"]}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise TraceFileError(f"{path}: cannot be read: {error!r}") from None


def _parameters(
    folder: Path, row: dict[str, str], settings: dict[str, dict[str, Any]]
) -> Parameters:
    path, name = folder / _RESULTS, row["settings"]
    if name not in settings:
        raise TraceFileError(f"{path}, line {row['line']}: settings = {name!r} are not there")
    own = {"RNG_SEED": row["seed"], "SIMULATOR_STOP_TIME": row["stop_s"]}
    return parse_parameters(f"{folder / _SETTINGS}: {name}", settings[name] | own)


def _results(path: Path, row: dict[str, str]) -> Results:
    done, *rest = (number_in(path, row, metric) for metric in _METRICS)
    return Results(int(done), *rest)


# --------------------------------------------------------------------------- writing


def _name_settings(references: list[Reference]) -> dict[str, dict[str, Any]]:
    """Different settings by name: that of the first variant that has them."""
    names: dict[str, dict[str, Any]] = {}
    for reference in references:
        for variant, parameters in reference.parameters.items():
            settings = _settings(parameters)
            if settings not in names.values():
                free = variant not in names
                names[variant if free else f"{variant}@{reference.name}"] = settings
    return names


def _settings(parameters: Parameters) -> dict[str, Any]:
    values: dict[str, Any] = json.loads(parameters.model_dump_json(by_alias=True))
    return {key: value for key, value in values.items() if key not in _OF_RUN}


def _write_settings(path: Path, names: dict[str, dict[str, Any]]) -> None:
    common = next(iter(names.values()), {})
    lines = [
        f"  {json.dumps(name)}: "
        + json.dumps({key: value for key, value in own.items() if value != common[key]})
        for name, own in names.items()
    ]
    shared = [f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in common.items()]
    text = '{"common": {\n' + ",\n".join(shared) + '\n},\n"changes": {\n' + ",\n".join(lines)
    path.write_text(text + "\n}}\n", encoding="utf-8")


def _write(path: Path, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows([*map(_short, row)] for row in rows)


def _short(value: object) -> object:
    """Whole numbers without a point."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _cable_rows(reference: Reference) -> list[tuple[object, ...]]:
    network = reference.network
    kind = ["h"] * network.num_hosts + ["s"] * network.num_switches
    label = [f"{k}{i}" for k, i in zip(kind, network.node_label.tolist(), strict=True)]
    columns = (network.link_rate_bps, network.link_delay_ps, network.link_loss)
    return [
        (reference.name, label[src], label[dst], *values)
        for src, dst, *values in zip(
            network.link_src[::2].tolist(),
            network.link_dst[::2].tolist(),
            *(column[::2].tolist() for column in columns),
            strict=True,
        )
    ]


def _flow_rows(reference: Reference) -> list[tuple[object, ...]]:
    return [
        (
            reference.name,
            flow.priority,
            flow.dport,
            flow.bytes,
            flow.start_ps,
            *("-".join(map(str, path)) for path in paths),
        )
        for flow, paths in zip(reference.flows, reference.paths, strict=True)
    ]


def _run_rows(reference: Reference, names: dict[str, dict[str, Any]]) -> list[tuple[object, ...]]:
    rows = []
    for variant, parameters in reference.parameters.items():
        settings = _settings(parameters)
        name = next(name for name, own in names.items() if own == settings)
        result = asdict(reference.results[variant]).values()
        rows.append((reference.name, variant, name, parameters.seed, parameters.stop_s, *result))
    return rows
