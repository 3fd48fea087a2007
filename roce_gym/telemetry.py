"""Counters of one interval, as switches and NICs would report them.

The core counts from time 0; an :class:`Interval` holds differences. Arrays are fresh copies, with
classes in the order of `Scenario.classes`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roce_gym.sim import types as t

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Interval:
    """What happened between two instants.

    Shapes: L directed links, C classes, Q queue pairs, J jobs. `[l, c]` concerns the sending end
    of link `l` unless stated otherwise.

    Attributes:
        start_ps, end_ps: the interval.
        tx_bytes, tx_packets: shape (L, C), int64, started to be sent (frames, without preamble).
        ecn_marked_packets: shape (L, C), int64.
        queue_bytes: shape (L, C), int64, at the end.
        queue_max_bytes: shape (L, C), int64, highest during the interval.
        queue_mean_bytes: shape (L, C), float64, time average.
        pause_frames, resume_frames: shape (L, C), int64, sent by the receiving end towards `l`.
        paused_ps: shape (L, C), int64, time the sending end was paused.
        dropped_packets: shape (L, C), int64, refused by the switch at the receiving end.
        ingress_bytes: shape (L, C), int64, buffered by the receiving end, headroom included.
        headroom_bytes: shape (L, C), int64, thereof in headroom.
        lost_packets: shape (L,), int64, by gray failure, on a link that is down, or without a route
            at its end.
        acked_bytes: shape (Q,), int64, acknowledged to the sender; negative where go-back-0 gave
            up more than that.
        delivered_bytes: shape (Q,), int64, arrived in order; likewise.
        outstanding_bytes: shape (Q,), int64, posted and not acknowledged, at the end.
        cnps: shape (Q,), int64, notifications taken in by the sender.
        nacks: shape (Q,), int64, sent by the receiver.
        rate_bps: shape (Q,), int64, at the end.
        alpha: shape (Q,), float64, at the end.
        job_busy_ps: shape (J,), int64, time in completed rounds, counted when they complete.
        job_round: shape (J,), int64, round under way or next.
        job_begun_ps: shape (J,), int64, when the round under way began, -1 between rounds.
        completions: structured, fields of `sim.types.COMPLETION`: rounds, bursts, flows that ended.
        failed_qps: queue pairs that have passed their retry limit, since time 0.
        unreachable_qps: queue pairs to whose far end no route leads, at the end.
        events: events handled.
    """

    start_ps: int
    end_ps: int
    tx_bytes: Ints
    tx_packets: Ints
    ecn_marked_packets: Ints
    queue_bytes: Ints
    queue_max_bytes: Ints
    queue_mean_bytes: Floats
    pause_frames: Ints
    resume_frames: Ints
    paused_ps: Ints
    dropped_packets: Ints
    ingress_bytes: Ints
    headroom_bytes: Ints
    lost_packets: Ints
    acked_bytes: Ints
    delivered_bytes: Ints
    outstanding_bytes: Ints
    cnps: Ints
    nacks: Ints
    rate_bps: Ints
    alpha: Floats
    job_busy_ps: Ints
    job_round: Ints
    job_begun_ps: Ints
    completions: NDArray[Any]
    failed_qps: int
    unreachable_qps: int
    events: int


class Meter:
    """Reads counters and turns them into differences."""

    def __init__(self, num_classes: int, columns: tuple[int, ...]) -> None:
        """Takes the number of classes with class 0, and each scenario class's column."""
        self._num_classes = num_classes
        in_order = columns == tuple(range(columns[0], columns[0] + len(columns)))
        self._columns: Any = slice(columns[0], None) if in_order else list(columns)
        self._before: dict[str, Any] = {}

    def reset(self, state: t.State) -> None:
        """Starts an interval now."""
        self._before = self._read(state)
        state.queue["max_bytes"] = state.queue["bytes"]

    def _grid(self, records: NDArray[Any], field: str) -> Ints:
        grid = records[field].reshape(-1, self._num_classes)[:, self._columns]
        return grid.astype(np.int64)

    def _read(self, state: t.State) -> dict[str, Any]:
        now = int(state.core[0]["now_ps"])
        queue, ingress = state.queue, state.ingress
        since = self._grid(ingress, "paused_since_ps")
        held = self._grid(queue, "bytes") * (now - self._grid(queue, "changed_ps")) >> 10
        return {
            "now_ps": now,
            "tx_bytes": self._grid(queue, "tx_bytes"),
            "tx_packets": self._grid(queue, "tx_packets"),
            "ecn_marked_packets": self._grid(queue, "marks"),
            "area": self._grid(queue, "area") + held,
            "pause_frames": self._grid(ingress, "pauses"),
            "resume_frames": self._grid(ingress, "resumes"),
            "paused_ps": self._grid(ingress, "paused_ps") + np.maximum(now - since, 0),
            "dropped_packets": self._grid(ingress, "drops"),
            "lost_packets": state.link_losses.copy(),
            "acked_bytes": state.sender["snd_una"].copy(),
            "delivered_bytes": state.receiver["expected"].copy(),
            "cnps": state.qp["cnps"].copy(),
            "nacks": state.receiver["nacks"].astype(np.int64),
            "job_busy_ps": state.job["busy_ps"].copy(),
            "events": int(state.core[0]["events"]),
        }

    def close(self, state: t.State, completions: NDArray[Any]) -> Interval:
        """Ends the interval, starts the next one."""
        before, after = self._before, self._read(state)
        difference = {name: after[name] - before[name] for name in after if name != "now_ps"}
        length = max(1, after["now_ps"] - before["now_ps"])
        area = difference.pop("area")
        begun = state.job["begun_ps"]
        interval = Interval(
            start_ps=before["now_ps"],
            end_ps=after["now_ps"],
            queue_bytes=self._grid(state.queue, "bytes"),
            queue_max_bytes=self._grid(state.queue, "max_bytes"),
            queue_mean_bytes=area * (1024.0 / length),
            ingress_bytes=self._grid(state.ingress, "bytes")
            + self._grid(state.ingress, "headroom_used"),
            headroom_bytes=self._grid(state.ingress, "headroom_used"),
            outstanding_bytes=state.qp["posted"] - state.sender["snd_una"],
            rate_bps=state.sender["rate_bps"].copy(),
            alpha=state.dcqcn["alpha"].copy(),
            job_round=state.job["round"].copy(),
            job_begun_ps=np.where(begun == t.FOREVER, -1, begun),
            completions=completions,
            failed_qps=int(state.core[0]["failed_qps"]),
            unreachable_qps=int(state.core[0]["unreachable_qps"]),
            **difference,
        )
        self._before = after
        state.queue["max_bytes"] = state.queue["bytes"]
        return interval
