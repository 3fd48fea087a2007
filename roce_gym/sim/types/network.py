"""Packets, links, and what switches know of routes."""

from __future__ import annotations

import numpy as np

PACKET = np.dtype(
    [
        ("stamp", np.int64),  # on a link: when the packet behind it arrives; in a queue: input link
        ("seq", np.int64),  # data: first byte's offset in the QP's stream; ACK, NACK: next expected
        ("qp", np.int32),
        ("next", np.int32),  # packet behind this one in its FIFO, or in the free list
        ("size", np.int32),  # bytes, without preamble and gap
        ("kind", np.uint8),
        ("cls", np.uint8),  # PFC frames: the class they are about
        ("flags", np.uint8),
        ("hop", np.uint8),  # index of the link it is on, in its path
    ],
    align=True,
)

LINK = np.dtype(
    [
        ("free_ps", np.int64),  # end of the last transmission
        ("delay_ps", np.int64),
        ("ps_per_kib", np.int64),  # serialisation time of 1,024 bytes
        ("flight_head", np.int32),  # packets on the wire, FIFO
        ("flight_tail", np.int32),
        ("src", np.int32),  # nodes
        ("dst", np.int32),
        ("waiting", np.int32),  # bit c: class c has something to send
        ("paused", np.int32),  # bit c: the far end paused class c
        ("last_rr", np.int32),  # round-robin class served last
        ("done_pending", np.int32),  # a TX_DONE event is due at free_ps
        ("loss", np.float64),  # probability that a packet is lost
    ],
    align=True,
)

ROUTE = np.dtype(  # of a QP's data, then of its ACKs
    [
        ("last", np.int32),  # link to the destination
        ("group", np.int32),  # the destination's switch, as a column of State.hop_table
        ("fixed", np.int32),  # 1: takes its path
        ("pad", np.int32),
    ],
    align=True,
)

HOP_SET = np.dtype([("first", np.int32), ("count", np.int32)], align=True)  # of State.hop_link

CHOICE = np.dtype(  # of a QP at its n-th hop
    [
        ("sent_ps", np.int64),  # flowlet: last packet
        ("link", np.int32),  # flowlet: the one it took
        ("turn", np.int32),  # round robin: packets so far
    ],
    align=True,
)

# What a switch writes into a packet on its way (in-band network telemetry).
INT_HOP = np.dtype(
    [
        ("time_ps", np.int64),  # the packet left the queue
        ("tx_bytes", np.int64),  # sent by the port before it
        ("queue_bytes", np.int64),  # left in the port's queues
    ],
    align=True,
)
