"""What a micro-batch costs on one rank: compute times and bytes."""

from __future__ import annotations

import math
from typing import NamedTuple

from roce_gym.config.llm import GPUS, PRECISION_BYTES
from roce_gym.config.training_jobs import FineTuning, Training
from roce_gym.units import PS_PER_S
from roce_gym.workload.llm import shape as sh

OPTIMIZER_BYTES = 30
"""Bytes of GPU memory that a step of Adam in mixed precision reads and writes a parameter: gradient
(2), FP32 weight, momentum and variance (12) are read; these (12) and the weight (2) are written,
and the gradient is cleared (2). Formats as in Rajbhandari et al., SC 2020, section 3.1."""

STATE_BYTES = 14
"""Bytes that a checkpoint holds a parameter: BF16 weight, FP32 weight, momentum, variance."""


class Costs(NamedTuple):
    """Of one micro-batch on one rank.

    Attributes:
        attention_ps, ffn_ps, output_ps: forward compute times, of a layer's blocks and of the
            output matrix; backward times are twice as long.
        activations: bytes of the activations of all tokens.
        dispatched: bytes of the activations of all tokens, once for each of their experts.
        boundary: bytes that a rank sends to the next stage.
    """

    attention_ps: float
    ffn_ps: float
    output_ps: float
    activations: int
    dispatched: int
    boundary: int


def scaled(size: float, factor: float) -> int:
    """Bytes after `scale.bytes`, rounded up; at least one if there were any."""
    return math.ceil(size * factor)


def costs_of(job: Training | FineTuning) -> Costs:
    """Costs under tensor parallelism, evenly spread.

    A rank's activations go to the next stage whole, or its part of them with sequence parallelism
    (Narayanan et al., SC 2021, section 4.1).
    """
    shape, parallel = job.model, job.parallel
    tokens = job.micro_batch_size * job.sequence
    reached = GPUS[job.gpu].flops[job.precision] * job.mfu * parallel.tensor
    token_ps = tokens * PS_PER_S / reached * job.scale.compute
    width = PRECISION_BYTES[job.precision]
    activations = tokens * shape.hidden * width
    part = parallel.tensor if parallel.sequence_parallel else 1
    return Costs(
        attention_ps=sh.attention_flops(shape, job.sequence) * token_ps,
        ffn_ps=sh.ffn_flops(shape) * token_ps,
        output_ps=sh.output_flops(shape, job.num_layers) * token_ps,
        activations=scaled(activations, job.scale.bytes),
        dispatched=scaled(activations * shape.experts_per_token, job.scale.bytes),
        boundary=scaled(-(-activations // part), job.scale.bytes),
    )


def optimizer_ps(job: Training | FineTuning, parameters: float) -> float:
    """Time of an optimizer's step over `parameters` of a rank: that of its memory."""
    seconds = parameters * OPTIMIZER_BYTES / GPUS[job.gpu].memory_bytes_per_s
    return seconds * PS_PER_S * job.scale.compute
