"""Language models by their dimensions, and the GPUs that compute them."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NamedTuple

from pydantic import BeforeValidator, Field, model_validator

from roce_gym.config.fields import Model

Precision = Literal["fp32", "tf32", "bf16", "fp16", "fp8"]

PRECISION_BYTES: dict[str, int] = {"fp32": 4, "tf32": 4, "bf16": 2, "fp16": 2, "fp8": 2}
"""Bytes of an activation, weight or gradient on the wire. FP8 is a format of matrix products:
frameworks keep and send tensors in BF16 around them (Micikevicius et al. 2022, section 3)."""

Dimension = Annotated[int, Field(ge=1, le=2**24)]


class ModelShape(Model):
    """Dimensions of a decoder-only transformer.

    Feed-forward blocks are gated (SwiGLU: three matrices) or not (two). With `experts`, each layer
    has as many feed-forward blocks, of which a token passes through `experts_per_token`.
    """

    layers: Annotated[int, Field(ge=1, le=4096)]
    hidden: Dimension
    ffn_hidden: Dimension
    heads: Dimension
    kv_heads: Dimension
    vocabulary: Dimension
    gated: bool = True
    experts: Annotated[int, Field(ge=1, le=4096)] = 1
    experts_per_token: Annotated[int, Field(ge=1, le=4096)] = 1
    positions: Annotated[int, Field(ge=0, le=2**24)] = Field(
        0, description="learned position embeddings; 0: rotary ones, which have no parameters"
    )
    biases: bool = Field(False, description="biases in all matrices and norms, as GPT-2 and GPT-3")
    tied_embeddings: bool = Field(False, description="one matrix for input and output")

    @model_validator(mode="after")
    def _dimensions_fit(self) -> ModelShape:
        for name, value, whole in (
            ("heads", self.heads, self.hidden),
            ("kv_heads", self.kv_heads, self.heads),
        ):
            if whole % value:
                whole_name = "hidden" if name == "heads" else "heads"
                raise ValueError(f"{name} = {value} does not divide {whole_name} = {whole}")
        if self.experts_per_token > self.experts:
            raise ValueError(
                f"experts_per_token = {self.experts_per_token} is more than "
                f"experts = {self.experts}"
            )
        return self


MODELS: dict[str, ModelShape] = {
    # Grattafiori et al., "The Llama 3 Herd of Models" (2024), table 3; vocabulary: section 3.2.
    "llama3_8b": ModelShape(
        layers=32, hidden=4096, ffn_hidden=14336, heads=32, kv_heads=8, vocabulary=128_256
    ),
    "llama3_70b": ModelShape(
        layers=80, hidden=8192, ffn_hidden=28672, heads=64, kv_heads=8, vocabulary=128_256
    ),
    "llama3_405b": ModelShape(
        layers=126, hidden=16384, ffn_hidden=53248, heads=128, kv_heads=8, vocabulary=128_256
    ),
    # Brown et al., "Language Models are Few-Shot Learners" (2020), table 2.1; vocabulary of GPT-2.
    "gpt3_175b": ModelShape(
        layers=96,
        hidden=12288,
        ffn_hidden=49152,
        heads=96,
        kv_heads=96,
        vocabulary=50_257,
        gated=False,
        positions=2048,
        biases=True,
        tied_embeddings=True,
    ),
    # Jiang et al., "Mixtral of Experts" (2024), table 1.
    "mixtral_8x7b": ModelShape(
        layers=32,
        hidden=4096,
        ffn_hidden=14336,
        heads=32,
        kv_heads=8,
        vocabulary=32_000,
        experts=8,
        experts_per_token=2,
    ),
}


def _by_name(given: Any) -> Any:
    if isinstance(given, str):
        if given not in MODELS:
            names = ", ".join(sorted(MODELS))
            raise ValueError(f"{given!r} is unknown; allowed: {names}, or a mapping of dimensions")
        return MODELS[given]
    return given


NamedModel = Annotated[ModelShape, BeforeValidator(_by_name)]
"""A model by its name in `MODELS`, or by its dimensions."""


class Gpu(NamedTuple):
    """What a GPU can do.

    Attributes:
        flops: dense peak in FLOP/s by precision.
        memory_bytes_per_s: of its own memory.
        source: document.
    """

    flops: dict[str, float]
    memory_bytes_per_s: float
    source: str


GpuName = Literal["a100", "h100", "h200", "b200"]

_HOPPER = {"fp32": 67e12, "tf32": 494.7e12, "bf16": 989.4e12, "fp16": 989.4e12, "fp8": 1978.9e12}

GPUS: dict[str, Gpu] = {
    "a100": Gpu(
        {"fp32": 19.5e12, "tf32": 156e12, "bf16": 312e12, "fp16": 312e12},
        2.039e12,
        "NVIDIA A100 80GB SXM data sheet, without sparsity",
    ),
    "h100": Gpu(_HOPPER, 3.35e12, "NVIDIA H100 SXM5 data sheet, without sparsity"),
    "h200": Gpu(_HOPPER, 4.8e12, "NVIDIA H200 SXM data sheet, without sparsity"),
    "b200": Gpu(
        {"fp32": 75e12, "tf32": 1.1e15, "bf16": 2.25e15, "fp16": 2.25e15, "fp8": 4.5e15},
        7.7e12,
        "NVIDIA HGX B200 data sheet (a GPU of eight), without sparsity",
    ),
}
