"""Jobs given by a language model: training, fine-tuning, inference. See `docs/training_jobs.md`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from roce_gym.config.fields import Count, Fraction, Model, Positive, Volume
from roce_gym.config.jobs import BaseJob
from roce_gym.config.llm import GPUS, GpuName, NamedModel, Precision
from roce_gym.config.nccl import EVERY

Degree = Annotated[int, Field(ge=1, le=2**16)]


class Parallel(Model):
    """How the model is laid out over ranks; what is left of the ranks is data-parallel.

    Ranks are numbered as by Megatron-LM: tensor-parallel ones are neighbours, then come the
    data-parallel ones, then pipeline stages (`order`: the last two may be swapped). Expert groups
    are `expert` neighbours of a data-parallel group.
    """

    tensor: Degree = 1
    pipeline: Degree = 1
    expert: Degree = 1
    data: Degree | None = Field(None, description="None: the tenant's ranks over the others")
    zero: Annotated[int, Field(ge=0, le=3)] = Field(
        0,
        description="stage of ZeRO (Rajbhandari et al., SC 2020): 1 shards the optimizer, 2 also "
        "gradients, 3 also weights, which is FSDP",
    )
    sequence_parallel: bool = Field(
        False,
        description="all-gather and reduce-scatter in place of each tensor-parallel all-reduce "
        "(Korthikanti et al., 2022)",
    )
    order: Literal["tensor_data_pipeline", "tensor_pipeline_data"] = "tensor_data_pipeline"

    @model_validator(mode="after")
    def _go_together(self) -> Parallel:
        if self.zero >= 2 and self.pipeline > 1:
            raise ValueError(
                f"zero = {self.zero} with pipeline = {self.pipeline} would move gradients or "
                "weights for every micro-batch of a stage, which frameworks refuse (DeepSpeed); "
                "allowed: 0, 1"
            )
        if self.expert > 1 and self.tensor > 1 and not self.sequence_parallel:
            raise ValueError(
                f"expert = {self.expert} with tensor = {self.tensor} needs sequence_parallel = "
                "true, as in Megatron-LM: each tensor-parallel rank sends its own tokens"
            )
        return self


class Stragglers(Model):
    """Ranks that compute more slowly than the others, drawn by the seed of the run."""

    count: Count
    slowdown: Annotated[float, Field(ge=1, le=1000)] = Field(description="of their compute times")


class Scale(Model):
    """A slice of the job, for simulations that would take too long as a whole."""

    layers: Count | None = Field(
        None,
        description="simulated ones of the model; embeddings shrink by the same factor, so that "
        "their share of the work stays. All else is per layer and stays as it is",
    )
    bytes: Annotated[float, Field(gt=0, le=1)] = Field(
        1.0, description="factor on the bytes of all communication"
    )
    compute: Annotated[float, Field(gt=0, le=1)] = Field(
        1.0, description="factor on all compute times; the same as `bytes` keeps their proportion"
    )


class CheckpointWrite(Model):
    """Writing the state of the job to storage after every `every` iterations.

    The last `servers` hosts of the tenant are storage, not ranks. What is written is spread evenly
    over all ranks, as sharded checkpoints do (PyTorch Distributed Checkpoint); rank `i` writes to
    server `i` modulo `servers`.
    """

    every: Annotated[int, Field(ge=1, le=1024)] = Field(description="iterations")
    servers: Degree = 1
    bytes: Volume | None = Field(
        None,
        description="in all; None: 14 a parameter, that is BF16 weights, and FP32 weights, "
        "momentum and variance of Adam (Rajbhandari et al., SC 2020, section 3.1), times "
        "scale.bytes",
    )
    blocking: bool = Field(
        True, description="the next iteration waits for the servers' answers; else it overlaps"
    )
    carried_by: str | None = Field(
        None, description="tenant in whose class and with whose senders it travels; None: its own"
    )


class _ModelJob(BaseJob):
    acts = EVERY

    rounds: Count | None = Field(None, description="None: no limit; see the kinds")
    model: NamedModel
    gpu: GpuName = "h100"
    precision: Precision = "bf16"
    mfu: Annotated[float, Field(gt=0, le=1)] = Field(
        0.4,
        description="share of the GPU's peak that computing reaches; 0.38 to 0.43 in Grattafiori "
        "et al. 2024, table 4, communication that is not hidden included",
    )
    jitter: Annotated[float, Field(ge=0, lt=1)] = Field(
        0.0, description="compute times are uniform in (1 - jitter, 1 + jitter), by rank and round"
    )
    stragglers: Stragglers | None = None
    scale: Scale = Scale()

    @model_validator(mode="after")
    def _gpu_can(self) -> _ModelJob:
        if self.precision not in GPUS[self.gpu].flops:
            allowed = ", ".join(GPUS[self.gpu].flops)
            raise ValueError(
                f"precision = {self.precision!r} is not one of gpu = {self.gpu!r}; "
                f"allowed: {allowed}"
            )
        layers = self.scale.layers
        if layers is not None and layers > self.model.layers:
            raise ValueError(
                f"scale.layers = {layers} is more than the model has; allowed: 1 … "
                f"{self.model.layers}"
            )
        return self

    @property
    def num_layers(self) -> int:
        """Layers that are simulated."""
        return self.scale.layers or self.model.layers


class _GradientJob(_ModelJob):
    parallel: Parallel = Parallel()
    micro_batches: Annotated[int, Field(ge=1, le=4096)] = Field(
        1, description="an iteration; gradients are added up over them"
    )
    micro_batch_size: Annotated[int, Field(ge=1, le=4096)] = Field(1, description="sequences")
    sequence: Annotated[int, Field(ge=1, le=2**22)] = Field(
        4096, description="tokens of a sequence"
    )
    recompute: bool = Field(False, description="the forward pass is repeated in the backward pass")
    bucket_bytes: Volume = Field(
        25 * 2**20, description="of gradients; bucket_cap_mb of PyTorch's DDP"
    )
    first_bucket_bytes: Volume = Field(
        2**20, description="kDefaultFirstBucketBytes of PyTorch's reducer"
    )
    gradient_bytes: Literal[2, 4] | None = Field(
        None, description="of a parameter's gradient on the wire; None: as the precision"
    )
    checkpoint: CheckpointWrite | None = None

    @model_validator(mode="after")
    def _layout_fits(self) -> _GradientJob:
        parallel, model = self.parallel, self.model
        if parallel.pipeline > self.num_layers:
            raise ValueError(
                f"parallel.pipeline = {parallel.pipeline} is more than there are layers "
                f"({self.num_layers}); allowed: 1 … {self.num_layers}"
            )
        if parallel.tensor > 1 and (
            model.heads % parallel.tensor or model.ffn_hidden % parallel.tensor
        ):
            raise ValueError(
                f"parallel.tensor = {parallel.tensor} does not divide heads = {model.heads} and "
                f"ffn_hidden = {model.ffn_hidden}"
            )
        if model.experts % parallel.expert:
            raise ValueError(
                f"parallel.expert = {parallel.expert} does not divide the model's "
                f"experts = {model.experts}"
            )
        return self


class Training(_GradientJob):
    """Training steps, one after the other; a round is `checkpoint.every` of them, or one."""

    kind: Literal["training"] = "training"


class FineTuning(_GradientJob):
    """Bursts of training steps with pauses of random length between them; a round is all bursts.

    Pauses are exponential with mean `pause_us`, drawn by the seed of the run: data preparation,
    evaluation, people.
    """

    kind: Literal["fine_tuning"] = "fine_tuning"
    lora_rank: Annotated[int, Field(ge=1, le=65536)] | None = Field(
        None,
        description="only adapters of this rank on all matrices of a layer have gradients (Hu et "
        "al., LoRA, 2021); None: all parameters have",
    )
    burst: Annotated[int, Field(ge=1, le=1024)] = Field(4, description="steps in a burst")
    pause_us: Positive = Field(description="mean")
    bursts: Annotated[int, Field(ge=1, le=1024)] = Field(
        4, description="bursts and pauses that are drawn before they repeat"
    )

    @model_validator(mode="after")
    def _adapters_are_small(self) -> FineTuning:
        if self.lora_rank is not None and self.parallel.zero:
            raise ValueError(
                f"lora_rank = {self.lora_rank} with parallel.zero = {self.parallel.zero}: adapters "
                "are replicated; allowed: zero = 0"
            )
        return self


class Inference(_ModelJob):
    """Requests that arrive as a Poisson process at replicas of the model; a round is `requests`.

    Each replica is `tensor` ranks, or two times as many with `disaggregated`, where one half
    computes prompts and sends keys and values to the other, which generates (Zhong et al.,
    DistServe, OSDI 2024). A replica serves its requests in order of arrival, `batch` at a time.
    """

    kind: Literal["inference"] = "inference"
    tensor: Degree = 1
    disaggregated: bool = False
    requests_per_s: Positive = Field(description="of each replica")
    requests: Annotated[int, Field(ge=1, le=65536)] = Field(
        16, description="of each replica that are drawn before they repeat"
    )
    batch: Annotated[int, Field(ge=1, le=4096)] = Field(1, description="requests that go together")
    prompt_tokens: Annotated[int, Field(ge=1, le=2**22)] = 1024
    output_tokens: Annotated[int, Field(ge=1, le=2**16)] = 16
    memory_efficiency: Fraction = Field(
        0.7,
        gt=0,
        description="share of the memory's bandwidth at which weights are read for a token; "
        "chosen, vendors publish none",
    )

    @model_validator(mode="after")
    def _sends_something(self) -> Inference:
        if self.tensor == 1 and not self.disaggregated:
            raise ValueError(
                "tensor = 1 without disaggregated = true sends nothing over the network"
            )
        if self.tensor > 1 and self.model.heads % self.tensor:
            raise ValueError(f"tensor = {self.tensor} does not divide heads = {self.model.heads}")
        return self


def carrier_of(job: object) -> str | None:
    """Name of the tenant as which a job's checkpoints travel; None: as its own, or without any."""
    if isinstance(job, Training | FineTuning) and job.checkpoint is not None:
        return job.checkpoint.carried_by
    return None
