"""What an agent or operator may change while the fabric runs."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from roce_gym.config.fields import Bytes, Fraction, Model
from roce_gym.config.senders import DcqcnConfig, SenderConfig


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
        tenants: by tenant name; acts on the tenant's own QPs, if their algorithm is DCQCN.
        senders: by tenant name, for those with another algorithm; none: as in the scenario.
    """

    classes: dict[str, ClassSettings]
    tenants: dict[str, DcqcnConfig]
    senders: dict[str, SenderConfig] = Field(default_factory=dict)
