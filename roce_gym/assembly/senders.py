"""What sender algorithms need: places for their records, windows, base round-trip times."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from roce_gym.config import Scenario
from roce_gym.sim import types as t
from roce_gym.sim.cc.records import lines
from roce_gym.sim.cc.registry import ALGORITHMS, CODES, Algorithm
from roce_gym.topology.graph import Network
from roce_gym.units import PS_PER_S
from roce_gym.workload.plan import Plan


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
        "cc_words": lines([algorithm.record for algorithm in used]),
        "cc_param_words": lines([algorithm.params for algorithm in used]),
        "feedback": feedback,
        "rate_windows": any(
            x.window is not None and x.window.follows_rate for x in scenario.tenants
        ),
        "least_window": (nic.ack_every - 1) * nic.mtu_bytes + 1,
    }


def make_records(scenario: Scenario, num_qps: int) -> dict[str, NDArray[Any]]:
    """Empty records of queue pairs and tenants."""
    params = sender_params(scenario)
    return {
        "cc_state": np.zeros(num_qps * params["cc_words"], np.int64),
        "cc_params": np.zeros(len(scenario.tenants) * params["cc_param_words"], np.int64),
        "cc_kind": np.array([CODES[tenant.cc] for tenant in scenario.tenants], np.int32),
    }


def make_feedback(scenario: Scenario, num_packets: int, max_hops: int) -> dict[str, NDArray[Any]]:
    """What packets carry back to senders; empty where no algorithm asks for it."""
    feedback = sender_params(scenario)["feedback"]
    times = num_packets if feedback & t.FEEDBACK_RTT else 0
    hops = num_packets * max_hops if feedback & t.FEEDBACK_INT else 0
    waits = num_packets if feedback & t.FEEDBACK_WAIT else 0
    return {
        "sent": np.zeros(times, np.int64),
        "seen": np.zeros(hops, t.INT_HOP),
        "waited": np.zeros(waits, np.int64),
        "user_code": np.zeros(len(scenario.tenants), np.int64),
        "user_event": np.zeros(1, t.USER_EVENT),
    }


def num_credit_timers(scenario: Scenario, network: Network) -> int:
    """One of each host, if any tenant has credits."""
    return network.num_hosts if _has_credits(scenario) else 0


def _has_credits(scenario: Scenario) -> bool:
    return bool(sender_params(scenario)["feedback"] & t.FEEDBACK_CREDIT)


def make_credits(
    scenario: Scenario, num_packets: int, num_qps: int, num_hosts: int
) -> dict[str, NDArray[Any]]:
    """What packets say about credits, and the receivers' accounts; empty without such a tenant."""
    on = _has_credits(scenario)
    host = np.zeros(num_hosts if on else 0, t.CREDIT_HOST)
    host["head"] = t.NONE
    return {
        "credit": np.zeros(2 * num_packets if on else 0, np.int64),
        "credit_qp": np.zeros(num_qps if on else 0, t.CREDIT_QP),
        "credit_host": host,
    }


def base_rtts_ps(scenario: Scenario, network: Network, plan: Plan) -> NDArray[np.int64]:
    """Shape (num_qps,), int64: propagation both ways, and one payload's serialisation on each link.

    Headers, ACKs and queues are not counted (HPCC, section 4, "base RTT").
    """
    bits = 8 * scenario.nic.mtu_bytes
    out = np.zeros(len(plan.qps), np.int64)
    for i, pair in enumerate(plan.qps):
        data, ack = list(pair.data_links), list(pair.ack_links)
        delay = network.link_delay_ps[data].sum() + network.link_delay_ps[ack].sum()
        on_wire = sum(bits * PS_PER_S // int(rate) for rate in network.link_rate_bps[data])
        out[i] = int(delay) + on_wire
    return out


def longest_rtts_ps(scenario: Scenario, network: Network, plan: Plan) -> NDArray[np.int64]:
    """Shape (num_tenants,), int64: the longest base round-trip time of a tenant's QPs."""
    longest = np.zeros(len(scenario.tenants), np.int64)
    tenant = np.array([pair.tenant for pair in plan.qps], np.int64)
    np.maximum.at(longest, tenant, base_rtts_ps(scenario, network, plan))
    return longest


def add_windows(
    scenario: Scenario, network: Network, plan: Plan, qp: NDArray[Any], sender: NDArray[Any]
) -> NDArray[np.int64]:
    """Says in `sender` what windows there are. Returns their bytes at line rate; empty: none."""
    windows = np.zeros(len(qp), np.int64)
    fixed = scenario.nic.window_bytes
    if fixed > 0:
        windows[:] = fixed
        sender["window_kind"] = t.FIXED_WINDOW
    if any(tenant.window is not None for tenant in scenario.tenants):
        longest = longest_rtts_ps(scenario, network, plan)
        for i, tenant in enumerate(scenario.tenants):
            if tenant.window is None:
                continue
            own = np.flatnonzero(qp["tenant"] == i)
            if tenant.window.bytes == "bdp":
                bits = [int(longest[i]) * int(rate) // PS_PER_S for rate in qp["line_bps"][own]]
                windows[own] = np.maximum(np.array(bits, np.int64) // 8, 1)
            else:
                windows[own] = tenant.window.bytes
            kind = t.RATE_WINDOW if tenant.window.follows_rate else t.FIXED_WINDOW
            sender["window_kind"][own] = kind
    for i, algorithm in enumerate(algorithms_of(scenario)):
        if algorithm.owns_window:
            sender["window_kind"][qp["tenant"] == i] = algorithm.window_kind
    return windows if sender["window_kind"].any() else windows[:0]
