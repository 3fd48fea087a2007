"""From the tenants of a scenario to queue pairs with paths and jobs with numbers.

Rings, all-to-alls, incasts and lists of flows are planned here. Every other kind of job is an
operation graph that is repeated: `GRAPH_MAKERS` (graph_jobs.py) has a function for its type in the
configuration that turns it into :class:`GraphWork` (an OpGraph of the tenant's hosts in rank order,
and how collectives are cut up). `plan_graph` (graph_planner.py) gives it queue pairs and step
machines, and the JobPlan made of that is all that the simulator needs. So a new kind of job is a
model in `config/`, added to `Job` there, and a line in `GRAPH_MAKERS`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from roce_gym.config import (
    AllToAll,
    FlowList,
    Incast,
    Job,
    PoissonJob,
    RingAllReduce,
    Scenario,
    carrier_of,
    class_order,
    job_class,
)
from roce_gym.errors import ConfigError
from roce_gym.routing import Router
from roce_gym.topology.graph import Network
from roce_gym.units import us_to_ps
from roce_gym.workload.flow_jobs import flow_plan
from roce_gym.workload.graph_jobs import make_graph
from roce_gym.workload.graph_plan import Connection
from roce_gym.workload.graph_planner import plan_graph
from roce_gym.workload.llm.program import CHECKPOINT_CHANNEL
from roce_gym.workload.placement import place_tenants
from roce_gym.workload.plan import JobPlan, Plan
from roce_gym.workload.queue_pairs import JobPlace, QueuePairs


def make_plan(
    scenario: Scenario,
    network: Network,
    seed: int,
    only_tenant: str | None = None,
    without_tenant: str | None = None,
    router: Router | None = None,
) -> Plan:
    """Resolves placements, creates queue pairs and finds their paths.

    Args:
        scenario: what to run.
        network: built from `scenario.topology`.
        seed: of the run, not negative; decides random placements and ECMP.
        only_tenant: plan this tenant's jobs only. They get the same hosts, paths and member
            numbers as in the plan of all tenants.
        without_tenant: plan all jobs but those of this tenant, likewise.
        router: one for `network`, to share what it remembers between plans.

    Raises:
        ConfigError: hosts, flows or jobs that the network cannot carry; names the field.
        TraceFileError: a flow file cannot be read.
    """
    if seed < 0:
        raise ConfigError(f"seed = {seed} is not allowed; allowed: 0 and above")
    names = [tenant.name for tenant in scenario.tenants]
    for name in (only_tenant, without_tenant):
        if name is not None and name not in names:
            raise ConfigError(f"tenant {name!r} is unknown; allowed: {', '.join(names)}")
    class_index = {c.name: index for index, c in enumerate(scenario.classes)}
    builder = _PlanBuilder(network, router or Router(network), seed)
    first_member_id = 0
    placed = place_tenants(scenario.tenants, network, seed)
    for tenant_index, (tenant, hosts) in enumerate(zip(scenario.tenants, placed, strict=True)):
        for job_index, job in enumerate(tenant.jobs):
            if only_tenant in (None, tenant.name) and tenant.name != without_tenant:
                place = JobPlace(
                    name=f"tenants.{tenant.name}.jobs.{job_index}",
                    tenant=tenant_index,
                    job=job_index,
                    class_index=class_index[job_class(scenario, tenant, job)],
                    hosts=hosts,
                    first_member_id=first_member_id,
                    arrive_ps=us_to_ps(tenant.arrive_us),
                    leave_ps=-1 if tenant.leave_us is None else us_to_ps(tenant.leave_us),
                    timeout_ps=None if job.nccl is None else job.nccl.timeout_ps,
                    retry_limit=None if job.nccl is None else job.nccl.NCCL_IB_RETRY_CNT,
                    carrier=_carrier(scenario, job, class_index),
                )
                builder.add(job, place)
            if not isinstance(job, FlowList | PoissonJob | Incast):
                first_member_id += len(hosts)
    return builder.finish(class_order(scenario))


class _PlanBuilder:
    """Plans jobs one after the other."""

    def __init__(self, network: Network, router: Router, seed: int) -> None:
        self.network = network
        self.router = router
        self.qps = QueuePairs(network, router, int(seed))
        self.jobs: list[JobPlan] = []

    def add(self, job: Job, place: JobPlace) -> None:
        """Plans one job."""
        if isinstance(job, FlowList | PoissonJob):
            plan = flow_plan(job, place, self.qps, self.router, _common(job, place))
        elif isinstance(job, RingAllReduce):
            plan = self._ring(job, place)
        elif isinstance(job, AllToAll):
            plan = self._all_to_all(job, place)
        elif isinstance(job, Incast):
            plan = self._incast(job, place)
        else:
            plan = self._graph(job, place)
        self.jobs.append(plan)

    def finish(self, classes: tuple[int, ...]) -> Plan:
        """Brings queue pairs into their final order and renumbers them in the jobs."""
        qps, number = self.qps.in_final_order(classes)
        return Plan(
            qps=qps,
            jobs=tuple(
                replace(job, qps=tuple(tuple(number[i] for i in row) for row in job.qps))
                for job in self.jobs
            ),
        )

    def _ring(self, job: RingAllReduce, place: JobPlace) -> JobPlan:
        n = _require_group(place)
        pairs = [(place.hosts[i], place.hosts[(i + 1) % n]) for i in range(n)]
        return JobPlan(
            kind="ring_all_reduce",
            hosts=place.hosts,
            qps=_rows(self.qps.connect(place, pairs * job.channels), n),
            message_bytes=_ceil_div(job.bytes, n * job.channels * job.chunks_per_step),
            messages_per_round=2 * (n - 1) * job.chunks_per_step,
            chunks=job.chunks_per_step,
            **_compute(job),
            **_common(job, place),
        )

    def _all_to_all(self, job: AllToAll, place: JobPlace) -> JobPlan:
        n = _require_group(place)
        pairs = [
            (place.hosts[i], place.hosts[(i + 1 + k) % n]) for i in range(n) for k in range(n - 1)
        ]
        return JobPlan(
            kind="all_to_all",
            hosts=place.hosts,
            qps=_rows(self.qps.connect(place, pairs), n - 1),
            message_bytes=_ceil_div(job.bytes, n),
            messages_per_round=n - 1,
            **_compute(job),
            **_common(job, place),
        )

    def _incast(self, job: Incast, place: JobPlace) -> JobPlan:
        if job.degree > len(place.hosts) - 1:
            raise ConfigError(
                f"{place.name}.degree = {job.degree} is not allowed; the tenant has "
                f"{len(place.hosts) - 1} hosts beside the receiver"
            )
        receiver, senders = place.hosts[0], place.hosts[1 : job.degree + 1]
        return JobPlan(
            kind="incast",
            hosts=senders,
            qps=(self.qps.connect(place, [(sender, receiver) for sender in senders]),),
            message_bytes=job.bytes,
            messages_per_round=job.degree,
            period_ps=us_to_ps(job.period_us),
            rounds=-1 if job.rounds is None else job.rounds,
            **_common(job, place),
        )

    def _graph(self, job: Job, place: JobPlace) -> JobPlan:
        work = make_graph(job, place, self.network, self.qps.seed)
        graph, pairs = plan_graph(work, place, self.network)
        return JobPlan(
            kind="graph",
            hosts=place.hosts[: graph.graph.num_ranks],
            qps=(self._connect(place, graph.connections, pairs),),
            compute_ps=work.compute_ps,
            jitter=work.jitter,
            rounds=work.rounds,
            graph=graph,
            label=job.kind,
            **_common(job, place),
        )

    def _connect(
        self,
        place: JobPlace,
        connections: tuple[Connection, ...],
        pairs: list[tuple[int, int]],
    ) -> tuple[int, ...]:
        """Queue pairs of a graph; those of checkpoints may be another tenant's."""
        carried = place
        if place.carrier is not None:
            tenant, class_index = place.carrier
            carried = replace(place, tenant=tenant, class_index=class_index)
        return tuple(
            self.qps.create(carried if is_checkpoint(one) else place, k, src, dst)
            for k, (one, (src, dst)) in enumerate(zip(connections, pairs, strict=True))
        )


def is_checkpoint(connection: Connection) -> bool:
    """Whether a queue pair carries the state of a model to storage."""
    return connection.group < 0 and connection.channel == CHECKPOINT_CHANNEL


def _carrier(scenario: Scenario, job: Job, class_index: dict[str, int]) -> tuple[int, int] | None:
    name = carrier_of(job)
    if name is None:
        return None
    names = [tenant.name for tenant in scenario.tenants]
    carrier = scenario.tenants[names.index(name)]
    return names.index(name), class_index[carrier.traffic_class]


def _require_group(place: JobPlace) -> int:
    if len(place.hosts) < 2:
        raise ConfigError(f"{place.name}: needs at least 2 hosts, the tenant has 1")
    return len(place.hosts)


def _common(job: Job, place: JobPlace) -> dict[str, Any]:
    ends_ps = [] if job.stop_us is None else [place.arrive_ps + us_to_ps(job.stop_us)]
    ends_ps += [place.leave_ps] if place.leave_ps >= 0 else []
    return {
        "tenant": place.tenant,
        "first_member_id": place.first_member_id,
        "start_ps": place.arrive_ps + us_to_ps(job.start_us),
        "stop_ps": min(ends_ps, default=-1),
    }


def _compute(job: RingAllReduce | AllToAll) -> dict[str, Any]:
    return {
        "compute_ps": us_to_ps(job.compute_us),
        "jitter": job.jitter,
        "rounds": -1 if job.rounds is None else job.rounds,
    }


def _rows(qps: tuple[int, ...], width: int) -> tuple[tuple[int, ...], ...]:
    return tuple(qps[i : i + width] for i in range(0, len(qps), width))


def _ceil_div(total: int, parts: int) -> int:
    return -(-total // parts)
