"""Inference as an operation graph: replicas that serve requests as they arrive.

A prompt takes a forward pass over all its tokens, computed at the reached share of the GPU's peak;
each further token takes one over a single token, for which the weights are read from memory (Pope
et al., "Efficiently Scaling Transformer Inference", 2022, section 2). Tensor-parallel ranks add up
activations twice a layer. With `disaggregated`, ranks that computed a prompt send its keys and
values, 2 x layers x kv_heads x head size a token, to those that generate. Arrivals, first and last
tokens are marked, see `requests`.
"""

from __future__ import annotations

import numpy as np

from roce_gym.config.llm import GPUS, PRECISION_BYTES, Gpu
from roce_gym.config.training_jobs import Inference
from roce_gym.errors import ConfigError
from roce_gym.units import PS_PER_S
from roce_gym.workload.llm import shape as sh
from roce_gym.workload.llm.copies import Part, copy_programs
from roce_gym.workload.llm.costs import scaled
from roce_gym.workload.llm.layout import Layout
from roce_gym.workload.llm.program import ACTIVATIONS, Program
from roce_gym.workload.llm.requests import Moment, tag_of
from roce_gym.workload.llm.training import slowdowns
from roce_gym.workload.op_graph import OpGraph

_ARRIVALS = 3
"""What a generator is for, beside the numbers of tenant and job."""


def inference_graph(field: str, job: Inference, num_hosts: int, seed: tuple[int, ...]) -> OpGraph:
    """One round of a job: `requests` of each replica.

    Args:
        field: name of the job, for messages.
        job: what to do.
        num_hosts: of the tenant.
        seed: of the run, and numbers of tenant and job.

    Raises:
        ConfigError: the hosts are not a whole number of replicas, or there are too many operations.
    """
    stages = 2 if job.disaggregated else 1
    size = job.tensor * stages
    if num_hosts % size:
        raise ConfigError(
            f"{field}: a replica has {size} ranks, of which the tenant's {num_hosts} hosts are not "
            "a multiple"
        )
    slowdown = slowdowns(field, job.stragglers, num_hosts, seed)
    grids = np.arange(num_hosts, dtype=np.int32).reshape(-1, stages, 1, job.tensor)
    parts = [
        Part(_program(job, stage, replica, seed), Layout(job.tensor, 1, stages, 1, grid), stage)
        for replica, grid in enumerate(grids)
        for stage in range(stages)
    ]
    return copy_programs(field, parts, slowdown)


def _program(job: Inference, stage: int, replica: int, seed: tuple[int, ...]) -> Program:
    program = Program({"tensor": job.tensor})
    serving = _Serving(job, program)
    gaps_ps = _gaps_ps(job, replica, seed)
    kv_bytes = scaled(_kv_bytes(job) * job.batch * job.prompt_tokens, job.scale.bytes)
    first_request = replica * job.requests
    arrival: tuple[int, ...] = ()
    for start in range(0, job.requests, job.batch):
        batch = range(start, min(start + job.batch, job.requests))
        last = first_request + batch[-1]
        if stage == 0:
            for request in batch:
                arrival = (program.idle(gaps_ps[request], arrival),)
                program.mark(tag_of(Moment.ARRIVAL, first_request + request), arrival)
            program.wait_for(*arrival)
            serving.prompt()
            program.mark(tag_of(Moment.FIRST_TOKEN, last))
            if job.disaggregated:
                program.send("next", kv_bytes, ACTIVATIONS)
                continue
        else:
            program.receive("previous", kv_bytes, ACTIVATIONS)
        for i in range(1, job.output_tokens):
            serving.token(job.prompt_tokens + i)
        program.mark(tag_of(Moment.DONE, last))
    return program


def _gaps_ps(job: Inference, replica: int, seed: tuple[int, ...]) -> list[float]:
    """Times from each arrival to the next."""
    rng = np.random.default_rng([*seed, _ARRIVALS, replica])
    gaps_s = rng.exponential(1 / job.requests_per_s, job.requests)
    return [float(gap_s) * PS_PER_S for gap_s in gaps_s]


def _kv_bytes(job: Inference) -> int:
    """Keys and values of a token on one rank; a rank holds its heads', at least one."""
    shape = job.model
    heads = max(1, shape.kv_heads // job.tensor)
    head = shape.hidden // shape.heads
    return 2 * job.num_layers * heads * head * PRECISION_BYTES[job.precision]


class _Serving:
    """Emits forward passes of one batch."""

    def __init__(self, job: Inference, program: Program) -> None:
        self._job = job
        self._program = program
        self._gpu: Gpu = GPUS[job.gpu]
        self._width = PRECISION_BYTES[job.precision]

    def prompt(self) -> None:
        """All tokens of the prompts."""
        job, tokens = self._job, self._job.batch * self._job.prompt_tokens
        self._layers(
            self._compute_ps(sh.attention_flops(job.model, job.prompt_tokens), tokens),
            self._compute_ps(sh.ffn_flops(job.model), tokens),
            tokens,
        )
        self._program.work(self._compute_ps(sh.output_flops(job.model, job.num_layers), job.batch))

    def token(self, context: int) -> None:
        """The next token of each request, which have `context` tokens so far."""
        job, shape, batch = self._job, self._job.model, self._job.batch
        cache = _kv_bytes(job) // job.num_layers * context * batch
        met = min(shape.experts, batch * shape.experts_per_token)
        attention = sum(t.on_rank(job.tensor) for t in sh.attention_tensors(shape))
        ffn = sum(t.on_rank(job.tensor) for t in sh.ffn_tensors(shape, met))
        output = sum(t.on_rank(job.tensor) for t in sh.output_tensors(shape, job.num_layers))
        self._layers(
            max(
                self._read_ps(attention * self._width + cache),
                self._compute_ps(sh.attention_flops(shape, context), batch),
            ),
            max(self._read_ps(ffn * self._width), self._compute_ps(sh.ffn_flops(shape), batch)),
            batch,
        )
        self._program.work(self._read_ps(output * self._width))

    def _layers(self, attention_ps: float, ffn_ps: float, tokens: int) -> None:
        size = scaled(tokens * self._job.model.hidden * self._width, self._job.scale.bytes)
        for _ in range(self._job.num_layers):
            for duration_ps in (attention_ps, ffn_ps):
                self._program.work(duration_ps)
                self._program.collective("tensor", "all_reduce", size)

    def _compute_ps(self, flops: int, tokens: int) -> float:
        job = self._job
        reached = self._gpu.flops[job.precision] * job.mfu * job.tensor
        return flops * tokens * PS_PER_S / reached * job.scale.compute

    def _read_ps(self, size: int) -> float:
        reached = self._gpu.memory_bytes_per_s * self._job.memory_efficiency
        return size * PS_PER_S / reached * self._job.scale.compute
