"""The scenario: a typed, frozen, validated description of a fabric, its settings and its tenants.

Everything downstream is built from a :class:`Scenario`; nothing downstream reads YAML. Unknown keys
and impossible values are rejected here, before anything runs. Units are in the field names.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from roce_gym.errors import ConfigError
from roce_gym.faults import explain

MAX_PRIORITIES = 8
"""IEEE 802.1Q priority code points."""

MIN_RATE_GBPS = 0.001
MAX_RATE_GBPS = 3200.0
"""Link rates outside of this range are taken for a slip of the pen."""

MAX_VALUE = 1e12
"""No number is larger, so that us in ps and Mb/s in b/s fit into 64 bits."""

Rate = Annotated[float, Field(ge=MIN_RATE_GBPS, le=MAX_RATE_GBPS)]
NonNegative = Annotated[float, Field(ge=0, le=MAX_VALUE)]
Positive = Annotated[float, Field(gt=0, le=MAX_VALUE)]
Fraction = Annotated[float, Field(ge=0, le=1)]
Bytes = Annotated[int, Field(ge=0, le=2**31 - 1)]
Volume = Annotated[int, Field(gt=0, le=2**50)]
Count = Annotated[int, Field(ge=1, le=2**31 - 1)]
HostId = Annotated[int, Field(ge=0, le=2**31 - 1)]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


# --------------------------------------------------------------------------- topology


class Star(_Model):
    """`hosts` hosts on one switch."""

    kind: Literal["star"] = "star"
    hosts: Annotated[int, Field(ge=2, le=4096)]
    host_rate_gbps: Rate = 100.0
    link_delay_ns: NonNegative = 1000.0


class Dumbbell(_Model):
    """Two switches, `hosts_per_side` hosts on each, one link between them."""

    kind: Literal["dumbbell"] = "dumbbell"
    hosts_per_side: Annotated[int, Field(ge=1, le=2048)]
    host_rate_gbps: Rate = 100.0
    trunk_rate_gbps: Rate = 100.0
    link_delay_ns: NonNegative = 1000.0


class LeafSpine(_Model):
    """`leaves` leaf switches with `hosts_per_leaf` hosts, each linked to every spine."""

    kind: Literal["leaf_spine"] = "leaf_spine"
    leaves: Annotated[int, Field(ge=1, le=1024)]
    hosts_per_leaf: Annotated[int, Field(ge=1, le=1024)]
    spines: Annotated[int, Field(ge=1, le=1024)]
    host_rate_gbps: Rate = 100.0
    spine_rate_gbps: Rate = 100.0
    link_delay_ns: NonNegative = 1000.0


class TopologyFile(_Model):
    """Any graph, from a file in the HPCC format (nodes, switches, links)."""

    kind: Literal["hpcc_file"] = "hpcc_file"
    path: str


Topology = Annotated[Star | Dumbbell | LeafSpine | TopologyFile, Field(discriminator="kind")]


# --------------------------------------------------------------------------- settings (tunable)


class EcnConfig(_Model):
    """RED line of a class: mark from (kmin, 0) to (kmax, pmax), then always.

    Byte values hold for a port at host rate; see `SwitchConfig.ecn_scales_with_rate`.
    Source: DCQCN (Zhu et al., SIGCOMM 2015, section 3.1), on the instantaneous egress queue.
    """

    enabled: bool = True
    kmin_bytes: Bytes
    kmax_bytes: Bytes
    pmax: Fraction

    @model_validator(mode="after")
    def _ordered(self) -> EcnConfig:
        if self.kmax_bytes < self.kmin_bytes:
            raise ValueError(
                f"kmax_bytes = {self.kmax_bytes} must be at least kmin_bytes = {self.kmin_bytes}"
            )
        return self


class DcqcnConfig(_Model):
    """Sender parameters, named after their role; the ConnectX name is given in brackets.

    Ranges are those of the firmware (NVIDIA "DCQCN parameters", ConnectX-4 and later), with
    finer units where the firmware's are coarse. Rules: `roce_gym/sim/cc/dcqcn.py`.
    """

    enabled: bool = True
    alpha_interval_us: Positive = Field(1.0, description="alpha update period [dce_tcp_rtt]")
    decrease_interval_us: Positive = Field(
        4.0, description="least time between rate cuts [rate_reduce_monitor_period]"
    )
    increase_timer_us: Positive = Field(300.0, description="increase timer [rpg_time_reset]")
    byte_counter_bytes: Annotated[int, Field(ge=0, le=2**50)] = Field(
        0, description="bytes between increases, 0 = off [rpg_byte_reset]"
    )
    fast_recovery_times: Annotated[int, Field(ge=0, le=31)] = Field(
        1, description="increases before additive increase, F [rpg_threshold]"
    )
    rate_ai_mbps: Positive = Field(5.0, description="additive increase [rpg_ai_rate]")
    rate_hai_mbps: Positive = Field(50.0, description="hyper increase [rpg_hai_rate]")
    min_rate_mbps: Positive = Field(1.0, description="lowest rate [rpg_min_rate]")
    max_rate_mbps: NonNegative = Field(0.0, description="0 = line rate [rpg_max_rate]")
    g: Annotated[float, Field(gt=0, le=1)] = Field(
        5 / 1024, description="gain of the alpha average [1 - dce_tcp_g/1024]"
    )
    initial_alpha: Fraction = Field(1023 / 1024, description="[initial_alpha_value/1024]")
    alpha_cap: Annotated[float, Field(gt=0, le=1)] = Field(
        1.0, description="alpha never exceeds this; 1 = the firmware's rule"
    )
    cut_divisor: Literal[1, 2] = Field(
        2, description="a cut is 1 - alpha/divisor [rpg_gd: 11 = 2, 10 = 1]"
    )
    min_decrease_factor: Fraction = Field(
        0.5, description="one cut keeps at least this share of the rate [rpg_min_dec_fac]"
    )
    first_cnp_rate_mbps: NonNegative = Field(
        0.0, description="rate on the first CNP, 0 = unchanged [rate_to_set_on_first_cnp]"
    )
    clamp_target_rate: bool = Field(
        False, description="every cut sets the target to the current rate [clamp_tgt_rate]"
    )
    clamp_target_rate_after_time_inc: bool = Field(
        True,
        description="a cut after a timer increase does so too [clamp_tgt_rate_after_time_inc]",
    )


class BufferConfig(_Model):
    """Share of the switch buffer a class may take at one ingress port.

    A port's use beyond `reserved_bytes` may grow to `alpha` times the free shared buffer
    (dynamic threshold, alpha = 2^dynamic_th), or to `static_threshold_bytes` where given.
    """

    alpha: Annotated[float, Field(gt=0, le=128)] = 0.125
    static_threshold_bytes: Bytes | None = None
    reserved_bytes: Bytes = 4096


class ClassSettings(_Model):
    """What the switches do for one traffic class."""

    ecn: EcnConfig
    buffer: BufferConfig = BufferConfig()


class Settings(_Model):
    """Everything an agent or operator may change while the fabric runs.

    Attributes:
        classes: by class name; acts in all switches.
        tenants: by tenant name; acts on the tenant's own QPs.
    """

    classes: dict[str, ClassSettings]
    tenants: dict[str, DcqcnConfig]


# --------------------------------------------------------------------------- devices (fixed)


class TrafficClass(_Model):
    """One of the 8 priorities, as all switches and NICs treat it."""

    name: str = "roce"
    priority: Annotated[int, Field(ge=0, lt=MAX_PRIORITIES)] = 3
    lossless: bool = True
    scheduling: Literal["strict", "round_robin"] = "round_robin"
    headroom_bytes: Annotated[int, Field(ge=0, le=2**31 - 1)] | Literal["auto"] = "auto"
    headroom_rate_delays: NonNegative | None = Field(
        None, description="headroom as a multiple of rate x one-way delay of each port"
    )
    xon_offset_bytes: Bytes = 3072
    ecn: EcnConfig | None = Field(None, description="None: from the preset")
    buffer: BufferConfig | None = Field(None, description="None: from the preset")


class SwitchConfig(_Model):
    """Switch ASIC. 16 MiB matches a shared-buffer switch of the 3.2 Tb/s class."""

    buffer_bytes: Annotated[int, Field(gt=0, le=2**31 - 1)] = 16 * 2**20
    ecn_scales_with_rate: bool = Field(
        True, description="kmin and kmax grow with port rate over host rate"
    )
    alpha_scales_with_rate: bool = Field(
        False, description="alpha doubles, up to 1, for each doubling of port rate over host rate"
    )


class NicConfig(_Model):
    """Host NIC and transport. Frame sizes: IEEE 802.3, IBTA volume 1 annex A17 (RoCEv2)."""

    mtu_bytes: Annotated[int, Field(ge=64, le=65536)] = Field(4096, description="payload")
    header_bytes: Annotated[int, Field(ge=0, le=1024)] = Field(
        62, description="Ethernet 14, IPv4 20, UDP 8, BTH 12, ICRC 4, FCS 4"
    )
    ack_bytes: Annotated[int, Field(ge=1, le=4096)] = Field(66, description="header + AETH 4")
    cnp_bytes: Annotated[int, Field(ge=1, le=4096)] = Field(78, description="header + 16 reserved")
    pfc_bytes: Annotated[int, Field(ge=1, le=4096)] = Field(64, description="IEEE 802.1Qbb")
    interframe_gap_bytes: Annotated[int, Field(ge=0, le=64)] = Field(
        20, description="preamble 8 and gap 12; takes time on the wire, no buffer"
    )
    ack_every: Annotated[int, Field(ge=1, le=1024)] = Field(
        16, description="packets acknowledged by one ACK; a message's last always is"
    )
    ack_class: str | None = Field(None, description="None: the class of the data")
    cnp_mode: Literal["packet", "ack_echo"] = Field(
        "packet", description="CNPs of their own, or the CE bit echoed in ACKs"
    )
    cnp_class: str | None = Field(None, description="None: the class of the data")
    cnp_interval_us: NonNegative = Field(
        4.0, description="least time between CNPs of a QP [min_time_between_cnps]"
    )
    window_bytes: Annotated[int, Field(ge=0, le=2**40)] = Field(0, description="0 = no window")
    retransmit_timeout_us: NonNegative = Field(
        67_108.864, description="4.096 us x 2^14, local ACK timeout 14 of IBTA; 0 = never"
    )
    retry_limit: Annotated[int, Field(ge=0, le=7)] = Field(7, description="IBTA: 3 bits")
    nack_interval_us: Positive = Field(500.0, description="before a gap is reported again")
    ack_ignores_pause: bool = Field(
        False, description="a paused host goes on sending ACKs: a flaw of the ns-3 reference"
    )


# --------------------------------------------------------------------------- tenants and jobs


class Placement(_Model):
    """Which hosts a tenant gets, by position among the hosts in ascending order.

    `packed`: `count` neighbours from position `first` on. `strided`: every `stride`-th from `first`
    on. `random`: `count` of all hosts in random order, by the seed of the run; tenants draw
    independently of each other, so their draws may overlap.
    """

    kind: Literal["packed", "strided", "random"]
    count: Count
    first: HostId = 0
    stride: Count = 1


class _Job(_Model):
    start_us: NonNegative = 0.0
    stop_us: Positive | None = Field(None, description="no new round starts after this")


class Flow(_Model):
    """One message on a QP of its own. Ids are those of the topology file, where there is one."""

    src: HostId
    dst: HostId
    bytes: Volume
    start_us: NonNegative = 0.0
    data_path: tuple[int, ...] | None = Field(None, description="node ids, both ends included")
    ack_path: tuple[int, ...] | None = None


class FlowList(_Job):
    """Given messages at given times after the job's start; those from `stop_us` on are left out."""

    kind: Literal["flows"] = "flows"
    flows: tuple[Flow, ...] = ()
    file: str | None = Field(None, description="HPCC flow file; its flows come after `flows`")


class _Rounds(_Job):
    compute_us: NonNegative = 0.0
    jitter: Annotated[float, Field(ge=0, lt=1)] = Field(
        0.0, description="compute time is uniform in (1 - jitter, 1 + jitter) x compute_us"
    )
    rounds: Count | None = Field(None, description="None: no limit")


class RingAllReduce(_Rounds):
    """Loop of compute and ring all-reduce over the tenant's hosts, in their order."""

    kind: Literal["ring_all_reduce"] = "ring_all_reduce"
    bytes: Volume = Field(description="size of the reduced buffer")
    channels: Annotated[int, Field(ge=1, le=64)] = 1
    chunks_per_step: Annotated[int, Field(ge=1, le=256)] = Field(
        1, description="pieces a step is cut into, so that steps overlap"
    )


class AllToAll(_Rounds):
    """Loop of compute and all-to-all: every host sends bytes/n to every other at once."""

    kind: Literal["all_to_all"] = "all_to_all"
    bytes: Volume = Field(description="size of each host's buffer")


class Incast(_Job):
    """Bursts of `degree` senders into the tenant's first host, as a checkpoint write."""

    kind: Literal["incast"] = "incast"
    bytes: Volume = Field(description="per sender and burst")
    degree: Count
    period_us: Positive = Field(description="a burst starts this long after the last, or when done")
    rounds: Count | None = None


Job = Annotated[FlowList | RingAllReduce | AllToAll | Incast, Field(discriminator="kind")]


class Tenant(_Model):
    """Owner of hosts and jobs; its QPs share one set of sender parameters.

    Host ids are those of the topology file, where there is one; their order is the rank order.
    """

    name: str
    hosts: tuple[HostId, ...] | Placement
    traffic_class: str = "roce"
    weight: Positive = 1.0
    dcqcn: DcqcnConfig | None = Field(None, description="None: from the preset")
    jobs: Annotated[tuple[Job, ...], Field(min_length=1)]


class ControlConfig(_Model):
    """How an agent drives the scenario."""

    interval_us: Annotated[float, Field(ge=10, le=1e6)] = 200.0
    horizon_us: Annotated[float, Field(ge=100, le=1e8)] = 18_000.0
    reward_weights: dict[Literal["completion", "pfc", "interference"], NonNegative] = {
        "completion": 1.0,
        "pfc": 0.25,
        "interference": 0.25,
    }


Word = Annotated[int, Field(ge=0, lt=2**32)]


class SimulatorConfig(_Model):
    """How simulated time works; other than the defaults only to compare with other simulators."""

    tie_order: Literal["id", "scheduled"] = Field(
        "id", description="events of one time: by kind and id, or as they were scheduled (ns-3)"
    )
    clock_ps: Annotated[int, Field(ge=1, le=1_000_000)] = Field(
        1, description="serialisation and pacing times are rounded to this"
    )
    mrg32k3a_state: tuple[Word, Word, Word, Word, Word, Word] | None = Field(
        None, description="ECN draws from this generator in order of events (ns-3); None: our own"
    )


class Scenario(_Model):
    """One fabric, its settings and the tenants that share it."""

    name: str
    summary: str = ""
    topology: Topology
    switch: SwitchConfig = SwitchConfig()
    nic: NicConfig = NicConfig()
    classes: Annotated[tuple[TrafficClass, ...], Field(min_length=1, max_length=MAX_PRIORITIES)] = (
        TrafficClass(),
    )
    preset: str = Field("connectx_default", description="settings not given by class or tenant")
    tenants: Annotated[tuple[Tenant, ...], Field(min_length=1)]
    control: ControlConfig = ControlConfig()
    simulator: SimulatorConfig = SimulatorConfig()

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
        for field, value in used:
            if value not in names:
                raise ValueError(f"{field} = {value!r} is not a class; allowed: {sorted(names)}")
        return self


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
