"""Storage servers that take checkpoints, as ranks after those that compute.

Rank `i` writes to server `i` modulo their number. Where the job waits for it, the server answers
when it has received a rank's part whole.
"""

from __future__ import annotations

import numpy as np

from roce_gym.config.training_jobs import FineTuning, Training
from roce_gym.workload.llm import shape as sh
from roce_gym.workload.llm.adapters import trainable
from roce_gym.workload.llm.copies import Ops
from roce_gym.workload.llm.costs import STATE_BYTES, scaled
from roce_gym.workload.llm.program import ANSWER, CHECKPOINT_CHANNEL, STATE, Program
from roce_gym.workload.op_graph import OpKind

ANSWER_BYTES = 64


def bytes_of_rank(job: Training | FineTuning, num_ranks: int) -> int:
    """What each rank writes of a checkpoint."""
    checkpoint = job.checkpoint
    assert checkpoint is not None
    if checkpoint.bytes is not None:
        return -(-checkpoint.bytes // num_ranks)
    return -(-scaled(STATE_BYTES * _learned(job), job.scale.bytes) // num_ranks)


def write(job: Training | FineTuning, program: Program, size: int) -> None:
    """Sends a rank's part, and waits for the answer if the job does."""
    assert job.checkpoint is not None
    program.send("storage", size, STATE, CHECKPOINT_CHANNEL)
    if job.checkpoint.blocking:
        program.receive("storage", ANSWER_BYTES, ANSWER, CHECKPOINT_CHANNEL)


def server_ops(
    job: Training | FineTuning, num_ranks: int, size: int, writes: int
) -> tuple[Ops, ...]:
    """What each server does when every rank writes `writes` times."""
    assert job.checkpoint is not None
    servers, answers = job.checkpoint.servers, job.checkpoint.blocking
    return tuple(
        _ops_of(np.arange(server, num_ranks, servers, dtype=np.int32), size, writes, answers)
        for server in range(servers)
    )


def _ops_of(writers: np.ndarray, size: int, writes: int, answers: bool) -> Ops:
    """Receives from each writer in turn; each answer waits for its RECV, right before it."""
    each = 2 if answers else 1
    kinds = np.array([OpKind.RECV, OpKind.SEND][:each], np.int8)
    sizes = np.array([size, ANSWER_BYTES][:each], np.int64)
    tags = np.array([STATE, ANSWER][:each], np.int64)
    messages = len(writers) * writes
    counts = np.array([0, 1][:each], np.int64)
    return Ops(
        kind=np.tile(kinds, messages),
        peer=np.tile(np.repeat(writers, each), writes),
        bytes=np.tile(sizes, messages),
        tag=np.tile(tags, messages),
        channel=np.full(messages * each, CHECKPOINT_CHANNEL, np.int16),
        num_dependencies=np.tile(counts, messages),
        dependency=np.arange(0, messages * each, each, dtype=np.int64)[: messages * (each - 1)],
    )


def _learned(job: Training | FineTuning) -> int:
    shape, layers = job.model, job.num_layers
    if isinstance(job, FineTuning) and job.lora_rank is not None:
        layer = (*sh.attention_tensors(shape), *sh.ffn_tensors(shape, shape.experts))
        return layers * sum(t.size for t in trainable(job, layer))
    return sh.num_parameters(shape, layers)
