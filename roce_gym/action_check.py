"""Checks of actions: real numbers, of one shape, within the box."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roce_gym.errors import ActionError

_NO_NUMBERS = "cSUmM"
"""Kinds of arrays that NumPy would turn into floats: complex, text, times."""


def as_floats(action: Any, name: str = "action", kind: str = "numbers") -> NDArray[np.float64]:
    """An action as float64, of whatever shape.

    Args:
        action: as given.
        name, kind: what to call it, and what is expected, in messages.

    Raises:
        ActionError: there is something else in it than real numbers.
    """
    try:
        given = np.asarray(action)
        if given.dtype.kind not in _NO_NUMBERS:
            return np.asarray(given, np.float64)
    except (TypeError, ValueError):
        pass
    raise ActionError(f"{name}: {kind} are expected, got {action!r}")


def clipped(action: Any, names: Sequence[str], name: str = "action") -> NDArray[np.float64]:
    """An action as float64; what lies outside of [-1, 1] is moved to the nearest bound.

    Args:
        action: shape (n,).
        names: of the n knobs.
        name: what to call it in messages.

    Raises:
        ActionError: wrong shape, or an entry that is not a finite real number.
    """
    values = as_floats(action, name)
    if values.shape != (len(names),):
        raise ActionError(f"{name}: shape {values.shape} is not allowed; allowed: {(len(names),)}")
    wrong = np.flatnonzero(~np.isfinite(values))
    if len(wrong):
        i = int(wrong[0])
        raise ActionError(
            f"{name}[{i}] ({names[i]}) = {values[i]} is not allowed; "
            "allowed: finite numbers, of which those outside of [-1, 1] are clipped"
        )
    return np.minimum(np.maximum(values, -1.0), 1.0)
