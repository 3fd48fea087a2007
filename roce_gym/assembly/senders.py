"""What sender algorithms need: places for their records, windows, base round-trip times."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from roce_gym.config import Scenario
from roce_gym.sim import types as t
from roce_gym.sim.cc.registry import ALGORITHMS, CODES, Algorithm
from roce_gym.topology.graph import Network
from roce_gym.units import PS_PER_S, us_to_ps
from roce_gym.workload.plan import Plan, QueuePair


def algorithms_of(scenario: Scenario) -> list[Algorithm]:
    """Of each tenant."""
    return [ALGORITHMS[CODES[tenant.cc] - 1] for tenant in scenario.tenants]


def sender_params(scenario: Scenario) -> dict[str, int]:
    """The fields of `PARAMS` that depend on the senders' algorithms."""
    used = algorithms_of(scenario)
    feedback = 0
    for algorithm in used:
        feedback |= int(algorithm.feedback)
    nic = scenario.nic
    return {
        "feedback": feedback,
        "least_window": (nic.ack_every - 1) * nic.mtu_bytes + 1,
    }


def make_records(scenario: Scenario, num_qps: int) -> dict[str, NDArray[Any]]:
    """Empty records of queue pairs and tenants."""
    return {
        "cc_state": np.zeros(num_qps * t.CC_WORDS, np.int64),
        "cc_params": np.zeros(len(scenario.tenants) * t.CC_PARAM_WORDS, np.int64),
        "cc_kind": np.array([CODES[tenant.cc] for tenant in scenario.tenants], np.int32),
    }


def trace(scenario: Scenario, qp: NDArray[Any], sender: NDArray[Any]) -> None:
    """Marks the queue pairs whose algorithm wants feedback."""
    wants = np.array([algorithm.feedback != 0 for algorithm in algorithms_of(scenario)])
    sender["traits"] |= np.where(wants[qp["tenant"]], t.TRACED, 0).astype(np.int8)


def make_feedback(
    scenario: Scenario, num_packets: int, num_qps: int, max_hops: int
) -> dict[str, NDArray[Any]]:
    """What packets carry back to senders; empty where nobody asks for it."""
    feedback = sender_params(scenario)["feedback"]
    timed = feedback & t.FEEDBACK_RTT or scenario.simulator.latency_histograms
    times = num_packets if timed else 0
    hops = max_hops if feedback & t.FEEDBACK_INT else 0
    waits = num_packets if feedback & t.FEEDBACK_WAIT else 0
    levels = num_packets if feedback & t.FEEDBACK_LEVEL else 0
    return {
        "sent": np.zeros(times, np.int64),
        "seen": np.zeros(num_packets * hops, t.INT_HOP),
        "last_seen": np.zeros(num_qps * hops, t.INT_HOP),
        "waited": np.zeros(waits, np.int64),
        "level": np.zeros(levels, np.float64),
        "user_code": np.zeros(len(scenario.tenants), np.int64),
        "user_event": np.zeros(1, t.USER_EVENT),
    }


def has_credits(scenario: Scenario) -> bool:
    """Whether receivers grant credits to any tenant."""
    return bool(sender_params(scenario)["feedback"] & t.FEEDBACK_CREDIT)


def make_credits(
    scenario: Scenario, num_packets: int, num_qps: int, num_hosts: int
) -> dict[str, NDArray[Any]]:
    """What packets say about credits, and the receivers' accounts; empty without such a tenant."""
    on = has_credits(scenario)
    host = np.zeros(num_hosts if on else 0, t.CREDIT_HOST)
    host["head"] = t.NONE
    return {
        "credit": np.zeros(2 * num_packets if on else 0, np.int64),
        "credit_qp": np.zeros(num_qps if on else 0, t.CREDIT_QP),
        "credit_host": host,
    }


def _base_rtt_ps(scenario: Scenario, network: Network, pair: QueuePair) -> int:
    """Propagation both ways, and one payload's serialisation on each link.

    Headers, ACKs and queues are not counted, as in the simulator by HPCC's authors.
    """
    data, ack = list(pair.data_links), list(pair.ack_links)
    delay = network.link_delay_ps[data].sum() + network.link_delay_ps[ack].sum()
    bits = 8 * scenario.nic.mtu_bytes
    return int(delay) + sum(bits * PS_PER_S // int(rate) for rate in network.link_rate_bps[data])


def base_rtts_of_tenants_ps(scenario: Scenario, network: Network, plan: Plan) -> NDArray[np.int64]:
    """Shape (num_tenants,), int64: as given, or the longest of a tenant's queue pairs.

    1 for tenants without a window of their own, which do not need it.
    """
    rtts = np.ones(len(scenario.tenants), np.int64)
    for i, tenant in enumerate(scenario.tenants):
        window = tenant.own_window
        if window is None:
            continue
        if window.base_rtt_us is not None:
            rtts[i] = us_to_ps(window.base_rtt_us)
        else:
            own = (pair for pair in plan.qps if pair.tenant == i)
            rtts[i] = max((_base_rtt_ps(scenario, network, pair) for pair in own), default=1)
    return rtts


def add_windows(
    scenario: Scenario, qp: NDArray[Any], sender: NDArray[Any], base_rtt: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Says in `sender` what windows there are. Returns their bytes at line rate; empty: none."""
    windows = np.zeros(len(qp), np.int64)
    if scenario.nic.sender_window_bytes > 0:
        windows[:] = scenario.nic.sender_window_bytes
        sender["traits"] |= t.HAS_WINDOW
    for i, tenant in enumerate(scenario.tenants):
        window = tenant.own_window
        if window is None:
            continue
        own = np.flatnonzero(qp["tenant"] == i)
        if window.bytes == "bdp":
            bits = [int(base_rtt[i]) * int(rate) // PS_PER_S for rate in qp["line_bps"][own]]
            least = 1 if window.follows_rate else sender_params(scenario)["least_window"]
            windows[own] = np.maximum(np.array(bits, np.int64) // 8, least)
        else:
            windows[own] = window.bytes
        sender["traits"][own] |= t.HAS_WINDOW | (t.RATE_WINDOW if window.follows_rate else 0)
    for i, algorithm in enumerate(algorithms_of(scenario)):
        sender["traits"][qp["tenant"] == i] |= np.int8(algorithm.window)
    if scenario.nic.out_of_order:  # receivers keep track of no more
        windows = np.minimum(windows, scenario.nic.reorder_window_packets * scenario.nic.mtu_bytes)
    return windows if (sender["traits"] & t.HAS_WINDOW).any() else windows[:0]
