"""Gradients on their way to the other data-parallel ranks, while the backward pass goes on.

Buckets as in PyTorch's DistributedDataParallel (Li et al., VLDB 2020, section 3.2.3): tensors in
the order in which their gradients are ready, a bucket is full with the tensor that reaches its
size, the first one has a size of its own. Experts' gradients have buckets of their own, since fewer
ranks share an expert. FSDP reduces a layer's gradients at once (Zhao et al., VLDB 2023).
"""

from __future__ import annotations

from collections.abc import Iterable

from roce_gym.config.llm import PRECISION_BYTES
from roce_gym.config.training_jobs import FineTuning, Training
from roce_gym.workload.llm.costs import scaled
from roce_gym.workload.llm.layout import GroupKind
from roce_gym.workload.llm.program import Program
from roce_gym.workload.llm.shape import Tensor

_NO_LIMIT = 2**62


def group_of(tensor: Tensor) -> GroupKind:
    """The ranks that have the same parameters."""
    return "expert_data" if tensor.is_expert else "data"


class GradientBuckets:
    """Fills buckets and sends full ones beside the computing."""

    def __init__(self, job: Training | FineTuning, program: Program) -> None:
        self._program = program
        self._tensor = job.parallel.tensor
        self._bytes_each = job.gradient_bytes or PRECISION_BYTES[job.precision]
        self._scale = job.scale.bytes
        self._limits = (
            (_NO_LIMIT, _NO_LIMIT)
            if job.parallel.zero == 3
            else (job.first_bucket_bytes, job.bucket_bytes)
        )
        self._operation = "reduce_scatter" if job.parallel.zero else "all_reduce"
        self._open: dict[GroupKind, int] = {}
        self._is_first: dict[GroupKind, bool] = {}

    def begin(self) -> None:
        """A backward pass begins."""
        self._is_first = {}

    def ready(self, tensors: Iterable[Tensor]) -> None:
        """Gradients of these are there; in the order of the forward pass."""
        for tensor in reversed(tuple(tensors)):
            group = group_of(tensor)
            self._open[group] = self._open.get(group, 0) + self._bytes_each * tensor.on_rank(
                self._tensor
            )
            if self._open[group] >= self._limits[0 if self._is_first.get(group, True) else 1]:
                self._close(group)

    def end(self) -> None:
        """The backward pass is over: what is left is sent."""
        for group in sorted(self._open):
            self._close(group)

    def _close(self, group: GroupKind) -> None:
        self._is_first[group] = False
        size = scaled(self._open.pop(group, 0), self._scale)
        self._program.beside(group, self._operation, size, stream=f"gradients {group}")
