"""Which class a DSCP means, and in which class a job travels."""

from __future__ import annotations

from collections.abc import Sequence

from roce_gym.config.devices import TrafficClass
from roce_gym.config.tenants import Job, Tenant

CODE_POINTS = 64
"""RFC 2474: six bits."""


def dscp_map(classes: Sequence[TrafficClass]) -> dict[int, str]:
    """Name of the class that each mapped code point means.

    A class has those that it lists, or 8 x priority … + 7 except what others list: the default map
    of ConnectX NICs (mlnx_qos, DSCP / 8).

    Raises:
        ValueError: two classes list the same one.
    """
    listed: dict[int, str] = {}
    for c in classes:
        for code in c.dscp or ():
            if listed.get(code, c.name) != c.name:
                raise ValueError(
                    f"classes.{c.name}.dscp: {code} is listed by class {listed[code]!r}, too"
                )
            listed[code] = c.name
    out = dict(listed)
    for c in classes:
        if c.dscp is None:
            own = range(8 * c.priority, 8 * c.priority + 8)
            out |= {code: c.name for code in own if code not in listed}
    return out


def class_of_job(classes: Sequence[TrafficClass], tenant: Tenant, job: Job) -> str:
    """Name of the class of a job: NCCL_IB_TC's, if that is set, else its tenant's.

    Raises:
        ValueError: no class has that code point.
    """
    dscp = None if job.nccl is None else job.nccl.dscp
    if dscp is None or job.nccl is None:
        return tenant.traffic_class
    known = dscp_map(classes)
    if dscp not in known:
        codes = ", ".join(f"{4 * code} ({known[code]})" for code in sorted(known))
        raise ValueError(
            f"tenants.{tenant.name}.jobs.{tenant.jobs.index(job)}.nccl.NCCL_IB_TC = "
            f"{job.nccl.NCCL_IB_TC} is DSCP {dscp}, which no class has; allowed: {codes}, each up "
            "to 3 more"
        )
    return known[dscp]


def check_dscp(classes: Sequence[TrafficClass], tenants: Sequence[Tenant]) -> None:
    """Every code point means one class, and every job's means one.

    Raises:
        ValueError: names class or job.
    """
    dscp_map(classes)
    for tenant in tenants:
        for job in tenant.jobs:
            class_of_job(classes, tenant, job)
