"""Forward and backward passes of a layer's blocks, with the collectives that they wait for.

Tensor parallelism (Shoeybi et al., Megatron-LM, 2019): each block ends in an all-reduce of its
activations, and its backward pass in another. With sequence parallelism each is an all-gather
before the block and a reduce-scatter after it (Korthikanti et al., 2022; the all-gather that is
repeated in the backward pass to save memory, and hidden behind computing, is left out). Experts
(Lepikhin et al., GShard, 2020): tokens go to their experts in an all-to-all and come back in
another; routing is even. Between them, tensor-parallel ranks exchange the tokens they received.
"""

from __future__ import annotations

from roce_gym.config.training_jobs import FineTuning, Training
from roce_gym.workload.llm.costs import Costs
from roce_gym.workload.llm.program import Program


class Blocks:
    """Emits the blocks of one job into the program of a stage."""

    def __init__(self, job: Training | FineTuning, costs: Costs, program: Program) -> None:
        parallel = job.parallel
        self._costs = costs
        frozen = isinstance(job, FineTuning) and job.lora_rank is not None
        self._backward = 1 if frozen else 2  # no gradients of weights
        self._program = program
        self._gathers = parallel.sequence_parallel
        self._sends_tokens = job.model.experts > 1 and parallel.expert > 1
        part = parallel.tensor if parallel.sequence_parallel else 1
        self._dispatched = -(-costs.dispatched // part)

    def attention(self, backward: bool = False) -> None:
        """An attention block."""
        self._dense(self._costs.attention_ps, self._costs.activations, backward)

    def ffn(self, backward: bool = False) -> None:
        """A feed-forward block, or the experts in its place."""
        if not self._sends_tokens:
            self._dense(self._costs.ffn_ps, self._costs.activations, backward)
            return
        self._program.collective("expert", "all_to_all", self._dispatched)
        self._dense(self._costs.ffn_ps, self._costs.dispatched, backward)
        self._program.collective("expert", "all_to_all", self._dispatched)

    def output(self, backward: bool = False) -> None:
        """The output matrix."""
        self._program.work(self._costs.output_ps * (self._backward if backward else 1))

    def _dense(self, duration_ps: float, size: int, backward: bool) -> None:
        if self._gathers:
            self._program.collective("tensor", "all_gather", size)
        self._program.work(duration_ps * (self._backward if backward else 1))
        after = "reduce_scatter" if self._gathers else "all_reduce"
        self._program.collective("tensor", after, size)
