"""Tenants: their hosts, jobs and traffic class."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from roce_gym.config.collectives import Collective, Pipeline
from roce_gym.config.credit import CreditConfig
from roce_gym.config.delay import RttConfig, SwiftConfig
from roce_gym.config.dscp import Dscp
from roce_gym.config.fields import Count, HostId, Model, NonNegative, Positive, Volume
from roce_gym.config.int_throttle import IntThrottleConfig
from roce_gym.config.jobs import BaseJob, RoundsJob
from roce_gym.config.none import NoneConfig
from roce_gym.config.senders import (
    OWN_WINDOWS,
    SENDER_CONFIGS,
    AlgorithmName,
    DcqcnConfig,
    HpccConfig,
    SenderConfig,
    TimelyConfig,
    WindowConfig,
)
from roce_gym.config.settings import Settings, ShaperConfig
from roce_gym.config.tcp import DctcpConfig, RenoConfig
from roce_gym.config.traces import PoissonJob, TraceJob
from roce_gym.config.training_jobs import FineTuning, Inference, Training
from roce_gym.config.user import UserConfig


class Placement(Model):
    """Which hosts a tenant gets, by position among the hosts in ascending order.

    `packed`: `count` neighbours from position `first` on. `strided`: every `stride`-th from `first`
    on. `random`: `count` of all hosts in random order, by the seed of the run; tenants draw
    independently of each other, so their draws may overlap. `islands`: hosts that no other tenant
    has at that time, in as few servers, leaves and pods as can be (workload/islands.py).
    """

    kind: Literal["packed", "strided", "random", "islands"]
    count: Count
    first: HostId = 0
    stride: Count = 1

    @model_validator(mode="after")
    def _fields_of_kind(self) -> Placement:
        if self.kind == "islands" and (self.first, self.stride) != (0, 1):
            raise ValueError(
                f"kind = 'islands' looks for hosts itself; first = {self.first} and "
                f"stride = {self.stride} are not allowed with it"
            )
        return self


class Flow(Model):
    """One message on a QP of its own. Ids are those of the topology file, where there is one."""

    src: HostId
    dst: HostId
    bytes: Volume
    start_us: NonNegative = 0.0
    data_path: tuple[int, ...] | None = Field(None, description="node ids, both ends included")
    ack_path: tuple[int, ...] | None = None


class FlowList(BaseJob):
    """Given messages at given times after the job's start; those from `stop_us` on are left out."""

    kind: Literal["flows"] = "flows"
    flows: tuple[Flow, ...] = ()
    file: str | None = Field(None, description="HPCC flow file; its flows come after `flows`")


class RingAllReduce(RoundsJob):
    """Loop of compute and ring all-reduce over the tenant's hosts, in their order."""

    kind: Literal["ring_all_reduce"] = "ring_all_reduce"
    bytes: Volume = Field(description="size of the reduced buffer")
    channels: Annotated[int, Field(ge=1, le=64)] = 1
    chunks_per_step: Annotated[int, Field(ge=1, le=256)] = Field(
        1, description="pieces a step is cut into, so that steps overlap"
    )


class AllToAll(RoundsJob):
    """Loop of compute and all-to-all: every host sends bytes/n to every other at once."""

    kind: Literal["all_to_all"] = "all_to_all"
    bytes: Volume = Field(description="size of each host's buffer")


class Incast(BaseJob):
    """Bursts of `degree` senders into the tenant's first host, as a checkpoint write."""

    kind: Literal["incast"] = "incast"
    bytes: Volume = Field(description="per sender and burst")
    degree: Count
    period_us: Positive = Field(description="a burst starts this long after the last, or when done")
    rounds: Count | None = None


Job = Annotated[
    FlowList
    | PoissonJob
    | RingAllReduce
    | AllToAll
    | Incast
    | Collective
    | Pipeline
    | TraceJob
    | Training
    | FineTuning
    | Inference,
    Field(discriminator="kind"),
]


class Tenant(Model):
    """Owner of hosts and jobs; its QPs share one set of sender parameters.

    Host ids are those of the topology file, where there is one; their order is the rank order.
    """

    name: str
    hosts: tuple[HostId, ...] | Placement
    traffic_class: str = "roce"
    dscp: Dscp | None = Field(
        None, description="of its data, as switch.dscp maps it; None: that of its class"
    )
    weight: Positive = 1.0
    arrive_us: NonNegative = Field(
        0.0, description="start_us and stop_us of its jobs count from it"
    )
    leave_us: Positive | None = Field(
        None, description="no round, burst or flow starts from then on; None: it stays"
    )
    score: Literal["mean", "p95"] = Field(
        "mean", description="of the times of a job's rounds, what the score compares with alone"
    )
    cc: AlgorithmName = Field("dcqcn", description="algorithm of its senders")
    dcqcn: DcqcnConfig | None = Field(None, description="None: from the preset")
    timely: TimelyConfig | None = Field(None, description="None: defaults")
    hpcc: HpccConfig | None = Field(None, description="None: defaults")
    swift: SwiftConfig | None = Field(None, description="None: defaults")
    rtt: RttConfig | None = Field(None, description="None: defaults")
    dctcp: DctcpConfig | None = Field(None, description="None: defaults")
    reno: RenoConfig | None = Field(None, description="None: defaults")
    user: UserConfig | None = Field(None, description="needed with cc = user")
    credit: CreditConfig | None = Field(None, description="None: defaults")
    int_throttle: IntThrottleConfig | None = Field(None, description="None: defaults")
    none: NoneConfig | None = Field(None, description="None: defaults")
    window: WindowConfig | None = Field(
        None, description="None: nic.window_bytes; HPCC: in proportion to the rate"
    )
    shaper: ShaperConfig | None = Field(
        None, description="of all its QPs at each host; None: cannot be turned on later"
    )
    jobs: Annotated[tuple[Job, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _stays_for_its_jobs(self) -> Tenant:
        if self.leave_us is None:
            return self
        latest = max(job.start_us for job in self.jobs)
        if self.leave_us <= self.arrive_us + latest:
            raise ValueError(
                f"leave_us = {self.leave_us} is not after arrive_us = {self.arrive_us} and the "
                f"latest start_us of its jobs ({latest}); allowed: more than their sum"
            )
        return self

    @model_validator(mode="after")
    def _own_parameters_only(self) -> Tenant:
        for name in SENDER_CONFIGS:
            if name not in ("dcqcn", self.cc) and getattr(self, name) is not None:
                raise ValueError(
                    f"{name} is given, but cc = {self.cc!r}; allowed: cc = {name!r}, or no {name}"
                )
        if self.cc == "user" and self.user is None:
            raise ValueError("cc = 'user' needs user, with file and function")
        if self.window is not None and self.cc in OWN_WINDOWS:
            raise ValueError(
                f"window = {self.window.model_dump()} is not allowed with cc = {self.cc!r}, which "
                "sets a window itself; allowed: none"
            )
        if self.cc == "hpcc" and self.window is not None and not self.window.follows_rate:
            raise ValueError("window.follows_rate = False is not allowed with cc = 'hpcc'")
        return self

    @property
    def num_hosts(self) -> int:
        """How many it has."""
        return self.hosts.count if isinstance(self.hosts, Placement) else len(self.hosts)

    @property
    def own_sender(self) -> SenderConfig | None:
        """The parameters of its algorithm; None: it is DCQCN, see `dcqcn` and presets."""
        if self.cc == "dcqcn":
            return None
        given: SenderConfig | None = getattr(self, self.cc)
        return SENDER_CONFIGS[self.cc].model_validate({}) if given is None else given

    @property
    def own_window(self) -> WindowConfig | None:
        """The window of the tenant's queue pairs; None: that of the NIC."""
        return WindowConfig() if self.window is None and self.cc == "hpcc" else self.window


def sender_settings(tenant: Tenant, settings: Settings) -> SenderConfig:
    """The parameters of a tenant's senders: of the algorithm that it has."""
    own = tenant.own_sender
    return settings.tenants[tenant.name] if own is None else settings.senders.get(tenant.name, own)
