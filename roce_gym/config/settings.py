"""What an agent or operator may change while the fabric runs."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from roce_gym.config.fields import Bytes, Fraction, Model, NonNegative, Positive


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


class DcqcnConfig(Model):
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


class BufferConfig(Model):
    """Share of the switch buffer a class may take at one ingress port.

    A port's use beyond `reserved_bytes` may grow to `alpha` times the free shared buffer
    (dynamic threshold, alpha = 2^dynamic_th), or to `static_threshold_bytes` where given. Defaults:
    alpha 1/8 and 4 KiB, as in the HPCC simulator (PFC shift 3, reserve of a port).
    """

    alpha: Annotated[float, Field(gt=0, le=128)] = 0.125
    static_threshold_bytes: Bytes | None = None
    reserved_bytes: Bytes = 4096


class ClassSettings(Model):
    """What the switches do for one traffic class."""

    ecn: EcnConfig
    buffer: BufferConfig = BufferConfig()


class Settings(Model):
    """Everything an agent or operator may change while the fabric runs.

    Attributes:
        classes: by class name; acts in all switches.
        tenants: by tenant name; acts on the tenant's own QPs.
    """

    classes: dict[str, ClassSettings]
    tenants: dict[str, DcqcnConfig]
