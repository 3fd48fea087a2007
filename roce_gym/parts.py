"""Tasks in parts, so that what takes long can run beside that of other tasks.

A task is a generator: it yields functions without arguments, its *parts*, each of which may run in
any thread, and is sent what they return, or thrown what they raise. What it does in between runs in
the thread that drives it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, TypeAlias, TypeVar

T = TypeVar("T")

Parts: TypeAlias = Generator[Callable[[], Any], Any, T]


def run_in_turn(task: Parts[T]) -> T:
    """Runs a task by itself, in this thread; what a part raises, the task is told.

    Raises:
        Exception: of the task, or of a part, if the task does nothing about it.
    """
    go_on: Callable[[Any], Callable[[], Any]] = task.send
    value: Any = None
    while True:
        try:
            part = go_on(value)
        except StopIteration as end:
            result: T = end.value
            return result
        try:
            go_on, value = task.send, part()
        except Exception as error:
            go_on, value = task.throw, error
