"""An operation graph to execute, and with everything resolved that the simulator needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from roce_gym.workload.machines import Machine, Options, Sizes
from roce_gym.workload.op_graph import OpGraph, OpKind


class GraphWork(NamedTuple):
    """A graph that is executed once a round.

    Attributes:
        graph: its ranks are the hosts of the tenant, in their order, which may be more.
        options: how collectives are cut up.
        rounds: most rounds; -1: no limit.
        compute_ps: compute phase of every rank before each round, not part of it.
        jitter: that phase and all COMPUTE operations of a rank take, in each round, a factor drawn
            uniformly from (1 - jitter, 1 + jitter) longer; 0 … 1.
    """

    graph: OpGraph
    options: Options = Options()
    rounds: int = -1
    compute_ps: int = 0
    jitter: float = 0.0


class Connection(NamedTuple):
    """What a queue pair is for.

    Attributes:
        group: -1 for SENDs, else number of the group of ranks whose collectives use it.
        src, dst: ranks.
        channel: of a SEND; of a collective see `machines.Machine.connection`.
    """

    group: int
    src: int
    dst: int
    channel: int


@dataclass(frozen=True, slots=True, eq=False)
class GraphPlan:
    """A graph with everything resolved. Q queue pairs, n operations, m of them COMPUTE.

    Attributes:
        graph: what is executed, operations sorted by rank.
        options: how its collectives are cut up.
        connections: what each queue pair is for, in the order of `JobPlan.qps[0]`.
        send_qp: shape (n,), int32, queue pair of a SEND, by its number in the job; -1: no SEND.
        mate: shape (n,), int32, the RECV that a SEND's message belongs to; -1: no SEND.
        machines: step machines of the collectives; calls of one kind share one.
        call_machine: shape (calls,), its machine.
        call_sizes: of each call, by phase of its machine.
        lane_qp: of each machine, shape (lanes,), int32: queue pair by its number in the job.
        round_bytes: that one round delivers.
        most_posts: most messages that one event may post, and collectives that it may end.
    """

    graph: OpGraph
    options: Options
    connections: tuple[Connection, ...]
    send_qp: NDArray[np.int32]
    mate: NDArray[np.int32]
    machines: tuple[Machine, ...]
    call_machine: NDArray[np.int32]
    call_sizes: tuple[Sizes, ...]
    lane_qp: tuple[NDArray[np.int32], ...]
    round_bytes: int
    most_posts: int

    @property
    def num_computes(self) -> int:
        """COMPUTE operations, each of which has a timer."""
        return int((self.graph.kind == OpKind.COMPUTE).sum())
