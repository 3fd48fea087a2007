"""Step machines of the jobs: who sends what next, when what arrives (rules, section 9).

The loops of rings, all-to-alls and incasts are here; operation graphs go on in operations.py.

No list of messages is ever built: a ring member knows how many messages it has sent and received
on each channel, which says whether it may send another; memory is O(ranks x channels).
"""

from __future__ import annotations

from numpy import int64

from roce_gym.sim.jit import helper, rare
from roce_gym.sim.nic import post
from roce_gym.sim.operations import (
    begin_operations,
    compute_ps,
    end_compute,
    member_slot,
    resume,
    take_in,
)
from roce_gym.sim.types import (
    ALL_TO_ALL,
    COMPUTES,
    FLOWS,
    FOREVER,
    GRAPH,
    INCAST,
    PAUSES,
    RING,
    WAITS,
)
from roce_gym.sim.wheel import push_far


@helper
def _job_slot(s, job_id):
    return member_slot(s, s.params[0]["num_members"]) + job_id


@rare
def start_jobs(s):
    """Arms the first timer of every job and member, at time 0."""
    for job_id in range(s.job.size):
        job = s.job[job_id]
        if job["kind"] == FLOWS:
            if job["num_flows"] > 0:
                push_far(s, _job_slot(s, job_id), s.flow[job["first_flow"]]["start_ps"])
        elif job["kind"] == INCAST:
            push_far(s, _job_slot(s, job_id), job["start_ps"])
        else:
            for member in range(job["first_member"], job["first_member"] + job["num_members"]):
                _compute(s, member, job["start_ps"])


@rare
def _compute(s, member_id, now):
    """The compute phase before a member's round."""
    member = s.member[member_id]
    member["computing"] = COMPUTES
    length_ps = compute_ps(s, member_id, s.job[member["job"]]["compute_ps"])
    push_far(s, member_slot(s, member_id), now + length_ps)


@rare
def on_member_timer(s, member_id, now):
    """A member's compute phase is over: it enters its round, unless the job ends before it.

    Timers beyond those of members are those of COMPUTE operations.
    """
    if member_id >= s.member.size:
        _finish_if_done(s, end_compute(s, member_id - s.member.size, now), now)
        return
    member = s.member[member_id]
    if member["computing"] == PAUSES:
        resume(s, member_id, now)
        _finish_if_done(s, member_id, now)
        return
    job = s.job[member["job"]]
    turn = member["round"]
    entered = job["entered_0"] if turn & 1 == 0 else job["entered_1"]
    if entered == 0 and now >= job["stop_ps"]:
        job["rounds"] = min(job["rounds"], turn)
    if turn >= job["rounds"]:
        return
    member["computing"] = 0
    if turn & 1 == 0:
        job["entered_0"] = entered + 1
    else:
        job["entered_1"] = entered + 1
    if entered + 1 == job["num_members"]:
        job["begun_ps"] = now
        job["round"] = turn
    if job["kind"] == RING:
        for c in range(job["num_channels"]):
            _advance_ring(s, job, _channel_of(job, member["rank"], c), now)
    elif job["kind"] == GRAPH:
        begin_operations(s, member_id, now)
    else:
        first = job["first_qp"] + member["rank"] * (job["num_members"] - 1)
        for k in range(job["num_members"] - 1):
            post(s, int64(s.job_qp[first + k]), job["message_bytes"], turn, now)
    _finish_if_done(s, member_id, now)


@helper
def _channel_of(job, rank, c):
    return job["first_channel"] + rank * job["num_channels"] + c


@rare
def _advance_ring(s, job, channel_id, now):
    """Sends what the messages received so far allow."""
    channel = s.channel[channel_id]
    member = s.member[channel["member"]]
    if member["computing"] == 1:
        return
    begin = member["round"] * job["messages"]
    allowed = min(begin + job["messages"], max(begin, channel["received"]) + job["chunks"])
    while channel["sent"] < allowed:
        post(s, int64(channel["qp"]), job["message_bytes"], channel["sent"], now)
        channel["sent"] += 1


@rare
def delivered(s, qp, now):
    """A message has arrived whole and in order: the job of its QP goes on."""
    pair = s.qp[qp]
    job = s.job[pair["job"]]
    kind = job["kind"]
    if kind == RING:
        channel = s.channel[pair["endpoint"]]
        channel["received"] += 1
        _advance_ring(s, job, int64(pair["endpoint"]), now)
        _finish_if_done(s, int64(channel["member"]), now)
    elif kind == ALL_TO_ALL:
        member = s.member[pair["endpoint"]]
        if (s.receiver[qp]["messages"] - 1) & 1 == 0:
            member["got_0"] += 1
        else:
            member["got_1"] += 1
        _finish_if_done(s, int64(pair["endpoint"]), now)
    elif kind == GRAPH:
        _finish_if_done(s, take_in(s, qp, now), now)
    elif kind == INCAST:
        job["finished"] += 1
        if job["finished"] == job["messages"]:
            job["finished"] = 0
            _close_round(s, job, int64(pair["job"]), now)
            job["round"] += 1
            again_ps = job["start_ps"] + job["round"] * job["period_ps"]
            if job["round"] < job["rounds"] and max(again_ps, now) < job["stop_ps"]:
                push_far(s, _job_slot(s, int64(pair["job"])), max(again_ps, now))


@helper
def _has_all(s, job, member):
    """Whether a member has received everything of its round."""
    if job["kind"] == GRAPH:
        return member["ops_left"] == 0
    if job["kind"] == RING:
        goal = (member["round"] + 1) * job["messages"]
        for c in range(job["num_channels"]):
            if s.channel[_channel_of(job, member["rank"], c)]["received"] < goal:
                return False
        return True
    got = member["got_0"] if member["round"] & 1 == 0 else member["got_1"]
    return got == job["num_members"] - 1


@rare
def _finish_if_done(s, member_id, now):
    """Ends a member's round once it has everything; the last member ends the collective."""
    member = s.member[member_id]
    job = s.job[member["job"]]
    if member["computing"] != 0 or not _has_all(s, job, member):
        return
    if job["kind"] == GRAPH:
        _finish_graph(s, member_id, now)
        return
    if member["round"] & 1 == 0:
        member["got_0"] = 0
    else:
        member["got_1"] = 0
    job["finished"] += 1
    if job["finished"] == job["num_members"]:
        job["finished"] = 0
        if member["round"] & 1 == 0:
            job["entered_0"] = 0
        else:
            job["entered_1"] = 0
        _close_round(s, job, int64(member["job"]), now)
    member["round"] += 1
    _compute(s, member_id, now)


@rare
def _finish_graph(s, member_id, now):
    """Ends a member's round of a graph, which others may not even have begun."""
    member = s.member[member_id]
    job = s.job[member["job"]]
    even = member["round"] & 1 == 0
    finished = (job["finished"] if even else job["finished_1"]) + 1
    member["computing"] = WAITS
    member["round"] += 1
    closes = finished == job["num_members"]
    if closes:
        finished = 0
        job["closed"] += 1
        _close_round(s, job, int64(member["job"]), now)
    if even:
        job["finished"] = finished
        job["entered_0"] = 0 if closes else job["entered_0"]
    else:
        job["finished_1"] = finished
        job["entered_1"] = 0 if closes else job["entered_1"]
    if closes:
        for other in range(job["first_member"], job["first_member"] + job["num_members"]):
            _go_on_if_allowed(s, job, other, now)
    else:
        _go_on_if_allowed(s, job, member_id, now)


@helper
def _go_on_if_allowed(s, job, member_id, now):
    """No member is more than a round ahead of another."""
    member = s.member[member_id]
    if member["computing"] == WAITS and member["round"] <= job["closed"] + 1:
        _compute(s, member_id, now)


@helper
def _close_round(s, job, job_id, now):
    core = s.core[0]
    entry = s.log[core["log_length"]]
    core["log_length"] += 1
    entry["job"] = job_id
    entry["index"] = job["round"]
    entry["start_ps"] = job["begun_ps"]
    entry["end_ps"] = now
    entry["bytes"] = 0
    job["busy_ps"] += now - job["begun_ps"]
    job["begun_ps"] = FOREVER


@rare
def on_job_timer(s, job_id, now):
    """A burst of an incast, or the next flows of a list."""
    job = s.job[job_id]
    if job["kind"] == FLOWS:
        while job["round"] < job["num_flows"]:
            flow = s.flow[job["first_flow"] + job["round"]]
            if flow["start_ps"] > now:
                push_far(s, _job_slot(s, job_id), flow["start_ps"])
                return
            post(s, flow["qp"], flow["bytes"], job["round"], now)
            job["round"] += 1
    elif now < job["stop_ps"]:
        job["begun_ps"] = now
        for k in range(job["messages"]):
            post(s, int64(s.job_qp[job["first_qp"] + k]), job["message_bytes"], job["round"], now)
