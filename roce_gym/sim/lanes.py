"""Step machines of collectives in operation graphs (rules, section 9.2).

A lane is a stream of messages from one rank to another. How many its sender may have posted follows
from how many came in on the lanes that it needs. Numbers of messages count over all rounds.
"""

from __future__ import annotations

from numpy import int64

from roce_gym.sim.jit import helper, rare
from roce_gym.sim.nic import post
from roce_gym.sim.types import NONE


@rare
def post_to_come(s, qp, size, tag, now):
    """Posts a message whose receiver will want to know its tag."""
    post(s, qp, size, tag, now)
    if s.arriving[qp] == NONE:
        s.arriving[qp] = s.qp[qp]["newest"]


@rare
def begin_part(s, part_id, turn, now):
    """A rank begins its part in a collective, in round `turn`. Returns whether it is done."""
    part = s.part[part_id]
    call = s.call[part["call"]]
    part["active"] = 1
    if turn & 1 == 0:
        call["begun_0_ps"] = now
    else:
        call["begun_1_ps"] = now
    station = s.station[call["first_station"] + part["rank"]]
    for lane in range(station["first_lane"], station["first_lane"] + station["num_lanes"]):
        _advance(s, call, int64(lane), turn, now)
    return _finish_part(s, part_id, turn, now)


@rare
def _advance(s, call, lane_id, turn, now):
    """Posts what may be posted on a lane, and on those that come after it."""
    while lane_id != NONE:
        lane = s.lane[call["first_lane"] + lane_id]
        progress_id = call["first_progress"] + lane_id
        progress = s.progress[progress_id]
        phase = s.phase[call["first_phase"] + lane["phase"]]
        first = turn * phase["messages"]
        allowed = first + _allowed(s, call, lane, phase, turn)
        while progress["sent"] < allowed:
            post_to_come(s, int64(lane["qp"]), phase["bytes"], -1 - progress_id, now)
            progress["sent"] += 1
        lane_id = int64(lane["then"])
        if progress["sent"] < first + phase["messages"]:
            return


@helper
def _messages(s, call, lane_id):
    """Of a lane in a round."""
    lane = s.lane[call["first_lane"] + lane_id]
    return s.phase[call["first_phase"] + lane["phase"]]["messages"]


@helper
def _allowed(s, call, lane, phase, turn):
    """How many messages of this round a lane may carry by now."""
    after = int64(lane["after"])
    if after != NONE:
        sent = s.progress[call["first_progress"] + after]["sent"]
        if sent < (turn + 1) * _messages(s, call, after):
            return int64(0)
    allowed = phase["messages"]
    for i in range(lane["first_need"], lane["first_need"] + lane["num_needs"]):
        other = int64(s.need[i]["lane"])
        messages = _messages(s, call, other)
        got = s.progress[call["first_progress"] + other]["received"] - turn * messages
        if s.need[i]["whole"] == 0:
            allowed = min(allowed, got + phase["ahead"])
        elif got < messages:
            return int64(0)
    return allowed


@rare
def take_in_lane(s, progress_id, now):
    """A message of a lane has arrived. Returns its rank's part, and whether that is done by it."""
    progress = s.progress[progress_id]
    call = s.call[progress["call"]]
    lane = s.lane[call["first_lane"] + progress["lane"]]
    part_id = call["first_part"] + lane["dst"]
    part = s.part[part_id]
    messages = s.phase[call["first_phase"] + lane["phase"]]["messages"]
    progress["received"] += 1
    if progress["received"] % messages == 0:
        if progress["received"] // messages & 1 == 1:
            part["done_0"] += 1
        else:
            part["done_1"] += 1
    if part["active"] == 0:
        return part_id, False
    turn = s.member[s.op[part["op"]]["member"]]["round"]
    for i in range(lane["first_fed"], lane["first_fed"] + lane["num_fed"]):
        _advance(s, call, int64(s.fed[i]), turn, now)
    return part_id, _finish_part(s, part_id, turn, now)


@rare
def _finish_part(s, part_id, turn, now):
    """Ends a rank's part if it has received everything; the last rank ends the collective."""
    part = s.part[part_id]
    call = s.call[part["call"]]
    even = turn & 1 == 0
    got = part["done_0"] if even else part["done_1"]
    if got < s.station[call["first_station"] + part["rank"]]["num_into"]:
        return False
    part["active"] = 0
    if even:
        part["done_0"] = 0
        call["finished_0"] += 1
        if call["finished_0"] == call["num_ranks"]:
            call["finished_0"] = 0
            _log_call(s, call, turn, call["begun_0_ps"], now)
    else:
        part["done_1"] = 0
        call["finished_1"] += 1
        if call["finished_1"] == call["num_ranks"]:
            call["finished_1"] = 0
            _log_call(s, call, turn, call["begun_1_ps"], now)
    return True


@helper
def _log_call(s, call, turn, start_ps, now):
    core = s.core[0]
    entry = s.log[core["log_length"]]
    core["log_length"] += 1
    entry["job"] = call["number"]
    entry["index"] = turn
    entry["start_ps"] = start_ps
    entry["end_ps"] = now
    entry["bytes"] = call["bytes"]
