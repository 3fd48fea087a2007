"""Many runs: those that are known from disk, the others in several processes."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from typing import Any

from roce_gym.blame.runs import Task, Times, load_times, run_task, save_times
from roce_gym.errors import SimulationError
from roce_gym.fabric import Fabric
from roce_gym.processes import interrupts_ignored

_LOOK_S = 0.2

Report = Callable[[int, int], None]
"""Is told how many runs are done, of how many; now and then also when nothing has changed."""


def run_tasks(
    tasks: Sequence[Task],
    processes: int = 1,
    report: Report = lambda done, total: None,
) -> list[Times]:
    """Times of all tasks, in their order; the same whatever the number of processes.

    An interrupt ends it at once; what was finished stays on disk, so that the same call goes on.

    Raises:
        SimulationError: a process died.
    """
    found: dict[int, Times] = {}
    for number, task in enumerate(tasks):
        known = load_times(task)
        if known is not None:
            found[number] = known
    missing = [number for number in range(len(tasks)) if number not in found]
    if not all(tasks[number].can_be_named for number in missing):
        processes = 1  # functions in memory do not travel
    run = _run_here if min(processes, len(missing)) <= 1 else _run_in_processes
    report(len(found), len(tasks))
    for number, times in run(tasks, missing, processes, lambda: report(len(found), len(tasks))):
        save_times(tasks[number], times)
        found[number] = times
        report(len(found), len(tasks))
    return [found[number] for number in range(len(tasks))]


def _run_here(
    tasks: Sequence[Task], missing: list[int], _processes: int, tick: Callable[[], None]
) -> Iterator[tuple[int, Times]]:
    def is_stopped() -> bool:
        tick()
        return False

    for number in missing:
        times = run_task(tasks[number], is_stopped)
        assert times is not None
        yield number, times


def _run_in_processes(
    tasks: Sequence[Task], missing: list[int], processes: int, tick: Callable[[], None]
) -> Iterator[tuple[int, Times]]:
    _compile(tasks[missing[0]])
    context = multiprocessing.get_context("spawn")
    stop = context.Event()
    pool = ProcessPoolExecutor(
        min(processes, len(missing)), context, initializer=_begin, initargs=(stop,)
    )
    try:
        with interrupts_ignored():
            waiting: dict[Future[Times | None], int] = {
                pool.submit(_run_there, tasks[number]): number for number in missing
            }
        while waiting:
            done, _ = wait(waiting, timeout=_LOOK_S, return_when=FIRST_COMPLETED)
            tick()
            for future in done:
                times = future.result()
                assert times is not None
                yield waiting.pop(future), times
    except BrokenProcessPool:
        raise SimulationError(
            "a process ended unexpectedly (out of memory?); finished runs are remembered"
        ) from None
    finally:
        stop.set()
        pool.shutdown(wait=True, cancel_futures=True)


def _compile(task: Task) -> None:
    """Here and once, so that all processes find the kernel on disk."""
    Fabric(task.scenario, task.seed, only_tenant=task.only, without_tenant=task.without).advance(
        ps=1
    )


_stop: Any = None


def _begin(stop: Any) -> None:
    """In each process, before its first task."""
    global _stop
    _stop = stop
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _run_there(task: Task) -> Times | None:
    return run_task(task, _stop.is_set)
