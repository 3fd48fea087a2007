"""Line by line reading of the small text formats, with faults that name file, line and value."""

from __future__ import annotations

import re
from fractions import Fraction
from pathlib import Path

from roce_gym.errors import TraceFileError

MAX_TOKEN = 48
"""Characters of a number; more is garbage, and costly to convert."""

DECIMAL = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,2})?"
"""A decimal number whose exact value is cheap to hold."""

_WHOLE = re.compile(r"[+-]?[0-9]+")
_DECIMAL = re.compile(DECIMAL)


class LineReader:
    """The non-blank lines of a file, one after the other, split at white space.

    Attributes:
        path: the file.
        line: number of the line last read, from 1; 0 before the first.
    """

    def __init__(self, path: str | Path) -> None:
        """Reads the whole file.

        Raises:
            TraceFileError: it cannot be read.
        """
        self.path = path
        self.line = 0
        try:
            text = Path(path).read_text(encoding="utf-8-sig", errors="replace")
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise TraceFileError(f"{path}: cannot be read: {reason}") from None
        self._lines = [
            (number, fields)
            for number, fields in enumerate(map(str.split, text.split("\n")), start=1)
            if fields
        ]
        self._next = 0

    @property
    def num_left(self) -> int:
        """Non-blank lines not read yet."""
        return len(self._lines) - self._next

    def fault(self, message: str) -> TraceFileError:
        """An error about the line last read."""
        return TraceFileError(f"{self.path}, line {self.line}: {message}")

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
        self.line, fields = self._lines[self._next]
        self._next += 1
        expected = len(names.split()) if count is None else count
        if len(fields) != expected:
            shown = " ".join(fields[:8]) + (" …" if len(fields) > 8 else "")
            raise self.fault(f"{expected} fields expected ({names}), found {len(fields)}: {shown}")
        return fields

    def whole(self, name: str, text: str, low: int, high: int, why: str = "") -> int:
        """A whole number within `low … high`.

        Raises:
            TraceFileError: it is none, or out of range; `why` is added to the range.
        """
        if len(text) > MAX_TOKEN or not _WHOLE.fullmatch(text):
            raise self.fault(f"{name} = {_short(text)} is not a whole number")
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
            raise self.fault(f"{name} = {_short(text)} is not a number")
        value = Fraction(text)
        if not low <= value <= high:
            raise self.fault(f"{name} = {text} is not allowed; allowed: {low} … {high}")
        return value


def _short(text: str) -> str:
    return repr(text if len(text) <= MAX_TOKEN else text[:MAX_TOKEN] + "…")
