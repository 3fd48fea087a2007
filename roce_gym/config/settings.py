"""What an agent or operator may change while the fabric runs."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from roce_gym.config.fields import MAX_RATE_GBPS, Bytes, Fraction, Model
from roce_gym.config.selector import SwitchSelector
from roce_gym.config.senders import DcqcnConfig, SenderConfig

MIN_SHAPER_GBPS = 0.1
"""A frame of 4 KB waits 0.3 ms at this rate, about as long as an agent's interval."""

MAX_WEIGHT = 100
"""Of SONiC's SCHEDULER table."""

Alpha = Annotated[float, Field(gt=0, le=128)]
"""Of a dynamic threshold; 2^dynamic_th up to 2^7 (SONiC BUFFER_PROFILE)."""


class EcnConfig(Model):
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


class BufferConfig(Model):
    """Share of the switch buffer a class may take at one ingress port.

    A port's use beyond `reserved_bytes` may grow to `alpha` times the free shared buffer
    (dynamic threshold, alpha = 2^dynamic_th), or to `static_threshold_bytes` where given. Defaults:
    alpha 1/8 and 4 KiB, as in the HPCC simulator (PFC shift 3, reserve of a port).

    `egress_alpha` and `egress_limit_bytes` bound each egress queue of a lossy class, as an egress
    lossy pool does; beyond, packets are dropped. None: only the ingress threshold holds.
    """

    alpha: Alpha = 0.125
    static_threshold_bytes: Bytes | None = None
    reserved_bytes: Bytes = 4096
    pool_share: Annotated[float, Field(gt=0, le=1)] | None = Field(
        None,
        description="of the buffer less headroom and reserve, for the pool of this class alone "
        "(or of the classes that name the same pool); None: from what others leave",
    )
    egress_alpha: Alpha | None = Field(
        None, description="a queue may hold this times the free bytes of the class's pool"
    )
    egress_limit_bytes: Bytes | None = Field(
        None, description="a queue may hold so much; takes the place of egress_alpha"
    )


class ShaperConfig(Model):
    """Token bucket; counts frames without preamble and gap (SONiC SCHEDULER: pir and pbs).

    A frame may start when the bucket, which fills at `rate_gbps` up to `burst_bytes`, holds it.
    """

    rate_gbps: Annotated[float, Field(ge=0, le=MAX_RATE_GBPS)] = Field(description="0 = no limit")
    burst_bytes: Annotated[int, Field(ge=64, le=2**31 - 1)] = Field(
        description="at least the largest frame"
    )

    @model_validator(mode="after")
    def _not_too_slow(self) -> ShaperConfig:
        if 0 < self.rate_gbps < MIN_SHAPER_GBPS:
            raise ValueError(
                f"rate_gbps = {self.rate_gbps} is too slow; allowed: 0 (no limit), or "
                f"{MIN_SHAPER_GBPS} to {MAX_RATE_GBPS}"
            )
        return self


class ClassSettings(Model):
    """What the switches do for one traffic class; NICs take over its weight."""

    ecn: EcnConfig
    buffer: BufferConfig = BufferConfig()
    weight: Annotated[int, Field(ge=1, le=MAX_WEIGHT)] = 1
    shaper: ShaperConfig | None = None


class ClassOverride(Model):
    """What some switches do otherwise for one traffic class; None: as the others do.

    These are settings of a switch's own queues and ports: the ECN line of its egress queues (SONiC
    WRED_PROFILE), threshold and reserve of its ingress buffers (BUFFER_PROFILE). As everywhere,
    they hold for a port at host rate where `SwitchConfig` has them scale.
    """

    ecn: EcnConfig | None = None
    alpha: Alpha | None = Field(None, description="also where the class has a static threshold")
    static_threshold_bytes: Bytes | None = Field(None, description="in place of any alpha")
    reserved_bytes: Bytes | None = None

    @model_validator(mode="after")
    def _one_threshold(self) -> ClassOverride:
        if self.alpha is not None and self.static_threshold_bytes is not None:
            raise ValueError(
                f"alpha = {self.alpha} and static_threshold_bytes = {self.static_threshold_bytes} "
                "take each other's place; give one of them"
            )
        return self

    @classmethod
    def with_all_of(cls, chosen: ClassSettings) -> ClassOverride:
        """The override after which nothing holds but these settings."""
        buffer = chosen.buffer
        is_dynamic = buffer.static_threshold_bytes is None
        return cls.model_construct(
            ecn=chosen.ecn,
            alpha=buffer.alpha if is_dynamic else None,
            static_threshold_bytes=buffer.static_threshold_bytes,
            reserved_bytes=buffer.reserved_bytes,
        )

    def over(self, base: ClassSettings) -> ClassSettings:
        """What holds at the switches that the override is for, where `base` held before."""
        buffer: dict[str, object] = {}
        if self.alpha is not None:
            buffer |= {"alpha": self.alpha, "static_threshold_bytes": None}
        if self.static_threshold_bytes is not None:
            buffer["static_threshold_bytes"] = self.static_threshold_bytes
        if self.reserved_bytes is not None:
            buffer["reserved_bytes"] = self.reserved_bytes
        changes: dict[str, object] = {}
        if self.ecn is not None:
            changes["ecn"] = self.ecn
        if buffer:
            changes["buffer"] = base.buffer.model_copy(update=buffer)
        return base.model_copy(update=changes)


class SwitchOverride(SwitchSelector):
    """Switches that are set otherwise than the rest, each for itself or a tier of them.

    Where several entries concern a switch, the later one holds.
    """

    classes: dict[str, ClassOverride] = Field(description="by class name")


class Settings(Model):
    """Everything an agent or operator may change while the fabric runs.

    Attributes:
        classes: by class name; acts in all switches, but for what `switch_overrides` say.
        tenants: by tenant name; acts on the tenant's own QPs, if their algorithm is DCQCN.
        senders: by tenant name, for those with another algorithm; none: as in the scenario.
        shapers: by tenant name, of the tenants that have one in the scenario; a bucket per host.
        switch_overrides: what holds for classes at some switches only.
    """

    classes: dict[str, ClassSettings]
    tenants: dict[str, DcqcnConfig]
    senders: dict[str, SenderConfig] = Field(default_factory=dict)
    shapers: dict[str, ShaperConfig] = Field(default_factory=dict)
    switch_overrides: tuple[SwitchOverride, ...] = ()
