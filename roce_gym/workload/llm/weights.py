"""Weights that are gathered from the ranks that hold parts of them (ZeRO; Rajbhandari et al. 2020).

Stages 1 and 2: all weights once an iteration, after the optimizer's step. Stage 3, as FSDP does it
(Zhao et al., VLDB 2023): a layer is a unit, gathered before its forward pass and again before its
backward pass; the next unit is gathered while one computes. The embeddings' unit is gathered once
a micro-batch.
"""

from __future__ import annotations

from collections.abc import Iterable

from roce_gym.config.llm import PRECISION_BYTES
from roce_gym.config.training_jobs import FineTuning, Training
from roce_gym.workload.llm.costs import scaled
from roce_gym.workload.llm.gradients import group_of
from roce_gym.workload.llm.layout import GroupKind
from roce_gym.workload.llm.program import Program
from roce_gym.workload.llm.shape import Tensor


class Weights:
    """Gathers weights and tells computing to wait for them."""

    def __init__(self, job: Training | FineTuning, program: Program) -> None:
        self._program = program
        self._tensor = job.parallel.tensor
        self._bytes_each = PRECISION_BYTES[job.precision]
        self._scale = job.scale.bytes

    def gather(
        self, tensors: Iterable[Tensor], after: tuple[int, ...] | None = None
    ) -> list[int | None]:
        """Begins to gather a unit; returns what to wait for.

        Args:
            tensors: of the unit.
            after: when it begins; None: after the computing so far.
        """
        size: dict[GroupKind, int] = {}
        for tensor in tensors:
            group = group_of(tensor)
            size[group] = size.get(group, 0) + self._bytes_each * tensor.on_rank(self._tensor)
        return [
            self._program.beside(
                group,
                "all_gather",
                scaled(size[group], self._scale),
                stream=f"weights {group}",
                after=after,
            )
            for group in sorted(size)
        ]
