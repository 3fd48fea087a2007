"""Collectives and pipelines: jobs that run as operation graphs."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from roce_gym.config.fields import Count, NonNegative, Volume
from roce_gym.config.jobs import BaseJob, Jitter, RoundsJob
from roce_gym.config.nccl import EVERY

Operation = Literal["all_reduce", "all_gather", "reduce_scatter", "broadcast", "all_to_all"]
Algorithm = Literal[
    "auto", "ring", "tree", "halving_doubling", "hierarchical", "direct", "pairwise"
]

ALGORITHMS: dict[str, tuple[str, ...]] = {
    "all_reduce": ("ring", "tree", "halving_doubling", "hierarchical"),
    "all_gather": ("ring", "halving_doubling", "hierarchical", "direct"),
    "reduce_scatter": ("ring", "halving_doubling", "hierarchical", "direct"),
    "broadcast": ("ring", "tree"),
    "all_to_all": ("direct", "pairwise"),
}
"""What each operation can be done with. "auto" takes hierarchical where servers with NVLink have
equally many ranks, two or more, else the first: what is best for large buffers."""


class Collective(RoundsJob):
    """Loop of compute and a collective over the tenant's hosts, in their order.

    `bytes` is the whole buffer, as in NCCL-tests: what all_reduce and broadcast take in, what
    all_gather gives out, what reduce_scatter and all_to_all take in, per rank. A broadcast comes
    from the first host.
    """

    acts = EVERY

    kind: Literal["collective"] = "collective"
    operation: Operation
    algorithm: Algorithm = "auto"
    bytes: Volume
    group_ranks: Annotated[int, Field(ge=2)] | None = Field(
        None,
        description="the tenant is cut into as few equal groups of at most so many ranks as can "
        "be, each of which has a collective of its own, all at once; None: one of all",
    )
    groups: Literal["neighbours", "spread"] = Field(
        "neighbours",
        description="neighbours: ranks 0, 1, 2, … are the first group, as expert-parallel ones; "
        "spread: every k-th of k groups, as data-parallel ones",
    )
    in_flight: Annotated[int, Field(ge=1, le=64)] = Field(
        1, description="collectives of this size that run at once in each round"
    )
    channels: Annotated[int, Field(ge=1, le=64)] = Field(
        1, description="equal parts that run beside each other, on queue pairs of their own"
    )
    chunk_bytes: Count | None = Field(
        None,
        description="largest piece of a step; None: NCCL_BUFFSIZE / NCCL_STEPS = 4 MiB / 8, and in "
        "trees 32 KiB, shared by channels and queue pairs; at most 16 in a step of a ring",
    )
    slices: Annotated[int, Field(ge=1, le=64)] = Field(
        1, description="messages of a piece, each passed on by itself"
    )
    qps_per_connection: Annotated[int, Field(ge=1, le=128)] = Field(
        1, description="NCCL_IB_QPS_PER_CONNECTION, whose default is 1"
    )
    split_data_on_qps: bool = Field(
        False, description="NCCL_IB_SPLIT_DATA_ON_QPS: each message goes over all of them"
    )

    @model_validator(mode="after")
    def _algorithm_of_operation(self) -> Collective:
        known = ALGORITHMS[self.operation]
        if self.algorithm not in ("auto", *known):
            raise ValueError(
                f"algorithm = {self.algorithm!r} is not allowed with operation = "
                f"{self.operation!r}; allowed: auto, {', '.join(known)}"
            )
        return self


class Pipeline(BaseJob):
    """Loop of a training step in stages: each host is a stage, which passes micro-batches on.

    `1f1b`: each stage has as many micro-batches under way as there are stages behind it, then does
    one forward and one backward in turn (Narayanan et al., "Efficient large-scale language model
    training on GPU clusters using Megatron-LM", SC 2021, figure 4). `gpipe`: all forwards, then all
    backwards (Huang et al., NeurIPS 2019).
    """

    kind: Literal["pipeline"] = "pipeline"
    bytes: Volume = Field(description="activations of a micro-batch, and their gradients")
    micro_batches: Annotated[int, Field(ge=1, le=65_536)] = 8
    forward_us: NonNegative = Field(description="of a micro-batch in a stage")
    backward_us: NonNegative = Field(description="likewise; twice the forward is usual")
    schedule: Literal["1f1b", "gpipe"] = "1f1b"
    jitter: Jitter = Field(
        0.0, description="a stage's times in a round, times one factor in (1 - jitter, 1 + jitter)"
    )
    rounds: Count | None = Field(None, description="training steps; None: no limit")
