"""Reader of flow files in the format of the HPCC simulator and its descendants.

    count
    src dst priority dport bytes start_s       (one line a flow)

Only `count` flows are read: the files shipped with HPCC list more, and carry notes after them.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from roce_gym.config import MAX_PRIORITIES, MAX_VALUE
from roce_gym.errors import TopologyError
from roce_gym.topology.graph import Network
from roce_gym.topology.lines import LineReader
from roce_gym.units import PS_PER_S, PS_PER_US

_MAX_START_S = int(MAX_VALUE) * PS_PER_US // PS_PER_S
_MAX_BYTES = 2**50
_MAX_PORT = 65535


class FlowRecord(NamedTuple):
    """One line of a flow file.

    Attributes:
        src, dst: ids in the topology file.
        priority: as in the file; a scenario's flows run in the class of their tenant.
        dport: UDP destination port, as in the file.
        bytes: size.
        start_ps: start, exact.
        line: number of the line in the file.
    """

    src: int
    dst: int
    priority: int
    dport: int
    bytes: int
    start_ps: int
    line: int


def read_flow_file(path: str | Path, network: Network | None) -> list[FlowRecord]:
    """Reads a flow file, in file order.

    Args:
        path: the file.
        network: where the flows run; ids are its labels. None: not known, any ids will do.

    Raises:
        TraceFileError: names file, line and value; also where an end of a flow is a switch.
    """
    reader = LineReader(path)
    (text,) = reader.take("count")
    left = reader.num_left
    count = reader.whole("count", text, 0, left, f" (lines that follow: {left})")
    return [_read_flow(reader, network) for _ in range(count)]


def _read_flow(reader: LineReader, network: Network | None) -> FlowRecord:
    fields = reader.take("src dst priority dport bytes start_s")
    src_text, dst_text, priority_text, dport_text, bytes_text, start_text = fields
    src, dst = _host(reader, "src", src_text, network), _host(reader, "dst", dst_text, network)
    if src == dst:
        raise reader.fault(f"a flow from host {src} to itself")
    return FlowRecord(
        src=src,
        dst=dst,
        priority=reader.whole("priority", priority_text, 0, MAX_PRIORITIES - 1),
        dport=reader.whole("dport", dport_text, 0, _MAX_PORT),
        bytes=reader.whole("bytes", bytes_text, 1, _MAX_BYTES),
        start_ps=round(reader.decimal("start_s", start_text, 0, _MAX_START_S) * PS_PER_S),
        line=reader.line,
    )


def _host(reader: LineReader, name: str, text: str, network: Network | None) -> int:
    label = reader.whole(name, text, 0, 2**31 - 1)
    if network is None:
        return label
    try:
        network.host_of_label(label)
    except TopologyError as error:
        raise reader.fault(f"{name}: {error}") from None
    return label
