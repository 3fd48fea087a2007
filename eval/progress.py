"""Progress of countable work: drawn over itself on a terminal, else a few plain lines."""

from __future__ import annotations

import sys
import time

_LINES = 10


class Counter:
    """Counts to a total, on standard error."""

    def __init__(self, label: str, total: int) -> None:
        self._label, self._total = label, total
        self._count = 0
        self._begun = time.monotonic()
        self._is_terminal = sys.stderr.isatty()

    def add(self, note: str = "") -> None:
        """One more is done."""
        before, self._count = self._count, self._count + 1
        is_last = self._count == self._total
        seconds = time.monotonic() - self._begun
        text = f"{self._label}: {self._count} / {self._total}  {seconds:.0f} s  {note}"
        if self._is_terminal:
            end = "\n" if is_last else ""
            print(f"\r\x1b[2K{text[:100]}", end=end, file=sys.stderr, flush=True)
        elif is_last or before * _LINES // self._total < self._count * _LINES // self._total:
            print(text, file=sys.stderr, flush=True)
