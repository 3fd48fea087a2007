"""From scenario, network and plan to the arrays of the simulator. No simulation happens here."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roce_gym.config import NicConfig, Scenario, class_order
from roce_gym.errors import ConfigError
from roce_gym.sim import types as t
from roce_gym.topology.graph import Network
from roce_gym.units import PS_PER_S, ps_per_kib, us_to_ps
from roce_gym.workload.plan import JobPlan, Plan

MIN_BUCKETS = 1024
EVENTS_PER_BUCKET = 4
MIN_PACKETS = 4096
MIN_MESSAGES = 1024
MIN_LOG = 1024

_JOB_KINDS = {
    "flows": t.FLOWS,
    "ring_all_reduce": t.RING,
    "all_to_all": t.ALL_TO_ALL,
    "incast": t.INCAST,
}


def build_state(scenario: Scenario, network: Network, plan: Plan, seed: int) -> t.State:
    """The state at time 0, before settings are applied and jobs are started.

    Raises:
        ConfigError: headroom and reserve do not fit into a switch's buffer.
    """
    order = class_order(scenario)
    internal = {scenario.classes[c].name: i + 1 for i, c in enumerate(order)}
    num_classes = len(order) + 1
    members = _member_counts(plan)
    num_slots = (
        2 * network.num_links
        + network.num_hosts
        + len(plan.qps)
        + sum(members)
        + len(plan.jobs)
    )
    buckets, shift = _wheel(scenario.nic, network)
    path, max_hops = _paths(plan)
    jobs = _jobs(plan)
    nic, ready = _schedulers(plan, network.num_hosts, num_classes, order)
    packet, message = _pools(network, plan, jobs["job"])
    return t.State(
        params=_params(scenario, network, plan, seed, max_hops, (buckets - 2) << shift, jobs["job"]),
        core=_core(num_slots, shift, len(packet), len(message)),
        event_ps=np.full(num_slots, t.FOREVER, np.int64),
        event_next=np.full(num_slots, t.NONE, np.int32),
        event_order=np.zeros(num_slots, np.int64),
        bucket_head=np.full(buckets, t.NONE, np.int32),
        bucket_bits=np.zeros(buckets // 32, np.int64),
        bucket_words=np.zeros(buckets // 1024, np.int64),
        current=np.zeros(num_slots, np.int64),
        far=np.zeros(num_slots - 2 * network.num_links, t.TIMER),
        packet=packet,
        packet_order=np.zeros(len(packet), np.int64),
        link=_links(network),
        link_packets=np.zeros(network.num_links, np.int64),
        link_losses=np.zeros(network.num_links, np.int64),
        queue=np.zeros(network.num_links * num_classes, t.QUEUE),
        ingress=_ingress(scenario, network, order),
        switch=np.zeros(network.num_switches, t.SWITCH),
        path=path,
        qp=_qps(scenario, network, plan, internal, jobs["endpoint"], jobs["qp_job"]),
        sender=np.zeros(len(plan.qps), t.SENDER),
        receiver=_receivers(len(plan.qps)),
        nic=nic,
        ready=ready,
        paced=_paced(plan, network.num_hosts),
        paced_qp=np.zeros(len(plan.qps), np.int32),
        host_link=network.host_link,
        mrg=np.array(scenario.simulator.mrg32k3a_state or (0,) * 6, np.int64),
        posted=np.zeros(_most_posts(plan) + 1, np.int32),
        message=message,
        dcqcn=_dcqcn(len(plan.qps)),
        dcqcn_params=np.zeros(len(scenario.tenants), t.DCQCN_PARAMS),
        job=jobs["job"],
        job_qp=jobs["job_qp"],
        member=jobs["member"],
        channel=jobs["channel"],
        flow=jobs["flow"],
        log=np.zeros(max(MIN_LOG, 2 * len(plan.qps)), t.COMPLETION),
    )._replace(queue=_queues(network.num_links * num_classes))


def _member_counts(plan: Plan) -> list[int]:
    return [
        len(job.hosts) if job.kind in ("ring_all_reduce", "all_to_all") else 0 for job in plan.jobs
    ]


def largest_frame_bytes(nic: NicConfig) -> int:
    """Largest frame on the wire, with preamble and gap."""
    frame = max(nic.mtu_bytes + nic.header_bytes, nic.ack_bytes, nic.cnp_bytes, nic.pfc_bytes)
    return frame + nic.interframe_gap_bytes


def _wheel(nic: NicConfig, network: Network) -> tuple[int, int]:
    """Number of buckets, a power of two, and log2 of their width in ps.

    A link at full rate has about one event a data frame; a bucket is as wide as makes
    EVENTS_PER_BUCKET of them, which costs least (sorting against looking for the next one). The
    wheel is longer than any delay plus serialisation.
    """
    frame = largest_frame_bytes(nic)
    rates = network.link_rate_bps.astype(np.float64)
    events_per_ps = float((rates / (8 * (nic.mtu_bytes + nic.header_bytes))).sum()) / PS_PER_S
    shift = min(16, max(6, round(np.log2(EVENTS_PER_BUCKET / events_per_ps))))
    longest = max(
        int(delay) + (frame * ps_per_kib(int(rate)) >> 10)
        for rate, delay in zip(network.link_rate_bps, network.link_delay_ps, strict=True)
    )
    buckets = MIN_BUCKETS
    while buckets < (longest >> shift) + 3:
        buckets *= 2
    return buckets, shift


def _params(
    scenario: Scenario,
    network: Network,
    plan: Plan,
    seed: int,
    max_hops: int,
    horizon_ps: int,
    job: NDArray[Any],
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
        "num_members": sum(_member_counts(plan)),
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
        "window": nic.window_bytes,
        "rto_ps": us_to_ps(nic.retransmit_timeout_us),
        "retry_limit": nic.retry_limit,
        "nack_interval_ps": us_to_ps(nic.nack_interval_us),
        "ack_ignores_pause": nic.ack_ignores_pause,
        "message_reserve": _most_posts(plan),
        "log_reserve": _most_posts(plan) + 1,
        "horizon_ps": horizon_ps,
        "scheduled_order": scenario.simulator.tie_order == "scheduled",
        "mrg32k3a": scenario.simulator.mrg32k3a_state is not None,
        "clock_ps": scenario.simulator.clock_ps,
    }
    for name, value in values.items():
        params[0][name] = value
    return params


def _most_posts(plan: Plan) -> int:
    """Most messages that one event may post (or complete)."""
    most = 1
    for job in plan.jobs:
        if job.kind == "flows" and job.flow_start_ps:
            most = max(most, int(np.unique(job.flow_start_ps, return_counts=True)[1].max()))
        elif job.kind == "ring_all_reduce":
            most = max(most, len(job.qps) * job.chunks)
        elif job.kind == "all_to_all":
            most = max(most, len(job.hosts))
        else:
            most = max(most, job.messages_per_round)
    return most


def _core(num_slots: int, shift: int, num_packets: int, num_messages: int) -> NDArray[Any]:
    core = np.zeros(1, t.CORE)
    core["cursor"] = num_slots
    core["bucket_shift"] = shift
    core["packets_left"] = num_packets
    core["messages_left"] = num_messages
    return core


def _pools(network: Network, plan: Plan, job: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    packet = np.zeros(max(MIN_PACKETS, 32 * network.num_links), t.PACKET)
    message = np.zeros(max(MIN_MESSAGES, 2 * len(plan.qps), 2 * _most_posts(plan)), t.MESSAGE)
    link_free_list(packet, 0)
    link_free_list(message, 0)
    return packet, message


def link_free_list(pool: NDArray[Any], first: int) -> None:
    """Chains records from `first` on; the last one ends the list."""
    pool["next"][first:] = np.arange(first + 1, len(pool) + 1)
    pool["next"][-1] = t.NONE


def _links(network: Network) -> NDArray[Any]:
    link = np.zeros(network.num_links, t.LINK)
    link["delay_ps"] = network.link_delay_ps
    link["ps_per_kib"] = [ps_per_kib(int(rate)) for rate in network.link_rate_bps]
    link["flight_head"] = link["flight_tail"] = t.NONE
    link["src"] = network.link_src
    link["dst"] = network.link_dst
    link["loss"] = network.link_loss
    return link


def _queues(num_ports: int) -> NDArray[Any]:
    queue = np.zeros(num_ports, t.QUEUE)
    queue["head"] = queue["tail"] = t.NONE
    queue["kmin"] = queue["kmax"] = np.iinfo(np.int32).max
    return queue


def headroom_bytes(scenario: Scenario, network: Network, class_index: int) -> NDArray[np.int64]:
    """Shape (num_links,), int64: headroom at each link's destination for one class.

    "auto" covers what can arrive after a pause frame was decided: a frame being sent on the way
    back, the pause frame, both propagation delays, the frame the sender finishes and the frame
    that passed the threshold (IEEE 802.1Qbb annex O, in this simulator's terms).
    """
    chosen = scenario.classes[class_index]
    out = np.zeros(network.num_links, np.int64)
    if not chosen.lossless:
        return out
    nic = scenario.nic
    for link in range(network.num_links):
        rate, delay = int(network.link_rate_bps[link]), int(network.link_delay_ps[link])
        if chosen.headroom_rate_delays is not None:
            exact = Fraction(chosen.headroom_rate_delays) * rate * delay / (8 * PS_PER_S)
            out[link] = int(exact)
        elif chosen.headroom_bytes == "auto":
            in_flight = -(-2 * rate * delay // (8 * PS_PER_S))
            frames = 3 * largest_frame_bytes(nic) + nic.pfc_bytes + nic.interframe_gap_bytes
            out[link] = in_flight + frames
        else:
            out[link] = chosen.headroom_bytes
    return out


def _ingress(scenario: Scenario, network: Network, order: tuple[int, ...]) -> NDArray[Any]:
    ingress = np.zeros((network.num_links, len(order) + 1), t.INGRESS)
    ingress["static_threshold"] = t.NONE
    ingress["paused_since_ps"] = t.FOREVER
    at_switch = network.link_dst >= network.num_hosts
    for i, c in enumerate(order):
        column = ingress[:, i + 1]
        column["xon_offset"] = scenario.classes[c].xon_offset_bytes
        column["headroom"] = np.where(at_switch, headroom_bytes(scenario, network, c), 0)
        column["flags"] = t.LOSSLESS if scenario.classes[c].lossless else 0
    per_switch = np.zeros(network.num_switches, np.int64)
    into = network.link_dst[at_switch] - network.num_hosts
    np.add.at(per_switch, into, ingress["headroom"][at_switch].sum(axis=1))
    if per_switch.size and per_switch.max() > scenario.switch.buffer_bytes:
        worst = int(per_switch.argmax())
        raise ConfigError(
            f"classes.headroom_bytes: {int(per_switch[worst])} bytes of headroom at switch "
            f"{int(network.node_label[network.num_hosts + worst])} exceed switch.buffer_bytes = "
            f"{scenario.switch.buffer_bytes}; lower the headroom or enlarge the buffer"
        )
    return ingress.reshape(-1)


def _paths(plan: Plan) -> tuple[NDArray[np.int32], int]:
    max_hops = max(
        (max(len(pair.data_links), len(pair.ack_links)) for pair in plan.qps), default=1
    )
    path = np.full((len(plan.qps), 2, max_hops), t.NONE, np.int32)
    for i, pair in enumerate(plan.qps):
        path[i, 0, : len(pair.data_links)] = pair.data_links
        path[i, 1, : len(pair.ack_links)] = pair.ack_links
    return path.reshape(-1), max_hops


def _qps(
    scenario: Scenario,
    network: Network,
    plan: Plan,
    internal: dict[str, int],
    endpoint: NDArray[Any],
    qp_job: NDArray[Any],
) -> NDArray[Any]:
    qp = np.zeros(len(plan.qps), t.QP)
    names = [c.name for c in scenario.classes]
    cls = np.array([internal[names[p.class_index]] for p in plan.qps], np.int32)
    nic = scenario.nic
    qp["src"] = [p.src for p in plan.qps]
    qp["dst"] = [p.dst for p in plan.qps]
    qp["cls"] = cls
    qp["ack_cls"] = internal[nic.ack_class] if nic.ack_class else cls
    qp["cnp_cls"] = internal[nic.cnp_class] if nic.cnp_class else cls
    qp["tenant"] = [p.tenant for p in plan.qps]
    qp["job"] = qp_job
    qp["endpoint"] = endpoint
    qp["line_bps"] = network.link_rate_bps[network.host_link[qp["src"]]]
    qp["oldest"] = qp["sending"] = qp["newest"] = t.NONE
    return qp


def _receivers(num_qps: int) -> NDArray[Any]:
    receiver = np.zeros(num_qps, t.RECEIVER)
    receiver["nack_seq"] = t.NONE
    receiver["cnp_ps"] = -t.FOREVER
    return receiver


def _dcqcn(num_qps: int) -> NDArray[Any]:
    dcqcn = np.zeros(num_qps, t.DCQCN)
    for field in ("alpha_due_ps", "cut_due_ps", "increase_due_ps"):
        dcqcn[field] = t.FOREVER
    return dcqcn


def _schedulers(
    plan: Plan, num_hosts: int, num_classes: int, order: tuple[int, ...]
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Ranges of consecutive QPs of each (host, class), and their words of ready bits."""
    position = {c: i + 1 for i, c in enumerate(order)}
    nic = np.zeros(num_hosts * num_classes, t.NIC_CLASS)
    nic["last_served"] = t.NONE
    for i, pair in enumerate(plan.qps):
        record = nic[pair.src * num_classes + position[pair.class_index]]
        if record["num_qps"] == 0:
            record["first_qp"] = i
        record["num_qps"] += 1
    words = (nic["num_qps"] + 31) // 32
    nic["first_word"] = np.cumsum(words) - words
    return nic, np.zeros(max(1, int(words.sum())), np.int64)


def _paced(plan: Plan, num_hosts: int) -> NDArray[Any]:
    paced = np.zeros(num_hosts, t.PACED_HEAP)
    counts = np.bincount([p.src for p in plan.qps], minlength=num_hosts)
    paced["first"] = np.cumsum(counts) - counts
    return paced


def _jobs(plan: Plan) -> dict[str, NDArray[Any]]:
    """Job, member, channel and flow records, and each QP's job and endpoint."""
    job = np.zeros(len(plan.jobs), t.JOB)
    endpoint = np.full(len(plan.qps), t.NONE, np.int32)
    qp_job = np.full(len(plan.qps), t.NONE, np.int32)
    members: list[NDArray[Any]] = []
    channels: list[NDArray[Any]] = []
    flows: list[NDArray[Any]] = []
    job_qp: list[NDArray[Any]] = []
    counts = {"member": 0, "channel": 0, "flow": 0, "qp": 0}
    for i, planned in enumerate(plan.jobs):
        record = job[i]
        _fill_job(record, planned, counts)
        qps = np.array(planned.qps, np.int32).reshape(len(planned.qps), -1)
        qp_job[qps] = i
        job_qp.append(qps.reshape(-1))
        counts["qp"] += qps.size
        n = len(planned.hosts)
        if planned.kind == "ring_all_reduce":
            rank = np.arange(n)
            channel = np.zeros((n, len(qps)), t.CHANNEL)
            channel["member"] = counts["member"] + rank[:, None]
            channel["qp"] = qps.T
            for c in range(len(qps)):
                receiver = (rank + 1) % n
                endpoint[qps[c]] = counts["channel"] + receiver * len(qps) + c
            channels.append(channel.reshape(-1))
            counts["channel"] += channel.size
        elif planned.kind == "all_to_all":
            rank = np.arange(n)[:, None]
            endpoint[qps] = counts["member"] + (rank + 1 + np.arange(n - 1)[None, :]) % n
        elif planned.kind == "flows":
            flow = np.zeros(len(planned.flow_bytes), t.FLOW)
            flow["start_ps"] = planned.flow_start_ps
            flow["bytes"] = planned.flow_bytes
            flow["qp"] = qps[0]
            flows.append(flow)
            counts["flow"] += flow.size
        if planned.kind in ("ring_all_reduce", "all_to_all"):
            member = np.zeros(n, t.MEMBER)
            member["job"] = i
            member["rank"] = np.arange(n)
            members.append(member)
            counts["member"] += n
    return {
        "job": job,
        "endpoint": endpoint,
        "qp_job": qp_job,
        "member": np.concatenate([np.zeros(0, t.MEMBER), *members]),
        "channel": np.concatenate([np.zeros(0, t.CHANNEL), *channels]),
        "flow": np.concatenate([np.zeros(0, t.FLOW), *flows]),
        "job_qp": np.concatenate([np.zeros(0, np.int32), *job_qp]),
    }


def _fill_job(record: Any, planned: JobPlan, counts: dict[str, int]) -> None:
    record["kind"] = _JOB_KINDS[planned.kind]
    record["first_member"] = counts["member"]
    record["num_members"] = len(planned.hosts)
    record["first_member_id"] = planned.first_member_id
    record["first_channel"] = counts["channel"]
    record["num_channels"] = len(planned.qps)
    record["first_qp"] = counts["qp"]
    record["message_bytes"] = planned.message_bytes
    record["messages"] = planned.messages_per_round
    record["chunks"] = planned.chunks
    record["compute_ps"] = planned.compute_ps
    record["jitter"] = planned.jitter
    record["start_ps"] = planned.start_ps
    record["stop_ps"] = t.FOREVER if planned.stop_ps < 0 else planned.stop_ps
    record["period_ps"] = planned.period_ps
    record["rounds"] = t.FOREVER if planned.rounds < 0 else planned.rounds
    record["begun_ps"] = t.FOREVER
    record["first_flow"] = counts["flow"]
    record["num_flows"] = len(planned.flow_bytes)
