"""Scenarios of any size: numbers that grow with the scenario's `scale`.

scale: 256                                 # for instance GPUs
topology: { pods: { times_scale: 0.00390625 }, … }      # 1 for each 256 of them, rounded up
"""

from __future__ import annotations

import math
from typing import Any

from roce_gym.errors import ConfigError

KEY = "scale"
"""In a scenario file."""

FACTOR = "times_scale"

MAX_SCALE = 2**20
"""More GPUs than anybody has in one fabric."""

_ROUNDING = 1e-9
"""A product this little above a whole number is that number."""


def at_scale(tree: dict[str, Any]) -> dict[str, Any]:
    """A copy of a scenario in which each `{times_scale: f}` is f x scale, rounded up, at least 1.

    Raises:
        ConfigError: a factor that is no number above 0; or no scale, or one that is not allowed.
    """
    scale = tree.get(KEY)
    if scale is not None and not (type(scale) is int and 1 <= scale <= MAX_SCALE):
        raise ConfigError(f"{KEY} = {scale!r} is not allowed; allowed: 1 … {MAX_SCALE}")
    resolved: dict[str, Any] = _resolve(tree, (), scale)
    return resolved


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
