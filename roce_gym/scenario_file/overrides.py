"""Values given on the command line in place of those in a scenario file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from roce_gym.config import Scenario
from roce_gym.errors import ConfigError
from roce_gym.faults import alternatives, element_types
from roce_gym.scenario_file.read import parse_yaml
from roce_gym.scenario_file.splits import KEY, changes_of
from roce_gym.scenario_file.tree import check_keys, copy_tree, element_keys, is_distribution

_Types = list[Any]
"""What may stand at a place, one entry an alternative; empty where the scenario model ends."""


def apply_overrides(raw: dict[str, Any], overrides: Sequence[str]) -> dict[str, Any]:
    """A copy of a scenario with some values replaced, in the order given.

    Args:
        raw: as from :func:`load_raw`.
        overrides: `dotted.path=value`; the value is YAML (and may be a distribution); list elements
            by index or by their `name`. Fields that the file leaves out may be set, too. Relative
            paths of files start at the current folder.

    Raises:
        ConfigError: not of this form, or nothing of this path exists; lists what exists there. Or
            a key of the scenario is no text and no number.
    """
    changes = []
    for text in overrides:
        path, equals, value = text.partition("=")
        if not equals or not path.strip():
            raise ConfigError(f"override {text!r} is not of the form dotted.path=value")
        changes.append((path.strip(), parse_yaml(value, f"override {text!r}")))
    tree = apply_changes(raw, changes)
    check_keys(tree)
    return tree


def apply_changes(raw: dict[str, Any], changes: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """A copy of a scenario with values replaced, in all its splits, in the order given.

    Args:
        raw: as from :func:`load_raw`.
        changes: (dotted path, value) each; see :func:`apply_overrides`.

    Raises:
        ConfigError: nothing of this path exists; lists what exists there.
    """
    tree: dict[str, Any] = copy_tree(raw)
    splits = changes_of(tree)
    for path, value in changes:
        _replace(tree, path.split("."), copy_tree(value))
        for of_split in splits.values():  # in the end, so that they win
            of_split.pop(path, None)
            of_split[path] = copy_tree(value)
    return tree


def for_split(raw: dict[str, Any], split: str) -> dict[str, Any]:
    """A copy of a scenario as it is in a split, without changes for others.

    Raises:
        ConfigError: a change whose path does not exist.
    """
    changes = changes_of(raw).get(split, {})
    tree = {key: value for key, value in raw.items() if key != KEY}
    try:
        return apply_changes(tree, changes.items())
    except ConfigError as error:
        raise ConfigError(f"{KEY}.{split}: {error}") from None


def _replace(tree: dict[str, Any], path: list[str], value: Any) -> None:
    node: Any = tree
    types: _Types = [Scenario]
    for depth, text in enumerate(path):
        place = ".".join(path[:depth]) or "scenario"
        if is_distribution(node):
            raise ConfigError(f"override: {place} is drawn at random; replace all of it")
        key, types = _step(node, text, types, place)
        if depth + 1 == len(path):
            node[key] = value
        node = node[key]


def _step(node: Any, text: str, types: _Types, place: str) -> tuple[Any, _Types]:
    """One key of a path: what it is in `node`, and what may stand there.

    A field that is missing or null, but known, is created with its default.
    """
    if isinstance(node, list):
        names, numbers = element_keys(node), [str(i) for i in range(len(node))]
        for keys in (names, numbers):
            if text in keys:
                return keys.index(text), [t for row in types for t in element_types(row)]
        raise _unknown(place, text, names)
    if not isinstance(node, dict):
        raise ConfigError(f"override: {place} = {node!r} has no part {text!r}")
    for one in types:
        if (own := _free_mapping(one)) is not None:
            return _own_key(text, place, own[0]), own[1]
    fields = _fields(types, node)
    if text not in fields:
        if text not in node:
            raise _unknown(place, text, [*map(str, node), *fields])
        return text, []
    if node.get(text) is None:
        node[text] = _default(fields[text])
    return text, alternatives(fields[text].annotation)


def _free_mapping(one: Any) -> tuple[_Types, _Types] | None:
    """Types of the keys and values of a mapping whose keys are the user's."""
    arguments = get_args(one)
    if len(arguments) != 2 or get_origin(one) is not dict:
        return None
    keys, values = map(alternatives, arguments)
    return None if get_origin(keys[0]) is Literal else (keys, values)


def _own_key(text: str, place: str, types: _Types) -> int | str:
    """A key of such a mapping: text or a whole number."""
    if int not in types:
        return text
    if not text.isdecimal():
        raise ConfigError(f"override: {place} has whole numbers as keys, not {text!r}")
    return int(text)


def _unknown(place: str, text: str, existing: Sequence[str]) -> ConfigError:
    shown = ", ".join(dict.fromkeys(existing)) or "nothing"
    return ConfigError(f"override: {place} has no {text!r}; there is: {shown}")


def _fields(types: _Types, node: dict[str, Any]) -> dict[str, FieldInfo]:
    """The fields that a mapping may have; a `kind` it states narrows them down."""
    fields: dict[str, FieldInfo] = {}
    for one in types:
        if isinstance(one, type) and issubclass(one, BaseModel):
            kind = one.model_fields.get("kind")
            if kind is None or node.get("kind") in (None, *get_args(kind.annotation)):
                fields |= one.model_fields
        elif (args := get_args(one)) and get_origin(args[0]) is Literal:  # dict[Literal, value]
            fields |= dict.fromkeys(get_args(args[0]), FieldInfo.from_annotation(args[1]))
    return fields


def _default(field: FieldInfo) -> Any:
    """A tree to start from where a file leaves a field out; {} stands for a model's defaults."""
    default = field.get_default(call_default_factory=True)
    if isinstance(default, tuple):
        return [one.model_dump() if isinstance(one, BaseModel) else one for one in default]
    return dict(default) if isinstance(default, dict) else {}
