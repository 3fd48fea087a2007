"""Random values in scenario files.

{uniform: [a, b]}       a real number; a whole one where both bounds are whole, so write 1.0 for
{log_uniform: [a, b]}   a bound to get a real one
{integers: [a, b]}      a whole number, both bounds included
{choice: [x, y, …]}     one of the values, which may hold distributions themselves
"""

from __future__ import annotations

import math
import zlib
from typing import Any

import numpy as np

from roce_gym.errors import ConfigError
from roce_gym.scenario_file.overrides import for_split
from roce_gym.scenario_file.scale import at_scale
from roce_gym.scenario_file.splits import split_of
from roce_gym.scenario_file.tree import element_keys, is_distribution

_MAX_BOUND = 2**53
"""Up to here, a double holds every whole number."""


def draw(raw: dict[str, Any], seed: int) -> dict[str, Any]:
    """A copy of a scenario, as it is in the seed's split, at its scale, with values drawn.

    The value depends on the seed and on the place of the distribution (its path of keys, with list
    elements by name where they have one), so that distributions which are added, removed or changed
    leave the draws of all others as they were.

    Args:
        raw: as from :func:`load_raw`.
        seed: not negative.

    Raises:
        ConfigError: bounds that are not numbers, in the wrong order, or out of range; changes of a
            split that cannot be made; or see :func:`~roce_gym.scenario_file.scale.at_scale`.
    """
    return Drawer(raw)(seed)


class Drawer:
    """As :func:`draw`, for many seeds: what is the same for all is worked out once."""

    def __init__(self, raw: dict[str, Any]) -> None:
        """Takes a scenario as from :func:`load_raw`, which must not change from then on."""
        self._raw = raw
        self._of_split: dict[str, dict[str, Any]] = {}
        self._fixed: set[int] = set()
        """Ids of parts of these trees in which nothing is random."""

    def __reduce__(self) -> tuple[Any, ...]:
        """For pickle and copy: ids are other ones there."""
        return Drawer, (self._raw,)

    def __call__(self, seed: int) -> dict[str, Any]:
        """The scenario with values drawn. Results share what is not random: do not change them.

        Raises:
            ConfigError: see :func:`draw`.
        """
        if seed < 0:
            raise ConfigError(f"seed = {seed} is not allowed; allowed: 0 and above")
        seed = int(seed)
        split = split_of(seed)
        if split not in self._of_split:
            tree = at_scale(for_split(self._raw, split))
            self._find_fixed(tree)
            self._of_split[split] = tree
        drawn: dict[str, Any] = self._resolve(self._of_split[split], (), seed)
        return drawn

    def _find_fixed(self, node: Any) -> bool:
        """Whether nothing in a part of a tree is random; remembers all such parts."""
        if not isinstance(node, dict | list | tuple):
            return True
        parts = node.values() if isinstance(node, dict) else node
        is_fixed = all([self._find_fixed(part) for part in parts]) and not is_distribution(node)
        if is_fixed:
            self._fixed.add(id(node))
        return is_fixed

    def _resolve(self, node: Any, path: tuple[str, ...], seed: int) -> Any:
        if id(node) in self._fixed:
            return node
        if is_distribution(node):
            ((kind, given),) = node.items()
            return self._sample(kind, given, path, seed)
        if isinstance(node, dict):
            return {
                key: self._resolve(value, (*path, str(key)), seed) for key, value in node.items()
            }
        if isinstance(node, list | tuple):
            rows = zip(element_keys(list(node)), node, strict=True)
            return [self._resolve(value, (*path, key), seed) for key, value in rows]
        return node

    def _sample(self, kind: str, given: Any, path: tuple[str, ...], seed: int) -> Any:
        field = ".".join(path)
        rng = np.random.default_rng(np.random.SeedSequence([seed, zlib.crc32(field.encode())]))
        if kind == "choice":
            if not isinstance(given, list) or not given:
                raise ConfigError(f"{field}.choice: a list of at least one value is expected")
            return self._resolve(given[rng.integers(len(given))], (*path, "choice"), seed)
        return _number(kind, given, field, rng)


def _number(kind: str, given: Any, field: str, rng: np.random.Generator) -> float:
    value: float
    low, high = _bounds(given, f"{field}.{kind}")
    is_whole = isinstance(low, int) and isinstance(high, int)
    if kind == "integers":
        if not is_whole:
            raise ConfigError(f"{field}.integers = {given}: whole bounds are expected")
        return int(rng.integers(low, high, endpoint=True))
    if kind == "uniform":
        value = float(rng.uniform(low, high))
    elif low > 0:
        value = math.exp(rng.uniform(math.log(low), math.log(high)))
    else:
        raise ConfigError(f"{field}.log_uniform = {given}: bounds above 0 are expected")
    value = min(max(value, low), high)
    return round(value) if is_whole else value


def _bounds(given: Any, field: str) -> tuple[Any, Any]:
    if (
        not isinstance(given, list)
        or len(given) != 2
        or not all(type(bound) in (int, float) and abs(bound) <= _MAX_BOUND for bound in given)
    ):
        raise ConfigError(
            f"{field} = {given}: two numbers [lowest, highest] within ±2^53 are expected"
        )
    if given[0] > given[1]:
        raise ConfigError(f"{field} = {given}: the lower bound must come first")
    return given[0], given[1]
