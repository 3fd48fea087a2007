"""Reader of topology files in the format of the HPCC simulator and its descendants.

    nodes switches links
    switch ids
    src dst rate delay loss        (one line a cable)

Blank lines are skipped, and so is what follows the last cable: the files shipped with HPCC carry
notes there. Switch ids may lie anywhere among the node ids; all other nodes are hosts.
"""

from __future__ import annotations

import re
from fractions import Fraction
from pathlib import Path

from roce_gym.config import MAX_RATE_GBPS, MAX_VALUE, MIN_RATE_GBPS
from roce_gym.errors import ConfigError
from roce_gym.topology.graph import Network, network_from_cables
from roce_gym.topology.lines import DECIMAL, MAX_TOKEN, LineReader
from roce_gym.units import PS_PER_MS, PS_PER_NS, PS_PER_S, PS_PER_US, gbps_to_bps, ns_to_ps

_RATE = re.compile(rf"({DECIMAL})([kKMGT]?)(i?)([bB])(?:ps|/s)")
_DELAY = re.compile(rf"({DECIMAL})(ps|ns|us|ms|s)")
_POWER = {"": 0, "k": 1, "K": 1, "M": 2, "G": 3, "T": 4}
_TIME_UNIT = {"ps": 1, "ns": PS_PER_NS, "us": PS_PER_US, "ms": PS_PER_MS, "s": PS_PER_S}

_MIN_RATE_BPS, _MAX_RATE_BPS = gbps_to_bps(MIN_RATE_GBPS), gbps_to_bps(MAX_RATE_GBPS)
_MAX_DELAY_PS = ns_to_ps(MAX_VALUE)


def parse_rate_bps(text: str) -> int:
    """A rate such as `100Gbps`, `25Gb/s`, `40000Mbps` or `12.5GB/s`, in bits per second.

    Prefixes are decimal, with `i` binary (`Gib/s`); `B` is a byte. Exact, then rounded to a whole
    bit per second.

    Raises:
        ConfigError: not of this form, or out of range.
    """
    match = _RATE.fullmatch(text) if len(text) <= MAX_TOKEN else None
    if match is None or (match[3] and not match[2]):
        raise ConfigError(f"rate = {text[:MAX_TOKEN]!r} is not a rate; write it as 100Gbps")
    scale: int = (1024 if match[3] else 1000) ** _POWER[match[2]] * (8 if match[4] == "B" else 1)
    rate_bps = round(Fraction(match[1]) * scale)
    if not _MIN_RATE_BPS <= rate_bps <= _MAX_RATE_BPS:
        raise ConfigError(
            f"rate = {text!r} is not allowed; allowed: "
            f"{MIN_RATE_GBPS:g}Gbps … {MAX_RATE_GBPS:g}Gbps"
        )
    return rate_bps


def parse_delay_ps(text: str) -> int:
    """A delay such as `1000ns`, `0.001ms` or `1us`, in picoseconds: exact, then rounded.

    Raises:
        ConfigError: not of this form, or out of range.
    """
    match = _DELAY.fullmatch(text) if len(text) <= MAX_TOKEN else None
    if match is None:
        raise ConfigError(f"delay = {text[:MAX_TOKEN]!r} is not a delay; write it as 1000ns")
    delay_ps = round(Fraction(match[1]) * _TIME_UNIT[match[2]])
    if not 0 <= delay_ps <= _MAX_DELAY_PS:
        raise ConfigError(
            f"delay = {text!r} is not allowed; allowed: 0s … {_MAX_DELAY_PS // PS_PER_S}s"
        )
    return delay_ps


def read_hpcc_topology(path: str | Path) -> Network:
    """Reads a topology file.

    Hosts become nodes `0 … num_hosts - 1` by ascending file id, then come the switches by ascending
    file id; `node_label` keeps the file ids. Cables keep their order and direction.

    Raises:
        TraceFileError: names file, line and value.
    """
    reader = LineReader(path)
    num_nodes, num_switches, num_cables = _read_counts(reader)
    switches = _read_switches(reader, num_nodes, num_switches)
    cables = [_read_cable(reader, num_nodes) for _ in range(num_cables)]
    labels = [i for i in range(num_nodes) if i not in switches] + sorted(switches)
    node = {label: index for index, label in enumerate(labels)}
    return network_from_cables(
        num_hosts=num_nodes - num_switches,
        num_switches=num_switches,
        ends=[(node[src], node[dst]) for src, dst, *_ in cables],
        rate_bps=[cable[2] for cable in cables],
        delay_ps=[cable[3] for cable in cables],
        loss=[cable[4] for cable in cables],
        node_label=labels,
    )


def _read_counts(reader: LineReader) -> tuple[int, int, int]:
    """Nodes, switches, cables; checked against the file's length before anyone trusts them."""
    nodes, switches, links = reader.take("nodes switches links")
    left = reader.num_left
    num_cables = reader.whole("links", links, 1, left, f" (lines that follow: {left})")
    num_nodes = reader.whole("nodes", nodes, 2, 2**31 - 1)
    num_switches = reader.whole("switches", switches, 1, num_nodes)
    num_hosts = num_nodes - num_switches
    if num_hosts > num_cables:
        raise reader.fault(
            f"nodes = {num_nodes} leaves {num_hosts} hosts beside {num_switches} switches, but "
            f"links = {num_cables}; each host needs one"
        )
    return num_nodes, num_switches, num_cables


def _read_switches(reader: LineReader, num_nodes: int, num_switches: int) -> set[int]:
    switches: set[int] = set()
    for text in reader.take("switch ids", num_switches):
        switch = reader.whole("switch id", text, 0, num_nodes - 1)
        if switch in switches:
            raise reader.fault(f"switch id {switch} is listed twice")
        switches.add(switch)
    return switches


def _read_cable(reader: LineReader, num_nodes: int) -> tuple[int, int, int, int, float]:
    """Ends as file ids, bits per second, picoseconds, probability."""
    src_text, dst_text, rate_text, delay_text, loss_text = reader.take("src dst rate delay loss")
    src = reader.whole("src", src_text, 0, num_nodes - 1)
    dst = reader.whole("dst", dst_text, 0, num_nodes - 1)
    if src == dst:
        raise reader.fault(f"a link from node {src} to itself")
    try:
        rate_bps, delay_ps = parse_rate_bps(rate_text), parse_delay_ps(delay_text)
    except ConfigError as error:
        raise reader.fault(str(error)) from None
    return src, dst, rate_bps, delay_ps, float(reader.decimal("loss", loss_text, 0, 1))
