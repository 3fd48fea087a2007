"""Parameters of a model, and the floating-point operations of a token.

A layer has two blocks, attention and feed-forward. A matrix of m x n takes 2 m n operations a
token; attention itself takes 4 s h, without credit for its causal mask (Chowdhery et al., PaLM,
2022, appendix B). The backward pass takes twice as many as the forward pass.
"""

from __future__ import annotations

from typing import NamedTuple

from roce_gym.config.llm import ModelShape


class Tensor(NamedTuple):
    """Parameters that a framework keeps in one tensor.

    Attributes:
        size: parameters.
        is_sharded: by tensor parallelism; else every tensor-parallel rank has it.
        is_expert: of one expert.
        is_embedding: of the input or the output.
    """

    size: int
    is_sharded: bool = True
    is_expert: bool = False
    is_embedding: bool = False

    def on_rank(self, tensor: int) -> int:
        """Parameters that a rank holds."""
        return -(-self.size // tensor) if self.is_sharded else self.size


def _norm(shape: ModelShape) -> Tensor:
    return Tensor(shape.hidden * (2 if shape.biases else 1), is_sharded=False)


def attention_tensors(shape: ModelShape) -> tuple[Tensor, ...]:
    """Norm, query, key, value and output matrices, in the order of the forward pass."""
    h, kv = shape.hidden, shape.hidden // shape.heads * shape.kv_heads
    bias = 1 if shape.biases else 0
    out = [
        _norm(shape),
        *(Tensor(h * width + bias * width) for width in (h, kv, kv)),
        Tensor(h * h),
    ]
    if shape.biases:
        out.append(Tensor(h, is_sharded=False))
    return tuple(out)


def ffn_tensors(shape: ModelShape, experts: int) -> tuple[Tensor, ...]:
    """Norm, router if there are several experts, and the matrices of `experts` experts."""
    h, f = shape.hidden, shape.ffn_hidden
    is_expert = shape.experts > 1
    out = [_norm(shape)]
    if is_expert:
        out.append(Tensor(h * shape.experts, is_sharded=False))
    bias = 1 if shape.biases else 0
    for _ in range(experts):
        out += [Tensor(h * f + bias * f, True, is_expert)] * (2 if shape.gated else 1)
        out.append(Tensor(h * f, True, is_expert))
        if shape.biases:
            out.append(Tensor(h, False, is_expert))
    return tuple(out)


def embedding_size(shape: ModelShape, layers: int | None = None) -> int:
    """Parameters of one embedding matrix; of a slice of `layers` layers in proportion."""
    return shape.hidden * _in_slice(shape, shape.vocabulary, layers)


def input_tensors(shape: ModelShape, layers: int | None = None) -> tuple[Tensor, ...]:
    """Input embedding, and learned positions."""
    positions = shape.hidden * _in_slice(shape, shape.positions, layers)
    matrix = Tensor(embedding_size(shape, layers), is_embedding=True)
    learned = Tensor(positions, is_sharded=False, is_embedding=True)
    return (matrix, learned) if positions else (matrix,)


def output_tensors(shape: ModelShape, layers: int | None = None) -> tuple[Tensor, ...]:
    """Last norm, and the output matrix (also where it is tied to the input's)."""
    return _norm(shape), Tensor(embedding_size(shape, layers), is_embedding=True)


def num_parameters(shape: ModelShape, layers: int | None = None) -> int:
    """All parameters, of all layers or of a slice of `layers` of them."""
    layer = (*attention_tensors(shape), *ffn_tensors(shape, shape.experts))
    ends = (*input_tensors(shape, layers), *output_tensors(shape, layers))
    count = shape.layers if layers is None else layers
    tied = embedding_size(shape, layers) if shape.tied_embeddings else 0
    return count * sum(t.size for t in layer) + sum(t.size for t in ends) - tied


def active_parameters(shape: ModelShape) -> int:
    """Parameters that a token meets: of its experts only."""
    idle = shape.experts - shape.experts_per_token
    expert = sum(t.size for t in ffn_tensors(shape, 1) if t.is_expert)
    return num_parameters(shape) - shape.layers * idle * expert


def attention_flops(shape: ModelShape, sequence: int) -> int:
    """Forward operations of a token in a layer's attention block."""
    h, kv = shape.hidden, shape.hidden // shape.heads * shape.kv_heads
    return 2 * (2 * h * h + 2 * h * kv) + 4 * sequence * h


def ffn_flops(shape: ModelShape) -> int:
    """Forward operations of a token in a layer's feed-forward block."""
    matrices = 3 if shape.gated else 2
    router = 2 * shape.hidden * shape.experts if shape.experts > 1 else 0
    return 2 * matrices * shape.hidden * shape.ffn_hidden * shape.experts_per_token + router


def output_flops(shape: ModelShape, layers: int | None = None) -> int:
    """Forward operations of a token in the output matrix."""
    return 2 * embedding_size(shape, layers)


def training_flops(shape: ModelShape, sequence: int) -> int:
    """Forward and backward operations of a token, nothing recomputed."""
    layer = attention_flops(shape, sequence) + ffn_flops(shape)
    return 3 * (shape.layers * layer + output_flops(shape))


def _in_slice(shape: ModelShape, rows: int, layers: int | None) -> int:
    return rows if layers is None else -(-rows * layers // shape.layers)
