"""Worker processes: Ctrl-C, and what is said when one dies."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any


@contextmanager
def interrupts_ignored() -> Iterator[None]:
    """Processes started meanwhile ignore Ctrl-C for good: their parent tells them when to end."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def of_a_death(tasks: Mapping[Future[Any], str], processes: int) -> str:
    """Says that a process ended unexpectedly, and what was under way then.

    Nothing tells which process had which task. But tasks begin in the order in which they are
    submitted, so that those under way are among the first that have no result, one a process.

    Args:
        tasks: what to call each, in the order in which they were submitted.
        processes: of the pool.
    """
    under_way = [name for future, name in tasks.items() if not _has_result(future)][:processes]
    return f"a process ended unexpectedly (out of memory?); under way: {'; '.join(under_way)}"


def _has_result(future: Future[Any]) -> bool:
    return future.done() and not future.cancelled() and future.exception() is None
