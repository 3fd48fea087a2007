"""Jobs that come from workload files: operation graphs, and flows that arrive at random."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

import numpy as np

from roce_gym.config import PoissonJob, Scenario, TraceJob
from roce_gym.errors import ConfigError, TraceFileError
from roce_gym.topology.graph import Network
from roce_gym.traces import (
    Flows,
    Note,
    Trace,
    make_size_cdf,
    poisson_flows,
    read_size_cdf,
    read_trace,
    scale_graph,
    trace_files,
)
from roce_gym.traces.chakra_files import chakra_files, file_name
from roce_gym.units import us_to_ps
from roce_gym.workload.graph_plan import GraphWork
from roce_gym.workload.queue_pairs import JobPlace

_POISSON = 1
"""Keeps these draws apart from those of placements, which have keys of one number."""


def trace_work(job: TraceJob, place: JobPlace, _network: Network, _seed: int) -> GraphWork:
    """What a trace says, scaled.

    Raises:
        TraceFileError: names file, line or record, and value.
        ConfigError: the file does not go with the job's other fields; names the field.
    """
    trace = _read(job, place.name)
    graph = trace.graph
    if trace.format == "chakra" and graph.num_ranks < len(place.hosts):
        missing = file_name(chakra_files(job.file)[0], graph.num_ranks)
        raise ConfigError(
            f"{place.name}.file: {job.file} has files of {graph.num_ranks} ranks, the tenant has "
            f"{len(place.hosts)} hosts; allowed: a file for each of them ({missing} is missing), "
            f"or {graph.num_ranks} hosts"
        )
    try:
        graph = scale_graph(graph, job.bytes_scale, job.compute_scale)
    except ConfigError as error:
        raise ConfigError(f"{place.name}.{error}") from None
    return GraphWork(
        graph=graph, rounds=-1 if job.rounds is None else job.rounds, jitter=job.jitter
    )


def trace_notes(scenario: Scenario) -> Iterator[tuple[str, Note]]:
    """Job, and what its trace says that is left out or changed."""
    for tenant in scenario.tenants:
        for index, job in enumerate(tenant.jobs):
            if isinstance(job, TraceJob):
                name = f"tenants.{tenant.name}.jobs.{index}"
                trace = _read(job, name)
                for note in trace.notes:
                    yield name, note
                hosts, ranks = tenant.num_hosts, trace.graph.num_ranks
                if hosts > ranks:
                    text = f"hosts without a rank, of which the trace has {ranks}: they do nothing"
                    yield name, Note(text, hosts - ranks)


def _read(job: TraceJob, name: str) -> Trace:
    stamps = tuple(_stamp(path) for path in trace_files(job.file, job.format))
    try:
        return _read_once(job.file, job.format, job.bytes, job.groups_file, stamps)
    except TraceFileError:
        raise
    except ConfigError as error:
        raise ConfigError(f"{name}: {error}") from None


@lru_cache(maxsize=4)
def _read_once(
    file: str,
    trace_format: str,
    buffer_bytes: int | None,
    groups_file: str | None,
    _stamps: tuple[tuple[int, int], ...],
) -> Trace:
    """A scenario is planned several times; its traces are read once."""
    return read_trace(file, trace_format, buffer_bytes, groups_file)


def _stamp(path: Path) -> tuple[int, int]:
    try:
        status = path.stat()
    except OSError as error:
        raise TraceFileError(f"{path}: cannot be read: {error.strerror or error}") from None
    return status.st_mtime_ns, status.st_size


def draw_flows(job: PoissonJob, place: JobPlace, network: Network, seed: int) -> Flows:
    """Flows between the tenant's hosts, which are the ranks.

    Raises:
        TraceFileError: the file of sizes cannot be read.
        ConfigError: too few hosts, too many flows, or no distribution; names the field.
    """
    if len(place.hosts) < 2:
        raise ConfigError(f"{place.name}: needs at least 2 hosts, the tenant has 1")
    try:
        cdf = make_size_cdf(job.sizes) if job.sizes_file is None else read_size_cdf(job.sizes_file)
    except TraceFileError:
        raise
    except ConfigError as error:
        raise ConfigError(f"{place.name}.sizes: {error}") from None
    start_ps = us_to_ps(job.start_us)
    until_ps = None if job.stop_us is None else us_to_ps(job.stop_us) - start_ps
    try:
        return poisson_flows(
            cdf,
            job.load,
            network.host_rate_bps,
            len(place.hosts),
            np.random.SeedSequence(seed, spawn_key=(place.tenant, place.job, _POISSON)),
            until_ps,
            job.num_flows,
        )
    except ConfigError as error:
        raise ConfigError(f"{place.name}: {error}") from None
