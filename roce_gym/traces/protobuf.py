"""The little of the Protocol Buffers wire format that Chakra needs.

Source: https://protobuf.dev/programming-guides/encoding: a message is a list of (field number,
wire type, value); varints are little-endian groups of 7 bits.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

from roce_gym.traces.limits import MAX_RECORD_BYTES

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_WIDTH = {_FIXED64: 8, _FIXED32: 4}
_MASK = 2**64 - 1


class WireError(Exception):
    """Raised when bytes are no message."""


def read_varint(data: bytes, position: int) -> tuple[int, int]:
    """A number of up to 64 bits, and where the next one begins.

    Raises:
        WireError: the data ends, or the number is longer.
    """
    value = shift = 0
    while shift < 70:
        if position >= len(data):
            raise WireError("ends inside of a number")
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & _MASK, position
        shift += 7
    raise WireError("has a number of more than 10 bytes")


def fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """All fields of a message: number, and value (bytes of those with a length or fixed width).

    Raises:
        WireError: it ends in the middle of a field, or a field is none.
    """
    position, end = 0, len(data)
    while position < end:
        key = data[position]
        position += 1
        if key >= 0x80:
            key, position = read_varint(data, position - 1)
        number, wire = key >> 3, key & 7
        if number == 0:
            raise WireError("has a field with number 0")
        if wire == _VARINT:
            value = data[position] if position < end else 0x80
            position += 1
            if value >= 0x80:
                value, position = read_varint(data, position - 1)
            yield number, value
            continue
        if wire == _BYTES:
            length, position = read_varint(data, position)
        elif wire in _WIDTH:
            length = _WIDTH[wire]
        else:
            raise WireError(f"has a field of wire type {wire}; allowed: 0, 1, 2, 5")
        if length > end - position:
            raise WireError(f"has a field of {length} bytes, but only {end - position} follow")
        yield number, data[position : position + length]
        position += length


def numbers(value: int | bytes) -> list[int]:
    """What a field of a repeated number adds: one, or many in packed form.

    Raises:
        WireError: the packed form is broken.
    """
    if isinstance(value, int):
        return [value]
    found, position = [], 0
    while position < len(value):
        number, position = read_varint(value, position)
        found.append(number)
    return found


def signed(value: int) -> int:
    """An int32 or int64, whose negative numbers are written as those of 64 bits."""
    return value - 2**64 if value >= 2**63 else value


def zigzag(value: int) -> int:
    """An sint32 or sint64."""
    return (value >> 1) ^ -(value & 1)


def records(file: BinaryIO) -> Iterator[bytes]:
    """The messages of a file in which each follows its length.

    Raises:
        WireError: the file ends inside of one, or one is too long.
    """
    while True:
        head = b""
        while not head or head[-1] >= 0x80:
            byte = file.read(1)
            if not byte:
                if head:
                    raise WireError("the file ends inside of its length")
                return
            head += byte
            if len(head) > 10:
                raise WireError("its length is a number of more than 10 bytes")
        length, _ = read_varint(head, 0)
        if length > MAX_RECORD_BYTES:
            raise WireError(f"its length is {length} bytes; allowed: 0 … {MAX_RECORD_BYTES}")
        data = file.read(length)
        if len(data) < length:
            raise WireError(f"the file ends after {len(data)} of its {length} bytes")
        yield data
