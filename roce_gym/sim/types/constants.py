"""Constants: what the small numbers in records and parameters mean."""

from __future__ import annotations

import numpy as np


def numbers(*values: int) -> tuple[np.int64, ...]:
    """Constants as NumPy integers: Numba would compile a helper anew for each literal argument."""
    return tuple(np.int64(value) for value in values)


NONE, ZERO = numbers(-1, 0)
FOREVER = np.int64(2**62)
"""A time in ps that never comes."""

# Packet kinds. PFC frames come last: `kind >= PAUSE`.
DATA, ACK, NACK, CNP, PAUSE, RESUME = numbers(*range(6))

# Packet flags: congestion experienced (marked by a switch); last packet of a message; an ACK or
# NACK that carries a CNP; its QP's algorithm wants feedback.
CE, LAST, ECHO, TRACED = numbers(1, 2, 4, 8)

# Of data packets: asks for an ACK of its own, which echoes its CE bit; tells the receiver how many
# bytes the QP has to send.
ASKS, DEMANDS = numbers(16, 32)

# QP states of the NIC's scheduler.
IDLE, READY, PACED, FAILED, HELD = numbers(*range(5))

# SENDER.timer_armed: neither 0 nor 1, so that no timer is ever started.
(NO_TIMER,) = numbers(2)

# No congestion control; algorithms are numbered from 1 on, see cc/registry.py.
(CC_NONE,) = numbers(0)

# What is special about a QP, bits of SENDER.traits: a window, which may be in proportion to the
# rate, or set by its algorithm, or so by its receiver's credits; and TRACED, see above.
HAS_WINDOW, RATE_WINDOW, OWN_WINDOW, CREDIT_WINDOW = numbers(1, 2, 4, 16)

# What ACKs bring back to senders, bits: the packet's time of sending; what switches wrote into it;
# how long the ACK waited at the receiver's NIC; nothing but that they came; credit; how full the
# fullest buffer on its way was.
FEEDBACK_RTT, FEEDBACK_INT, FEEDBACK_WAIT, FEEDBACK_ACK, FEEDBACK_CREDIT = numbers(1, 2, 4, 8, 16)
(FEEDBACK_LEVEL,) = numbers(32)

# Job kinds (step machines).
FLOWS, RING, ALL_TO_ALL, INCAST, GRAPH = numbers(*range(5))

# Operations of a graph, as in workload/op_graph.py.
COMPUTE_OP, SEND_OP, RECV_OP, COLLECTIVE_OP = numbers(*range(4))

# What a member does beside communicating. It WAITS where it would be two rounds ahead of another,
# and PAUSES in its round for other events of the same time.
COMPUTES, WAITS, PAUSES = numbers(1, 2, 3)

# Kernel statuses.
OK, PACKETS_LOW, MESSAGES_LOW, LOG_FULL, WHEEL_OVERRUN, WIDTH_DUE = numbers(*range(6))

# Flags of an ingress record.
LOSSLESS, TOLD_TO_PAUSE = numbers(1, 2)

# What is looked ahead for (lookahead.py).
NEAR, FAR_QPS, FAR_LINKS = numbers(*range(3))
# What a watchdog does.
WATCH_NOT, WATCH_DROP, WATCH_FORWARD, WATCH_ALERT = numbers(*range(4))

# Choice among equal-cost next hops.
ECMP, SPRAY_RANDOM, SPRAY_ROUND_ROBIN, ADAPTIVE, FLOWLET = numbers(*range(5))

# What latencies are measured of, and buckets of a histogram, see latency.py.
LATENCY_MESSAGE, LATENCY_PACKET = numbers(*range(2))
(LATENCY_BUCKETS,) = numbers(2048)

# What a receiver does with data out of order, and with what the sender repairs a loss.
IN_ORDER, OUT_OF_ORDER, SELECTIVE, GO_BACK_0 = numbers(*range(4))

# `loss` of a link that is down: everything is lost, PFC frames too.
DOWN = 2.0

# Streams of random numbers.
STREAM_ECN, STREAM_LOSS, STREAM_COMPUTE, STREAM_ROUTE = numbers(*range(4))
