"""In which class a job travels: its tenant's, or the one that NCCL_IB_TC means."""

from __future__ import annotations

from collections.abc import Sequence

from roce_gym.config.devices import TrafficClass
from roce_gym.config.dscp import CODES_PER_PRIORITY, DscpConfig
from roce_gym.config.tenants import Job, Tenant


def job_dscp(tenant: Tenant, job: Job) -> int | None:
    """DSCP of a job's data: NCCL_IB_TC's, else its tenant's; None: that of its class."""
    own = None if job.nccl is None else job.nccl.dscp
    return tenant.dscp if own is None else own


def class_of_job(
    classes: Sequence[TrafficClass], dscp: DscpConfig | None, tenant: Tenant, job: Job
) -> str:
    """Name of the class of a job: NCCL_IB_TC's, as the fabric maps it, else its tenant's.

    NICs map DSCP as `switch.dscp` does, or to the class with priority DSCP // 8.

    Raises:
        ValueError: no class has that DSCP.
    """
    code = None if job.nccl is None else job.nccl.dscp
    if code is None or job.nccl is None:
        return tenant.traffic_class
    by_priority = {c.priority: c.name for c in classes}
    mapped = None if dscp is None else dscp.map.get(code, dscp.default)
    name = mapped or by_priority.get(code // CODES_PER_PRIORITY)
    if name is None:
        known = {} if dscp is None else {4 * one: meant for one, meant in dscp.map.items()}
        step = 4 * CODES_PER_PRIORITY
        known |= {step * priority: meant for priority, meant in sorted(by_priority.items())}
        codes = ", ".join(f"{tc} ({meant})" for tc, meant in known.items())
        raise ValueError(
            f"tenants.{tenant.name}.jobs.{tenant.jobs.index(job)}.nccl.NCCL_IB_TC = "
            f"{job.nccl.NCCL_IB_TC} is DSCP {code}, which no class has; allowed, among others: "
            f"{codes}"
        )
    return name


def check_job_classes(
    classes: Sequence[TrafficClass], dscp: DscpConfig | None, tenants: Sequence[Tenant]
) -> None:
    """Every job has a class.

    Raises:
        ValueError: names the job.
    """
    for tenant in tenants:
        for job in tenant.jobs:
            class_of_job(classes, dscp, tenant, job)
