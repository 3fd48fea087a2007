"""Every array of the simulator's state, with shape, unit and meaning.

The whole state is one :class:`State`: a NamedTuple of flat, preallocated, C-contiguous arrays.
Records fetched one at a time are structured arrays of one cache line (64 bytes) or half of one.
Copying the arrays copies the simulation exactly.

Index names: `link` a directed link, `link ^ 1` its other direction; `c` a class, 0 internal for
PFC frames; `port = link * num_classes + c` a (link, class) pair; `node` hosts first, then switches.
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple, get_type_hints

import numpy as np
from numpy.typing import NDArray


def _numbers(*values: int) -> tuple[np.int64, ...]:
    """Constants as NumPy integers: Numba would compile a helper anew for each literal argument."""
    return tuple(np.int64(value) for value in values)


NONE, ZERO = _numbers(-1, 0)
FOREVER = np.int64(2**62)
"""A time in ps that never comes."""

# Packet kinds. PFC frames come last: `kind >= PAUSE`.
DATA, ACK, NACK, CNP, PAUSE, RESUME = _numbers(*range(6))

# Packet flags: congestion experienced (marked by a switch); last packet of a message; an ACK or
# NACK that carries a CNP; its QP's algorithm wants feedback.
CE, LAST, ECHO, TRACED = _numbers(1, 2, 4, 8)

# Of data packets: asks for an ACK of its own, which echoes its CE bit; tells the receiver how many
# bytes the QP has to send.
ASKS, DEMANDS = _numbers(16, 32)

# QP states of the NIC's scheduler.
IDLE, READY, PACED, FAILED, HELD = _numbers(*range(5))

# SENDER.timer_armed: neither 0 nor 1, so that no timer is ever started.
(NO_TIMER,) = _numbers(2)

# No congestion control; algorithms are numbered from 1 on, see cc/registry.py.
(CC_NONE,) = _numbers(0)

# What is special about a QP, bits of SENDER.traits: a window, which may be in proportion to the
# rate, or set by its algorithm, or so by its receiver's credits; and TRACED, see above.
HAS_WINDOW, RATE_WINDOW, OWN_WINDOW, CREDIT_WINDOW = _numbers(1, 2, 4, 16)

# What ACKs bring back to senders, bits: the packet's time of sending; what switches wrote into it;
# how long the ACK waited at the receiver's NIC; nothing but that they came; credit; how full the
# fullest buffer on its way was.
FEEDBACK_RTT, FEEDBACK_INT, FEEDBACK_WAIT, FEEDBACK_ACK, FEEDBACK_CREDIT = _numbers(1, 2, 4, 8, 16)
(FEEDBACK_LEVEL,) = _numbers(32)

# Job kinds (step machines).
FLOWS, RING, ALL_TO_ALL, INCAST, GRAPH = _numbers(*range(5))

# Operations of a graph, as in workload/op_graph.py.
COMPUTE_OP, SEND_OP, RECV_OP, COLLECTIVE_OP = _numbers(*range(4))

# What a member does beside communicating. It WAITS where it would be two rounds ahead of another,
# and PAUSES in its round for other events of the same time.
COMPUTES, WAITS, PAUSES = _numbers(1, 2, 3)

# Kernel statuses.
OK, PACKETS_LOW, MESSAGES_LOW, LOG_FULL, WHEEL_OVERRUN = _numbers(*range(5))

# Flags of an ingress record.
LOSSLESS, TOLD_TO_PAUSE = _numbers(1, 2)

# What is looked ahead for (lookahead.py).
NEAR, FAR_QPS, FAR_LINKS = _numbers(*range(3))
# What a watchdog does.
WATCH_NOT, WATCH_DROP, WATCH_FORWARD, WATCH_ALERT = _numbers(*range(4))

# Choice among equal-cost next hops.
ECMP, SPRAY_RANDOM, SPRAY_ROUND_ROBIN, ADAPTIVE, FLOWLET = _numbers(*range(5))

# What latencies are measured of, and buckets of a histogram, see latency.py.
LATENCY_MESSAGE, LATENCY_PACKET = _numbers(*range(2))
(LATENCY_BUCKETS,) = _numbers(2048)

# What a receiver does with data out of order, and with what the sender repairs a loss.
IN_ORDER, OUT_OF_ORDER, SELECTIVE, GO_BACK_0 = _numbers(*range(4))

# `loss` of a link that is down: everything is lost, PFC frames too.
DOWN = 2.0

# Streams of random numbers.
STREAM_ECN, STREAM_LOSS, STREAM_COMPUTE, STREAM_ROUTE = _numbers(*range(4))

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
        ("pad", np.int32),
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

# The arrays of these have one element unless routing, receiver or recovery need them.

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

# Places of a QP's state and a tenant's parameters of its sender algorithm, 64-bit words.
CC_WORDS, CC_PARAM_WORDS = _numbers(8, 16)

# Head of every sender algorithm's record of a QP, see cc/records.py.
PACING = np.dtype(
    [
        ("owed", np.int64),  # still to wait for at next_send_ps, 1e-12 bit; 0: the QP may go then
        ("increase_due_ps", np.int64),  # a timer may raise the rate then; FOREVER: none runs
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

# What happened to a QP whose sender a user has written, see cc/user.py; kinds as in DOCA PCC.
USER_TIMER, USER_CNP, USER_TX, USER_ACK, USER_NACK = _numbers(0, 2, 3, 4, 5)
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

JOB = np.dtype(
    [
        ("kind", np.int64),
        ("first_member", np.int64),
        ("num_members", np.int64),
        ("first_member_id", np.int64),  # of the random stream
        ("first_channel", np.int64),  # ring: into State.channel, member-major
        ("num_channels", np.int64),
        ("first_qp", np.int64),  # into State.job_qp
        ("message_bytes", np.int64),
        ("messages", np.int64),  # per round and channel, member or burst
        ("chunks", np.int64),
        ("compute_ps", np.int64),
        ("jitter", np.float64),
        ("start_ps", np.int64),
        ("stop_ps", np.int64),
        ("period_ps", np.int64),
        ("rounds", np.int64),  # FOREVER: no limit
        ("round", np.int64),  # current round, burst or flow
        ("entered_0", np.int64),  # members that entered an even / odd round
        ("entered_1", np.int64),
        ("finished", np.int64),  # members (or senders) that finished the current round
        ("begun_ps", np.int64),  # last member entered / burst posted; FOREVER: between rounds
        ("busy_ps", np.int64),  # total time of completed rounds
        ("first_flow", np.int64),  # into State.flow
        ("num_flows", np.int64),
        ("flows_done", np.int64),
        ("finished_1", np.int64),  # graph: members that finished an odd round; `finished`: even
        ("closed", np.int64),  # graph: rounds that all members finished
    ],
    align=True,
)

MEMBER = np.dtype(
    [
        ("job", np.int32),
        ("rank", np.int32),
        ("round", np.int64),
        ("computing", np.int32),  # COMPUTES, …; 0: is in its round
        ("ops_left", np.int32),  # graph: operations not done in this round
        ("got_0", np.int32),  # all-to-all: messages of even / odd rounds
        ("got_1", np.int32),
    ],
    align=True,
)

CHANNEL = np.dtype(
    [
        ("member", np.int32),
        ("qp", np.int32),  # to the next member
        ("sent", np.int64),  # messages, over all rounds
        ("received", np.int64),
    ],
    align=True,
)

FLOW = np.dtype([("start_ps", np.int64), ("bytes", np.int64), ("qp", np.int64)], align=True)

# Operation graphs (operations.py) and the step machines of their collectives (lanes.py). A call is
# a collective of a graph; calls of one kind share the lanes of a machine.
OP = np.dtype(
    [
        ("kind", np.int32),  # COMPUTE_OP, …
        ("member", np.int32),
        ("needs", np.int32),  # operations it waits for
        ("left", np.int32),  # of those, not yet done in this round
        ("amount", np.int64),  # SEND: bytes; COMPUTE: ps
        ("arrived", np.int64),  # RECV: messages, over all rounds
        ("target", np.int32),  # COMPUTE: its timer; SEND: QP; COLLECTIVE: into State.part
        ("mate", np.int32),  # SEND: the RECV of its message
        ("first_behind", np.int32),  # operations that wait for it, into State.op_behind
        ("num_behind", np.int32),
        ("next", np.int32),  # behind it in its member's queue
        ("waits", np.int32),  # RECV: begun, and not done
    ],
    align=True,
)

CREW = np.dtype(  # a member's operations
    [
        ("first_op", np.int32),
        ("num_ops", np.int32),
        ("head", np.int32),  # operations that may begin, FIFO
        ("tail", np.int32),
    ],
    align=True,
)

CALL = np.dtype(
    [
        ("job", np.int64),
        ("index", np.int64),  # in its job
        ("number", np.int64),  # in the log: behind all jobs
        ("bytes", np.int64),
        ("num_ranks", np.int64),
        ("first_lane", np.int64),  # of its machine, into State.lane
        ("first_station", np.int64),  # of its machine, into State.station
        ("first_phase", np.int64),  # into State.phase
        ("first_progress", np.int64),  # into State.progress, a record for each lane
        ("first_part", np.int64),  # into State.part, a record for each rank
        ("begun_0_ps", np.int64),  # when the last rank began it in an even / odd round
        ("begun_1_ps", np.int64),
        ("finished_0", np.int64),  # ranks that have finished it
        ("finished_1", np.int64),
    ],
    align=True,
)

LANE = np.dtype(
    [
        ("qp", np.int32),
        ("phase", np.int32),  # from a call's first one
        ("src", np.int32),  # ranks of the call
        ("dst", np.int32),
        ("first_need", np.int32),  # into State.need
        ("num_needs", np.int32),
        ("first_fed", np.int32),  # lanes that need it, into State.fed
        ("num_fed", np.int32),
        ("after", np.int32),  # lane to be sent wholly before; NONE. From the machine's first one
        ("then", np.int32),  # lane of which it is that; NONE
    ],
    align=True,
)

NEED = np.dtype([("lane", np.int32), ("whole", np.int32)], align=True)  # from the first lane

STATION = np.dtype(  # a rank of a machine
    [
        ("first_lane", np.int32),  # that it sends on, from the machine's first one
        ("num_lanes", np.int32),
        ("num_into", np.int32),  # lanes that it receives on
    ],
    align=True,
)

PHASE = np.dtype(  # of a call
    [
        ("messages", np.int64),  # of a lane, in a round
        ("bytes", np.int64),  # of a message
        ("ahead", np.int64),  # messages that a sender may be ahead of what it needs
    ],
    align=True,
)

PROGRESS = np.dtype(  # of a lane in a call
    [
        ("sent", np.int64),  # messages, over all rounds
        ("received", np.int64),
        ("call", np.int32),
        ("lane", np.int32),
    ],
    align=True,
)

PART = np.dtype(  # of a rank in a call
    [
        ("op", np.int32),
        ("call", np.int32),
        ("rank", np.int32),
        ("active", np.int32),
        ("done_0", np.int32),  # lanes wholly received in an even / odd round
        ("done_1", np.int32),
    ],
    align=True,
)

COMPLETION = np.dtype(
    [
        ("job", np.int64),  # or number of a call
        ("index", np.int64),  # round, burst or flow
        ("start_ps", np.int64),
        ("end_ps", np.int64),
        ("bytes", np.int64),  # flows only
    ],
    align=True,
)

LATENCY = np.dtype(
    [
        ("sum_ps", np.int64),
        ("max_ps", np.int64),  # since last cleared
    ],
    align=True,
)

COLLECTIVE = np.dtype(  # what the fabric makes of an entry of a call
    [
        ("job", np.int64),
        ("call", np.int64),  # in its job
        ("round", np.int64),
        ("start_ps", np.int64),  # the last rank began its part
        ("end_ps", np.int64),  # the last rank ended it
        ("bytes", np.int64),
    ],
    align=True,
)

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
        ("horizon_ps", np.int64),  # the wheel reaches this far
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

Array = NDArray[Any]
Int64 = Annotated[Array, np.int64]
Int32 = Annotated[Array, np.int32]


class State(NamedTuple):
    """The simulation: what is annotated with a type is an array of it. Kernels work in place."""

    @property
    def plain(self) -> bool:
        """A constant: whether code of rarely used features is left out, see `engine.is_plain`."""
        return False

    params: Annotated[Array, PARAMS]  # (1,), constant
    core: Annotated[Array, CORE]  # (1,)
    # event queue (wheel.py); an event is a slot, see there
    event_ps: Annotated[
        Array, np.int64
    ]  # (num_slots,), due time of a scheduled event, FOREVER: none
    event_next: Int32  # (num_slots,), next event in the bucket
    event_order: Annotated[
        Array, np.int64
    ]  # (num_slots,), place in the order of scheduling, see wheel.py
    bucket_head: Int32  # (num_buckets,)
    bucket_bits: Int64  # (num_buckets / 32,), bit set: bucket not empty
    bucket_words: Annotated[
        Array, np.int64
    ]  # (num_buckets / 1024,), bit set: word of bucket_bits not 0
    current: Annotated[
        Array, np.int64
    ]  # (num_slots,), sorted keys of the current bucket, right-aligned
    far: Annotated[Array, TIMER]  # (num_timers,), binary heap of timers beyond the current bucket
    # network
    packet: Annotated[Array, PACKET]  # (num_packets,)
    packet_order: Int64  # (num_packets,), event_order of its arrival
    link: Annotated[Array, LINK]  # (num_links,)
    link_packets: Int64  # (num_links,), arrivals on lossy links
    link_losses: Int64  # (num_links,)
    queue: Annotated[Array, QUEUE]  # (num_links * num_classes,), at the link's source
    ingress: Annotated[Array, INGRESS]  # (num_links * num_classes,), at the link's destination
    switch: Annotated[Array, SWITCH]  # (num_switches * num_pools,)
    class_pool: Int64  # (num_classes,)
    xoff: Annotated[Array, XOFF]  # (num_switches,)
    egress: Annotated[Array, EGRESS]  # (num_classes,)
    share: Annotated[Array, SHARE]  # (num_links * num_classes,) with DWRR, else empty
    bucket: Annotated[Array, BUCKET]  # (num_links * num_classes,) if a class is shaped, else empty
    tenant_bucket: Annotated[
        Array, BUCKET
    ]  # (num_hosts * num_tenants,) if a tenant is shaped, else empty
    held_next: Int32  # (num_qps,) if a tenant is shaped: the QP held behind this one
    pfc: Annotated[Array, PFC_PORT]  # (num_links * num_classes,)
    watchdog: Annotated[Array, WATCHDOG]  # (num_links * num_classes,), or (0,) without watchdogs
    storm: Annotated[Array, STORM]  # (num_storms,)
    path: Int32  # (num_qps * 2 * max_hops,), links of data, then of ACKs
    route: Annotated[Array, ROUTE]  # (num_qps * 2,)
    hop_table: Int32  # (num_switches * num_groups,), into hop_set
    hop_set: Annotated[Array, HOP_SET]  # next hops on shortest paths
    hop_link: Int32  # links of all sets, those of a set ascending
    hop_draws: Int64  # (num_switches,), choices made by chance, or by rotation
    mark: Int64  # (num_qps * 3,), kind of marking of data, ACKs, CNPs; empty: not mapped
    class_at: Int64  # (num_switches * num_marks,), class of each kind of marking
    heard: Int64  # (num_links * num_classes,), by frame's class: class that its receiver pauses
    choice: Annotated[Array, CHOICE]  # (num_qps * max_hops,)
    # NIC
    qp: Annotated[Array, QP]  # (num_qps,)
    sender: Annotated[Array, SENDER]  # (num_qps,)
    retry: Annotated[Array, RETRY]  # (num_qps,)
    receiver: Annotated[Array, RECEIVER]  # (num_qps,)
    held: Annotated[Array, REORDER]  # (num_qps,)
    resend: Annotated[Array, RESEND]  # (num_qps,)
    span: Annotated[Array, SPAN]  # (num_packets,)
    nic: Annotated[Array, NIC_CLASS]  # (num_hosts * num_classes,)
    ready: Int64  # words of 32 bits, QPs that may send now
    paced: Annotated[Array, PACED_HEAP]  # (num_hosts,)
    paced_qp: Annotated[Array, PACED_QP]  # (num_qps,), each host's heap of QPs by next_send_ps
    host_link: Int32  # (num_hosts,)
    posted: Int32  # hosts that got something to send during the current event
    message: Annotated[Array, MESSAGE]  # (num_messages,)
    mrg: Int64  # (6,), state of MRG32k3a, see rng.py
    # congestion control; records of the tenant's algorithm, see cc/records.py
    cc_state: Int64  # (num_qps * CC_WORDS,)
    cc_params: Int64  # (num_tenants * CC_PARAM_WORDS,)
    cc_kind: Int32  # (num_tenants,), its algorithm
    window: Int64  # (num_qps,), bytes, at line rate; empty: no QP has one
    sent: Int64  # (num_packets,), when the data packet was sent, ps; empty: nobody asks
    seen: Annotated[Array, INT_HOP]  # (num_packets * max_hops,), by hop; empty: not fed back
    last_seen: Annotated[Array, INT_HOP]  # (num_qps * max_hops,), by the sender; empty: not used
    link_bps: Int64  # (num_links,)
    base_rtt: Int64  # (num_tenants,), ps, round trip of an idle fabric
    waited: Int64  # (num_packets,), ACKs: time at the receiver's NIC, ps; empty: not fed back
    level: Annotated[Array, np.float64]  # (num_packets,), fullest buffer; empty: not fed back
    credit: Int64  # (2 * num_packets,), data: demand, limit; ACKs: granted; empty: no credits
    credit_qp: Annotated[Array, CREDIT_QP]  # (num_qps,), or empty
    credit_host: Annotated[Array, CREDIT_HOST]  # (num_hosts,), or empty
    user_code: Int64  # (num_tenants,), address of the compiled function; 0: none
    user_event: Annotated[Array, USER_EVENT]  # (1,)
    # jobs
    job: Annotated[Array, JOB]  # (num_jobs,)
    job_qp: Int32  # QPs of each job in its own order
    member: Annotated[Array, MEMBER]  # those of all jobs; each COMPUTE operation has a timer, too
    channel: Annotated[Array, CHANNEL]  # (num_channels,)
    flow: Annotated[Array, FLOW]  # (num_flows,)
    # operation graphs; without them empty
    op: Annotated[Array, OP]  # (num_ops,), sorted by member
    op_behind: Int32  # operations that wait for others, by those
    crew: Annotated[Array, CREW]  # (num_members,)
    compute_op: Int32  # (num_compute_ops,), operation of each timer
    arriving: Int32  # (num_qps,), oldest message not yet delivered
    call: Annotated[Array, CALL]  # (num_calls,)
    phase: Annotated[Array, PHASE]
    lane: Annotated[Array, LANE]  # of all machines, sorted by sender in each
    need: Annotated[Array, NEED]  # of all lanes
    fed: Int32  # from the machine's first lane
    station: Annotated[Array, STATION]  # ranks of all machines
    progress: Annotated[Array, PROGRESS]
    part: Annotated[Array, PART]
    log: Annotated[Array, COMPLETION]  # (log_size,)
    # latencies, of messages and of packets; empty: not measured
    latency: Int64  # (num_tenants * 2 * LATENCY_BUCKETS,), how many there were
    latency_total: Annotated[Array, LATENCY]  # (num_tenants * 2,)
    latency_row: Int32  # (num_qps,), its tenant; NONE: not measured


DTYPES: dict[str, np.dtype[Any]] = {
    name: np.dtype(hint.__metadata__[0])
    for name, hint in get_type_hints(State, include_extras=True).items()
}
"""Element type of every array of :class:`State`, in the order of its fields."""
