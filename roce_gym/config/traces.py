"""Jobs from other people's workload files, and traffic that arrives at random."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from roce_gym.config.fields import Count, Positive, Volume
from roce_gym.config.jobs import BaseJob, Jitter

_Size = Annotated[float, Field(ge=0, le=2**50)]
_Share = Annotated[float, Field(ge=0, le=100)]


class TraceJob(BaseJob):
    """Loop over what a trace says; its rank i is the tenant's i-th host. See docs/traces.md."""

    kind: Literal["trace"] = "trace"
    file: str = Field(description="of Chakra: the folder, or what its files' names begin with")
    format: Literal["auto", "simai", "chakra", "msccl", "goal"] = Field(
        "auto", description="auto: by the file's name and content"
    )
    bytes: Volume | None = Field(None, description="MSCCL: size of the whole buffer")
    groups_file: str | None = Field(None, description="Chakra: process groups, JSON of ASTRA-sim")
    bytes_scale: Positive = Field(1.0, description="all messages and collectives times this")
    compute_scale: Positive = Field(1.0, description="all computations times this")
    jitter: Jitter = Field(
        0.0, description="a rank's times in a round, times one factor in (1 - jitter, 1 + jitter)"
    )
    rounds: Count | None = Field(None, description="None: no limit")


class PoissonJob(BaseJob):
    """Flows between random hosts of the tenant, which arrive at random, whatever the network does.

    They start from `start_us` to `stop_us`, each on a queue pair of its own.
    """

    kind: Literal["poisson"] = "poisson"
    load: Annotated[float, Field(gt=0, le=1)] = Field(
        description="of each host's link that its flows take on average, headers not counted"
    )
    sizes: tuple[tuple[_Size, _Share], ...] = Field(
        (), description="points (bytes, share in percent) of the distribution"
    )
    sizes_file: str | None = Field(None, description="the same as a file")
    num_flows: Count | None = Field(None, description="most flows; None: no limit before stop_us")

    @model_validator(mode="after")
    def _is_complete(self) -> PoissonJob:
        if bool(self.sizes) == (self.sizes_file is not None):
            raise ValueError("needs sizes or sizes_file, and not both")
        if self.num_flows is None and self.stop_us is None:
            raise ValueError("needs num_flows or stop_us, or both")
        return self
