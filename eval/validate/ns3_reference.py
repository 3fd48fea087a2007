"""Reference runs of an ns-3 RDMA simulator: reads a folder of them, or the project's copy.

In a folder each scenario has one of its own, with `topology.txt`, `flow.txt`, `paths.csv`,
`params.json`, `fct.csv` and `ports.csv`; the copy is :mod:`eval.validate.ns3_table`.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

from eval.validate.ns3_params import Parameters, read_parameters
from eval.validate.ns3_rows import number_in, rows_of
from eval.validate.ns3_table import is_table, read_table
from eval.validate.ns3_types import FlowPaths, Reference, Results
from roce_gym.errors import TraceFileError
from roce_gym.topology.hpcc_file import read_hpcc_topology
from roce_gym.units import PS_PER_NS, PS_PER_S
from roce_gym.workload.flow_file import FlowRecord, read_flow_file

TABLE = Path(__file__).with_name("ns3")
"""The copy of the reference that this project carries."""

_COUNTER_WRAPS = 2**16


def read_references(folder: Path, only: str = "") -> list[Reference]:
    """Reads all scenarios whose name contains `only`.

    Raises:
        TraceFileError: there is none, or a file is missing or malformed; names it.
    """
    if not folder.is_dir():
        raise TraceFileError(f"{folder}: is not a folder of reference runs")
    if is_table(folder):
        return read_table(folder, only)
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
    results = _read_results(folder, flows, parameters)
    missing = sorted(set(parameters) - set(results))
    if missing:
        raise TraceFileError(f"{folder}: has no results of variant {', '.join(missing)}")
    return Reference(folder.name, network, flows, paths, parameters, results)


def _read_paths(path: Path, flows: tuple[FlowRecord, ...]) -> tuple[FlowPaths, ...]:
    rows = rows_of(path, "src dst data_path ack_path".split())
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


def _read_results(
    folder: Path, flows: tuple[FlowRecord, ...], parameters: dict[str, Parameters]
) -> dict[str, Results]:
    fct_path, port_path = folder / "fct.csv", folder / "ports.csv"
    by_flow: dict[str, list[dict[str, str]]] = defaultdict(list)
    for row in rows_of(
        fct_path, "variant src size_bytes start_ns fct_ns ecn_marked_pkts rx_pkts".split()
    ):
        by_flow[row["variant"]].append(row)
    by_port: dict[str, list[dict[str, str]]] = defaultdict(list)
    for row in rows_of(port_path, "variant peer max_egress_bytes dequeued_pkts pause_sent".split()):
        by_port[row["variant"]].append(row)
    results = {}
    for variant in parameters.keys() & by_flow.keys():
        rows, ports = by_flow[variant], by_port[variant]
        if len(rows) != len(flows):
            raise TraceFileError(
                f"{fct_path}: {len(rows)} flows of {variant}, but flow.txt has {len(flows)}"
            )
        fct_ns = [number_in(fct_path, row, "fct_ns") for row in rows if row["fct_ns"]]
        queues = [number_in(port_path, port, "max_egress_bytes") for port in ports]
        results[variant] = Results(
            flows_done=len(fct_ns),
            mean_fct_ns=sum(fct_ns) / len(fct_ns) if fct_ns else 0.0,
            max_fct_ns=max(fct_ns, default=0.0),
            goodput_gbps=0.0
            if len(fct_ns) == len(rows)
            else _goodput_gbps(fct_path, port_path, rows, ports, parameters[variant]),
            pause_frames=sum(number_in(port_path, port, "pause_sent") for port in ports),
            max_queue_bytes=max(queues, default=0.0),
            marked_packets=sum(number_in(fct_path, row, "ecn_marked_pkts") for row in rows),
        )
    return results


def _goodput_gbps(
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
    acks = {port["peer"]: number_in(port_path, port, "dequeued_pkts") for port in ports}
    rates = []
    for row in rows:
        packets, src = number_in(fct_path, row, "rx_pkts"), row["src"]
        if sources.count(src) == 1 and src not in receivers and src in acks:
            packets += _COUNTER_WRAPS * max(0, round((acks[src] - packets) / _COUNTER_WRAPS))
        size = min(packets * parameters.payload_bytes, number_in(fct_path, row, "size_bytes"))
        start_ps = number_in(fct_path, row, "start_ns") * PS_PER_NS
        duration_s = (parameters.stop_ps - start_ps) / PS_PER_S
        rates.append(8 * size / duration_s / 1e9 if duration_s > 0 else 0.0)
    return sum(rates) / len(rates)
