"""Nodes of Chakra execution traces.

Source: schema/protobuf/et_def.proto of https://github.com/mlcommons/chakra (schema 0.0.4).
"""

from __future__ import annotations

import json
from enum import IntEnum
from typing import NamedTuple

from roce_gym.traces.protobuf import WireError, fields, numbers, signed, zigzag

Value = int | str


class NodeType(IntEnum):
    """`NodeType`."""

    INVALID = 0
    METADATA = 1
    MEM_LOAD = 2
    MEM_STORE = 3
    COMP = 4
    SEND = 5
    RECV = 6
    COLL = 7


class CommType(IntEnum):
    """`CollectiveCommType`."""

    ALL_REDUCE = 0
    REDUCE = 1
    ALL_GATHER = 2
    GATHER = 3
    SCATTER = 4
    BROADCAST = 5
    ALL_TO_ALL = 6
    REDUCE_SCATTER = 7
    REDUCE_SCATTER_BLOCK = 8
    BARRIER = 9


class Node(NamedTuple):
    """A node; `attributes` holds those with a single whole number, truth value or text."""

    id: int
    type: int
    dependencies: list[int]
    duration_us: int
    inputs: bytes
    attributes: dict[str, Value]


_ID, _TYPE, _CONTROL, _DATA, _DURATION, _INPUTS, _ATTRIBUTE = 1, 3, 4, 5, 7, 8, 10
_PLAIN = {7, 9, 11, 13, 27}  # int32, int64, uint32, uint64, bool
_ZIGZAG = {15, 17}
_FIXED = {19: False, 21: False, 23: True, 25: True}  # is it signed?
_STRING = 29
_CACHED = 2**14
"""Attributes remembered: the same few come again and again."""

_NAME_BYTES = 256


class NodeReader:
    """Decodes nodes; remembers attributes that it has seen."""

    def __init__(self) -> None:
        self._known: dict[bytes, tuple[str, Value] | None] = {}

    def read(self, data: bytes) -> Node:
        """A node.

        Raises:
            WireError: the bytes are none.
        """
        node_id = node_type = duration_us = 0
        inputs = b""
        dependencies: list[int] = []
        attributes: dict[str, Value] = {}
        for number, value in fields(data):
            if number == _ATTRIBUTE:
                found = self._attribute(_bytes(value, "an attribute"))
                if found is not None:
                    attributes[found[0]] = found[1]
            elif number == _CONTROL or number == _DATA:
                dependencies += numbers(value)
            elif number == _ID:
                node_id = _int(value, "id")
            elif number == _TYPE:
                node_type = _int(value, "type")
            elif number == _DURATION:
                duration_us = _int(value, "duration_micros")
            elif number == _INPUTS:
                inputs = _bytes(value, "inputs")
        return Node(node_id, node_type, dependencies, duration_us, inputs, attributes)

    def _attribute(self, data: bytes) -> tuple[str, Value] | None:
        if data in self._known:
            return self._known[data]
        if len(self._known) >= _CACHED:
            self._known.clear()
        found = _decode(data)
        if len(data) <= _NAME_BYTES:
            self._known[data] = found
        return found


def _decode(data: bytes) -> tuple[str, Value] | None:
    """Name and value of an attribute, None if it is none that can matter."""
    name = ""
    value: Value | None = None
    for number, raw in fields(data):
        if number == 1:
            name = _text(_bytes(raw, "the name of an attribute"))
        elif number in _PLAIN:
            value = signed(_int(raw, "the value of an attribute"))
        elif number in _ZIGZAG:
            value = zigzag(_int(raw, "the value of an attribute"))
        elif number in _FIXED:
            wide = _bytes(raw, "the value of an attribute")
            value = int.from_bytes(wide, "little", signed=_FIXED[number])
        elif number == _STRING:
            value = _text(_bytes(raw, "the value of an attribute"))
    return None if value is None else (name, value)


def process_groups(inputs: bytes) -> dict[str, tuple[list[int], int]] | None:
    """Process groups of PyTorch, which stand as JSON in `inputs.values` of metadata nodes.

    Returns:
        By name of the group its ranks (none: all ranks) and how many it says that it has (0: it
        does not say). None: the node says something else.

    Raises:
        WireError: the inputs are no message.
    """
    text = ""
    for number, value in fields(inputs):
        if number == 1:
            text = _text(_bytes(value, "inputs.values"))
    try:
        # A list of one string, quoted in either way, which is JSON itself.
        listed = json.loads(text[2:-2])
    except (ValueError, RecursionError):
        return None
    groups: dict[str, tuple[list[int], int]] = {}
    for group in listed if isinstance(listed, list) else []:
        if not isinstance(group, dict):
            return None
        name, ranks = group.get("pg_name"), group.get("ranks")
        if not isinstance(name, str) or not isinstance(ranks, list):
            return None
        if not all(type(rank) is int for rank in ranks):
            return None
        size = group.get("group_size")
        groups[name] = ranks, size if type(size) is int else 0
    return groups or None


def _int(value: int | bytes, name: str) -> int:
    if not isinstance(value, int):
        raise WireError(f"{name} is no whole number")
    return value


def _bytes(value: int | bytes, name: str) -> bytes:
    if isinstance(value, int):
        raise WireError(f"{name} is a number")
    return value


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise WireError("has a text that is not UTF-8") from None
