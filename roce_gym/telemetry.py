"""Counters of one interval, as switches and NICs would report them.

The core counts from time 0; an :class:`Interval` holds differences. Arrays are fresh copies, with
classes in the order of `Scenario.classes`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roce_gym.latency import Latencies
from roce_gym.sim import types as t
from roce_gym.sim.cc.dcqcn import DCQCN
from roce_gym.sim.cc.records import qp_records
from roce_gym.sim.cc.registry import CODES

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

MARK = np.dtype(
    [
        ("job", np.int64),
        ("mark", np.int64),  # among the MARK operations of its job's graph
        ("round", np.int64),
        ("time_ps", np.int64),
    ],
    align=True,
)
"""When a MARK operation of a graph was done."""


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
        dropped_at_egress_packets: shape (L, C), int64, thereof because of the bound of the egress
            queue that they were to join.
        egress_dropped_packets: shape (L, C), int64, the same packets at the sending end of that
            queue.
        ingress_bytes: shape (L, C), int64, buffered by the receiving end, headroom included.
        headroom_bytes: shape (L, C), int64, thereof in headroom.
        ingress_max_bytes: shape (L, C), int64, most that the receiving end buffered at once during
            the interval, headroom not included; 0 if never more than its reserve.
        ingress_max_limit_bytes: shape (L, C), int64, what it might have buffered then before it
            took to headroom, reserve and threshold; 0 if it never was more than the reserve.
        headroom_max_bytes: shape (L, C), int64, most in headroom during the interval.
        first_pause_ps: shape (L, C), int64, when the receiving end sent its first pause frame of
            all; -1: never.
        watchdog_storms, watchdog_restored: shape (L, C), int64, storms that the sending end's
            watchdog found and those that it found to be over.
        watchdog_dropped_packets: shape (L, C), int64, dropped by that watchdog.
        deadlock: (link, class, paused since when, ps) of ports whose sending ends wait for each
            other for ever, in a circle; empty if there is none. See :mod:`roce_gym.deadlock`.
        lost_packets: shape (L,), int64, by gray failure, on a link that is down, or without a route
            at its end.
        acked_bytes: shape (Q,), int64, acknowledged to the sender; negative where go-back-0 gave
            up more than that.
        delivered_bytes: shape (Q,), int64, arrived in order; likewise.
        outstanding_bytes: shape (Q,), int64, posted and not acknowledged, at the end.
        cnps: shape (Q,), int64, notifications taken in by the sender.
        nacks: shape (Q,), int64, sent by the receiver.
        rate_bps: shape (Q,), int64, at the end.
        alpha: shape (Q,), float64, at the end; 0 where a QP has another algorithm than DCQCN.
        job_busy_ps: shape (J,), int64, time in completed rounds, counted when they complete.
        job_round: shape (J,), int64, round under way or next.
        job_begun_ps: shape (J,), int64, when the round under way began, -1 between rounds.
        completions: structured, fields of `sim.types.COMPLETION`: rounds, bursts, flows that ended.
        collectives: structured, fields of `sim.types.COLLECTIVE`: collectives of graphs that ended.
        marks: structured, fields of :data:`MARK`: what graphs marked in the interval.
        failed_qps: queue pairs that have passed their retry limit, since time 0.
        unreachable_qps: queue pairs to whose far end no route leads, at the end.
        qp_failed, qp_unreachable: shape (Q,), bool, which ones these are.
        events: events handled.
        latency: of what ended in the interval; None unless `simulator.latency_histograms`.
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
    dropped_at_egress_packets: Ints
    egress_dropped_packets: Ints
    ingress_bytes: Ints
    headroom_bytes: Ints
    ingress_max_bytes: Ints
    ingress_max_limit_bytes: Ints
    headroom_max_bytes: Ints
    first_pause_ps: Ints
    watchdog_storms: Ints
    watchdog_restored: Ints
    watchdog_dropped_packets: Ints
    deadlock: tuple[tuple[int, int, int], ...]
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
    collectives: NDArray[Any]
    marks: NDArray[Any]
    failed_qps: int
    unreachable_qps: int
    qp_failed: NDArray[np.bool_]
    qp_unreachable: NDArray[np.bool_]
    events: int
    latency: Latencies | None = None

    @property
    def all_dropped_packets(self) -> int:
        """By switches, for want of buffer and by watchdogs."""
        return int(self.dropped_packets.sum() + self.watchdog_dropped_packets.sum())


_WATCHDOG = {
    "watchdog_storms": "storms",
    "watchdog_restored": "restored",
    "watchdog_dropped_packets": "dropped",
}
"""Counters of `sim.types.WATCHDOG` by the names that they have in :class:`Interval`."""


def _alpha(state: t.State) -> Floats:
    """Of DCQCN; 0 for QPs with another algorithm."""
    has_alpha = state.cc_kind[state.qp["tenant"]] == CODES["dcqcn"]
    alpha: Floats = np.where(has_alpha, qp_records(state, DCQCN)["alpha"], 0.0)
    return alpha


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
        _clear_peaks(state)

    def _grid(self, records: NDArray[Any], field: str) -> Ints:
        return self._by_class(records[field])

    def _by_class(self, values: NDArray[Any]) -> Ints:
        return values.reshape(-1, self._num_classes)[:, self._columns].astype(np.int64)

    def _read(self, state: t.State) -> dict[str, Any]:
        now = int(state.core[0]["now_ps"])
        queue, ingress = state.queue, state.ingress
        pfc = state.pfc
        since = self._grid(pfc, "paused_since_ps")
        held = self._grid(queue, "bytes") * (now - self._grid(queue, "changed_ps")) >> 10
        return {
            "now_ps": now,
            "tx_bytes": self._grid(queue, "tx_bytes"),
            "tx_packets": self._grid(queue, "tx_packets"),
            "ecn_marked_packets": self._grid(queue, "marks"),
            "area": self._grid(queue, "area") + held,
            "pause_frames": self._grid(ingress, "pauses"),
            "resume_frames": self._grid(ingress, "resumes"),
            "paused_ps": self._grid(pfc, "paused_ps") + np.maximum(now - since, 0),
            "dropped_packets": self._grid(ingress, "drops"),
            **self._watchdog(state),
            **self._egress(state),
            "lost_packets": state.link_losses.copy(),
            "acked_bytes": state.sender["snd_una"].copy(),
            "delivered_bytes": state.receiver["expected"].copy(),
            "cnps": state.qp["cnps"].copy(),
            "nacks": state.receiver["nacks"].astype(np.int64),
            "job_busy_ps": state.job["busy_ps"].copy(),
            "events": int(state.core[0]["events"]),
            "latency_counts": state.latency.reshape(-1, 2, int(t.LATENCY_BUCKETS)).copy(),
            "latency_sum_ps": state.latency_total["sum_ps"].reshape(-1, 2).copy(),
        }

    def _watchdog(self, state: t.State) -> dict[str, Ints]:
        """Counters of watchdogs, if there are any."""
        if not len(state.watchdog):
            return {}
        return {name: self._grid(state.watchdog, field) for name, field in _WATCHDOG.items()}

    def _egress(self, state: t.State) -> dict[str, Ints]:
        """Drops by bounds of egress queues, if there are classes that may have any."""
        if state.params[0]["lossy"] == 0:
            return {}
        return {
            "dropped_at_egress_packets": self._grid(state.ingress, "drops_at_egress"),
            "egress_dropped_packets": self._by_class(state.egress_drops),
        }

    def close(
        self,
        state: t.State,
        log: NDArray[Any],
        deadlock: tuple[tuple[int, int, int], ...] = (),
        unreachable: frozenset[int] = frozenset(),
    ) -> Interval:
        """Ends the interval, starts the next one.

        Args:
            state: now.
            log: what the simulator logged in the interval.
            deadlock: at the end.
            unreachable: QPs to whose far end no route leads at the end.
        """
        before, after = self._before, self._read(state)
        difference = {name: after[name] - before[name] for name in after if name != "now_ps"}
        length = max(1, after["now_ps"] - before["now_ps"])
        area = difference.pop("area")
        counts, sums = difference.pop("latency_counts"), difference.pop("latency_sum_ps")
        longest = state.latency_total["max_ps"].reshape(-1, 2).copy()
        for name in (*_WATCHDOG, "dropped_at_egress_packets", "egress_dropped_packets"):
            if name not in difference:
                difference[name] = np.zeros(difference["pause_frames"].shape, np.int64)
        begun = state.job["begun_ps"]
        qp_unreachable = np.zeros(len(state.qp), np.bool_)
        qp_unreachable[list(unreachable)] = True
        calls = log[log["job"] >= len(state.job)]
        is_mark = calls["bytes"] == 0
        first_pause = self._grid(state.pfc, "first_pause_ps")
        interval = Interval(
            start_ps=before["now_ps"],
            end_ps=after["now_ps"],
            queue_bytes=self._grid(state.queue, "bytes"),
            queue_max_bytes=self._grid(state.queue, "max_bytes"),
            queue_mean_bytes=area * (1024.0 / length),
            ingress_bytes=self._grid(state.ingress, "bytes")
            + self._grid(state.ingress, "headroom_used"),
            headroom_bytes=self._grid(state.ingress, "headroom_used"),
            ingress_max_bytes=self._grid(state.ingress, "peak_bytes"),
            ingress_max_limit_bytes=self._grid(state.ingress, "peak_limit"),
            headroom_max_bytes=self._grid(state.ingress, "peak_headroom"),
            first_pause_ps=np.where(first_pause == t.FOREVER, -1, first_pause),
            deadlock=deadlock,
            outstanding_bytes=state.qp["posted"] - state.sender["snd_una"],
            rate_bps=state.sender["rate_bps"].copy(),
            alpha=_alpha(state),
            job_round=state.job["round"].copy(),
            job_begun_ps=np.where(begun == t.FOREVER, -1, begun),
            completions=log[log["job"] < len(state.job)],
            collectives=_collectives(state, calls[~is_mark]),
            marks=_marks(state, calls[is_mark]),
            latency=Latencies(counts, sums, longest) if len(counts) else None,
            failed_qps=int(state.core[0]["failed_qps"]),
            unreachable_qps=int(state.core[0]["unreachable_qps"]),
            qp_failed=state.sender["state"] == t.FAILED,
            qp_unreachable=qp_unreachable,
            **difference,
        )
        self._before = after
        _clear_peaks(state)
        return interval


def _collectives(state: t.State, log: NDArray[Any]) -> NDArray[Any]:
    """Entries of calls, with the numbers that calls have in their jobs."""
    out = np.zeros(len(log), t.COLLECTIVE)
    call = state.call[log["job"] - len(state.job)]
    out["job"], out["call"], out["round"] = call["job"], call["index"], log["index"]
    for name in ("start_ps", "end_ps", "bytes"):
        out[name] = log[name]
    return out


def _marks(state: t.State, log: NDArray[Any]) -> NDArray[Any]:
    """Entries of calls without bytes, which stand for MARK operations (`assembly.graphs`)."""
    out = np.zeros(len(log), MARK)
    if not len(log):
        return out
    call = state.call[log["job"] - len(state.job)]
    out["job"], out["mark"], out["round"] = call["job"], call["index"], log["index"]
    out["time_ps"] = log["end_ps"]
    return out


def _clear_peaks(state: t.State) -> None:
    """Peaks of the next interval begin with what is there now."""
    state.queue["max_bytes"] = state.queue["bytes"]
    held = state.ingress["bytes"]
    state.ingress["peak_bytes"] = np.where(held > state.ingress["reserved"], held, 0)
    state.ingress["peak_headroom"] = state.ingress["headroom_used"]
    state.latency_total["max_ps"] = 0
