"""One training step of a pipeline stage."""

from __future__ import annotations

from collections.abc import Iterator

from roce_gym.config.llm import PRECISION_BYTES
from roce_gym.config.training_jobs import FineTuning, Training
from roce_gym.workload.llm import shape as sh
from roce_gym.workload.llm.adapters import trainable
from roce_gym.workload.llm.blocks import Blocks
from roce_gym.workload.llm.costs import costs_of, optimizer_ps, scaled
from roce_gym.workload.llm.gradients import GradientBuckets, group_of
from roce_gym.workload.llm.program import ACTIVATIONS, GRADIENTS, Program
from roce_gym.workload.llm.weights import Weights


def one_forward_one_backward(
    stage: int, stages: int, micro_batches: int
) -> Iterator[tuple[bool, int]]:
    """Passes of a stage in order, as (is backward, micro-batch).

    Source: Narayanan et al., PipeDream-2BW (2021) and Megatron-LM (SC 2021), section 2.2: forward
    passes until the pipeline is full, then one forward and one backward pass in turn, then the
    backward passes that are left.
    """
    warmup = min(stages - 1 - stage, micro_batches)
    for i in range(warmup):
        yield False, i
    for i in range(micro_batches - warmup):
        yield False, warmup + i
        yield True, i
    for i in range(micro_batches - warmup, micro_batches):
        yield True, i


class StageStep:
    """Writes training steps of one stage into its program."""

    def __init__(
        self, job: Training | FineTuning, stage: int, layers: int, program: Program
    ) -> None:
        self._job = job
        self._program = program
        self._stage, self._layers = stage, layers
        self._costs = costs_of(job)
        self._blocks = Blocks(job, self._costs, program)
        self._gradients = GradientBuckets(job, program)
        self._weights = Weights(job, program)
        shape = job.model
        self._is_last = stage == job.parallel.pipeline - 1
        held = shape.experts // job.parallel.expert
        self._attention = sh.attention_tensors(shape)
        self._ffn = sh.ffn_tensors(shape, held)
        layers_in_all = job.num_layers
        self._inputs = sh.input_tensors(shape, layers_in_all) if stage == 0 else ()
        outputs = sh.output_tensors(shape, layers_in_all) if self._is_last else ()
        if shape.tied_embeddings and stage == 0 and self._is_last:
            outputs = outputs[:1]
        self._outputs = outputs

    def run(self) -> None:
        """One step: all micro-batches, then the optimizer."""
        stages, micro_batches = self._job.parallel.pipeline, self._job.micro_batches
        for is_backward, i in one_forward_one_backward(self._stage, stages, micro_batches):
            if is_backward:
                self._backward(is_last=i == micro_batches - 1)
            else:
                self._forward()
        self._program.wait_for_streams()
        self._optimize()

    @property
    def _is_sharded(self) -> bool:
        return self._job.parallel.zero == 3

    def _forward(self) -> None:
        program = self._program
        if self._stage > 0:
            program.receive("previous", self._costs.boundary, ACTIVATIONS)
        if self._is_sharded:
            program.wait_for(*self._weights.gather((*self._inputs, *self._outputs)))
        for _ in self._layers_with_weights():
            self._blocks.attention()
            self._blocks.ffn()
        if self._is_last:
            self._blocks.output()
        else:
            program.send("next", self._costs.boundary, ACTIVATIONS)

    def _backward(self, is_last: bool) -> None:
        sends = is_last or self._job.parallel.zero >= 2
        if self._is_last:
            self._begin_gradients(sends)
            self._blocks.output(backward=True)
        else:
            self._program.receive("next", self._costs.boundary, GRADIENTS)
            self._begin_gradients(sends)
        self._ready(self._outputs, sends)
        for _ in self._layers_with_weights():
            if self._job.recompute:
                self._blocks.attention()
                self._blocks.ffn()
            self._blocks.ffn(backward=True)
            self._ready(self._ffn, sends)
            self._blocks.attention(backward=True)
            self._ready(self._attention, sends)
            if self._is_sharded:
                self._gradients.end()
        self._ready(self._inputs, sends)
        if sends:
            self._gradients.end()
        if self._stage > 0:
            self._program.send("previous", self._costs.boundary, GRADIENTS)

    def _layers_with_weights(self) -> Iterator[None]:
        """A turn for each layer; under ZeRO 3 its weights are there, and the next are under way."""
        unit = (*self._attention, *self._ffn)
        under_way = self._weights.gather(unit) if self._is_sharded else []
        for i in range(self._layers):
            self._program.wait_for(*under_way)
            if self._is_sharded and i + 1 < self._layers:
                under_way = self._weights.gather(unit, after=self._program.now())
            else:
                under_way = []
            yield

    def _begin_gradients(self, sends: bool) -> None:
        if sends:
            self._gradients.begin()

    def _ready(self, tensors: tuple[sh.Tensor, ...], sends: bool) -> None:
        if sends:
            self._gradients.ready(trainable(self._job, tensors))

    def _optimize(self) -> None:
        job, program = self._job, self._program
        tensor = job.parallel.tensor
        held = [*self._inputs, *self._outputs, *(self._attention + self._ffn) * self._layers]
        if job.model.tied_embeddings and (self._stage == 0 or self._is_last):
            whole = sh.embedding_size(job.model, job.num_layers)
            size = -(-whole // tensor) * (job.gradient_bytes or PRECISION_BYTES[job.precision])
            program.collective("embedding", "all_reduce", scaled(size, job.scale.bytes))
        learned = sum(
            t.on_rank(tensor) / (program.size(group_of(t)) if job.parallel.zero else 1)
            for t in trainable(job, tuple(held))
        )
        program.work(optimizer_ps(job, learned))
        if job.parallel.zero in (1, 2):
            self._weights.gather(held)
            program.wait_for_streams()
