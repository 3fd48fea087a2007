"""Execution of operation graphs (rules, section 9.1).

Every operation counts the operations of its rank that it still waits for. What may begin queues up
at its member and is begun in that order; an event makes one member go on.
"""

from __future__ import annotations

from numpy import int64

from roce_gym.sim.jit import helper, rare
from roce_gym.sim.lanes import begin_part, post_to_come, take_in_lane
from roce_gym.sim.rng import uniform
from roce_gym.sim.types import (
    COLLECTIVE_OP,
    COMPUTE_OP,
    NONE,
    PAUSES,
    RECV_OP,
    SEND_OP,
    STREAM_COMPUTE,
)
from roce_gym.sim.wheel import push_far


@helper
def member_slot(s, member):
    """The event slot of a member's timer."""
    params = s.params[0]
    return 2 * params["num_links"] + params["num_hosts"] + params["num_qps"] + member


@rare
def compute_ps(s, member_id, wanted_ps):
    """How long a member computes for what takes `wanted_ps`, in its present round."""
    member = s.member[member_id]
    job = s.job[member["job"]]
    stream_id = job["first_member_id"] + member["rank"]
    u = uniform(s.params[0]["seed"], STREAM_COMPUTE, stream_id, member["round"])
    return int(wanted_ps * (1.0 + job["jitter"] * (2.0 * u - 1.0)))


@rare
def begin_operations(s, member_id, now):
    """A member enters its round."""
    member = s.member[member_id]
    crew = s.crew[member_id]
    member["ops_left"] = crew["num_ops"]
    for op_id in range(crew["first_op"], crew["first_op"] + crew["num_ops"]):
        if s.op[op_id]["needs"] == 0:
            _enqueue(s, crew, op_id)
    _go_on(s, member_id, now)


@helper
def _enqueue(s, crew, op_id):
    s.op[op_id]["next"] = NONE
    if crew["head"] == NONE:
        crew["head"] = op_id
    else:
        s.op[crew["tail"]]["next"] = op_id
    crew["tail"] = op_id


@rare
def _go_on(s, member_id, now):
    """Begins all operations that may begin, up to the second collective (see `most_posts`)."""
    member = s.member[member_id]
    crew = s.crew[member_id]
    collectives = 0
    while crew["head"] != NONE and member["computing"] != PAUSES:
        op_id = int64(crew["head"])
        op = s.op[op_id]
        kind = op["kind"]
        if kind == COLLECTIVE_OP:
            collectives += 1
            if collectives == 2:
                member["computing"] = PAUSES
                push_far(s, member_slot(s, member_id), now)
                return
        crew["head"] = op["next"]
        op["left"] = op["needs"]
        done = False
        if kind == COMPUTE_OP:
            slot = member_slot(s, s.member.size + op["target"])
            push_far(s, slot, now + compute_ps(s, member_id, op["amount"]))
        elif kind == SEND_OP:
            post_to_come(s, int64(op["target"]), op["amount"], int64(op["mate"]), now)
            done = True
        elif kind == RECV_OP:
            done = op["arrived"] > member["round"]
            op["waits"] = 0 if done else 1
        else:
            done = begin_part(s, int64(op["target"]), member["round"], now)
        if done:
            _end(s, op_id)


@helper
def _end(s, op_id):
    """An operation is done: those that waited for it alone may begin."""
    op = s.op[op_id]
    crew = s.crew[op["member"]]
    s.member[op["member"]]["ops_left"] -= 1
    for i in range(op["first_behind"], op["first_behind"] + op["num_behind"]):
        other = int64(s.op_behind[i])
        s.op[other]["left"] -= 1
        if s.op[other]["left"] == 0:
            _enqueue(s, crew, other)


@rare
def resume(s, member_id, now):
    """A member goes on in its round, after others have had their turn."""
    s.member[member_id]["computing"] = 0
    _go_on(s, member_id, now)


@rare
def end_compute(s, timer, now):
    """A COMPUTE operation is over. Returns its member."""
    op_id = int64(s.compute_op[timer])
    member_id = int64(s.op[op_id]["member"])
    _end(s, op_id)
    _go_on(s, member_id, now)
    return member_id


@rare
def take_in(s, qp, now):
    """A message of a graph has arrived. Returns the member that got it."""
    m = int64(s.arriving[qp])
    tag = int64(s.message[m]["tag"])
    s.arriving[qp] = s.message[m]["next"]
    if tag < 0:
        part_id, done = take_in_lane(s, -1 - tag, now)
        op_id = int64(s.part[part_id]["op"])
    else:
        op_id = tag
        op = s.op[op_id]
        op["arrived"] += 1
        done = op["waits"] == 1
        op["waits"] = 0
    member_id = int64(s.op[op_id]["member"])
    if done:
        _end(s, op_id)
        _go_on(s, member_id, now)
    return member_id
