"""What an importer left out or changed, told once each."""

from __future__ import annotations

from typing import NamedTuple

MAX_NOTES = 64
"""Different ones; a hostile file could make up any number of names."""


class Note(NamedTuple):
    """Something that a file says and the operation graph does not."""

    text: str
    times: int

    def __str__(self) -> str:
        return f"{self.times:,} × {self.text}"


class NoteBook:
    """Counts what is left out."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}

    def add(self, text: str, count: int = 1) -> None:
        """Counts something; nothing happens with a count of 0."""
        if count and (text in self._counts or len(self._counts) < MAX_NOTES):
            self._counts[text] = self._counts.get(text, 0) + count

    def notes(self) -> tuple[Note, ...]:
        """All there is to say, in the order in which it was met."""
        return tuple(Note(text, count) for text, count in self._counts.items())
