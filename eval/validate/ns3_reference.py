"""Reference runs of an ns-3 RDMA simulator: reads a folder of them, writes the compact copy.

Each scenario is a folder with `topology.txt`, `flow.txt`, `paths.csv` and `params.json`,
and the results either raw (`fct.csv`, `ports.csv`) or as one line a variant (`results.csv`), which
is what the copy beside this module has.
"""

from __future__ import annotations

import csv
import json
import shutil
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from eval.validate.ns3_params import Parameters, read_parameters
from roce_gym.errors import TraceFileError
from roce_gym.topology.graph import Network
from roce_gym.topology.hpcc_file import read_hpcc_topology
from roce_gym.units import PS_PER_NS, PS_PER_S
from roce_gym.workload.flow_file import FlowRecord, read_flow_file

TABLE = Path(__file__).with_name("ns3")
"""The copy of the reference that this project carries."""

_COUNTER_WRAPS = 2**16
_COPIED = ("topology.txt", "flow.txt", "paths.csv")


@dataclass(frozen=True)
class Results:
    """What one run of a scenario came to.

    Attributes:
        flows_done: flows wholly acknowledged.
        mean_fct_ns, max_fct_ns: over the flows done; 0 where there are none.
        goodput_gbps: payload that arrived per time from a flow's start to the end of the run, mean
            over flows; 0 if all were done.
        pause_frames: sent by all switches.
        max_queue_bytes: of any egress queue of a switch.
        marked_packets: data packets that arrived with CE.
    """

    flows_done: int
    mean_fct_ns: float
    max_fct_ns: float
    goodput_gbps: float
    pause_frames: float
    max_queue_bytes: float
    marked_packets: float


@dataclass(frozen=True)
class Reference:
    """One scenario with the results of its variants.

    Attributes:
        name: of its folder.
        network: its topology.
        flows: in file order.
        paths: of each flow, node labels of data and ACKs.
        parameters: by variant; only variants that this simulator can run.
        results: by variant.
    """

    name: str
    network: Network
    flows: tuple[FlowRecord, ...]
    paths: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]
    parameters: dict[str, Parameters]
    results: dict[str, Results]


def read_references(folder: Path, only: str = "") -> list[Reference]:
    """Reads all scenarios whose name contains `only`.

    Raises:
        TraceFileError: there is none, or a file is missing or malformed; names it.
    """
    if not folder.is_dir():
        raise TraceFileError(f"{folder}: is not a folder of reference runs")
    scenarios = sorted(path.parent for path in folder.glob("*/params.json"))
    if not scenarios:
        raise TraceFileError(f"{folder}: holds no scenario (a folder with params.json)")
    return [read_reference(path) for path in scenarios if only in path.name]


def read_reference(folder: Path) -> Reference:
    """Reads one scenario.

    Raises:
        TraceFileError: a file is missing or malformed; names file and field.
    """
    network = read_hpcc_topology(folder / "topology.txt")
    flows = tuple(read_flow_file(folder / "flow.txt", network))
    paths = _read_paths(folder / "paths.csv", flows)
    parameters = read_parameters(folder / "params.json")
    if (folder / "results.csv").is_file():
        results = _read_results(folder / "results.csv")
    else:
        results = _raw_results(folder, flows, parameters)
    missing = sorted(set(parameters) - set(results))
    if missing:
        raise TraceFileError(f"{folder}: has no results of variant {', '.join(missing)}")
    return Reference(folder.name, network, flows, paths, parameters, results)


def write_table(references: Iterable[Reference], source: Path, target: Path = TABLE) -> None:
    """Writes the compact copy of scenarios that were read from `source`."""
    shutil.rmtree(target, ignore_errors=True)
    for reference in references:
        folder = target / reference.name
        folder.mkdir(parents=True)
        for name in _COPIED:
            shutil.copyfile(source / reference.name / name, folder / name)
        parameters = {v: p.model_dump(by_alias=True) for v, p in reference.parameters.items()}
        lines = [f"{json.dumps(v)}: {json.dumps(p)}" for v, p in parameters.items()]
        (folder / "params.json").write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
        with (folder / "results.csv").open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(["variant", *(field.name for field in fields(Results))])
            for variant in reference.parameters:
                writer.writerow([variant, *asdict(reference.results[variant]).values()])


def _rows(path: Path, columns: str) -> list[dict[str, str]]:
    """The rows of a CSV file that has at least the given columns."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            reader = csv.DictReader(file)
            rows: list[dict[str, Any]] = list(reader)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        reason = getattr(error, "strerror", None) or error
        raise TraceFileError(f"{path}: cannot be read: {reason}") from None
    missing = sorted(set(columns.split()) - set(reader.fieldnames or ()))
    if missing:
        raise TraceFileError(f"{path}: has no column {', '.join(missing)}")
    for number, row in enumerate(rows, start=2):
        if any(row[column] is None for column in columns.split()):
            raise TraceFileError(f"{path}, line {number}: has too few fields")
    return rows


def _number(path: Path, row: dict[str, str], column: str) -> float:
    try:
        return float(row[column])
    except ValueError:
        raise TraceFileError(f"{path}: {column} = {row[column]!r} is not a number") from None


def _read_paths(
    path: Path, flows: tuple[FlowRecord, ...]
) -> tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]:
    rows = _rows(path, "src dst data_path ack_path")
    if len(rows) != len(flows):
        raise TraceFileError(f"{path}: {len(rows)} paths, but flow.txt has {len(flows)} flows")
    paths = []
    for number, (row, flow) in enumerate(zip(rows, flows, strict=True), start=2):
        try:
            src, dst = int(row["src"]), int(row["dst"])
            data, ack = (
                tuple(map(int, row[column].split("-"))) for column in ("data_path", "ack_path")
            )
        except ValueError as error:
            raise TraceFileError(f"{path}, line {number}: {error}") from None
        if (src, dst) != (flow.src, flow.dst):
            raise TraceFileError(
                f"{path}, line {number}: {src} -> {dst}, but the flow in flow.txt is "
                f"{flow.src} -> {flow.dst}"
            )
        paths.append((data, ack))
    return tuple(paths)


def _read_results(path: Path) -> dict[str, Results]:
    names = [field.name for field in fields(Results)]
    rows = _rows(path, " ".join(["variant", *names]))
    return {
        row["variant"]: Results(
            flows_done=int(_number(path, row, names[0])),
            **{name: _number(path, row, name) for name in names[1:]},
        )
        for row in rows
    }


def _raw_results(
    folder: Path, flows: tuple[FlowRecord, ...], parameters: dict[str, Parameters]
) -> dict[str, Results]:
    fct_path, port_path = folder / "fct.csv", folder / "ports.csv"
    by_flow: dict[str, list[dict[str, str]]] = defaultdict(list)
    for row in _rows(fct_path, "variant src size_bytes start_ns fct_ns ecn_marked_pkts rx_pkts"):
        by_flow[row["variant"]].append(row)
    by_port: dict[str, list[dict[str, str]]] = defaultdict(list)
    for row in _rows(port_path, "variant peer max_egress_bytes dequeued_pkts pause_sent"):
        by_port[row["variant"]].append(row)
    results = {}
    for variant in parameters.keys() & by_flow.keys():
        rows, ports = by_flow[variant], by_port[variant]
        if len(rows) != len(flows):
            raise TraceFileError(
                f"{fct_path}: {len(rows)} flows of {variant}, but flow.txt has {len(flows)}"
            )
        fct_ns = [_number(fct_path, row, "fct_ns") for row in rows if row["fct_ns"]]
        queues = [_number(port_path, port, "max_egress_bytes") for port in ports]
        results[variant] = Results(
            flows_done=len(fct_ns),
            mean_fct_ns=sum(fct_ns) / len(fct_ns) if fct_ns else 0.0,
            max_fct_ns=max(fct_ns, default=0.0),
            goodput_gbps=0.0
            if len(fct_ns) == len(rows)
            else _raw_goodput_gbps(fct_path, port_path, rows, ports, parameters[variant]),
            pause_frames=sum(_number(port_path, port, "pause_sent") for port in ports),
            max_queue_bytes=max(queues, default=0.0),
            marked_packets=sum(_number(fct_path, row, "ecn_marked_pkts") for row in rows),
        )
    return results


def _raw_goodput_gbps(
    fct_path: Path,
    port_path: Path,
    rows: list[dict[str, str]],
    ports: list[dict[str, str]],
    parameters: Parameters,
) -> float:
    """Mean goodput from the packets received; that counter has 16 bits in the reference.

    Where a host sends just one flow and receives none, the packets on the port to it are the ACKs
    of this flow, which tells how often the counter wrapped.
    """
    sources = [row["src"] for row in rows]
    receivers = {row["dst"] for row in rows}
    acks = {port["peer"]: _number(port_path, port, "dequeued_pkts") for port in ports}
    rates = []
    for row in rows:
        packets, src = _number(fct_path, row, "rx_pkts"), row["src"]
        if sources.count(src) == 1 and src not in receivers and src in acks:
            packets += _COUNTER_WRAPS * max(0, round((acks[src] - packets) / _COUNTER_WRAPS))
        size = min(packets * parameters.payload_bytes, _number(fct_path, row, "size_bytes"))
        start_ps = _number(fct_path, row, "start_ns") * PS_PER_NS
        duration_s = (parameters.stop_ps - start_ps) / PS_PER_S
        rates.append(8 * size / duration_s / 1e9 if duration_s > 0 else 0.0)
    return sum(rates) / len(rates)
