"""What all kinds of jobs have in common."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field, model_validator

from roce_gym.config.fields import Count, Model, NonNegative, Positive
from roce_gym.config.nccl import TRANSPORT, NcclSettings

Jitter = Annotated[float, Field(ge=0, lt=1)]


class BaseJob(Model):
    """A job of a tenant."""

    acts: ClassVar[tuple[str, ...]] = TRANSPORT
    """NCCL's variables that do something in this kind of job."""

    start_us: NonNegative = 0.0
    stop_us: Positive | None = Field(None, description="no new round starts after this")
    nccl: NcclSettings | None = Field(None, description="NCCL's variables; None: none is set")

    @model_validator(mode="after")
    def _nccl_acts(self) -> BaseJob:
        for name in self.nccl.given if self.nccl else ():
            if name not in self.acts:
                raise ValueError(
                    f"nccl.{name} = {getattr(self.nccl, name)!r} does not act on this kind of job; "
                    f"allowed: {', '.join(self.acts)}; all act on collective and training jobs"
                )
        return self


class RoundsJob(BaseJob):
    """A loop of compute and communication."""

    compute_us: NonNegative = 0.0
    jitter: Jitter = Field(
        0.0, description="compute time is uniform in (1 - jitter, 1 + jitter) x compute_us"
    )
    rounds: Count | None = Field(None, description="None: no limit")
