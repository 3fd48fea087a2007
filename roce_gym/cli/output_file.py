"""Files that a command writes beside what it prints: whole, or not at all."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

from roce_gym.errors import ConfigError


class OutputFile:
    """A hidden file beside the one wanted, which takes its place when all went well.

    Attributes:
        partial: path of the hidden file, to write to.
    """

    def __init__(self, path: Path, option: str, force: bool) -> None:
        """Checks that the file may be written.

        Args:
            path: the file wanted.
            option: of the command line, for messages.
            force: whether a file that exists is replaced.

        Raises:
            ConfigError: it exists and may not be replaced, or cannot be written.
        """
        self._path, self._option, self._force = path, option, force
        self._refuse_to_replace()
        self.partial = path.with_name(f".{path.name}.{os.getpid()}.tmp")
        try:
            self.partial.open("w", encoding="utf-8").close()
        except OSError as error:
            raise self.unwritable(error) from None

    def _refuse_to_replace(self) -> None:
        shown = repr(str(self._path))
        if self._path.is_dir():
            raise ConfigError(f"{self._option}: {shown} is a folder; allowed: a file")
        if self._path.exists() and not self._force:
            raise ConfigError(f"{self._option}: {shown} exists; --force replaces it")

    def __enter__(self) -> OutputFile:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Puts the file in its place, or removes it if something went wrong."""
        try:
            if kind is None:
                self._refuse_to_replace()
                self.partial.replace(self._path)
        except OSError as problem:
            raise self.unwritable(problem) from None
        finally:
            self.partial.unlink(missing_ok=True)

    def close(self, close: Callable[[], object], kind: type[BaseException] | None) -> None:
        """Closes what has written, which may still fail, and ends as `__exit__` does."""
        try:
            close()
        except OSError as problem:
            self.__exit__(type(problem), problem, None)
            raise self.unwritable(problem) from None
        self.__exit__(kind, None, None)

    def unwritable(self, error: OSError) -> ConfigError:
        """What to raise when writing fails."""
        reason = error.strerror or error
        return ConfigError(f"{self._option}: {str(self._path)!r} cannot be written: {reason}")
