"""What is wrong with a value, in the words and places of the scenario file it stands in."""

from __future__ import annotations

from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

_WORDS = (
    ("Input should be ", "must be "),
    ("a valid tuple", "a list"),
    ("a valid list", "a list"),
    ("a valid dictionary", "a mapping"),
    ("a valid string", "text"),
    ("a valid number", "a number"),
    ("a valid integer", "a whole number"),
    (", unable to parse string as an integer", ""),
    (", unable to parse string as a number", ""),
    (", got a number with a fractional part", ""),
)


def explain(error: ValidationError, raw: Any = None, model: type[BaseModel] | None = None) -> str:
    """One line per fault: the field, what was wrong, the value given.

    Args:
        error: what pydantic found.
        raw: what was validated; named elements of lists are then called by their names.
        model: what it should have been; unknown keys are then answered with the known ones.
    """
    found: dict[tuple[str, ...], list[str]] = {}
    for fault in error.errors():
        place, types = _locate(fault["loc"], raw, model)
        place, text = _word(fault, place, types)
        texts = found.setdefault(place, [])
        if text not in texts:
            texts.append(text)
    deepest = [
        place
        for place in found
        if not any(len(other) > len(place) and other[: len(place)] == place for other in found)
    ]
    return "\n".join(f"{'.'.join(place) or 'scenario'}: {_join(found[place])}" for place in deepest)


def alternatives(annotation: Any) -> list[Any]:
    """The members of a union, or the type itself; without annotations around them."""
    origin = get_origin(annotation)
    if origin is Annotated:
        return alternatives(get_args(annotation)[0])
    if origin in (Union, UnionType):
        return [one for arg in get_args(annotation) for one in alternatives(arg)]
    return [annotation]


def element_types(annotation: Any) -> list[Any]:
    """What the elements of a `tuple[X, ...]` may be."""
    is_tuple = get_origin(annotation) is tuple
    return alternatives(get_args(annotation)[0]) if is_tuple else []


def _locate(
    loc: tuple[int | str, ...], node: Any, model: type[BaseModel] | None
) -> tuple[tuple[str, ...], list[Any]]:
    """A place as users call it, and the types that stand there (above it, if it is unknown).

    Pydantic names the member of a union that it tried; users do not know of it.
    """
    if model is None:
        return tuple(str(part) for part in loc), []
    types: list[Any] = [model]
    place: list[str] = []
    for part in loc:
        if len(types) > 1:
            types = [one for one in types if _is_called(one, str(part))][:1]
        elif part != "[key]":
            types = [kind for one in types for kind in _types_at(one, part)] or types
            node, shown = _step(node, part)
            place.append(shown)
    return tuple(place), types


def _is_called(one: Any, label: str) -> bool:
    """Whether pydantic means this member of a union by a label."""
    if isinstance(one, type) and issubclass(one, BaseModel):
        kind = one.model_fields.get("kind")
        return one.__name__ == label or (kind is not None and label in get_args(kind.annotation))
    return label.startswith("tuple[") == (get_origin(one) is tuple)


def _types_at(one: Any, part: int | str) -> list[Any]:
    """What may stand at a key or index; None is left out, as pydantic does not name it."""
    if isinstance(part, int):
        found = element_types(one)
    elif isinstance(one, type) and issubclass(one, BaseModel) and part in one.model_fields:
        found = alternatives(one.model_fields[part].annotation)
    else:
        found = []
    return [kind for kind in found if kind is not NoneType]


def _step(node: Any, part: int | str) -> tuple[Any, str]:
    """What is at a key or index, and what to call it."""
    try:
        child = node[part]
    except (KeyError, IndexError, TypeError):
        return None, str(part)
    names = [one.get("name") if isinstance(one, dict) else None for one in node]
    if isinstance(part, int) and isinstance(child, dict):
        name = child.get("name")
        if isinstance(name, str) and names.count(name) == 1:
            return child, name
    return child, str(part)


def _word(fault: Any, place: tuple[str, ...], types: list[Any]) -> tuple[tuple[str, ...], str]:
    """The place and wording of a fault."""
    kind, given, context = fault["type"], fault["input"], fault.get("ctx", {})
    shown = "" if isinstance(given, dict | list | tuple | BaseModel) else f" (got {given!r})"
    if kind == "union_tag_invalid":
        return (*place, "kind"), f"{context['tag']!r} is unknown; allowed: {_tags(context)}"
    if kind == "union_tag_not_found":
        known = ", ".join(
            repr(name) for one in types for name in get_args(one.model_fields["kind"].annotation)
        )
        return (*place, "kind"), f"is missing; allowed: {known}" if known else "is missing"
    if kind == "missing":
        return place, "is missing"
    if kind == "extra_forbidden":
        known = ", ".join(name for one in types for name in getattr(one, "model_fields", ()))
        return place, f"unknown key{shown}" + (f"; allowed: {known}" if known else "")
    if fault["loc"][-1:] == ("[key]",) and "expected" in context:
        return place, f"unknown key; allowed: {context['expected']}"
    if kind == "too_short":
        return place, f"must have at least {context['min_length']} item(s)"
    if kind in ("model_type", "model_attributes_type", "dict_type"):
        return place, f"must be a mapping{shown}"
    message = fault["msg"].removeprefix("Value error, ")
    for old, new in _WORDS:
        message = message.replace(old, new)
    return place, f"{message}{shown}"


def _tags(context: Any) -> str:
    return str(context["expected_tags"])


def _join(texts: list[str]) -> str:
    """One sentence of what the members of a union would have allowed."""
    if len(texts) == 1:
        return texts[0]
    values = {text[text.rfind(" (got ") :] for text in texts if " (got " in text}
    tail = values.pop() if len(values) == 1 else ""
    heads = [text.removesuffix(tail) for text in texts]
    return heads[0] + "".join(f", or {head.removeprefix('must be ')}" for head in heads[1:]) + tail
