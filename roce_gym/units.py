"""Units used throughout: picoseconds, bytes, bits per second; all integers.

One byte takes a whole number of picoseconds at the usual Ethernet rates (320, 80, 40, 20 and 10 ps
at 25, 100, 200, 400 and 800 Gb/s), so time never rounds.
"""

from __future__ import annotations

PS_PER_NS = 1_000
PS_PER_US = 1_000_000
PS_PER_MS = 1_000_000_000
PS_PER_S = 1_000_000_000_000

BPS_PER_MBPS = 1_000_000
BPS_PER_GBPS = 1_000_000_000

KIB = 1_024


def us_to_ps(time_us: float) -> int:
    """Microseconds to whole picoseconds."""
    return round(time_us * PS_PER_US)


def ns_to_ps(time_ns: float) -> int:
    """Nanoseconds to whole picoseconds."""
    return round(time_ns * PS_PER_NS)


def gbps_to_bps(rate_gbps: float) -> int:
    """Gigabits per second to whole bits per second."""
    return round(rate_gbps * BPS_PER_GBPS)


def mbps_to_bps(rate_mbps: float) -> int:
    """Megabits per second to whole bits per second."""
    return round(rate_mbps * BPS_PER_MBPS)


def ps_per_kib(rate_bps: int) -> int:
    """Serialisation time of 1,024 bytes in picoseconds, rounded to the nearest one."""
    return round(8 * KIB * PS_PER_S / rate_bps)
