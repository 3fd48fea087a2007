"""What there is to count: names, meanings, and who has it.

Sources: SAI headers (`saiport.h`, `saiqueue.h`, `saibuffer.h`), SONiC's `pfcwdorch` for the
watchdog, the Linux kernel's mlx5 documentation (`counters.rst`) for `ethtool -S`, and NVIDIA's list
of RDMA hardware counters.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["counter", "gauge"]
Owner = Literal["switch", "nic"]


@dataclass(frozen=True)
class Column:
    """One counter of a port.

    Attributes:
        name: as the device gives it. A priority that is not in the name stands behind a colon.
        kind: counters only grow, from the start of the run on; gauges are of one moment, watermarks
            of the time since the sample before.
        owner: who has it; others leave the place empty.
        help: what it is, in one line.
        field: key of the values in :class:`Sampler`.
        priority: of the traffic class; None: of the whole port.
    """

    name: str
    kind: Kind
    owner: Owner
    help: str
    field: str
    priority: int | None = None

    @property
    def metric(self) -> str:
        """The name without what stands behind the colon."""
        return self.name.partition(":")[0]

    @property
    def queue(self) -> str | None:
        """What stands behind the colon."""
        return self.name.partition(":")[2] or None


_Row = tuple[str, Kind, str, str]
_PG = "SAI_INGRESS_PRIORITY_GROUP_STAT"

_QUEUE: tuple[_Row, ...] = (
    ("SAI_QUEUE_STAT_PACKETS:{p}", "counter", "Packets sent.", "tx_packets"),
    ("SAI_QUEUE_STAT_BYTES:{p}", "counter", "Bytes sent, without preamble and gap.", "tx_bytes"),
    (
        "SAI_QUEUE_STAT_WRED_ECN_MARKED_PACKETS:{p}",
        "counter",
        "Packets marked with congestion experienced.",
        "ecn_marked_packets",
    ),
    (
        "SAI_QUEUE_STAT_CURR_OCCUPANCY_BYTES:{p}",
        "gauge",
        "Bytes waiting in the egress queue.",
        "queue_bytes",
    ),
    (
        "SAI_QUEUE_STAT_SHARED_WATERMARK_BYTES:{p}",
        "gauge",
        "Most bytes that waited in the egress queue since the last sample.",
        "queue_max_bytes",
    ),
    (
        "SAI_QUEUE_STAT_DROPPED_PACKETS:{p}",
        "counter",
        "Packets that the limit of the egress queue kept out.",
        "egress_dropped_packets",
    ),
    (
        f"{_PG}_DROPPED_PACKETS:{{p}}",
        "counter",
        "Packets that arrived and found no room in the buffer.",
        "dropped_packets",
    ),
    (
        f"{_PG}_SHARED_WATERMARK_BYTES:{{p}}",
        "gauge",
        "Most bytes buffered since the last sample, headroom not counted.",
        "ingress_max_bytes",
    ),
    (
        f"{_PG}_XOFF_ROOM_WATERMARK_BYTES:{{p}}",
        "gauge",
        "Most bytes of headroom in use since the last sample.",
        "headroom_max_bytes",
    ),
    (
        "SAI_BUFFER_PROFILE_ATTR_XOFF_TH:{p}",
        "gauge",
        "Headroom of the priority group in bytes, as configured.",
        "headroom_size_bytes",
    ),
    ("SAI_PORT_STAT_PFC_{p}_TX_PKTS", "counter", "PFC frames sent.", "pfc_sent"),
    ("SAI_PORT_STAT_PFC_{p}_RX_PKTS", "counter", "PFC frames received.", "pfc_received"),
    (
        "SAI_PORT_STAT_PFC_{p}_RX_PAUSE_DURATION_US",
        "counter",
        "Time the port was paused, in microseconds.",
        "paused_us",
    ),
)

_WATCHDOG: tuple[_Row, ...] = (
    (
        "PFC_WD_QUEUE_STATS_DEADLOCK_DETECTED:{p}",
        "counter",
        "Storms that the watchdog found.",
        "watchdog_storms",
    ),
    (
        "PFC_WD_QUEUE_STATS_DEADLOCK_RESTORED:{p}",
        "counter",
        "Storms that the watchdog found to be over.",
        "watchdog_restored",
    ),
    (
        "PFC_WD_QUEUE_STATS_TX_DROPPED_PACKETS:{p}",
        "counter",
        "Packets that the watchdog dropped.",
        "watchdog_dropped_packets",
    ),
)

_SWITCH: tuple[_Row, ...] = (
    ("SAI_PORT_STAT_IF_IN_OCTETS", "counter", "Bytes received, data and ACKs.", "rx_octets"),
    ("SAI_PORT_STAT_IF_IN_UCAST_PKTS", "counter", "Packets received.", "rx_packets"),
    (
        "SAI_PORT_STAT_IF_IN_ERRORS",
        "counter",
        "Packets received with a wrong checksum, and discarded.",
        "rx_errors",
    ),
    (
        "SAI_BUFFER_POOL_STAT_CURR_OCCUPANCY_BYTES",
        "gauge",
        "Bytes in the buffer of the switch, headroom included.",
        "buffer_bytes",
    ),
    ("SAI_BUFFER_POOL_ATTR_SIZE", "gauge", "Bytes of the switch's buffer.", "buffer_size_bytes"),
    (
        "SAI_BUFFER_POOL_ATTR_SHARED_SIZE",
        "gauge",
        "Bytes of it that are neither headroom nor reserved, as configured at the start.",
        "shared_size_bytes",
    ),
)

_NIC_PRIORITY: tuple[_Row, ...] = (
    ("tx_prio{p}_bytes", "counter", "Bytes sent, without preamble and gap.", "tx_bytes"),
    ("tx_prio{p}_packets", "counter", "Packets sent.", "tx_packets"),
    ("rx_prio{p}_bytes", "counter", "Bytes received, without preamble and gap.", "rx_bytes"),
    ("rx_prio{p}_packets", "counter", "Packets received.", "rx_prio_packets"),
    ("tx_prio{p}_pause", "counter", "Pause frames sent.", "pauses_sent"),
    ("rx_prio{p}_pause", "counter", "Pause frames received.", "pauses_received"),
    (
        "rx_prio{p}_pause_duration",
        "counter",
        "Time the port was paused, in microseconds.",
        "paused_us",
    ),
)

_NIC: tuple[_Row, ...] = (
    (
        "rx_crc_errors_phy",
        "counter",
        "Packets received with a wrong checksum, and discarded.",
        "rx_errors",
    ),
    ("rp_cnp_handled", "counter", "CNPs that made a sender slow down.", "rp_cnp_handled"),
    (
        "packet_seq_err",
        "counter",
        "NAKs for packets out of sequence, counted when the receiver sends them.",
        "packet_seq_err",
    ),
)


def columns_of(priorities: list[int], has_watchdog: bool) -> list[Column]:
    """All columns of a fabric with classes of these priorities, in the order of a file."""
    out: list[Column] = []
    queue = (*_QUEUE, *_WATCHDOG) if has_watchdog else _QUEUE
    for owner, by_priority, by_port in (
        ("switch", queue, _SWITCH),
        ("nic", _NIC_PRIORITY, _NIC),
    ):
        for priority in sorted(priorities):
            out += [
                Column(name.format(p=priority), kind, owner, text, field, priority)  # type: ignore[arg-type]
                for name, kind, text, field in by_priority
            ]
        out += [Column(name, kind, owner, text, field) for name, kind, text, field in by_port]  # type: ignore[arg-type]
    return out
