"""The whole state of a simulation."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple, get_type_hints

import numpy as np
from numpy.typing import NDArray

from roce_gym.sim.types.buffers import (
    BUCKET,
    EGRESS,
    INGRESS,
    PFC_PORT,
    QUEUE,
    SHARE,
    STORM,
    SWITCH,
    WATCHDOG,
    XOFF,
)
from roce_gym.sim.types.control import CREDIT_HOST, CREDIT_QP, USER_EVENT
from roce_gym.sim.types.endpoints import (
    MESSAGE,
    NIC_CLASS,
    PACED_HEAP,
    PACED_QP,
    QP,
    RECEIVER,
    REORDER,
    RESEND,
    RETRY,
    SENDER,
    SPAN,
)
from roce_gym.sim.types.jobs import (
    CALL,
    CHANNEL,
    COMPLETION,
    CREW,
    FLOW,
    JOB,
    LANE,
    LATENCY,
    MEMBER,
    NEED,
    OP,
    PART,
    PHASE,
    PROGRESS,
    STATION,
)
from roce_gym.sim.types.network import CHOICE, HOP_SET, INT_HOP, LINK, PACKET, ROUTE
from roce_gym.sim.types.simulation import CORE, PARAMS, TIMER

Array = NDArray[Any]
Int64 = Annotated[Array, np.int64]
Int32 = Annotated[Array, np.int32]


class State(NamedTuple):
    """The simulation: what is annotated with a type is an array of it. Kernels work in place."""

    @property
    def plain(self) -> bool:
        """A constant: whether code of rarely used features is left out, see `kernels.is_plain`."""
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
    egress_drops: Int64  # (num_links * num_classes,), packets that a queue's bound kept out
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
