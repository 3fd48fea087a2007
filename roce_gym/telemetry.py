"""Counters of one interval, as switches and NICs would report them.

The core counts from time 0; an :class:`Interval` holds differences. Arrays are fresh copies, with
classes in the order of `Scenario.classes`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from roce_gym.latency import Latencies
from roce_gym.topology.graph import Network

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
