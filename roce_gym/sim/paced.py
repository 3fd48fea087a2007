"""Each host's heap of paced QPs, by `next_send` and number."""

from __future__ import annotations

from numpy import int64

from roce_gym.sim.jit import helper, rare
from roce_gym.sim.types import PACED, ZERO


@helper
def _paced_before(a, b):
    return a["due_ps"] < b["due_ps"] or (a["due_ps"] == b["due_ps"] and a["qp"] < b["qp"])


@helper
def _put_paced(entry, due_ps, qp):
    entry["due_ps"] = due_ps
    entry["qp"] = qp


@helper
def push_paced(s, qp):
    """Adds a QP to its host's heap of paced QPs."""
    s.sender[qp]["state"] = PACED
    due_ps = s.qp[qp]["next_send_ps"]
    heap = s.paced[s.qp[qp]["src"]]
    first = int64(heap["first"])
    i = int64(heap["size"])
    heap["size"] = i + 1
    while i > 0:
        parent = (i - 1) >> 1
        up = s.paced_qp[first + parent]
        if up["due_ps"] < due_ps or (up["due_ps"] == due_ps and up["qp"] < qp):
            break
        _put_paced(s.paced_qp[first + i], up["due_ps"], up["qp"])
        i = parent
    _put_paced(s.paced_qp[first + i], due_ps, qp)


@helper
def pop_paced(s, heap):
    """Takes the first QP out of a host's heap."""
    first = int64(heap["first"])
    last = int64(heap["size"]) - 1
    heap["size"] = last
    moved = s.paced_qp[first + last]
    i = ZERO
    child = ZERO + 1
    while child < last:
        low = s.paced_qp[first + child]
        if child + 1 < last and _paced_before(s.paced_qp[first + child + 1], low):
            child += 1
            low = s.paced_qp[first + child]
        if _paced_before(moved, low):
            break
        _put_paced(s.paced_qp[first + i], low["due_ps"], low["qp"])
        i = child
        child = 2 * i + 1
    _put_paced(s.paced_qp[first + i], moved["due_ps"], moved["qp"])


@rare
def drop_paced(s, qp):
    """Takes a QP out of its host's heap, wherever it is: the others are pushed anew."""
    heap = s.paced[s.qp[qp]["src"]]
    size = heap["size"]
    heap["size"] = 0
    for i in range(size):
        other = s.paced_qp[heap["first"] + i]["qp"]
        if other != qp:
            push_paced(s, other)
