"""Pools of packets and messages; `fabric.py` enlarges them when they run low."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from roce_gym.sim import types as t
from roce_gym.topology.graph import Network
from roce_gym.workload.plan import Plan

MIN_PACKETS = 4096
MIN_MESSAGES = 1024


def make_pools(network: Network, plan: Plan) -> tuple[NDArray[Any], NDArray[Any]]:
    """Packets and messages, all free."""
    packet = np.zeros(max(MIN_PACKETS, 32 * network.num_links), t.PACKET)
    message = np.zeros(max(MIN_MESSAGES, 2 * len(plan.qps), 2 * most_posts(plan)), t.MESSAGE)
    link_free_list(packet, 0)
    link_free_list(message, 0)
    return packet, message


def most_posts(plan: Plan) -> int:
    """Most messages that one event may post (or complete).

    PRECONDITION: the flows of a job have a QP each (`workload/planner.py`), so that one ACK
    completes one flow.
    """
    most = 1
    for job in plan.jobs:
        if job.kind == "flows" and job.flow_start_ps:
            most = max(most, int(np.unique(job.flow_start_ps, return_counts=True)[1].max()))
        elif job.kind == "ring_all_reduce":
            # Its predecessor, before which all others wait, may be n - 1 times `chunks` ahead.
            most = max(most, len(job.qps) * len(job.hosts) * job.chunks)
        elif job.kind == "all_to_all":
            most = max(most, len(job.hosts))
        elif job.graph is not None:
            most = max(most, job.graph.most_posts)
        else:
            most = max(most, job.messages_per_round)
    return most


def link_free_list(pool: NDArray[Any], first: int) -> None:
    """Chains records from `first` on; the last one ends the list."""
    pool["next"][first:] = np.arange(first + 1, len(pool) + 1)
    pool["next"][-1] = t.NONE
