"""Counters of one interval, as switches and NICs would report them.

The core counts from time 0; an :class:`Interval` holds differences. Arrays are fresh copies, with
classes in the order of `Scenario.classes`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from roce_gym.latency import Latencies
from roce_gym.sim import types as t
from roce_gym.sim.readout import PORT_ROWS, PORT_TOTALS, QP_ROWS, QP_TOTALS
from roce_gym.topology.graph import Network

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
ReadOut = Callable[[Ints, Ints, Ints, Floats], Any]

_PORT_TOTALS, _QP_TOTALS = len(PORT_TOTALS), len(QP_TOTALS)


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
        failed_qps: queue pairs that have passed their retry limit, since time 0.
        unreachable_qps: queue pairs to whose far end no route leads, at the end.
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
    failed_qps: int
    unreachable_qps: int
    events: int
    latency: Latencies | None = None


class PortSums(NamedTuple):
    """Over all ports of Ethernet switches; shape (C,), int64, each.

    Attributes:
        sent_packets, marked_packets: by these ports.
        queue_max_bytes: highest of their queues during the interval.
        pause_frames: sent by them.
        dropped_packets: of what they received.
    """

    sent_packets: Ints
    marked_packets: Ints
    queue_max_bytes: Ints
    pause_frames: Ints
    dropped_packets: Ints


def port_sums(interval: Interval, network: Network) -> PortSums:
    """Sums that observation, reward and `info` share: found once and kept with the interval."""
    known = vars(interval).get("_port_sums")
    if known is not None and known[0] is network:
        sums: PortSums = known[1]
        return sums
    out, into = network.from_switch, network.into_switch
    sums = PortSums(
        sent_packets=total(interval.tx_packets, out),
        marked_packets=total(interval.ecn_marked_packets, out),
        queue_max_bytes=highest(interval.queue_max_bytes, out),
        pause_frames=total(interval.pause_frames, into),
        dropped_packets=total(interval.dropped_packets, into),
    )
    vars(interval)["_port_sums"] = network, sums
    return sums


def total(values: NDArray[Any], links: NDArray[np.intp]) -> NDArray[Any]:
    """Sum over some links; as `values[links].sum(axis=0)`, without the detours."""
    sums: NDArray[Any] = np.add.reduce(values.take(links, axis=0))
    return sums


def highest(values: NDArray[Any], links: NDArray[np.intp]) -> NDArray[Any]:
    """Maximum over some links, likewise."""
    most: NDArray[Any] = np.maximum.reduce(values.take(links, axis=0))
    return most


_WATCHDOG = {
    "watchdog_storms": "storms",
    "watchdog_restored": "restored",
    "watchdog_dropped_packets": "dropped",
}
"""Counters of `sim.types.WATCHDOG` by the names that they have in :class:`Interval`."""


class _Reading(NamedTuple):
    """Counters from time 0, and at a time; None: there are no such things to count.

    Attributes:
        ports, qps: see :mod:`roce_gym.sim.readout`.
        alpha: shape (Q,), float64.
        watchdog: by name in :class:`Interval`, shape (L, C).
        latency: counts and sums, see :class:`Latencies`.
    """

    now_ps: int
    events: int
    ports: Ints
    qps: Ints
    alpha: Floats
    lost_packets: Ints
    job_busy_ps: Ints
    watchdog: dict[str, Ints] | None
    latency: tuple[Ints, Ints] | None


class Meter:
    """Reads counters and turns them into differences."""

    def __init__(self, num_classes: int, columns: tuple[int, ...]) -> None:
        """Takes the number of classes with class 0, and each scenario class's column."""
        self._num_classes = num_classes
        self._columns = np.array(columns, np.int64)
        self._before: _Reading | None = None

    def reset(self, state: t.State, read_out: ReadOut) -> None:
        """Starts an interval now; see :meth:`close`."""
        self._before = self._read(state, read_out)
        state.latency_total["max_ps"] = 0

    def _read(self, state: t.State, read_out: ReadOut) -> _Reading:
        """Counters as they are now; peaks begin anew."""
        core: Any = state.core[0]
        links, num_qps = len(state.queue) // self._num_classes, len(state.qp)
        ports = np.empty((len(PORT_ROWS), links, len(self._columns)), np.int64)
        qps, alpha = np.empty((len(QP_ROWS), num_qps), np.int64), np.zeros(num_qps)
        read_out(self._columns, ports, qps, alpha)
        return _Reading(
            now_ps=int(core["now_ps"]),
            events=int(core["events"]),
            ports=ports,
            qps=qps,
            alpha=alpha,
            lost_packets=state.link_losses.copy(),
            job_busy_ps=state.job["busy_ps"].copy(),
            watchdog=self._watchdog(state) if len(state.watchdog) else None,
            latency=_latency(state) if len(state.latency) else None,
        )

    def _watchdog(self, state: t.State) -> dict[str, Ints]:
        rows = state.watchdog.reshape(-1, self._num_classes)[:, self._columns]
        return {name: rows[field].astype(np.int64) for name, field in _WATCHDOG.items()}

    def close(
        self,
        state: t.State,
        read_out: ReadOut,
        log: NDArray[Any],
        deadlock: tuple[tuple[int, int, int], ...] = (),
    ) -> Interval:
        """Ends the interval, starts the next one. PRECONDITION: :meth:`reset` was called before.

        Args:
            state: now.
            read_out: calls :func:`roce_gym.sim.readout.read_out` with the state.
            log: what the simulator logged in the interval.
            deadlock: at the end.
        """
        before, after = self._before, self._read(state, read_out)
        assert before is not None
        totals = after.ports[:_PORT_TOTALS] - before.ports[:_PORT_TOTALS]
        ports = dict(zip(PORT_ROWS, (*totals, *after.ports[_PORT_TOTALS:]), strict=True))
        qps_totals = after.qps[:_QP_TOTALS] - before.qps[:_QP_TOTALS]
        qps = dict(zip(QP_ROWS, (*qps_totals, *after.qps[_QP_TOTALS:]), strict=True))
        if after.watchdog is None or before.watchdog is None:
            ports |= {name: np.zeros(totals.shape[1:], np.int64) for name in _WATCHDOG}
        else:
            ports |= {name: after.watchdog[name] - before.watchdog[name] for name in _WATCHDOG}
        latency = None
        if after.latency is not None and before.latency is not None:
            pairs = zip(after.latency, before.latency, strict=True)
            counts, sums = (now - then for now, then in pairs)
            latency = Latencies(counts, sums, state.latency_total["max_ps"].reshape(-1, 2).copy())
            state.latency_total["max_ps"] = 0
        core: Any = state.core[0]
        begun, of_graphs = state.job["begun_ps"], log["job"] >= len(state.job)
        self._before = after
        return Interval(
            start_ps=before.now_ps,
            end_ps=after.now_ps,
            queue_mean_bytes=ports.pop("area") * (1024.0 / max(1, after.now_ps - before.now_ps)),
            **ports,
            **qps,
            alpha=after.alpha,
            lost_packets=after.lost_packets - before.lost_packets,
            deadlock=deadlock,
            job_busy_ps=after.job_busy_ps - before.job_busy_ps,
            job_round=state.job["round"].copy(),
            job_begun_ps=np.where(begun == t.FOREVER, -1, begun),
            completions=log[~of_graphs],
            collectives=_collectives(state, log[of_graphs]),
            failed_qps=int(core["failed_qps"]),
            unreachable_qps=int(core["unreachable_qps"]),
            events=after.events - before.events,
            latency=latency,
        )


def _latency(state: t.State) -> tuple[Ints, Ints]:
    counts = state.latency.reshape(-1, 2, int(t.LATENCY_BUCKETS)).copy()
    return counts, state.latency_total["sum_ps"].reshape(-1, 2).copy()


def _collectives(state: t.State, log: NDArray[Any]) -> NDArray[Any]:
    """Entries of calls, with the numbers that calls have in their jobs."""
    out = np.zeros(len(log), t.COLLECTIVE)
    if not len(log):
        return out
    call = state.call[log["job"] - len(state.job)]
    out["job"], out["call"], out["round"] = call["job"], call["index"], log["index"]
    for name in ("start_ps", "end_ps", "bytes"):
        out[name] = log[name]
    return out
