"""Queue pairs and the NICs' schedulers."""

from __future__ import annotations

from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roce_gym.config import NicConfig, Scenario
from roce_gym.sim import types as t
from roce_gym.topology.graph import Network
from roce_gym.units import us_to_ps
from roce_gym.workload.plan import Plan


def make_paths(plan: Plan, longest_detour: int = 1) -> tuple[NDArray[np.int32], int]:
    """Links of every QP's data and ACKs, and the longest path's length."""
    rows = [links for pair in plan.qps for links in (pair.data_links, pair.ack_links)]
    lengths = np.array([len(links) for links in rows], np.intp)
    max_hops = max(int(lengths.max(initial=1)), longest_detour)
    path = np.full((len(rows), max_hops), t.NONE, np.int32)
    path[np.arange(max_hops) < lengths[:, None]] = list(chain.from_iterable(rows))
    return path.reshape(-1), max_hops


def make_qps(
    scenario: Scenario,
    network: Network,
    plan: Plan,
    internal: dict[str, int],
    endpoint: NDArray[Any],
    qp_job: NDArray[Any],
) -> NDArray[Any]:
    """What does not change about a QP, and its empty list of messages."""
    qp = np.zeros(len(plan.qps), t.QP)
    qp["src"] = [p.src for p in plan.qps]
    qp["cls"] = _classes(scenario, plan, internal)
    qp["tenant"] = [p.tenant for p in plan.qps]
    qp["job"] = qp_job
    qp["endpoint"] = endpoint
    qp["line_bps"] = network.link_rate_bps[network.host_link[qp["src"]]]
    qp["oldest"] = qp["sending"] = qp["newest"] = t.NONE
    return qp


def _classes(scenario: Scenario, plan: Plan, internal: dict[str, int]) -> NDArray[np.int32]:
    names = [c.name for c in scenario.classes]
    return np.array([internal[names[p.class_index]] for p in plan.qps], np.int32)


def make_senders(num_qps: int) -> NDArray[Any]:
    """Senders with nothing to send."""
    sender = np.zeros(num_qps, t.SENDER)
    sender["oldest_end"] = t.FOREVER
    return sender


def make_retries(nic: NicConfig, plan: Plan, sender: NDArray[Any]) -> NDArray[Any]:
    """Timeouts and limits: those of the job, else of the NIC. Senders without are told so."""
    retry = np.zeros(len(plan.qps), t.RETRY)
    default_ps, limit = us_to_ps(nic.retransmit_timeout_us), nic.retry_limit
    retry["rto_ps"] = [default_ps if p.timeout_ps is None else p.timeout_ps for p in plan.qps]
    retry["limit"] = [limit if p.retry_limit is None else p.retry_limit for p in plan.qps]
    sender["timer_armed"] = np.where(retry["rto_ps"] > 0, 0, t.NO_TIMER)
    return retry


def make_receivers(scenario: Scenario, plan: Plan, internal: dict[str, int]) -> NDArray[Any]:
    """Receivers that expect the first byte."""
    receiver = np.zeros(len(plan.qps), t.RECEIVER)
    nic = scenario.nic
    cls = _classes(scenario, plan, internal)
    receiver["ack_cls"] = internal[nic.ack_class] if nic.ack_class else cls
    receiver["cnp_cls"] = internal[nic.cnp_class] if nic.cnp_class else cls
    receiver["nack_seq"] = t.NONE
    receiver["cnp_ps"] = -t.FOREVER
    return receiver


def make_held(nic: NicConfig, plan: Plan) -> NDArray[Any]:
    """Receivers that have nothing out of order; one record if they never will."""
    held = np.zeros(len(plan.qps) if nic.out_of_order else 1, t.REORDER)
    held["first"] = t.NONE
    if nic.out_of_order:
        held["host"] = [pair.dst for pair in plan.qps]
    return held


def make_resend(nic: NicConfig, plan: Plan) -> NDArray[Any]:
    """Senders that know of no gap; one record if they never hear of gaps."""
    resend = np.zeros(len(plan.qps) if nic.recovery == "selective_repeat" else 1, t.RESEND)
    resend["first"] = resend["last"] = t.NONE
    return resend


def receiving(nic: NicConfig) -> int:
    """What receivers do with data out of order, as the simulator calls it."""
    if nic.recovery == "go_back_0":
        return int(t.GO_BACK_0)
    if nic.recovery == "selective_repeat":
        return int(t.SELECTIVE)
    return int(t.OUT_OF_ORDER if nic.out_of_order else t.IN_ORDER)


def make_schedulers(
    network: Network, plan: Plan, num_classes: int, order: tuple[int, ...]
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Ranges of consecutive QPs of each (host, class), and their words of ready bits."""
    position = {c: i + 1 for i, c in enumerate(order)}
    nic = np.zeros(network.num_hosts * num_classes, t.NIC_CLASS)
    nic["last_served"] = t.NONE
    nic["line_bps"] = np.repeat(network.link_rate_bps[network.host_link], num_classes)
    own = [p.src * num_classes + position[p.class_index] for p in plan.qps]  # ascending
    nic["num_qps"] = np.bincount(np.array(own, np.intp), minlength=len(nic))
    nic["first_qp"] = np.where(nic["num_qps"], np.cumsum(nic["num_qps"]) - nic["num_qps"], 0)
    words = (nic["num_qps"] + 31) // 32
    nic["first_word"] = np.cumsum(words) - words
    return nic, np.zeros(max(1, int(words.sum())), np.int64)


def make_paced(plan: Plan, num_hosts: int) -> NDArray[Any]:
    """Every host's empty heap of paced QPs."""
    paced = np.zeros(num_hosts, t.PACED_HEAP)
    counts = np.bincount([p.src for p in plan.qps], minlength=num_hosts)
    paced["first"] = np.cumsum(counts) - counts
    return paced
