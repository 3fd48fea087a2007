"""Training and fine-tuning jobs as operation graphs; a graph is a round."""

from __future__ import annotations

from typing import get_args

import numpy as np
from numpy.typing import NDArray

from roce_gym.config.training_jobs import FineTuning, Stragglers, Training
from roce_gym.errors import ConfigError
from roce_gym.units import PS_PER_US
from roce_gym.workload.llm import storage
from roce_gym.workload.llm.copies import Ops, Part, copy_programs
from roce_gym.workload.llm.layout import GroupKind, Layout, layers_of_stages, make_layout
from roce_gym.workload.llm.program import Program
from roce_gym.workload.llm.step import StageStep
from roce_gym.workload.op_graph import OpGraph

_STRAGGLERS, _PAUSES = 1, 2
"""What a generator is for, beside the numbers of tenant and job."""


def training_graph(
    field: str, job: Training | FineTuning, num_hosts: int, seed: tuple[int, ...]
) -> OpGraph:
    """One round of a job.

    Args:
        field: name of the job, for messages.
        job: what to do.
        num_hosts: of the tenant; the last ones are storage if there are checkpoints.
        seed: of the run, and numbers of tenant and job.

    Raises:
        ConfigError: the hosts do not fit the layout, or there are too many operations.
    """
    servers = job.checkpoint.servers if job.checkpoint else 0
    if servers >= num_hosts:
        raise ConfigError(
            f"{field}.checkpoint.servers = {servers} leaves no rank; the tenant has {num_hosts} "
            "hosts"
        )
    layout = make_layout(field, job.parallel, num_hosts - servers)
    _require_communication(field, job, layout)
    size = storage.bytes_of_rank(job, layout.num_ranks) if servers else 0
    pauses_ps = _pauses_ps(job, seed)
    counts = layers_of_stages(job.num_layers, layout.pipeline)
    parts = [
        Part(_program(job, layout, stage, layers, size, pauses_ps), layout, stage)
        for stage, layers in enumerate(counts)
    ]
    others: tuple[Ops, ...] = ()
    if servers:
        writes = _steps(job) // job.checkpoint.every if job.checkpoint else 0
        others = storage.server_ops(job, layout.num_ranks, size, writes)
    slowdown = slowdowns(field, job.stragglers, layout.num_ranks, seed)
    return copy_programs(field, parts, slowdown, others)


def slowdowns(
    field: str, stragglers: Stragglers | None, num_ranks: int, seed: tuple[int, ...]
) -> NDArray[np.float64]:
    """Factor on the compute times of each rank.

    Raises:
        ConfigError: there are more stragglers than ranks.
    """
    out = np.ones(num_ranks)
    if stragglers is None:
        return out
    if stragglers.count > num_ranks:
        raise ConfigError(
            f"{field}.stragglers.count = {stragglers.count} is more than the job's ranks; "
            f"allowed: 1 … {num_ranks}"
        )
    chosen = np.random.default_rng([*seed, _STRAGGLERS]).permutation(num_ranks)
    out[chosen[: stragglers.count]] = stragglers.slowdown
    return out


def _program(
    job: Training | FineTuning,
    layout: Layout,
    stage: int,
    layers: int,
    size: int,
    pauses_ps: list[float],
) -> Program:
    checkpoint = job.checkpoint
    program = Program(
        {kind: layout.size(kind) for kind in get_args(GroupKind)},
        checkpoint.servers if checkpoint else 0,
    )
    step = StageStep(job, stage, layers, program)
    burst = job.burst if isinstance(job, FineTuning) else _steps(job)
    for i in range(_steps(job)):
        step.run()
        if checkpoint and (i + 1) % checkpoint.every == 0:
            storage.write(job, program, size)
        if (i + 1) % burst == 0 and pauses_ps:
            program.wait_for(program.idle(pauses_ps[i // burst], program.now()))
    program.now()
    return program


def _steps(job: Training | FineTuning) -> int:
    """Training steps of a round: whole bursts, and whole intervals of checkpoints."""
    if isinstance(job, FineTuning):
        return job.burst * job.bursts
    return job.checkpoint.every if job.checkpoint else 1


def _pauses_ps(job: Training | FineTuning, seed: tuple[int, ...]) -> list[float]:
    if not isinstance(job, FineTuning):
        return []
    drawn = np.random.default_rng([*seed, _PAUSES]).exponential(job.pause_us, job.bursts)
    return [float(pause) for pause in drawn * PS_PER_US * job.scale.compute]


def _require_communication(field: str, job: Training | FineTuning, layout: Layout) -> None:
    if layout.num_ranks == 1:
        raise ConfigError(f"{field}: needs at least 2 ranks, the tenant has 1")
