"""Tasks in parts, so that what takes long can run beside that of other tasks.

A task is a generator: it yields functions without arguments, its *parts*, each of which may run in
any thread, and is sent what they return. What it does in between runs in the thread that drives it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, TypeAlias, TypeVar

T = TypeVar("T")

Parts: TypeAlias = Generator[Callable[[], Any], Any, T]


def run_in_turn(task: Parts[T]) -> T:
    """Runs a task by itself, in this thread.

    Raises:
        Exception: of the task, or of a part.
    """
    result = None
    while True:
        try:
            part = task.send(result)
        except StopIteration as end:
            value: T = end.value
            return value
        result = part()
