"""QPs that are *held* by their tenant's token bucket, which lets one pass at a time (rules, 6)."""

from __future__ import annotations

from numpy import int64

from roce_gym.sim.jit import rare
from roce_gym.sim.scheduler import join_ready, leave_ready, next_ready
from roce_gym.sim.shaper import append_held, arm_bucket, bucket_of, give_up_grant, may_pass
from roce_gym.sim.types import HELD, NONE


@rare
def hold_back(s, link, now):
    """Holds the QPs that would be next in their class but may not pass their tenant's bucket."""
    params = s.params[0]
    wire = s.link[link]
    open_classes = int64(wire["waiting"]) & ~int64(wire["paused"])
    for cls in range(1, params["num_classes"]):
        scheduler = s.nic[wire["src"] * params["num_classes"] + cls]
        while (open_classes >> cls) & 1 == 1 and scheduler["num_ready"] > 0:
            qp = int64(scheduler["first_qp"] + next_ready(s, scheduler))
            if may_pass(s, qp, now):
                break
            leave_ready(s, qp)
            s.sender[qp]["state"] = HELD
            append_held(s, qp)
            give_up_grant(s, qp)
            arm_bucket(s, bucket_of(s, qp), now)


@rare
def on_tenant_bucket(s, index):
    """The first QP held gets a grant. Returns its host's link, to be served, or NONE."""
    bucket = s.tenant_bucket[index]
    qp = int64(bucket["head"])
    if qp == NONE:
        return NONE
    bucket["head"] = s.held_next[qp]
    bucket["granted"] = qp
    join_ready(s, qp)
    return int64(s.host_link[s.qp[qp]["src"]])
