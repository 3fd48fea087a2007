"""Jobs: step machines, operation graphs; what is recorded of them."""

from __future__ import annotations

import numpy as np

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
