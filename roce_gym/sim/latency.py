"""Latencies of messages and data packets, kept as histograms (rules, section 15).

Buckets are those of HdrHistogram: 64 to each power of two, so that none is wider than 1/64 of the
values in it. All of this is off, and the arrays are empty, unless the scenario asks for it.
"""

from __future__ import annotations

from numpy import int64

from roce_gym.sim.jit import rare
from roce_gym.sim.types import LATENCY_BUCKETS, LATENCY_PACKET, NONE

LINEAR = 128
"""Buckets before they begin to widen; half of it is the number of them to a power of two."""

UNIT_SHIFT = 10
"""The first ones are 2^10 ps wide."""


@rare
def count_latency(s, qp, what, elapsed_ps):
    """Counts a message or a data packet of a QP."""
    row = int64(s.latency_row[qp])
    if row == NONE:
        return
    units = elapsed_ps >> UNIT_SHIFT
    shift = int64(0)
    while units >> shift >= LINEAR:
        shift += 1
    bucket = min(shift * (LINEAR // 2) + (units >> shift), LATENCY_BUCKETS - 1)
    slot = 2 * row + what
    s.latency[slot * LATENCY_BUCKETS + bucket] += 1
    total = s.latency_total[slot]
    total["sum_ps"] += elapsed_ps
    if elapsed_ps > total["max_ps"]:
        total["max_ps"] = elapsed_ps


@rare
def count_packet(s, p, now):
    """Counts a data packet that has arrived at its host."""
    count_latency(s, int64(s.packet[p]["qp"]), LATENCY_PACKET, now - s.sent[p])
