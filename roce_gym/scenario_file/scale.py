"""Scenarios of any size: numbers that grow with the scenario's `scale`.

scale: 256                                 # for instance GPUs
scales: { step: 256, most: 16_384 }        # what it may be: 256, 512 … 16,384; none: 1 … 2^20
topology: { pods: { times_scale: 0.00390625 }, … }      # 1 for each 256 of them, rounded up
"""

from __future__ import annotations

import math
from typing import Any

from pydantic import ValidationError

from roce_gym.config import MAX_SCALE, Scales
from roce_gym.errors import ConfigError
from roce_gym.faults import explain

KEY = "scale"
"""In a scenario file."""

RANGE = "scales"
"""In a scenario file: what `scale` may be."""

FACTOR = "times_scale"

_ROUNDING = 1e-9
"""A product this little above a whole number is that number."""


def at_scale(tree: dict[str, Any]) -> dict[str, Any]:
    """A copy of a scenario in which each `{times_scale: f}` is f x scale, rounded up, at least 1.

    Raises:
        ConfigError: a factor that is no number above 0; or no scale, or one that is not allowed.
    """
    scale = tree.get(KEY)
    if scale is not None:
        _require_allowed(scale, tree.get(RANGE))
    resolved: dict[str, Any] = _resolve(tree, (), scale)
    return resolved


def _require_allowed(scale: Any, given: Any) -> None:
    try:
        scales = Scales() if given is None else Scales.model_validate(given)
    except ValidationError as error:
        lines = explain(error, given, Scales).splitlines()
        raise ConfigError("\n".join(f"{RANGE}.{line}" for line in lines)) from None
    if type(scale) is not int or scale not in scales.allowed:
        raise ConfigError(f"{KEY} = {scale!r} is not allowed; allowed: {scales}")


def _resolve(node: Any, path: tuple[str, ...], scale: int | None) -> Any:
    if isinstance(node, dict) and set(node) == {FACTOR}:
        return _grown(node[FACTOR], ".".join(path), scale)
    if isinstance(node, dict):
        return {key: _resolve(value, (*path, str(key)), scale) for key, value in node.items()}
    if isinstance(node, list | tuple):
        return [_resolve(value, (*path, str(i)), scale) for i, value in enumerate(node)]
    return node


def _grown(factor: Any, field: str, scale: int | None) -> int:
    if scale is None:
        raise ConfigError(f"{field}.{FACTOR} = {factor!r} needs {KEY}, which is missing")
    if type(factor) not in (int, float) or not 0 < factor <= MAX_SCALE:
        raise ConfigError(
            f"{field}.{FACTOR} = {factor!r} is not allowed; allowed: above 0, to {MAX_SCALE}"
        )
    return max(1, math.ceil(float(factor) * scale - _ROUNDING))
