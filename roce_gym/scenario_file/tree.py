"""Plain trees of mappings, lists and scalars, as YAML gives them."""

from __future__ import annotations

from typing import Any

from roce_gym.errors import ConfigError

DISTRIBUTIONS = frozenset({"uniform", "log_uniform", "integers", "choice"})


def is_distribution(node: object) -> bool:
    """Whether a node stands for a random value: a mapping of one of four keys and nothing else."""
    return isinstance(node, dict) and len(node) == 1 and not DISTRIBUTIONS.isdisjoint(node)


def copy_tree(node: Any) -> Any:
    """A copy in which nothing is shared, also where YAML aliases made it so."""
    if isinstance(node, dict):
        return {key: copy_tree(value) for key, value in node.items()}
    if isinstance(node, list | tuple):
        return [copy_tree(value) for value in node]
    return node


def check_keys(node: Any, place: str = "scenario") -> None:
    """What keys may be is for the scenario to say; here, that a file could hold them.

    Raises:
        ConfigError: a key that is neither text nor a number; says where.
    """
    if isinstance(node, dict):
        for key, value in node.items():
            if not isinstance(key, str | int | float | None):
                raise ConfigError(f"{place}: key {key!r} is not allowed; allowed: text or a number")
            check_keys(value, f"{place}.{key}")
    elif isinstance(node, list | tuple):
        for index, value in enumerate(node):
            check_keys(value, f"{place}.{index}")


def element_keys(elements: list[Any]) -> list[str]:
    """What the elements of a list are called in a path: by name if each has its own, or 0, 1, 2."""
    names = [e.get("name") if isinstance(e, dict) else None for e in elements]
    if all(isinstance(name, str) for name in names) and len(set(names)) == len(names):
        return [str(name) for name in names]
    return [str(index) for index in range(len(elements))]
