"""Line by line reading of the small text formats, with faults that name file, line and value."""

from __future__ import annotations

import re
from fractions import Fraction
from pathlib import Path

from roce_gym.bounded import read_bounded
from roce_gym.errors import TraceFileError

MAX_LINES = 2**22
"""Of a file that is held in memory."""

MAX_LINE = 2**22
"""Characters of a line; the list of switches of a large topology is one."""

MAX_TOKEN = 48
"""Characters of a number; more is garbage, and costly to convert."""

DECIMAL = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,2})?"
"""A decimal number whose exact value is cheap to hold."""

_WHOLE = re.compile(r"[+-]?[0-9]+")
_DECIMAL = re.compile(DECIMAL)


class FieldReader:
    """Conversion of the fields of a line, with faults that say where they stand.

    Attributes:
        path: the file.
        line: number of the line last read, from 1; 0 before the first.
    """

    def __init__(self, path: str | Path) -> None:
        """Remembers the name."""
        self.path = path
        self.line = 0

    def fault(self, message: str) -> TraceFileError:
        """An error about the line last read."""
        return TraceFileError(f"{self.path}, line {self.line}: {message}")

    def whole(self, name: str, text: str, low: int, high: int, why: str = "") -> int:
        """A whole number within `low … high`.

        Raises:
            TraceFileError: it is none, or out of range; `why` is added to the range.
        """
        if len(text) > MAX_TOKEN or not _WHOLE.fullmatch(text):
            raise self.fault(f"{name} = {shorten(text)} is not a whole number")
        value = int(text)
        if not low <= value <= high:
            allowed = f"{low} … {high}" if low <= high else "none"
            raise self.fault(f"{name} = {value} is not allowed; allowed: {allowed}{why}")
        return value

    def decimal(self, name: str, text: str, low: int, high: int) -> Fraction:
        """A decimal number within `low … high`, exactly.

        Raises:
            TraceFileError: it is none, or out of range.
        """
        if len(text) > MAX_TOKEN or not _DECIMAL.fullmatch(text):
            raise self.fault(f"{name} = {shorten(text)} is not a number")
        value = Fraction(text)
        if not low <= value <= high:
            raise self.fault(f"{name} = {text} is not allowed; allowed: {low} … {high}")
        return value


class LineReader(FieldReader):
    """The non-blank lines of a file, one after the other, split at white space."""

    def __init__(self, path: str | Path) -> None:
        """Reads the whole file.

        Raises:
            TraceFileError: it cannot be read, or is too large.
        """
        super().__init__(path)
        content = read_bounded(path)
        if content.count(b"\n") >= MAX_LINES:
            raise TraceFileError(f"{path}: has more than {MAX_LINES} lines")
        self._lines = content.decode("utf-8-sig", errors="replace").split("\n")
        self._num_left = sum(1 for line in self._lines if line and not line.isspace())

    @property
    def num_left(self) -> int:
        """Non-blank lines not read yet."""
        return self._num_left

    def _next_fields(self) -> list[str]:
        while True:
            text = self._lines[self.line]
            self.line += 1
            if text and not text.isspace():
                self._num_left -= 1
                if len(text) > MAX_LINE:
                    raise self.fault(f"has {len(text)} characters; allowed: 1 … {MAX_LINE}")
                return text.split()

    def take(self, names: str, count: int | None = None) -> list[str]:
        """The fields of the next line.

        Args:
            names: what they are, for messages.
            count: how many there must be; None: as many as `names` has words.

        Raises:
            TraceFileError: the file ends, or the number of fields is another.
        """
        if not self.num_left:
            raise TraceFileError(
                f"{self.path}: ends after line {self.line}, where '{names}' should follow"
            )
        fields = self._next_fields()
        expected = len(names.split()) if count is None else count
        if len(fields) != expected:
            shown = " ".join(fields[:8]) + (" …" if len(fields) > 8 else "")
            raise self.fault(f"{expected} fields expected ({names}), found {len(fields)}: {shown}")
        return fields


def shorten(text: str) -> str:
    """A text as it may stand in a message."""
    return repr(text if len(text) <= MAX_TOKEN else text[:MAX_TOKEN] + "…")
