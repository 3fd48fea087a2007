"""Several environments at once: a pool of threads, since the simulator releases the GIL."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeAlias, TypeVar, cast

import gymnasium

from roce_gym.errors import RoceGymError
from roce_gym.options import check_limit
from roce_gym.parts import Parts

T = TypeVar("T")

_Outcome: TypeAlias = tuple[T | None, Exception | None]


class Batch:
    """Runs the same task for each of several environments.

    Results do not depend on the number of threads: an environment shares nothing with others but
    caches of what can be computed again.

    Attributes:
        envs: the environments; they may be wrapped.
        threads: how many work at once.
    """

    def __init__(self, envs: Sequence[gymnasium.Env[Any, Any]], threads: int | None = None) -> None:
        """Starts no thread yet.

        Raises:
            ConfigError: `threads` is neither None (as many as there are cores) nor a whole number
                above 0.
        """
        limit = check_limit("threads", threads)
        self.envs = list(envs)
        self.threads = min(len(self.envs), num_cores() if limit is None else limit)
        self._pool: ThreadPoolExecutor | None = None

    def each(self, task: Callable[[int], T], indices: Iterable[int] | None = None) -> list[T]:
        """Calls `task(i)` for the environments of these indices, or for all; results in order.

        All tasks come to an end, even if one of them fails.

        Raises:
            Exception: of the first environment that failed, with its number, scenario and seed: in
                the message of this package's and of Gymnasium's errors, in a note to others.
        """
        chosen = list(range(len(self.envs)) if indices is None else indices)
        return self._results(self._map(lambda i: _attempt(lambda: task(i)), chosen))

    def each_in_parts(self, task: Callable[[int], Parts[T]]) -> list[T]:
        """As :meth:`each`, of tasks in parts, for all environments.

        What tasks do between their parts is done in this thread, one after the other; then all next
        parts are done by all threads. Where Python code of several threads is under way at a time,
        they take the GIL, and its data, from one another again and again, which costs more than
        waiting for each other.
        """
        tasks = {i: task(i) for i in range(len(self.envs))}
        before: dict[int, _Outcome[Any]] = dict.fromkeys(tasks, (None, None))
        done: dict[int, _Outcome[T]] = {}
        while before:
            parts: dict[int, Callable[[], Any]] = {}
            for i, (value, error) in before.items():
                try:
                    parts[i] = tasks[i].send(value) if error is None else tasks[i].throw(error)
                except StopIteration as end:
                    done[i] = (end.value, None)
                except Exception as failure:
                    done[i] = (None, failure)
            before = self._map(lambda i: _attempt(parts[i]), parts)  # noqa: B023 (ends at once)
        return self._results({i: done[i] for i in tasks})

    def _results(self, outcomes: dict[int, _Outcome[T]]) -> list[T]:
        for i, (_, error) in outcomes.items():
            if error is not None:
                raise self.located(i, error)
        return [cast(T, value) for value, _ in outcomes.values()]

    def located(self, i: int, error: Exception) -> Exception:
        """The same error, with the environment that it comes from."""
        env: Any = self.envs[i].unwrapped
        where = f"environment {i} (scenario {env.scenario.name!r}, seed {env.episode_seed})"
        if isinstance(error, RoceGymError | gymnasium.error.Error):
            return type(error)(f"{where}: {error}").with_traceback(error.__traceback__)
        error.add_note(f"in {where}")
        return error

    def close(self) -> None:
        """Closes all environments and ends the threads; may be called again."""
        for env in self.envs:
            env.close()
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None

    def _map(
        self, function: Callable[[int], _Outcome[T]], indices: Iterable[int]
    ) -> dict[int, _Outcome[T]]:
        """Results by index, in order; this thread works, too."""
        found: dict[int, _Outcome[T]] = dict.fromkeys(indices, (None, None))
        left = iter(list(found))  # one for all: each index goes to the first that asks for it

        def work() -> None:
            for i in left:
                found[i] = function(i)

        helpers = min(self.threads, len(found)) - 1
        if helpers > 0 and self._pool is None:
            self._pool = ThreadPoolExecutor(self.threads - 1, thread_name_prefix="roce-gym")
        futures = [self._pool.submit(work) for _ in range(helpers)] if self._pool else []
        work()
        for future in futures:
            future.result()
        return found

    def __getstate__(self) -> dict[str, Any]:
        """For pickle and copy: all but the threads."""
        return vars(self) | {"_pool": None}


def num_cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _attempt(function: Callable[[], T]) -> _Outcome[T]:
    try:
        return function(), None
    except Exception as error:
        return None, error
