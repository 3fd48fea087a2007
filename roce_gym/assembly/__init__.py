"""From scenario, network and plan to the arrays of the simulator. No simulation happens here."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from roce_gym.assembly.devices import make_ingress, make_links, make_queues
from roce_gym.assembly.endpoints import (
    make_paced,
    make_paths,
    make_qps,
    make_receivers,
    make_schedulers,
    make_senders,
)
from roce_gym.assembly.events import is_far, make_core, num_members, num_slots, wheel_size
from roce_gym.assembly.jobs import make_jobs
from roce_gym.assembly.pools import make_pools, most_posts
from roce_gym.assembly.senders import (
    add_windows,
    make_credits,
    make_feedback,
    make_records,
    num_credit_timers,
    sender_params,
)
from roce_gym.config import Scenario, class_order
from roce_gym.sim import types as t
from roce_gym.sim.sorting import SORT_MARGIN
from roce_gym.topology.graph import Network
from roce_gym.units import us_to_ps
from roce_gym.workload.plan import Plan

MIN_LOG = 1024


def build_state(scenario: Scenario, network: Network, plan: Plan, seed: int) -> t.State:
    """The state at time 0, before settings are applied and jobs are started.

    Raises:
        ConfigError: headroom and reserve do not fit into a switch's buffer.
    """
    order = class_order(scenario)
    internal = {scenario.classes[c].name: i + 1 for i, c in enumerate(order)}
    num_classes = len(order) + 1
    slots = num_slots(network, plan) + num_credit_timers(scenario, network)
    buckets, shift = wheel_size(scenario.nic, network)
    path, max_hops = make_paths(plan)
    jobs = make_jobs(plan)
    nic, ready = make_schedulers(network, plan, num_classes, order)
    packet, message = make_pools(network, plan)
    places = slots + SORT_MARGIN
    qp = make_qps(scenario, network, plan, internal, jobs["endpoint"], jobs["qp_job"])
    sender = make_senders(len(plan.qps))
    return t.State(
        params=_params(scenario, network, plan, seed, max_hops, (buckets - 2) << shift),
        core=make_core(places, shift, len(packet), len(message)),
        event_ps=np.full(slots, t.FOREVER, np.int64),
        event_next=np.full(slots, t.NONE, np.int32),
        event_order=np.zeros(slots, np.int64),
        bucket_head=np.full(buckets, t.NONE, np.int32),
        bucket_bits=np.zeros(buckets // 32, np.int64),
        bucket_words=np.zeros(buckets // 1024, np.int64),
        current=np.zeros(places, np.int64),
        far=np.zeros(slots - 2 * network.num_links, t.TIMER),
        packet=packet,
        packet_order=np.zeros(len(packet), np.int64),
        link=make_links(network),
        link_packets=np.zeros(network.num_links, np.int64),
        link_losses=np.zeros(network.num_links, np.int64),
        queue=make_queues(network.num_links * num_classes),
        ingress=make_ingress(scenario, network, order),
        switch=np.zeros(network.num_switches, t.SWITCH),
        path=path,
        qp=qp,
        sender=sender,
        receiver=make_receivers(scenario, plan, internal),
        nic=nic,
        ready=ready,
        paced=make_paced(plan, network.num_hosts),
        paced_qp=np.zeros(len(plan.qps), t.PACED_QP),
        host_link=network.host_link,
        mrg=np.array(scenario.simulator.mrg32k3a_state or (0,) * 6, np.int64),
        posted=np.zeros(most_posts(plan) + 1, np.int32),
        message=message,
        **make_records(scenario, len(plan.qps)),
        window=add_windows(scenario, network, plan, qp, sender),
        **make_feedback(scenario, len(packet), max_hops),
        link_bps=network.link_rate_bps.astype(np.int64),
        **make_credits(scenario, len(packet), len(plan.qps), network.num_hosts),
        job=jobs["job"],
        job_qp=jobs["job_qp"],
        member=jobs["member"],
        channel=jobs["channel"],
        flow=jobs["flow"],
        log=np.zeros(max(MIN_LOG, 2 * len(plan.qps), 2 * most_posts(plan)), t.COMPLETION),
    )


def _params(
    scenario: Scenario,
    network: Network,
    plan: Plan,
    seed: int,
    max_hops: int,
    horizon_ps: int,
) -> NDArray[Any]:
    nic = scenario.nic
    params = np.zeros(1, t.PARAMS)
    order = class_order(scenario)
    strict = 1
    for i, c in enumerate(order):
        if scenario.classes[c].scheduling == "strict":
            strict |= 1 << (i + 1)
    values = {
        "seed": seed,
        "num_hosts": network.num_hosts,
        "num_links": network.num_links,
        "num_classes": len(order) + 1,
        "num_qps": len(plan.qps),
        "num_members": num_members(plan),
        "max_hops": max_hops,
        "strict": strict,
        "mtu": nic.mtu_bytes,
        "header": nic.header_bytes,
        "ack": nic.ack_bytes,
        "cnp": nic.cnp_bytes,
        "pfc": nic.pfc_bytes,
        "gap": nic.interframe_gap_bytes,
        "ack_every": nic.ack_every,
        "cnp_packets": nic.cnp_mode == "packet",
        "cnp_interval_ps": us_to_ps(nic.cnp_interval_us),
        "rto_ps": us_to_ps(nic.retransmit_timeout_us),
        "retry_limit": nic.retry_limit,
        "nack_interval_ps": us_to_ps(nic.nack_interval_us),
        "ack_ignores_pause": nic.ack_ignores_pause,
        "message_reserve": most_posts(plan),
        "log_reserve": most_posts(plan) + 1,
        "horizon_ps": horizon_ps,
        "scheduled_order": scenario.simulator.tie_order == "scheduled",
        "mrg32k3a": scenario.simulator.mrg32k3a_state is not None,
        "far_memory": is_far(network),
        "clock_ps": scenario.simulator.clock_ps,
        **sender_params(scenario),
    }
    for name, value in values.items():
        params[0][name] = value
    return params
