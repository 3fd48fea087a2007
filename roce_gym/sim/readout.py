"""Counters of all ports and queue pairs in one go, in the order of PORT_ROWS and of QP_ROWS."""

from __future__ import annotations

from typing import Any

from roce_gym.sim.cc.dcqcn import state_of_qp
from roce_gym.sim.cc.registry import CODES
from roce_gym.sim.handle import state_of
from roce_gym.sim.jit import entry, source_hash
from roce_gym.sim.types import FOREVER

_DCQCN = CODES["dcqcn"]

PORT_TOTALS = (
    *("tx_bytes", "tx_packets", "ecn_marked_packets", "area"),
    *("pause_frames", "resume_frames", "paused_ps", "dropped_packets"),
)
"""Rows that count from time 0."""

PORT_ROWS = (
    *PORT_TOTALS,
    *("queue_bytes", "queue_max_bytes", "ingress_bytes", "headroom_bytes"),
    *("ingress_max_bytes", "ingress_max_limit_bytes", "headroom_max_bytes", "first_pause_ps"),
)

QP_TOTALS = ("acked_bytes", "delivered_bytes", "cnps", "nacks")
"""Rows that count from time 0."""

QP_ROWS = (*QP_TOTALS, "outstanding_bytes", "rate_bps")


def _make_read_out(_key: int) -> Any:
    def read_out(table, columns, ports, qps, alpha):
        """Reads counters as they are now; peaks begin anew with what is there.

        Args:
            table: of the state [in/out]
            columns: shape (C,), int64, internal numbers of the classes to read
            ports: shape (len(PORT_ROWS), L, C), int64 [out]
            qps: shape (len(QP_ROWS), Q), int64 [out]
            alpha: shape (Q,), float64, of DCQCN; others stay as they are [out]
        """
        _ = _key  # part of the cache key, see jit.py
        s = state_of(table)
        now = s.core[0]["now_ps"]
        num_classes = s.params[0]["num_classes"]
        for link in range(ports.shape[1]):
            for c in range(columns.size):
                port = link * num_classes + columns[c]
                queue = s.queue[port]
                ports[0, link, c] = queue["tx_bytes"]
                ports[1, link, c] = queue["tx_packets"]
                ports[2, link, c] = queue["marks"]
                held = queue["bytes"] * (now - queue["changed_ps"]) >> 10
                ports[3, link, c] = queue["area"] + held
                ports[8, link, c] = queue["bytes"]
                ports[9, link, c] = queue["max_bytes"]
                ingress = s.ingress[port]
                ports[4, link, c] = ingress["pauses"]
                ports[5, link, c] = ingress["resumes"]
                ports[7, link, c] = ingress["drops"]
                ports[10, link, c] = ingress["bytes"] + ingress["headroom_used"]
                ports[11, link, c] = ingress["headroom_used"]
                ports[12, link, c] = ingress["peak_bytes"]
                ports[13, link, c] = ingress["peak_limit"]
                ports[14, link, c] = ingress["peak_headroom"]
                pfc = s.pfc[port]
                ports[6, link, c] = pfc["paused_ps"] + max(now - pfc["paused_since_ps"], 0)
                first = pfc["first_pause_ps"]
                ports[15, link, c] = -1 if first == FOREVER else first
        for port in range(ports.shape[1] * num_classes):
            queue, ingress = s.queue[port], s.ingress[port]
            queue["max_bytes"] = queue["bytes"]
            held = ingress["bytes"]
            ingress["peak_bytes"] = held if held > ingress["reserved"] else 0
            ingress["peak_headroom"] = ingress["headroom_used"]
        for qp in range(qps.shape[1]):
            sender = s.sender[qp]
            qps[0, qp] = sender["snd_una"]
            qps[1, qp] = s.receiver[qp]["expected"]
            qps[2, qp] = s.qp[qp]["cnps"]
            qps[3, qp] = s.receiver[qp]["nacks"]
            qps[4, qp] = s.qp[qp]["posted"] - sender["snd_una"]
            qps[5, qp] = sender["rate_bps"]
            if s.cc_kind[s.qp[qp]["tenant"]] == _DCQCN:
                alpha[qp] = state_of_qp(s, qp)["alpha"]

    return entry(read_out)


read_out = _make_read_out(source_hash())
