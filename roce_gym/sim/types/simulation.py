"""Parameters and present of a simulation."""

from __future__ import annotations

import numpy as np

TIMER = np.dtype([("due_ps", np.int64), ("slot", np.int64)], align=True)

PARAMS = np.dtype(
    [
        ("seed", np.uint64),
        ("num_hosts", np.int64),
        ("num_links", np.int64),
        ("num_classes", np.int64),  # with class 0
        ("num_qps", np.int64),
        ("num_members", np.int64),  # with COMPUTE operations, which have timers as members do
        ("max_hops", np.int64),
        ("strict", np.int64),  # bit c: class c is served by strict priority
        ("dwrr", np.int64),  # 1: the others by deficit weighted round robin
        ("special", np.int64),  # 1: DWRR, several pools, lossy or shaped classes, shaped tenants
        ("num_pools", np.int64),  # of a switch's buffer
        ("shared_headroom", np.int64),  # 1: headroom comes out of State.xoff
        ("lossy", np.int64),  # bit c: class c is lossy: its egress queues may be bounded
        ("shaped", np.int64),  # bit c: class c has token buckets at switch ports
        ("tenants_shaped", np.int64),  # 1: tenants have token buckets at hosts
        ("num_tenants", np.int64),
        ("first_bucket", np.int64),  # slot of the first token bucket's event, see wheel.py
        ("mtu", np.int64),
        ("header", np.int64),
        ("ack", np.int64),
        ("cnp", np.int64),
        ("pfc", np.int64),
        ("gap", np.int64),
        ("ack_every", np.int64),
        ("cnp_packets", np.int64),  # 1: CNPs of their own, 0: echoed in ACKs
        ("cnp_interval_ps", np.int64),
        ("rto_ps", np.int64),  # longest of all QPs; 0: none has a timer
        ("nack_interval_ps", np.int64),
        ("ack_ignores_pause", np.int64),
        ("message_reserve", np.int64),  # most messages one event may post
        ("log_reserve", np.int64),  # most completions one event may log
        ("least_shift", np.int64),  # of CORE.bucket_shift, as the wheel has to reach that far
        ("bucket_events", np.int64),  # wanted in a bucket
        ("scheduled_order", np.int64),  # 1: events of one time run in the order of scheduling
        ("mrg32k3a", np.int64),  # 1: marks are drawn from State.mrg, in order of events
        ("far", np.int64),  # what is too large for a core's own cache: NEAR, FAR_QPS, FAR_LINKS
        ("clock_ps", np.int64),  # resolution of serialisation and pacing times
        ("feedback", np.int64),  # what ACKs bring back to any sender, FEEDBACK_… bits
        ("least_window", np.int64),  # bytes, so that an ACK becomes due
        ("quanta", np.int64),  # of a PAUSE; 0: it holds until resumed
        ("refresh_fraction", np.float64),
        ("heeds", np.int64),  # 1: pauses expire or are watched
        ("watchdog", np.int64),  # WATCH_…
        ("detection_ps", np.int64),
        ("restoration_ps", np.int64),
        ("poll_ps", np.int64),
        ("first_pfc_slot", np.int64),  # PFC timers: end of pauses, refreshes, polls, storms
        ("hop_by_hop", np.int64),  # 1: switches look up what is not on its path
        ("routing", np.int64),
        ("num_groups", np.int64),  # columns of State.hop_table
        ("flowlet_gap_ps", np.int64),
        ("receiving", np.int64),  # IN_ORDER, …
        ("reorder_wait_ps", np.int64),
        ("num_marks", np.int64),  # columns of State.class_at; 0: a packet keeps its class
        ("maps_priorities", np.int64),  # 1: switches differ about the priorities of classes
        ("latency", np.int64),  # 1: latencies are measured
    ],
    align=True,
)

CORE = np.dtype(
    [
        ("now_ps", np.int64),
        ("bucket_ps", np.int64),  # start of the current bucket
        ("bucket_shift", np.int64),  # a bucket is 2^shift ps wide
        ("horizon_ps", np.int64),  # the wheel reaches this far
        ("width_look", np.int64),  # `events` at which the width is looked at next
        ("width_events", np.int64),  # events and time at the last look
        ("width_ps", np.int64),
        ("cursor", np.int64),  # next event of the current bucket, into State.current
        ("num_far", np.int64),
        ("free_packet", np.int64),  # free list
        ("packets_left", np.int64),
        ("free_message", np.int64),
        ("messages_left", np.int64),
        ("log_length", np.int64),
        ("status", np.int64),
        ("events", np.int64),
        ("failed_qps", np.int64),
        ("unreachable_qps", np.int64),  # no route leads to their destination
        ("first_posted", np.int64),  # hosts to serve after this event, into State.posted
        ("end_posted", np.int64),
        ("sequence", np.int64),  # events scheduled so far (only if ties go by it)
        ("dropping", np.int64),  # output queues that a watchdog keeps empty
    ],
    align=True,
)
