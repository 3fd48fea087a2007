"""What runs on the fabric, resolved: queue pairs with their paths, and the jobs that use them.

The plan is the only thing `fabric.py` needs to know about tenants. QPs are numbered by
(source host, class in the order of `config.class_order`, order of creation), as `docs/rules.md`
section 1 says.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

from roce_gym.workload.graph_plan import GraphPlan

JobKind = Literal["flows", "ring_all_reduce", "all_to_all", "incast", "graph"]


class QueuePair(NamedTuple):
    """One reliable connection from `src` to `dst`.

    Attributes:
        src, dst: hosts; of two GPUs of one server, their ends on its NVLink.
        tenant: index into `Scenario.tenants`.
        class_index: index into `Scenario.classes` (data packets).
        data_links, ack_links: directed links in order, host to host and back.
        is_local: whether it runs over the NVLink of a server, and never leaves it.
        job, number: index of its job in its tenant, and its own number in that job.
        is_pinned: whether the paths of data and of ACKs were given, and are kept whatever happens.
        timeout_ps, retry_limit: of retransmission, 0 = never; None: those of the NIC.
    """

    src: int
    dst: int
    tenant: int
    class_index: int
    data_links: tuple[int, ...]
    ack_links: tuple[int, ...]
    is_local: bool = False
    job: int = 0
    number: int = 0
    is_pinned: tuple[bool, bool] = (False, False)
    timeout_ps: int | None = None
    retry_limit: int | None = None


@dataclass(frozen=True, slots=True)
class JobPlan:
    """One job of a tenant.

    Attributes:
        kind: selects the step machine.
        tenant: index into `Scenario.tenants`.
        hosts: members in rank order (ring, all-to-all, graph), senders (incast), empty (flows).
        qps: QP ids; ring: [channel][rank], to rank + 1; all-to-all: [rank][k], to rank + 1 + k
            (modulo n, k < n - 1); incast: [0][sender]; flows: [0][flow]; graph: [0][k], as its
            `graph.connections`.
        first_member_id: number of the job's rank 0 among the members (hosts of rings, all-to-alls
            and graphs) of all jobs of all tenants of the scenario, planned or not.
        message_bytes: per message (ring, all-to-all, incast); 0 for flows.
        messages_per_round: per channel (ring) or member (all-to-all), per burst (incast).
        chunks: messages a ring member may send ahead of what it received.
        compute_ps, jitter: compute phase before each round.
        start_ps, stop_ps: first round, and no new round from then on (-1: no limit).
        period_ps: of bursts; 0 otherwise.
        rounds: most rounds or bursts (-1: no limit).
        flow_start_ps, flow_bytes: flows only, sorted by start, in file order where equal.
        graph: what each round does, of a graph; None for all others.
        label: what the job is called, if not by its kind.
    """

    kind: JobKind
    tenant: int
    hosts: tuple[int, ...]
    qps: tuple[tuple[int, ...], ...]
    first_member_id: int = 0
    message_bytes: int = 0
    messages_per_round: int = 0
    chunks: int = 0
    compute_ps: int = 0
    jitter: float = 0.0
    start_ps: int = 0
    stop_ps: int = -1
    period_ps: int = 0
    rounds: int = -1
    flow_start_ps: tuple[int, ...] = ()
    flow_bytes: tuple[int, ...] = ()
    graph: GraphPlan | None = None
    label: str | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """All queue pairs and jobs of a scenario, in their final numbering."""

    qps: tuple[QueuePair, ...]
    jobs: tuple[JobPlan, ...]
