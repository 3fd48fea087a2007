"""Where a sender algorithm keeps its state: one record a QP, one record of parameters a tenant.

`State.cc_state` and `State.cc_params` are plain words, so that every algorithm has records of its
own type: up to one cache line a QP, two a tenant. A QP's record begins with the fields of
`types.PACING`, which belong to the scheduler.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from roce_gym.sim.handle import record_at
from roce_gym.sim.jit import helper
from roce_gym.sim.types import CC_PARAM_WORDS, CC_WORDS, PACING, State

WORD_BYTES = 8
_PACING_FIELDS = [(name, PACING[name]) for name in PACING.names or ()]


def qp_record(fields: list[Any]) -> np.dtype[Any]:
    """The type of an algorithm's record of a QP, from its own fields."""
    return np.dtype([*_PACING_FIELDS, *fields], align=True)


def of_qp(dtype: np.dtype[Any]) -> Any:
    """For kernels: `f(s, qp)` is the QP's record of that type."""
    at = record_at(dtype)

    @helper
    def record(s, qp):
        return at(s.cc_state, qp * CC_WORDS)

    return record


def params_of_qp(dtype: np.dtype[Any]) -> Any:
    """For kernels: `f(s, qp)` is the record of parameters of the QP's tenant."""
    at = record_at(dtype)

    @helper
    def record(s, qp):
        return at(s.cc_params, s.qp[qp]["tenant"] * CC_PARAM_WORDS)

    return record


pacing_of = of_qp(PACING)


def qp_records(state: State, dtype: np.dtype[Any]) -> NDArray[Any]:
    """For Python: shape (num_qps,), a view of all QPs' records, whichever algorithm they have."""
    return _view(state.cc_state, CC_WORDS, dtype)


def tenant_params(state: State, dtype: np.dtype[Any]) -> NDArray[Any]:
    """For Python: shape (num_tenants,), a view of all tenants' parameters."""
    return _view(state.cc_params, CC_PARAM_WORDS, dtype)


def _view(words: NDArray[Any], stride: np.int64, dtype: np.dtype[Any]) -> NDArray[Any]:
    rows = words.reshape(-1, stride)[:, : dtype.itemsize // WORD_BYTES]
    return rows.view(dtype)[:, 0]
