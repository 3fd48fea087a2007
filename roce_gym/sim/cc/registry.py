"""The sender algorithms there are. A new one is a file beside this one and a line here.

An algorithm decides when a QP may send: it sets `SENDER.rate_bps`, which the NIC paces by and which
a window may follow. Its module has

    two records   of a QP, `records.qp_record([...])`; and of parameters, whose fields are those of
                  the tenant's settings: `x_us` there is `x_ps` here, `x_mbps` is `x_bps`,
                  everything else has the same name
    fresh(records, rates_bps, params), bound(records, highest_bps)
                  called from Python: QPs start, or their highest rate is lowered
    hooks         kernels of one signature, `hook(s, qp, value, now)`

Hooks (those that a module does not define do nothing, at no cost):

    on_cnp    a notification arrived; value: 0
    on_ack    an ACK or NACK was taken in, snd_una and snd_nxt are up to date; value: the packet,
              whose `s.sent`, `s.seen` and `s.level` are as its data packet brought them to the
              receiver; returns whether it moved the time at which the QP may go,
              `QP.next_send_ps`
    on_timeout  the retransmission timer fired, the QP has gone back; value: 0
    on_send   a packet was put on the wire, and paced; value: its wire size
    catch_up  timers are due, `SENDER.cc_due_ps <= now`; value: 0

Timers are no events: `cc_due_ps` says when `catch_up` is to be called at the latest, and it is
called before anything reads the rate. A timer that may raise the rate goes to `increase_due_ps`, so
that a QP that waits at a low rate is looked at then.

An algorithm that `owns_window` also sets `s.window[qp]`, bytes; its module has
`first_window(params, mtu)`, called from Python. Each data packet of its QPs asks for an ACK, which
echoes the CE bit, unless the receiver sets the window (`CREDIT_WINDOW`).
"""

from __future__ import annotations

from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from roce_gym.sim.cc import (
    credit,
    dcqcn,
    dctcp,
    hpcc,
    int_throttle,
    none,
    reno,
    rtt,
    swift,
    timely,
    user,
)
from roce_gym.sim.cc.records import WORD_BYTES
from roce_gym.sim.types import (
    CC_PARAM_WORDS,
    CC_WORDS,
    CREDIT_WINDOW,
    FEEDBACK_ACK,
    FEEDBACK_CREDIT,
    FEEDBACK_INT,
    FEEDBACK_LEVEL,
    FEEDBACK_RTT,
    FEEDBACK_WAIT,
    HAS_WINDOW,
    OWN_WINDOW,
    ZERO,
)

_OWN = HAS_WINDOW | OWN_WINDOW


class Algorithm(NamedTuple):
    """One sender algorithm.

    Attributes:
        name: in scenarios.
        module: with its hooks.
        record, params: its records.
        feedback: what its ACKs have to bring back, `types.FEEDBACK_…` bits; an `on_ack` needs some.
        window: traits of the window that it sets, too; 0: it sets none.
    """

    name: str
    module: ModuleType
    record: np.dtype[Any]
    params: np.dtype[Any]
    feedback: np.int64 = ZERO
    window: np.int64 = ZERO

    @property
    def owns_window(self) -> bool:
        """Whether it sets a window."""
        return bool(self.window)


ALGORITHMS = (
    Algorithm("dcqcn", dcqcn, dcqcn.DCQCN, dcqcn.DCQCN_PARAMS),
    Algorithm("timely", timely, timely.TIMELY, timely.TIMELY_PARAMS, FEEDBACK_RTT),
    Algorithm("hpcc", hpcc, hpcc.HPCC, hpcc.HPCC_PARAMS, FEEDBACK_INT),
    Algorithm("swift", swift, swift.SWIFT, swift.SWIFT_PARAMS, FEEDBACK_RTT | FEEDBACK_WAIT, _OWN),
    Algorithm("rtt", rtt, rtt.RTT, rtt.RTT_PARAMS, FEEDBACK_RTT),
    Algorithm("dctcp", dctcp, dctcp.TCP, dctcp.DCTCP_PARAMS, FEEDBACK_ACK, _OWN),
    Algorithm("reno", reno, reno.TCP, reno.RENO_PARAMS, FEEDBACK_ACK, _OWN),
    Algorithm("user", user, user.USER, user.USER_PARAMS, FEEDBACK_RTT),
    Algorithm(
        "credit",
        credit,
        credit.CREDIT,
        credit.CREDIT_PARAMS,
        FEEDBACK_CREDIT,
        _OWN | CREDIT_WINDOW,
    ),
    Algorithm(
        "int_throttle",
        int_throttle,
        int_throttle.INT_THROTTLE,
        int_throttle.INT_THROTTLE_PARAMS,
        FEEDBACK_LEVEL,
    ),
    Algorithm("none", none, none.NONE, none.NONE_PARAMS),
)

for _one in ALGORITHMS:
    assert _one.record.itemsize <= WORD_BYTES * CC_WORDS, _one.name
    assert _one.params.itemsize <= WORD_BYTES * CC_PARAM_WORDS, _one.name

CODES = {algorithm.name: code for code, algorithm in enumerate(ALGORITHMS, start=1)}
"""What `SENDER.cc` holds; 0 is none."""
