"""Which parameters have gradients: all, or low-rank adapters (Hu et al., LoRA, 2021)."""

from __future__ import annotations

from roce_gym.config.training_jobs import FineTuning, Training
from roce_gym.workload.llm.shape import Tensor


def trainable(job: Training | FineTuning, tensors: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """What is trained of `tensors`.

    A matrix of m x n has an adapter of r (m + n) parameters. Every matrix of a layer has the hidden
    size as one of its sides. Adapters are not sharded by tensor parallelism; embeddings and norms
    have none.
    """
    rank = job.lora_rank if isinstance(job, FineTuning) else None
    if rank is None:
        return tensors
    hidden = job.model.hidden
    return tuple(
        Tensor(rank * (hidden + t.size // hidden), False, t.is_expert)
        for t in tensors
        if t.is_sharded and not t.is_embedding
    )
