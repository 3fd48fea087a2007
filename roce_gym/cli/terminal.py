"""What a command shows on stderr while it works, and how it is interrupted."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any, TypeVar

T = TypeVar("T")

_SILENT_S = 1.0
_TERMINAL_PERIOD_S = 0.2
_FILE_PERIOD_S = 10.0


class Ticker:
    """A line on stderr that is renewed; in a log file, a new line now and then."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._is_terminal = sys.stderr.isatty()
        self._next = self._began + _SILENT_S
        self._width = 0

    def show(self, text: str) -> None:
        """Shows a text and the seconds that have passed, if it is time to."""
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + (_TERMINAL_PERIOD_S if self._is_terminal else _FILE_PERIOD_S)
        line = f"roce-gym: {text}, {now - self._began:.0f} s"
        if self._is_terminal:
            print(f"\r{line.ljust(self._width)}", end="", file=sys.stderr, flush=True)
            self._width = len(line)
        else:
            print(line, file=sys.stderr, flush=True)

    def clear(self) -> None:
        """Removes the line from a terminal."""
        if self._width:
            print(f"\r{' ' * self._width}\r", end="", file=sys.stderr, flush=True)
            self._width = 0


class Interrupts:
    """Turns the first Ctrl-C into a flag, once `armed`; any other ends the program.

    Attributes:
        armed: whether there is something worth reporting.
        hit: whether Ctrl-C was pressed.
    """

    def __init__(self) -> None:
        self.armed = False
        self.hit = False
        self._before: Any = None

    def __enter__(self) -> Interrupts:
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, self._handle)
        return self

    def _handle(self, _number: int, _frame: FrameType | None) -> None:
        if self.hit or not self.armed:
            raise KeyboardInterrupt
        self.hit = True

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)


def wait_for(function: Callable[[], T], ticker: Ticker, text: str) -> T:
    """What a function returns; Ctrl-C is heard while it computes, and it is then left behind."""
    results: list[T] = []
    errors: list[BaseException] = []

    def work() -> None:
        try:
            results.append(function())
        except BaseException as error:  # handed over to the caller
            errors.append(error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(0.05)
        ticker.show(text)
    if errors:
        raise errors[0]
    return results[0]
