"""Queues, shared buffers and their schedulers; PFC."""

from __future__ import annotations

import numpy as np

QUEUE = np.dtype(
    [
        ("head", np.int32),
        ("tail", np.int32),
        ("bytes", np.int32),
        ("max_bytes", np.int32),  # since last cleared
        ("changed_ps", np.int64),  # when `bytes` changed last
        ("area", np.int64),  # integral of `bytes` over time, byte x 1,024 ps
        ("kmin", np.int32),  # bytes
        ("kmax", np.int32),
        ("pmax", np.float64),
        ("tx_bytes", np.int64),
        ("tx_packets", np.int32),
        ("marks", np.int32),
    ],
    align=True,
)

INGRESS = np.dtype(
    [
        ("bytes", np.int32),  # buffered, headroom not counted
        ("headroom_used", np.int32),
        ("reserved", np.int32),
        ("headroom", np.int32),
        ("static_threshold", np.int32),  # NONE: dynamic
        ("xon_offset", np.int32),
        ("alpha", np.float64),
        ("flags", np.int32),
        ("pauses", np.int32),  # frames sent towards the link's source
        ("resumes", np.int32),
        ("drops", np.int32),
        ("peak_bytes", np.int32),  # most of `bytes` since last cleared, if more than the reserve
        ("peak_limit", np.int32),  # bytes it might have held then: reserve and threshold
        ("peak_headroom", np.int32),  # most of `headroom_used` since last cleared
        ("drops_at_egress", np.int32),  # of `drops`, by the bound of an egress queue
    ],
    align=True,
)

# Pauses of a port: what the link's destination said, and how its source heeds it.
PFC_PORT = np.dtype(
    [
        ("told_ps", np.int64),  # when the last PAUSE was sent
        ("first_pause_ps", np.int64),  # FOREVER: none was ever sent
        ("paused_since_ps", np.int64),  # FOREVER: the source is not paused
        ("paused_ps", np.int64),  # total time the source was paused
        ("expires_ps", np.int64),  # end of the pause, unless refreshed
        ("refresh_armed", np.int8),  # timers
        ("hold_armed", np.int8),
    ],
    align=True,
)

# Watchdog of an output queue; a record for each port, or none at all if there are no watchdogs.
WATCHDOG = np.dtype(
    [
        ("stalled_ps", np.int64),  # paused so far, by polls
        ("quiet_ps", np.int64),  # in a storm: without a pause so far, by polls
        ("dropped", np.int64),  # packets
        ("storms", np.int32),
        ("restored", np.int32),
        ("watched", np.int8),  # the link leaves a port of an Ethernet switch
        ("armed", np.int8),
        ("heard", np.int8),  # a PAUSE has come since the last poll
        ("storming", np.int8),
    ],
    align=True,
)

STORM = np.dtype(
    [
        ("port", np.int64),  # of the link towards the NIC that pauses
        ("start_ps", np.int64),
        ("stop_ps", np.int64),  # FOREVER: never
    ],
    align=True,
)

SWITCH = np.dtype([("shared", np.int64), ("pool", np.int64)], align=True)  # bytes

# Headroom that all ports and classes of a switch share; bytes.
XOFF = np.dtype([("used", np.int64), ("size", np.int64)], align=True)

# Bound on the egress queues of a class.
EGRESS = np.dtype(
    [
        ("alpha", np.float64),  # times the free bytes of the class's pool
        ("limit", np.int64),  # bytes; NONE: by alpha
    ],
    align=True,
)

# DWRR at a (link, class).
SHARE = np.dtype([("deficit", np.int32), ("quantum", np.int32)], align=True)  # bytes

# Token bucket, kept as the time at which it will be full.
BUCKET = np.dtype(
    [
        ("full_ps", np.int64),
        ("rate_bps", np.int64),  # 0: no limit
        ("burst_ps", np.int64),  # from empty to full
        ("head", np.int32),  # NIC: QPs held back, FIFO
        ("tail", np.int32),
        ("granted", np.int64),  # NIC: the QP that may take the next tokens
    ],
    align=True,
)
