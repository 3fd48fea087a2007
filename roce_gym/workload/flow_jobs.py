"""Lists of flows and flows that arrive by chance, as plans."""

from __future__ import annotations

from collections.abc import Iterator
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from roce_gym.config import FlowList, PoissonJob
from roce_gym.errors import ConfigError
from roce_gym.routing import Router
from roce_gym.topology.graph import Network
from roce_gym.units import us_to_ps
from roce_gym.workload.flow_file import read_flow_file
from roce_gym.workload.plan import JobPlan
from roce_gym.workload.queue_pairs import JobPlace, QueuePairs
from roce_gym.workload.trace_jobs import draw_flows


class _Message(NamedTuple):
    """A message of a flow list; hosts are labels."""

    name: str
    src: int
    dst: int
    bytes: int
    start_ps: int
    data_path: tuple[int, ...] | None = None
    ack_path: tuple[int, ...] | None = None


def flow_plan(
    job: FlowList | PoissonJob,
    place: JobPlace,
    qps: QueuePairs,
    router: Router,
    common: dict[str, Any],
) -> JobPlan:
    """A queue pair for each flow.

    Args:
        job: the flows.
        place: of the job.
        qps: to which theirs are added.
        router: finds paths that flows name.
        common: fields of every JobPlan.

    Raises:
        ConfigError: a flow that the network cannot carry, or none at all.
        TraceFileError: the file cannot be read.
    """
    messages = [
        message
        for message in sorted(_messages(job, place, qps), key=attrgetter("start_ps"))
        if common["stop_ps"] < 0 or message.start_ps < common["stop_ps"]
    ]
    if not messages:
        raise ConfigError(f"{place.name}: has no flow, or none that starts before its stop")
    return JobPlan(
        kind="flows",
        hosts=(),
        qps=(tuple(_connect(qps, router, place, k, m) for k, m in enumerate(messages)),),
        flow_start_ps=tuple(message.start_ps for message in messages),
        flow_bytes=tuple(message.bytes for message in messages),
        **common,
    )


def _messages(job: FlowList | PoissonJob, place: JobPlace, qps: QueuePairs) -> Iterator[_Message]:
    network = qps.network
    base_ps, name = place.arrive_ps + us_to_ps(job.start_us), place.name
    if isinstance(job, PoissonJob):
        flows = draw_flows(job, place, network, qps.seed)
        label = [int(network.node_label[host]) for host in place.hosts]
        for src, dst, size, start_ps in zip(*map(np.ndarray.tolist, flows), strict=True):
            yield _Message(name, label[src], label[dst], size, base_ps + start_ps)
        return
    for i, flow in enumerate(job.flows):
        yield _Message(
            name=f"{name}.flows.{i}",
            src=flow.src,
            dst=flow.dst,
            bytes=flow.bytes,
            start_ps=base_ps + us_to_ps(flow.start_us),
            data_path=flow.data_path,
            ack_path=flow.ack_path,
        )
    if job.file is not None:
        for record in read_flow_file(job.file, network):
            yield _Message(
                name=f"{name}.file",
                src=record.src,
                dst=record.dst,
                bytes=record.bytes,
                start_ps=base_ps + record.start_ps,
            )


def _connect(qps: QueuePairs, router: Router, place: JobPlace, k: int, message: _Message) -> int:
    try:
        src, dst = _end(qps.network, "src", message.src), _end(qps.network, "dst", message.dst)
        if src == dst:
            raise ConfigError(f"src and dst are both host {message.src}")
        paths = [
            None if labels is None else router.path_through(labels, ends)
            for labels, ends in (
                (message.data_path, (src, dst)),
                (message.ack_path, (dst, src)),
            )
        ]
    except ConfigError as error:
        raise ConfigError(f"{message.name}: {error}") from None
    return qps.create(place, k, src, dst, *paths)


def _end(network: Network, name: str, label: int) -> int:
    try:
        return network.host_of_label(label)
    except ConfigError as error:
        raise ConfigError(f"{name} = {label}: {error}") from None
