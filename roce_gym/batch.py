"""Several environments at once: a pool of threads, since the simulator releases the GIL."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import gymnasium

from roce_gym.errors import ConfigError, RoceGymError

T = TypeVar("T")


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
            ConfigError: `threads` is neither None (as many as there are cores) nor at least 1.
        """
        if threads is not None and (isinstance(threads, bool) or not threads >= 1):
            raise ConfigError(f"threads = {threads!r} is not allowed; allowed: None, 1 and above")
        self.envs = list(envs)
        self.threads = min(len(self.envs), int(threads) if threads is not None else num_cores())
        self._pool: ThreadPoolExecutor | None = None

    def each(self, task: Callable[[int], T], indices: Iterable[int] | None = None) -> list[T]:
        """Calls `task(i)` for the environments of these indices, or for all; results in order.

        All tasks come to an end, even if one of them fails.

        Raises:
            Exception: of the first environment that failed, with its number, scenario and seed: in
                the message of this package's and of Gymnasium's errors, in a note to others.
        """
        chosen = list(range(len(self.envs)) if indices is None else indices)
        outcomes = list(self._map(lambda i: _attempt(task, i), chosen))
        for i, (_, error) in zip(chosen, outcomes, strict=True):
            if error is not None:
                raise self.located(i, error)
        return [result for result, _ in outcomes]

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

    def _map(self, function: Callable[[int], Any], indices: list[int]) -> Iterable[Any]:
        if self.threads == 1 or len(indices) == 1:
            return map(function, indices)
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self.threads, thread_name_prefix="roce-gym")
        return self._pool.map(function, indices)

    def __getstate__(self) -> dict[str, Any]:
        """For pickle and copy: all but the threads."""
        return vars(self) | {"_pool": None}


def num_cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _attempt(task: Callable[[int], T], i: int) -> tuple[T | None, Exception | None]:
    try:
        return task(i), None
    except Exception as error:
        return None, error
