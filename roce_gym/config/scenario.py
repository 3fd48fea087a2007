"""The scenario as a whole, and what its parts must agree on."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError, model_validator

from roce_gym.asics import ASICS
from roce_gym.config.control import ControlConfig
from roce_gym.config.devices import NicConfig, SwitchConfig, TrafficClass, with_default_alpha
from roce_gym.config.dscp import check_dscp
from roce_gym.config.faults import FaultsConfig
from roce_gym.config.fields import MAX_PRIORITIES, Model
from roce_gym.config.job_class import check_job_classes, class_of_job
from roce_gym.config.networks import Topology
from roce_gym.config.pfc import PfcConfig
from roce_gym.config.queueing import check_scheduling, check_shapers, pool_numbers, pool_sizes
from roce_gym.config.routing import LinkEvent, RoutingConfig
from roce_gym.config.senders import OWN_WINDOWS
from roce_gym.config.tenants import Job, Tenant
from roce_gym.config.training_jobs import carrier_of
from roce_gym.errors import ConfigError
from roce_gym.faults import explain
from roce_gym.headroom import PAUSE_QUANTUM_BYTES

Word = Annotated[int, Field(ge=0, lt=2**32)]


class SimulatorConfig(Model):
    """How simulated time works, and what is measured beside the counters.

    Times and draws are other than the defaults only to compare with other simulators.
    """

    tie_order: Literal["id", "scheduled"] = Field(
        "id", description="events of one time: by kind and id, or as they were scheduled (ns-3)"
    )
    clock_ps: Annotated[int, Field(ge=1, le=1_000_000)] = Field(
        1, description="serialisation and pacing times are rounded to this"
    )
    mrg32k3a_state: tuple[Word, Word, Word, Word, Word, Word] | None = Field(
        None, description="ECN draws from this generator in order of events (ns-3); None: our own"
    )
    latency_histograms: bool = Field(
        False, description="latencies of messages and packets are measured, which takes time"
    )


MAX_SCALE = 2**20
"""More GPUs than anybody has in one fabric."""

Scale = Annotated[int, Field(ge=1, le=MAX_SCALE)]


class Scales(Model):
    """What `scale` may be: multiples of `step`, up to `most`."""

    step: Scale = 1
    most: Scale = MAX_SCALE

    @model_validator(mode="after")
    def _hold_one(self) -> Scales:
        if self.most < self.step:
            raise ValueError(
                f"most = {self.most} is less than step = {self.step}; allowed: {self.step} … "
                f"{MAX_SCALE}"
            )
        return self

    @property
    def allowed(self) -> range:
        """All of them."""
        return range(self.step, self.most + 1, self.step)

    def __str__(self) -> str:
        steps = f", in steps of {self.step}" if self.step > 1 else ""
        return f"{self.step} … {self.allowed[-1]}{steps}"


class Scenario(Model):
    """One fabric, its settings and the tenants that share it."""

    name: str
    summary: str = ""
    scale: Scale | None = Field(
        None, description="size of a scenario that can have any: what its `times_scale` multiply"
    )
    scales: Scales = Field(Scales(), description="what `scale` may be")
    topology: Topology
    switch: SwitchConfig = SwitchConfig()
    nic: NicConfig = NicConfig()
    pfc: PfcConfig = PfcConfig()
    routing: RoutingConfig = RoutingConfig()
    link_events: tuple[LinkEvent, ...] = ()
    classes: Annotated[tuple[TrafficClass, ...], Field(min_length=1, max_length=MAX_PRIORITIES)] = (
        TrafficClass(),
    )
    preset: str = Field("connectx_default", description="settings not given by class or tenant")
    tenants: Annotated[tuple[Tenant, ...], Field(min_length=1)]
    faults: FaultsConfig = FaultsConfig()
    control: ControlConfig = ControlConfig()
    simulator: SimulatorConfig = SimulatorConfig()

    @model_validator(mode="before")
    @classmethod
    def _alpha_of_asic(cls, raw: Any) -> Any:
        """Writes the ASIC's alpha into buffers without one, so that a dump means the same."""
        classes = raw.get("classes") if isinstance(raw, dict) else None
        switch = raw.get("switch") if isinstance(raw, dict) else None
        name = switch.get("asic") if isinstance(switch, dict) else getattr(switch, "asic", None)
        asic = ASICS[name] if isinstance(name, str) and name in ASICS else None
        if asic is None or asic.alpha is None or not isinstance(classes, list | tuple):
            return raw
        return raw | {"classes": [with_default_alpha(c, asic.alpha) for c in classes]}

    @model_validator(mode="after")
    def _consistent(self) -> Scenario:
        _require_unique("classes.name", [c.name for c in self.classes])
        _require_unique("classes.priority", [c.priority for c in self.classes])
        _require_unique("tenants.name", [t.name for t in self.tenants])
        names = {c.name for c in self.classes}
        used = [(f"tenants.{t.name}.traffic_class", t.traffic_class) for t in self.tenants]
        used += [
            (f"nic.{key}", value)
            for key, value in (("ack_class", self.nic.ack_class), ("cnp_class", self.nic.cnp_class))
            if value is not None
        ]
        for i, override in enumerate(self.switch.overrides):
            used += [(f"switch.overrides.{i}.classes", name) for name in override.classes]
        for field, value in used:
            if value not in names:
                raise ValueError(f"{field} = {value!r} is not a class; allowed: {sorted(names)}")
        check_dscp(self.switch.dscp, self.classes, self.tenants)
        lossless = sorted(c.name for c in self.classes if c.lossless)
        for i, storm in enumerate(self.faults.storms):
            if storm.traffic_class not in lossless:
                raise ValueError(
                    f"faults.storms.{i}.traffic_class = {storm.traffic_class!r} is not a lossless "
                    f"class, of which alone switches heed pauses; allowed: {lossless}"
                )
        self._require_time_for_pauses(len(lossless))
        for tenant in self.tenants:
            if tenant.cc == "hpcc" and self.routing.policy != "ecmp":
                raise ValueError(
                    f"tenants.{tenant.name}.cc = 'hpcc' compares the links of one path; "
                    f"routing.policy = {self.routing.policy!r} has no such path; allowed: 'ecmp'"
                )
        self._require_plain_receivers()
        least = (self.nic.ack_every - 1) * self.nic.mtu_bytes + 1
        for tenant in self.tenants:
            window = tenant.window
            if window is None or window.follows_rate or window.bytes == "bdp":
                continue  # these are made large enough
            if window.bytes < least:
                raise ValueError(
                    f"tenants.{tenant.name}.window.bytes = {window.bytes} closes before an ACK is "
                    f"due; allowed: at least {least} with nic.ack_every = {self.nic.ack_every}, "
                    f"nic.mtu_bytes = {self.nic.mtu_bytes}"
                )
        check_job_classes(self.classes, self.switch.dscp, self.tenants)
        self._require_carriers()
        asic = self.switch.known
        for c in self.classes:
            if c.headroom_bytes == "sonic" and (asic is None or asic.has_tiles is None):
                known = [name for name, one in ASICS.items() if one.has_tiles is not None]
                raise ValueError(
                    f"classes.{c.name}.headroom_bytes = 'sonic' needs a switch that SONiC's rule "
                    f"is for, not switch.asic = {self.switch.asic!r}; allowed: {', '.join(known)}"
                )
        check_scheduling(self.classes)
        pools = pool_numbers(self.classes)
        shares = [c.buffer.pool_share if c.buffer else None for c in self.classes]
        pool_sizes(self.classes, pools, shares, 0)
        least = self.nic.largest_packet_bytes
        check_shapers("classes", {c.name: c.shaper for c in self.classes}, least)
        check_shapers("tenants", {t.name: t.shaper for t in self.tenants}, least)
        if self.link_events and self.simulator.tie_order == "scheduled":
            raise ValueError(
                "simulator.tie_order = 'scheduled' knows no link_events; allowed: 'id'"
            )
        return self

    def _require_carriers(self) -> None:
        """Tenants that checkpoints of others travel as must exist."""
        names = [t.name for t in self.tenants]
        for tenant in self.tenants:
            for i, job in enumerate(tenant.jobs):
                carrier = carrier_of(job)
                if carrier is not None and carrier not in names:
                    raise ValueError(
                        f"tenants.{tenant.name}.jobs.{i}.checkpoint.carried_by = {carrier!r} is "
                        f"not a tenant; allowed: {', '.join(names)}"
                    )

    def _require_plain_receivers(self) -> None:
        """Senders that set a window count on receivers that keep order, and on go-back-N."""
        for tenant in self.tenants:
            if tenant.cc not in OWN_WINDOWS:
                continue
            for field, value, allowed in (
                ("out_of_order", self.nic.out_of_order, False),
                ("recovery", self.nic.recovery, "go_back_n"),
            ):
                if value != allowed:
                    raise ValueError(
                        f"tenants.{tenant.name}.cc = {tenant.cc!r} sets a window for receivers "
                        f"that keep order; nic.{field} = {value!r} is not allowed with it; "
                        f"allowed: {allowed!r}"
                    )

    def _require_time_for_pauses(self, lossless: int) -> None:
        """A link must be able to carry the refreshes of all classes and storms."""
        sources = lossless + len(self.faults.storms)
        frame = self.nic.pfc_bytes + self.nic.interframe_gap_bytes
        least = sources * frame / PAUSE_QUANTUM_BYTES
        if 0 < self.pfc.quanta * self.pfc.refresh_fraction < least:
            raise ValueError(
                f"pfc.quanta = {self.pfc.quanta} with refresh_fraction = "
                f"{self.pfc.refresh_fraction} has more pause frames sent than a link can carry; "
                f"allowed: quanta of 0, or quanta x refresh_fraction of at least {least:g}"
            )


def class_order(scenario: Scenario) -> tuple[int, ...]:
    """Indices into `scenario.classes` in the order in which the simulator numbers classes.

    Strict classes by falling priority, then round-robin ones by rising priority (docs/rules.md,
    section 1); the class of PFC frames, which comes before all, is not counted.
    """

    def rank(index: int) -> tuple[bool, int]:
        is_strict = scenario.classes[index].scheduling == "strict"
        priority = scenario.classes[index].priority
        return (not is_strict, -priority if is_strict else priority)

    return tuple(sorted(range(len(scenario.classes)), key=rank))


def job_class(scenario: Scenario, tenant: Tenant, job: Job) -> str:
    """Name of the class in which a job's data travels."""
    return class_of_job(scenario.classes, scenario.switch.dscp, tenant, job)


def _require_unique(field: str, values: list[Any]) -> None:
    repeated = sorted({v for v in values if values.count(v) > 1})
    if repeated:
        raise ValueError(f"{field} must be unique; repeated: {repeated}")


def validate_scenario(raw: dict[str, Any]) -> Scenario:
    """Turns a plain mapping into a :class:`Scenario`.

    Raises:
        ConfigError: one line per fault with field, value and what is allowed.
    """
    try:
        return Scenario.model_validate(raw)
    except ValidationError as error:
        raise ConfigError(explain(error, raw, Scenario)) from None
