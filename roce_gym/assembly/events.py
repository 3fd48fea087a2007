"""The event queue's size: how many slots, how many buckets, how wide."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from roce_gym.assembly.jobs import WITH_MEMBERS
from roce_gym.assembly.senders import has_credits
from roce_gym.config import NicConfig, Scenario
from roce_gym.sim import types as t
from roce_gym.sim.bucket_width import LOOK_EVENTS
from roce_gym.topology.graph import Network
from roce_gym.units import PS_PER_S, ps_per_kib
from roce_gym.workload.plan import Plan

MIN_BUCKETS = 1024
_CORE_CACHE_BYTES = 1 << 20
_LINK_BYTES = t.LINK.itemsize + 2 * (t.QUEUE.itemsize + t.INGRESS.itemsize)
"""What every packet on a link needs, with one configured class."""
_QP_BYTES = t.SENDER.itemsize + t.RECEIVER.itemsize
"""What every packet of a QP needs."""


def num_members(plan: Plan) -> int:
    """Hosts of rings, all-to-alls and graphs, and graphs' COMPUTE operations: what has a timer."""
    graphs = (job.graph for job in plan.jobs if job.graph is not None)
    hosts = sum(len(job.hosts) for job in plan.jobs if job.kind in WITH_MEMBERS)
    return hosts + sum(graph.num_computes for graph in graphs)


def first_pfc_slot(scenario: Scenario, network: Network, plan: Plan) -> int:
    """Slots of all events but PFC's timers and token buckets, which come last."""
    reordering = len(plan.qps) if scenario.nic.out_of_order else 0
    credits = network.num_hosts if has_credits(scenario) else 0
    timers = len(plan.qps) + num_members(plan) + len(plan.jobs) + reordering + credits
    return 2 * network.num_links + network.num_hosts + timers


def first_bucket_slot(scenario: Scenario, network: Network, plan: Plan) -> int:
    """Events that can exist at once, without those of token buckets; see `sim/wheel.py`."""
    ports = network.num_links * (len(scenario.classes) + 1)
    for_each_port = (2 if scenario.pfc.quanta else 0) + scenario.pfc.watchdog.enabled
    return (
        first_pfc_slot(scenario, network, plan)
        + for_each_port * ports
        + len(scenario.faults.storms)
    )


def bucket_events(network: Network, plan: Plan) -> int:
    """Events that a bucket should hold: sorting costs more with more, looking for the next less.

    Where memory is far, looking ahead ends at the end of a bucket.
    """
    return 16 if what_is_far(network, plan) == t.FAR_LINKS else 4


def what_is_far(network: Network, plan: Plan) -> np.int64:
    """For which records a core's own cache is too small; see `sim/lookahead.py`."""
    if network.num_links * _LINK_BYTES > _CORE_CACHE_BYTES:
        return t.FAR_LINKS
    return t.FAR_QPS if len(plan.qps) * _QP_BYTES > _CORE_CACHE_BYTES else t.NEAR


def largest_frame_bytes(nic: NicConfig) -> int:
    """Largest frame on the wire, with preamble and gap."""
    frame = max(nic.mtu_bytes + nic.header_bytes, nic.ack_bytes, nic.cnp_bytes, nic.pfc_bytes)
    return frame + nic.interframe_gap_bytes


def wheel_size(
    nic: NicConfig, network: Network, plan: Plan, lowest_rate_bps: NDArray[np.int64]
) -> tuple[int, int]:
    """Number of buckets, a power of two, and log2 of their least width in ps.

    That is half of what makes a few events a bucket if every link has one a data frame: with its
    end and with ACKs there are more. The wheel is longer than any delay plus serialisation, at the
    lowest rate that each link will have.
    """
    frame = largest_frame_bytes(nic)
    rates = network.link_rate_bps.astype(np.float64)
    events_per_ps = float((rates / (8 * (nic.mtu_bytes + nic.header_bytes))).sum()) / PS_PER_S
    width_ps = bucket_events(network, plan) / events_per_ps
    shift = min(16, max(5, round(np.log2(width_ps)) - 1))
    longest = max(
        int(delay) + (frame * ps_per_kib(int(rate)) >> 10)
        for rate, delay in zip(lowest_rate_bps, network.link_delay_ps, strict=True)
    )
    buckets = MIN_BUCKETS
    while buckets < (longest >> shift) + 3:
        buckets *= 2
    return buckets, shift


def make_core(
    num_places: int, buckets: int, shift: int, num_packets: int, num_messages: int
) -> NDArray[Any]:
    """The counters of the event loop at time 0; `num_places` is the length of `State.current`."""
    core = np.zeros(1, t.CORE)
    core["cursor"] = num_places
    core["bucket_shift"] = shift
    core["width_look"] = LOOK_EVENTS
    core["horizon_ps"] = (buckets - 2) << shift
    core["packets_left"] = num_packets
    core["messages_left"] = num_messages
    return core
