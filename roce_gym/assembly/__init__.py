"""From scenario, network and plan to the arrays of the simulator. No simulation happens here."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from roce_gym.assembly.devices import make_ingress, make_links, make_queues
from roce_gym.assembly.dscp import make_dscp
from roce_gym.assembly.endpoints import (
    make_held,
    make_paced,
    make_paths,
    make_qps,
    make_receivers,
    make_resend,
    make_retries,
    make_schedulers,
    make_senders,
    receiving,
)
from roce_gym.assembly.events import (
    bucket_events,
    first_bucket_slot,
    first_pfc_slot,
    make_core,
    num_members,
    what_is_far,
    wheel_size,
)
from roce_gym.assembly.jobs import make_jobs
from roce_gym.assembly.latency import make_latency
from roce_gym.assembly.link_events import LinkSchedule
from roce_gym.assembly.pfc import make_pfc_ports, make_storms, make_watchdogs, pfc_params
from roce_gym.assembly.pools import make_pools, most_posts
from roce_gym.assembly.queueing import (
    class_pools,
    make_buckets,
    make_egress,
    make_shares,
    make_switches,
    make_tenant_buckets,
    make_xoff,
    scheduling_params,
)
from roce_gym.assembly.routes import POLICIES, groups, is_hop_by_hop, make_routes
from roce_gym.assembly.senders import (
    add_windows,
    base_rtts_of_tenants_ps,
    make_credits,
    make_feedback,
    make_records,
    sender_params,
    trace,
)
from roce_gym.config import Scenario, class_order
from roce_gym.sim import types as t
from roce_gym.sim.sorting import places
from roce_gym.topology.graph import Network
from roce_gym.units import us_to_ps
from roce_gym.workload.plan import Plan

MIN_LOG = 1024


def build_state(
    scenario: Scenario,
    network: Network,
    plan: Plan,
    seed: int,
    schedule: LinkSchedule | None = None,
) -> t.State:
    """The state at time 0, before settings are applied and jobs are started.

    Args:
        scenario, network, plan, seed: what to build.
        schedule: what happens to the links, if that is made already.

    Raises:
        ConfigError: headroom and reserve do not fit into a switch's buffer, a fault is at a host
            that does not exist, or a link event concerns a cable that there is not.
    """
    if schedule is None:
        schedule = LinkSchedule(scenario, network, plan, seed)
    order = class_order(scenario)
    internal = {scenario.classes[c].name: i + 1 for i, c in enumerate(order)}
    num_classes = len(order) + 1
    first_bucket = first_bucket_slot(scenario, network, plan)
    bucket = make_buckets(scenario, network)
    tenant_bucket = make_tenant_buckets(scenario, network)
    slots = first_bucket + len(tenant_bucket) + len(bucket)
    buckets, shift = wheel_size(scenario.nic, network, plan, schedule.lowest_rate_bps)
    path, max_hops = make_paths(plan, schedule.longest_detour)
    jobs = make_jobs(plan)
    nic, ready = make_schedulers(network, plan, num_classes, order)
    packet, message = make_pools(network, plan)
    qp = make_qps(scenario, network, plan, internal, jobs["endpoint"], jobs["qp_job"])
    sender = make_senders(len(plan.qps))
    trace(scenario, qp, sender)
    retry = make_retries(scenario.nic, plan, sender)
    ingress = make_ingress(scenario, network, order)
    kicks = network.num_links if scenario.link_events else 0
    routes = make_routes(scenario, network, plan, max_hops)
    base_rtt = base_rtts_of_tenants_ps(scenario, network, plan)
    dscp = make_dscp(scenario, network, plan, internal)
    params = _params(
        scenario,
        network,
        plan,
        seed,
        max_hops,
        first_bucket,
        int(retry["rto_ps"].max(initial=0)),
    )
    params["least_shift"] = shift
    params["num_marks"] = len(dscp["class_at"]) // max(1, network.num_switches)
    params["maps_priorities"] = len(dscp["heard"]) > 0
    return t.State(
        params=params,
        core=make_core(places(slots), buckets, shift, len(packet), len(message)),
        event_ps=np.full(slots, t.FOREVER, np.int64),
        event_next=np.full(slots, t.NONE, np.int32),
        event_order=np.zeros(slots, np.int64),
        bucket_head=np.full(buckets, t.NONE, np.int32),
        bucket_bits=np.zeros(buckets // 32, np.int64),
        bucket_words=np.zeros(buckets // 1024, np.int64),
        current=np.zeros(places(slots), np.int64),
        far=np.zeros(slots - 2 * network.num_links + kicks, t.TIMER),
        packet=packet,
        packet_order=np.zeros(len(packet), np.int64),
        link=make_links(network),
        link_packets=np.zeros(network.num_links, np.int64),
        link_losses=np.zeros(network.num_links, np.int64),
        queue=make_queues(network.num_links * num_classes),
        ingress=ingress,
        switch=make_switches(scenario, network),
        class_pool=class_pools(scenario),
        xoff=make_xoff(scenario, network, ingress),
        egress=make_egress(num_classes),
        egress_drops=np.zeros(network.num_links * num_classes, np.int64),
        share=make_shares(scenario, network),
        bucket=bucket,
        tenant_bucket=tenant_bucket,
        held_next=np.zeros(len(plan.qps) if len(tenant_bucket) else 0, np.int32),
        pfc=make_pfc_ports(network.num_links * num_classes),
        watchdog=make_watchdogs(scenario, network),
        storm=make_storms(scenario, network, internal),
        path=path,
        **routes,
        **dscp,
        held=make_held(scenario.nic, plan),
        resend=make_resend(scenario.nic, plan),
        span=np.zeros(len(packet) if scenario.nic.out_of_order else 1, t.SPAN),
        qp=qp,
        sender=sender,
        retry=retry,
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
        window=add_windows(scenario, qp, sender, base_rtt),
        **make_feedback(scenario, len(packet), len(plan.qps), max_hops),
        base_rtt=base_rtt,
        link_bps=network.link_rate_bps.astype(np.int64),
        **make_credits(scenario, len(packet), len(plan.qps), network.num_hosts),
        **{name: array for name, array in jobs.items() if name not in ("endpoint", "qp_job")},
        log=np.zeros(max(MIN_LOG, 2 * len(plan.qps), 2 * most_posts(plan)), t.COMPLETION),
        **make_latency(scenario, plan),
    )


def _params(
    scenario: Scenario,
    network: Network,
    plan: Plan,
    seed: int,
    max_hops: int,
    first_bucket: int,
    longest_timeout_ps: int,
) -> NDArray[Any]:
    nic = scenario.nic
    params = np.zeros(1, t.PARAMS)
    values = scheduling_params(scenario) | {
        "seed": seed,
        "num_hosts": network.num_hosts,
        "num_links": network.num_links,
        "num_classes": len(scenario.classes) + 1,
        "num_qps": len(plan.qps),
        "num_members": num_members(plan),
        "max_hops": max_hops,
        "first_bucket": first_bucket,
        "mtu": nic.mtu_bytes,
        "header": nic.header_bytes,
        "ack": nic.ack_bytes,
        "cnp": nic.cnp_bytes,
        "pfc": nic.pfc_bytes,
        "gap": nic.interframe_gap_bytes,
        "ack_every": nic.ack_every,
        "cnp_packets": nic.cnp_mode == "packet",
        "cnp_interval_ps": us_to_ps(nic.cnp_interval_us),
        "rto_ps": longest_timeout_ps,
        "nack_interval_ps": us_to_ps(nic.nack_interval_us),
        "ack_ignores_pause": nic.ack_ignores_pause,
        "message_reserve": most_posts(plan),
        "log_reserve": most_posts(plan) + 1,
        "scheduled_order": scenario.simulator.tie_order == "scheduled",
        "mrg32k3a": scenario.simulator.mrg32k3a_state is not None,
        "far": what_is_far(network, plan),
        "bucket_events": bucket_events(network, plan),
        "clock_ps": scenario.simulator.clock_ps,
        **sender_params(scenario),
        "first_pfc_slot": first_pfc_slot(scenario, network, plan),
        **pfc_params(scenario.pfc),
        "hop_by_hop": is_hop_by_hop(scenario),
        "routing": POLICIES[scenario.routing.policy],
        "num_groups": len(groups(network, plan)) if is_hop_by_hop(scenario) else 0,
        "flowlet_gap_ps": us_to_ps(scenario.routing.flowlet_gap_us),
        "receiving": receiving(nic),
        "reorder_wait_ps": us_to_ps(nic.reorder_wait_us),
        "latency": scenario.simulator.latency_histograms,
    }
    for name, value in values.items():
        params[0][name] = value
    return params
