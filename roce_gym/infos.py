"""Infos of several environments as one dictionary of arrays, as Gymnasium's vectors have them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Info = Mapping[str, Any]


def batch_infos(infos: Sequence[Info | None], like: Info) -> dict[str, Any]:
    """For each key an array, and under `_key` which environments it is valid for.

    Args:
        infos: one an environment, all with the same keys; None where there is none.
        like: any of them, for keys and types where all are None.

    Returns:
        Fresh arrays of shape (N,) or (N, …): bool, int64 and float64 for Python's numbers, the
        array's own dtype for arrays, else object. 0 (or None) where there is no info. Values that
        are dictionaries become dictionaries of arrays.
    """
    there = np.array([info is not None for info in infos], bool)
    out: dict[str, Any] = {}
    for key, sample in like.items():
        values = [None if info is None else info[key] for info in infos]
        is_nested = isinstance(sample, Mapping)
        out[key] = batch_infos(values, sample) if is_nested else _column(values, sample)
        out[f"_{key}"] = there.copy()
    return out


def _column(values: list[Any], sample: Any) -> NDArray[Any]:
    if isinstance(sample, bool | int | float | np.number | np.bool_):
        return np.array([0 if v is None else v for v in values], np.asarray(sample).dtype)
    if isinstance(sample, np.ndarray):
        return np.stack([np.zeros_like(sample) if v is None else v for v in values])
    column = np.empty(len(values), object)
    column[:] = values
    return column
