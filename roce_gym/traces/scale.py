"""Larger and smaller versions of a graph."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from roce_gym.errors import ConfigError
from roce_gym.traces.limits import MAX_DURATION_PS, MAX_MESSAGE_BYTES
from roce_gym.workload.op_graph import OpGraph, OpKind


def scale_graph(graph: OpGraph, bytes_scale: float = 1.0, compute_scale: float = 1.0) -> OpGraph:
    """The same operations with other sizes and durations, rounded.

    Messages and collectives keep at least one byte.

    Raises:
        ConfigError: one gets too large; names the scale.
    """
    if bytes_scale != 1:
        message = (graph.kind == OpKind.SEND) | (graph.kind == OpKind.RECV)
        size = _scaled(graph.bytes, bytes_scale, "bytes_scale", MAX_MESSAGE_BYTES)
        whole = np.array([call.bytes for call in graph.collectives], np.int64)
        whole = np.maximum(_scaled(whole, bytes_scale, "bytes_scale", MAX_MESSAGE_BYTES), 1)
        graph = graph._replace(
            bytes=np.where(message, np.maximum(size, 1), 0),
            collectives=tuple(
                call._replace(bytes=size)
                for call, size in zip(graph.collectives, whole.tolist(), strict=True)
            ),
        )
    if compute_scale != 1:
        duration = _scaled(graph.duration_ps, compute_scale, "compute_scale", MAX_DURATION_PS)
        graph = graph._replace(duration_ps=duration)
    return graph


def _scaled(values: NDArray[np.int64], scale: float, name: str, largest: int) -> NDArray[np.int64]:
    exact = values * scale
    if exact.max(initial=0) > largest:
        raise ConfigError(
            f"{name} = {scale:g} is not allowed: makes {values.max()} larger than {largest}"
        )
    rounded: NDArray[np.int64] = np.rint(exact).astype(np.int64)
    return rounded
