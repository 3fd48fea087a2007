"""A run as a CSV file: one row for each control interval.

Columns are `class/<class>/<counter>` and `tenant/<tenant>/<counter>`. Counters are called as the
field calls them: SAI statistics of switches, summed over ports (highest port for occupancies and
watermarks), `ethtool -S` counters of NICs and RDMA hardware counters, summed over hosts. All are
differences over the interval, except occupancies and rates, which are those at its end.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, TextIO

import numpy as np

from roce_gym.cli.output_file import OutputFile
from roce_gym.config import Scenario
from roce_gym.telemetry import Interval
from roce_gym.topology.graph import Network
from roce_gym.units import PS_PER_US
from roce_gym.workload.plan import Plan

_PRIORITY_GROUP = "SAI_INGRESS_PRIORITY_GROUP_STAT"


class Trace:
    """Writes to a hidden file beside the one wanted, which appears whole when the run is over."""

    def __init__(
        self, path: Path, force: bool, scenario: Scenario, network: Network, plan: Plan
    ) -> None:
        """Opens the file.

        Raises:
            ConfigError: it exists and may not be replaced, or cannot be written.
        """
        self._scenario = scenario
        self._from_switch = network.from_switch
        self._into_switch = network.into_switch
        self._host_link = network.nic_link
        # Queue pairs on NVLink are not seen by any NIC: they belong to nobody here.
        self._tenant_of_qp = np.array(
            [-1 if pair.is_local else pair.tenant for pair in plan.qps], np.int64
        )
        self._tenant_of_job = np.array([job.tenant for job in plan.jobs], np.int64)
        self._output = OutputFile(path, "--trace", force)
        self._file: TextIO = self._output.partial.open("w", encoding="utf-8", newline="")
        self._writer: Any = csv.writer(self._file, lineterminator="\n")
        self._has_head = False

    def __enter__(self) -> Trace:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Puts the file in its place, or removes it if something went wrong."""
        self._output.close(self._file.close, kind)

    def add(self, interval: Interval) -> None:
        """Writes the next row.

        Raises:
            ConfigError: the disk is full, or the like.
        """
        cells = dict(self._cells(interval))
        try:
            if not self._has_head:
                self._writer.writerow(cells)
                self._has_head = True
            self._writer.writerow(cells.values())
        except OSError as error:
            raise self._output.unwritable(error) from None

    def _cells(self, interval: Interval) -> Iterator[tuple[str, Any]]:
        yield "time_us", interval.end_ps / PS_PER_US
        yield "interval_us", (interval.end_ps - interval.start_ps) / PS_PER_US
        yield "lost_packets", int(interval.lost_packets.sum())
        for column, chosen in enumerate(self._scenario.classes):
            for name, value in self._of_class(interval, column, chosen.priority):
                yield f"class/{chosen.name}/{name}", value
        for index, tenant in enumerate(self._scenario.tenants):
            for name, value in self._of_tenant(interval, index):
                yield f"tenant/{tenant.name}/{name}", value

    def _of_class(
        self, interval: Interval, column: int, priority: int
    ) -> Iterator[tuple[str, int | float | str]]:
        out, into, hosts = self._from_switch, self._into_switch, self._host_link

        def at(values: Any, links: Any) -> Any:
            return values[links, column]

        yield "SAI_QUEUE_STAT_PACKETS", int(at(interval.tx_packets, out).sum())
        yield "SAI_QUEUE_STAT_BYTES", int(at(interval.tx_bytes, out).sum())
        marked = int(at(interval.ecn_marked_packets, out).sum())
        yield "SAI_QUEUE_STAT_WRED_ECN_MARKED_PACKETS", marked
        yield "SAI_QUEUE_STAT_CURR_OCCUPANCY_BYTES", int(at(interval.queue_bytes, out).max())
        yield "SAI_QUEUE_STAT_SHARED_WATERMARK_BYTES", int(at(interval.queue_max_bytes, out).max())
        kept_out = at(interval.egress_dropped_packets, out)
        yield "SAI_QUEUE_STAT_DROPPED_PACKETS", int(kept_out.sum())
        buffered = at(interval.ingress_bytes, into)
        yield f"{_PRIORITY_GROUP}_CURR_OCCUPANCY_BYTES", int(buffered.max())
        headroom = at(interval.headroom_bytes, into)
        yield f"{_PRIORITY_GROUP}_XOFF_ROOM_CURR_OCCUPANCY_BYTES", int(headroom.max())
        dropped = at(interval.dropped_packets - interval.dropped_at_egress_packets, into)
        yield f"{_PRIORITY_GROUP}_DROPPED_PACKETS", int(dropped.sum())
        frames = interval.pause_frames + interval.resume_frames  # a resume is a frame of time 0
        yield f"SAI_PORT_STAT_PFC_{priority}_TX_PKTS", int(at(frames, into).sum())
        yield f"SAI_PORT_STAT_PFC_{priority}_RX_PKTS", int(at(frames, out).sum())
        paused_us = at(interval.paused_ps, out).sum() / PS_PER_US
        yield f"SAI_PORT_STAT_PFC_{priority}_RX_PAUSE_DURATION_US", float(paused_us)
        yield f"rx_prio{priority}_pause", int(at(interval.pause_frames, hosts).sum())
        yield (
            f"rx_prio{priority}_pause_duration",
            float(at(interval.paused_ps, hosts).sum() / PS_PER_US),
        )

    def _of_tenant(self, interval: Interval, index: int) -> Iterator[tuple[str, int | float | str]]:
        own = self._tenant_of_qp == index
        seconds_e9 = (interval.end_ps - interval.start_ps) / 1e3
        delivered = int(interval.delivered_bytes[own].sum())
        yield "delivered_bytes", delivered
        yield "goodput_gbps", 8.0 * delivered / seconds_e9
        yield "rp_cnp_handled", int(interval.cnps[own].sum())
        active = own & (interval.outstanding_bytes > 0)
        yield "active_qps", int(active.sum())
        yield (
            "rate_mean_gbps",
            float(interval.rate_bps[active].mean() / 1e9) if active.any() else "",
        )
        log = interval.completions
        log = log[self._tenant_of_job[log["job"]] == index]
        yield "completions", len(log)
        mean = (log["end_ps"] - log["start_ps"]).mean() / PS_PER_US if len(log) else ""
        yield "completion_mean_us", mean
