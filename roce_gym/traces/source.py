"""Text files, line by line, without ever holding one whole."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from roce_gym.bounded import open_bounded
from roce_gym.topology.lines import FieldReader
from roce_gym.traces.limits import MAX_LINE_BYTES

_BOM = b"\xef\xbb\xbf"


class Lines(FieldReader):
    """The lines of a file, without white space at their ends; blank ones are left out."""

    def __init__(self, path: str | Path, max_line_bytes: int = MAX_LINE_BYTES) -> None:
        """Remembers the name; nothing is opened yet."""
        super().__init__(path)
        self._max = max_line_bytes

    def __iter__(self) -> Iterator[str]:
        """All lines.

        Raises:
            TraceFileError: the file cannot be read, a line is too long or is not UTF-8.
        """
        limit = self._max + 1
        with open_bounded(self.path) as file:
            self.line = 0
            while raw := file.readline(limit):
                self.line += 1
                if len(raw) == limit:
                    raise self.fault(f"has more than {self._max} bytes")
                if self.line == 1:
                    raw = raw.removeprefix(_BOM)
                try:
                    text = raw.decode().strip()
                except UnicodeDecodeError as error:
                    raise self.fault(f"is not UTF-8 text (byte {error.start + 1})") from None
                if text:
                    yield text
