"""Congestion control: what all algorithms share, senders written by users, credits."""

from __future__ import annotations

import numpy as np

from roce_gym.sim.types.constants import numbers

# Places of a QP's state and a tenant's parameters of its sender algorithm, 64-bit words.
CC_WORDS, CC_PARAM_WORDS = numbers(8, 16)

# Head of every sender algorithm's record of a QP, see cc/records.py.
PACING = np.dtype(
    [
        ("owed", np.int64),  # still to wait for at next_send_ps, 1e-12 bit; 0: the QP may go then
        ("increase_due_ps", np.int64),  # a timer may raise the rate then; FOREVER: none runs
    ],
    align=True,
)

# What happened to a QP whose sender a user has written, see cc/user.py; kinds as in DOCA PCC.
USER_TIMER, USER_CNP, USER_TX, USER_ACK, USER_NACK = numbers(0, 2, 3, 4, 5)
USER_EVENT = np.dtype(
    [
        ("kind", np.int64),
        ("now_ps", np.int64),
        ("rtt_ps", np.int64),  # ACK, NACK
        ("bytes", np.int64),  # TX: of the packet on the wire
        ("acked_bytes", np.int64),  # ACK, NACK: of the QP, so far
        ("line_bps", np.int64),
        ("rate", np.float64),  # share of line_bps
        ("timer_ps", np.int64),  # out: TIMER after this time; 0: as it is; negative: none
    ],
    align=True,
)

# Credits, at the receiver: of a QP; of a host.
CREDIT_QP = np.dtype(
    [
        ("demand", np.int64),  # end of the bytes that the sender has posted, as it said last
        ("granted", np.int64),  # end of the bytes that it may send
        ("counted", np.int64),  # granted and not yet arrived, as counted in CREDIT_HOST.coming
        ("next", np.int32),  # QP behind this one in the FIFO
        ("listed", np.int32),
    ],
    align=True,
)

CREDIT_HOST = np.dtype(
    [
        ("head", np.int32),  # QPs that wait for credit, FIFO
        ("tail", np.int32),
        ("coming", np.int64),  # bytes granted and not yet arrived
        ("next_ps", np.int64),  # first time at which another credit may go
        ("armed", np.int64),  # the host's timer
    ],
    align=True,
)
