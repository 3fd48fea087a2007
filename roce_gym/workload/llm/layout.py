"""Which ranks form the groups of each kind of parallelism."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from roce_gym.config.training_jobs import Parallel
from roce_gym.errors import ConfigError

GroupKind = Literal["tensor", "data", "expert", "expert_data", "embedding"]


class Layout(NamedTuple):
    """Ranks in a grid of tensor x data x pipeline.

    Attributes:
        tensor, data, pipeline: sizes.
        expert: size of an expert group, a part of a data-parallel group.
        grid: shape (pipeline, data, tensor), int32, rank at each place.
    """

    tensor: int
    data: int
    pipeline: int
    expert: int
    grid: NDArray[np.int32]

    @property
    def num_ranks(self) -> int:
        """All ranks."""
        return int(self.grid.size)

    def size(self, kind: GroupKind) -> int:
        """Ranks of a group."""
        return {
            "tensor": self.tensor,
            "data": self.data,
            "expert": self.expert,
            "expert_data": self.data // self.expert,
            "embedding": min(2, self.pipeline),
        }[kind]

    def group_numbers(self, kind: GroupKind) -> NDArray[np.int32]:
        """Shape (data, tensor): for each place of a stage, the number of its group there."""
        data, tensor = np.indices((self.data, self.tensor), np.int32)
        if kind == "tensor":
            return data
        if kind == "data":
            return tensor
        if kind == "expert":
            return data // self.expert * self.tensor + tensor
        if kind == "expert_data":
            return data % self.expert * self.tensor + tensor
        return data * self.tensor + tensor

    def groups(self, kind: GroupKind, stage: int) -> list[tuple[int, ...]]:
        """Ranks of each group of a stage, ascending; embedding: first and last stage's pairs."""
        if kind == "embedding":
            pairs = np.stack([self.grid[0].ravel(), self.grid[-1].ravel()], axis=1)
            return [tuple(sorted(pair)) for pair in pairs.tolist()]
        order = np.argsort(self.group_numbers(kind).ravel(), kind="stable")
        members = self.grid[stage].ravel()[order].reshape(-1, self.size(kind))
        return [tuple(group) for group in np.sort(members, axis=1).tolist()]


def make_layout(field: str, parallel: Parallel, num_ranks: int) -> Layout:
    """Lays a job out over `num_ranks` ranks.

    Raises:
        ConfigError: the sizes do not multiply to `num_ranks`; names `field`.
    """
    tensor, pipeline = parallel.tensor, parallel.pipeline
    data = parallel.data or max(1, num_ranks // (tensor * pipeline))
    if tensor * pipeline * data != num_ranks:
        raise ConfigError(
            f"{field}.parallel: tensor x pipeline x data = {tensor} x {pipeline} x {data} = "
            f"{tensor * pipeline * data}, but the tenant has {num_ranks} ranks"
        )
    if data % parallel.expert:
        raise ConfigError(
            f"{field}.parallel.expert = {parallel.expert} does not divide data = {data}"
        )
    ranks = np.arange(num_ranks, dtype=np.int32)
    if parallel.order == "tensor_data_pipeline":
        grid = ranks.reshape(pipeline, data, tensor)
    else:
        grid = np.ascontiguousarray(ranks.reshape(data, pipeline, tensor).swapaxes(0, 1))
    return Layout(tensor, data, pipeline, parallel.expert, grid)


def layers_of_stages(layers: int, stages: int) -> list[int]:
    """How many layers each stage has.

    What does not divide goes to the inner stages first: the first and the last also have an
    embedding, as Grattafiori et al. 2024, section 3.3.2, balance theirs.
    """
    counts = [layers // stages] * stages
    inner_first = [*range(1, stages - 1), stages - 1, 0] if stages > 1 else [0]
    for stage in inner_first[: layers % stages]:
        counts[stage] += 1
    return counts
