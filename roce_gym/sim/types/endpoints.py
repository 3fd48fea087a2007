"""Queue pairs: senders, receivers, the scheduler of a NIC, messages."""

from __future__ import annotations

import numpy as np

# Sending side of a QP. All that a QP at line rate needs to send a packet and to take in its ACK is
# in SENDER: in an all-to-all each of these comes from a far cache.
SENDER = np.dtype(
    [
        ("snd_nxt", np.int64),  # next byte to send
        ("snd_una", np.int64),  # first byte not acknowledged
        ("message_end", np.int64),  # end of the message that holds snd_nxt; snd_nxt: none
        ("oldest_end", np.int64),  # end of the oldest message not acknowledged; FOREVER: none
        ("progress_ps", np.int64),  # snd_una grew, or bytes were first outstanding
        ("rate_bps", np.int64),
        ("cc_due_ps", np.int64),  # first congestion-control timer; FOREVER: none runs
        ("retries", np.int32),
        ("cc", np.int8),
        ("traits", np.int8),
        ("state", np.int8),
        ("timer_armed", np.int8),  # retransmission timer; NO_TIMER: the QP has none
    ],
    align=True,
)

QP = np.dtype(
    [
        ("src", np.int32),
        ("cls", np.int32),
        ("tenant", np.int32),
        ("job", np.int32),
        ("endpoint", np.int32),  # who gets a delivery: channel (ring) or member (all-to-all)
        ("oldest", np.int32),  # messages not wholly acknowledged, FIFO
        ("sending", np.int32),  # message that holds snd_nxt
        ("newest", np.int32),
        ("posted", np.int64),  # end of the bytes posted
        ("next_send_ps", np.int64),  # pacing
        ("line_bps", np.int64),
        ("cnps", np.int64),  # CNPs (or echoes) taken in
    ],
    align=True,
)

RETRY = np.dtype([("rto_ps", np.int64), ("limit", np.int64)])  # of a QP's retransmissions

RECEIVER = np.dtype(
    [
        ("expected", np.int64),
        ("nack_seq", np.int64),
        ("nack_ps", np.int64),  # when NACK(nack_seq) was sent
        ("cnp_ps", np.int64),  # when the last CNP was sent
        ("messages", np.int64),  # delivered
        ("unacked", np.int32),  # packets since the last ACK
        ("ce_seen", np.int32),
        ("ack_cls", np.int16),
        ("cnp_cls", np.int16),
        ("nacks", np.int32),  # sent
        ("message_start", np.int64),  # go-back-0: first byte of the message under way
    ],
    align=True,
)

# What receivers have that take data out of order.

REORDER = np.dtype(  # what a receiver has beyond the first gap
    [
        ("first", np.int32),  # spans (packet records) by rising start, chained
        ("timer_armed", np.int32),
        ("host", np.int32),  # the receiver
        ("pad", np.int32),
    ],
    align=True,
)

RESEND = np.dtype([("first", np.int32), ("last", np.int32)], align=True)  # gaps reported, FIFO

SPAN = np.dtype(  # beside a packet record: data held, or the gap that a NACK reports
    [
        ("start", np.int64),  # offsets in the QP's stream
        ("end", np.int64),
        ("packets", np.int32),
        ("messages", np.int32),  # that end in it
    ],
    align=True,
)

NIC_CLASS = np.dtype(
    [
        ("first_qp", np.int32),  # QPs of a (host, class) are consecutive
        ("num_qps", np.int32),
        ("first_word", np.int32),  # into State.ready
        ("num_ready", np.int32),
        ("last_served", np.int32),  # offset from first_qp
        ("line_bps", np.int64),
    ],
    align=True,
)

PACED_HEAP = np.dtype([("first", np.int32), ("size", np.int32)], align=True)  # a host

PACED_QP = np.dtype([("due_ps", np.int64), ("qp", np.int64)], align=True)

MESSAGE = np.dtype(
    [
        ("end", np.int64),  # offset behind its last byte
        ("start_ps", np.int64),
        ("bytes", np.int64),
        ("tag", np.int32),  # flow number
        ("next", np.int32),
    ],
    align=True,
)
