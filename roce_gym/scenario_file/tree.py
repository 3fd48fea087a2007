"""Plain trees of mappings, lists and scalars, as YAML gives them."""

from __future__ import annotations

from typing import Any

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


def element_keys(elements: list[Any]) -> list[str]:
    """What the elements of a list are called in a path: by name if each has its own, or 0, 1, 2."""
    names = [e.get("name") if isinstance(e, dict) else None for e in elements]
    if all(isinstance(name, str) for name in names) and len(set(names)) == len(names):
        return [str(name) for name in names]
    return [str(index) for index in range(len(elements))]
