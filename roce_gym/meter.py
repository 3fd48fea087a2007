"""Reads the core's counters, which count from time 0, and makes intervals of differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from roce_gym.latency import Latencies
from roce_gym.sim import types as t
from roce_gym.sim.readout import PORT_ROWS, PORT_TOTALS, QP_ROWS, QP_TOTALS
from roce_gym.telemetry import MARK, Interval

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
ReadOut = Callable[[Ints, Ints, Ints, Floats], Any]

_PORT_TOTALS, _QP_TOTALS = len(PORT_TOTALS), len(QP_TOTALS)
_WATCHDOG = {
    "watchdog_storms": "storms",
    "watchdog_restored": "restored",
    "watchdog_dropped_packets": "dropped",
}
"""Counters of `sim.types.WATCHDOG` by the names that they have in :class:`Interval`."""
_SELDOM = (*_WATCHDOG, "dropped_at_egress_packets", "egress_dropped_packets")


class _Reading(NamedTuple):
    """Counters from time 0, and at a time.

    Attributes:
        ports, qps: see :mod:`roce_gym.sim.readout`.
        alpha: shape (Q,), float64.
        seldom: those of watchdogs and of lossy classes, if there are any; by name in
            :class:`Interval`, shape (L, C).
        latency: counts and sums, see :class:`Latencies`; None: they are not measured.
    """

    now_ps: int
    events: int
    ports: Ints
    qps: Ints
    alpha: Floats
    lost_packets: Ints
    job_busy_ps: Ints
    seldom: dict[str, Ints]
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
            seldom=self._seldom(state),
            latency=_latency(state) if len(state.latency) else None,
        )

    def _seldom(self, state: t.State) -> dict[str, Ints]:
        found: dict[str, Ints] = {}
        if len(state.watchdog):
            found |= {n: self._by_class(state.watchdog[field]) for n, field in _WATCHDOG.items()}
        if state.params[0]["lossy"] != 0:
            found["dropped_at_egress_packets"] = self._by_class(state.ingress["drops_at_egress"])
            found["egress_dropped_packets"] = self._by_class(state.egress_drops)
        return found

    def _by_class(self, values: NDArray[Any]) -> Ints:
        return values.reshape(-1, self._num_classes)[:, self._columns].astype(np.int64)

    def close(
        self,
        state: t.State,
        read_out: ReadOut,
        log: NDArray[Any],
        deadlock: tuple[tuple[int, int, int], ...] = (),
        unreachable: frozenset[int] = frozenset(),
    ) -> Interval:
        """Ends the interval, starts the next one. PRECONDITION: :meth:`reset` was called before.

        Args:
            state: now.
            read_out: calls :func:`roce_gym.sim.readout.read_out` with the state.
            log: what the simulator logged in the interval.
            deadlock: at the end.
            unreachable: QPs to whose far end no route leads at the end.
        """
        before, after = self._before, self._read(state, read_out)
        assert before is not None
        self._before = after
        ports, qps = _ports(before, after), _qps(before, after)
        core: Any = state.core[0]
        begun, of_graphs = state.job["begun_ps"], log["job"] >= len(state.job)
        calls = log[of_graphs]
        is_mark = calls["bytes"] == 0
        mean: Any = ports.pop("area") * (1024.0 / max(1, after.now_ps - before.now_ps))
        qp_unreachable = np.zeros(len(state.qp), np.bool_)
        qp_unreachable[list(unreachable)] = True
        return Interval(
            start_ps=before.now_ps,
            end_ps=after.now_ps,
            queue_mean_bytes=mean,
            **ports,
            **qps,
            alpha=after.alpha,
            lost_packets=after.lost_packets - before.lost_packets,
            deadlock=deadlock,
            job_busy_ps=after.job_busy_ps - before.job_busy_ps,
            job_round=state.job["round"].copy(),
            job_begun_ps=np.where(begun == t.FOREVER, -1, begun),
            completions=log[~of_graphs],
            collectives=_collectives(state, calls[~is_mark]),
            marks=_marks(state, calls[is_mark]),
            failed_qps=int(core["failed_qps"]),
            unreachable_qps=int(core["unreachable_qps"]),
            qp_failed=state.sender["state"] == t.FAILED,
            qp_unreachable=qp_unreachable,
            events=after.events - before.events,
            latency=_latencies(state, before, after),
        )


def _ports(before: _Reading, after: _Reading) -> dict[str, Ints]:
    totals = after.ports[:_PORT_TOTALS] - before.ports[:_PORT_TOTALS]
    ports = dict(zip(PORT_ROWS, (*totals, *after.ports[_PORT_TOTALS:]), strict=True))
    for name in _SELDOM:
        if name in after.seldom:
            ports[name] = after.seldom[name] - before.seldom[name]
        else:
            ports[name] = np.zeros(totals.shape[1:], np.int64)
    return ports


def _qps(before: _Reading, after: _Reading) -> dict[str, Ints]:
    totals = after.qps[:_QP_TOTALS] - before.qps[:_QP_TOTALS]
    return dict(zip(QP_ROWS, (*totals, *after.qps[_QP_TOTALS:]), strict=True))


def _latency(state: t.State) -> tuple[Ints, Ints]:
    counts = state.latency.reshape(-1, 2, int(t.LATENCY_BUCKETS)).copy()
    return counts, state.latency_total["sum_ps"].reshape(-1, 2).copy()


def _latencies(state: t.State, before: _Reading, after: _Reading) -> Latencies | None:
    """Those of the interval; the longest one of the next begins anew."""
    if after.latency is None or before.latency is None:
        return None
    pairs = zip(after.latency, before.latency, strict=True)
    counts, sums = (now - then for now, then in pairs)
    longest = state.latency_total["max_ps"].reshape(-1, 2).copy()
    state.latency_total["max_ps"] = 0
    return Latencies(counts, sums, longest)


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


def _marks(state: t.State, log: NDArray[Any]) -> NDArray[Any]:
    """Entries of calls without bytes, which stand for MARK operations (`assembly.graphs`)."""
    out = np.zeros(len(log), MARK)
    if not len(log):
        return out
    call = state.call[log["job"] - len(state.job)]
    out["job"], out["mark"], out["round"] = call["job"], call["index"], log["index"]
    out["time_ps"] = log["end_ps"]
    return out
