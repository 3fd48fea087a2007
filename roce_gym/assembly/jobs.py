"""Jobs as the step machines of `sim/collective.py` want them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from roce_gym.assembly.graphs import joined, make_graphs
from roce_gym.sim import types as t
from roce_gym.workload.plan import JobPlan, Plan

_JOB_KINDS = {
    "flows": t.FLOWS,
    "ring_all_reduce": t.RING,
    "all_to_all": t.ALL_TO_ALL,
    "incast": t.INCAST,
    "graph": t.GRAPH,
}

WITH_MEMBERS = ("ring_all_reduce", "all_to_all", "graph")
"""Kinds of jobs whose hosts have timers of their own."""


def make_jobs(plan: Plan) -> dict[str, NDArray[Any]]:
    """Job, member, channel and flow records, graphs, and each QP's job and endpoint."""
    job = np.zeros(len(plan.jobs), t.JOB)
    endpoint = np.full(len(plan.qps), t.NONE, np.int32)
    qp_job = np.full(len(plan.qps), t.NONE, np.int32)
    members: list[NDArray[Any]] = []
    channels: list[NDArray[Any]] = []
    flows: list[NDArray[Any]] = []
    job_qp: list[NDArray[Any]] = []
    counts = {"member": 0, "channel": 0, "flow": 0, "qp": 0}
    for i, planned in enumerate(plan.jobs):
        record = job[i]
        _fill_job(record, planned, counts)
        qps = np.array(planned.qps, np.int32).reshape(len(planned.qps), -1)
        qp_job[qps] = i
        job_qp.append(qps.reshape(-1))
        counts["qp"] += qps.size
        n = len(planned.hosts)
        if planned.kind == "ring_all_reduce":
            rank = np.arange(n)
            channel = np.zeros((n, len(qps)), t.CHANNEL)
            channel["member"] = counts["member"] + rank[:, None]
            channel["qp"] = qps.T
            for c in range(len(qps)):
                receiver = (rank + 1) % n
                endpoint[qps[c]] = counts["channel"] + receiver * len(qps) + c
            channels.append(channel.reshape(-1))
            counts["channel"] += channel.size
        elif planned.kind == "all_to_all":
            rank = np.arange(n)[:, None]
            endpoint[qps] = counts["member"] + (rank + 1 + np.arange(n - 1)[None, :]) % n
        elif planned.kind == "flows":
            flow = np.zeros(len(planned.flow_bytes), t.FLOW)
            flow["start_ps"] = planned.flow_start_ps
            flow["bytes"] = planned.flow_bytes
            flow["qp"] = qps[0]
            flows.append(flow)
            counts["flow"] += flow.size
        if planned.kind in WITH_MEMBERS:
            member = np.zeros(n, t.MEMBER)
            member["job"] = i
            member["rank"] = np.arange(n)
            members.append(member)
            counts["member"] += n
    return {
        "job": job,
        "endpoint": endpoint,
        "qp_job": qp_job,
        "member": joined(t.MEMBER, members),
        "channel": joined(t.CHANNEL, channels),
        "flow": joined(t.FLOW, flows),
        "job_qp": joined(np.int32, job_qp),
        **make_graphs(plan, job["first_member"].tolist()),
    }


def _fill_job(record: Any, planned: JobPlan, counts: dict[str, int]) -> None:
    record["kind"] = _JOB_KINDS[planned.kind]
    record["first_member"] = counts["member"]
    record["num_members"] = len(planned.hosts)
    record["first_member_id"] = planned.first_member_id
    record["first_channel"] = counts["channel"]
    record["num_channels"] = len(planned.qps)
    record["first_qp"] = counts["qp"]
    record["message_bytes"] = planned.message_bytes
    record["messages"] = planned.messages_per_round
    record["chunks"] = planned.chunks
    record["compute_ps"] = planned.compute_ps
    record["jitter"] = planned.jitter
    record["start_ps"] = planned.start_ps
    record["stop_ps"] = t.FOREVER if planned.stop_ps < 0 else planned.stop_ps
    record["period_ps"] = planned.period_ps
    record["rounds"] = t.FOREVER if planned.rounds < 0 else planned.rounds
    record["begun_ps"] = t.FOREVER
    record["first_flow"] = counts["flow"]
    record["num_flows"] = len(planned.flow_bytes)
