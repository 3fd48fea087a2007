"""Plays settings on seeds, and remembers in a file what each episode scored.

The file is all there is to going on after an interruption: a search is deterministic, and what it
has played before costs nothing.
"""

from __future__ import annotations

import functools
import json
import multiprocessing
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agents.fixed import FixedSettings, RegimeOracle
from agents.settings_file import SettingsFile
from eval.episode import run_episode
from eval.progress import Counter
from roce_gym.env import RoceEnv
from roce_gym.errors import CheckpointError
from roce_gym.processes import interrupts_ignored, of_a_death
from roce_gym.reference import cache_key
from training.environment import EnvChoice

Key = tuple[str, str]
"""Fingerprint of the policy; key of simulator, scenario and seed."""


def as_policy(content: SettingsFile) -> FixedSettings | RegimeOracle:
    """What plays these settings."""
    return RegimeOracle("oracle", content) if content.regimes else FixedSettings("static", content)


def play(choice: EnvChoice, content: SettingsFile, seed: int) -> tuple[float, float]:
    """Score of an episode, and the seconds it took of a core."""
    begun = time.process_time()
    episode = run_episode(_env(choice), as_policy(content), seed)
    return episode.totals["score"], time.process_time() - begun


@functools.lru_cache(maxsize=1)
def _env(choice: EnvChoice) -> RoceEnv:
    return choice.make()


class Episodes:
    """Plays settings on seeds: use it in a `with` statement, and call it."""

    def __init__(self, choice: EnvChoice, log: Path, jobs: int, counter: Counter) -> None:
        """Reads the file, if there is one; lines that are damaged are played again."""
        self._choice, self._log, self._counter = choice, log, counter
        self._keys: dict[int, str] = {}
        self._known: dict[Key, float] = {}
        for row in _read(log):
            self._known[row["policy"], row["key"]] = row["score"]
        self._jobs = jobs
        self._pool: ProcessPoolExecutor | None = None
        if jobs > 1:
            context = multiprocessing.get_context("spawn")
            self._pool = ProcessPoolExecutor(jobs, mp_context=context)

    def __enter__(self) -> Episodes:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)

    def __call__(
        self, contents: Sequence[SettingsFile], seeds: Sequence[int]
    ) -> NDArray[np.float64]:
        """Scores, shape (contents, seeds).

        Raises:
            CheckpointError: a process ended unexpectedly.
        """
        policies = [as_policy(content).fingerprint for content in contents]
        pairs = [(i, seed) for i in range(len(contents)) for seed in seeds]
        todo = [(i, s) for i, s in pairs if (policies[i], self._key(s)) not in self._known]
        for _ in range(len(pairs) - len(todo)):
            self._counter.add()
        self._play([contents[i] for i, _ in todo], [seed for _, seed in todo])
        scores = [self._known[policies[i], self._key(seed)] for i, seed in pairs]
        return np.array(scores).reshape(len(contents), len(seeds))

    def _key(self, seed: int) -> str:
        if seed not in self._keys:
            self._keys[seed] = cache_key(self._choice.scenario(seed), seed)
        return self._keys[seed]

    def _play(self, contents: list[SettingsFile], seeds: list[int]) -> None:
        if not contents:
            return
        self._log.parent.mkdir(parents=True, exist_ok=True)
        with self._log.open("a", encoding="utf-8") as file:
            results = self._results(contents, seeds)
            for content, seed, (score, seconds) in zip(contents, seeds, results, strict=True):
                row: dict[str, Any] = {
                    "policy": as_policy(content).fingerprint,
                    "key": self._key(seed),
                    "seed": seed,
                    "score": score,
                    "seconds": round(seconds, 4),
                }
                file.write(
                    "\n" + json.dumps(row)
                )  # whatever a killed process left is a line of its own
                file.flush()
                self._known[row["policy"], row["key"]] = score
                self._counter.add(f"J {score:.3f}, seed {seed}")

    def _results(
        self, contents: list[SettingsFile], seeds: list[int]
    ) -> Iterator[tuple[float, float]]:
        """What :func:`play` returns, in order."""
        if self._pool is None:
            yield from map(play, [self._choice] * len(contents), contents, seeds)
            return
        futures: dict[Future[tuple[float, float]], str] = {}
        try:
            with interrupts_ignored():  # by its processes, which start here
                for content, seed in zip(contents, seeds, strict=True):
                    future = self._pool.submit(play, self._choice, content, seed)
                    policy = f"settings {as_policy(content).fingerprint[:12]}"
                    futures[future] = self._choice.describe_episode(policy, seed)
            for future in futures:
                yield future.result()
        except BrokenProcessPool:
            raise CheckpointError(
                f"{self._log}: {of_a_death(futures, self._jobs)}; finished episodes are kept, the "
                "same command goes on"
            ) from None


def spent(log: Path) -> tuple[int, float]:
    """Episodes in a file, and the seconds of a core that they took."""
    rows = _read(log)
    return len(rows), sum(row["seconds"] for row in rows)


def _read(log: Path) -> list[dict[str, Any]]:
    """All lines but damaged ones; nothing if there is no file."""
    if not log.exists():
        return []
    found = []
    for line in log.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            row = json.loads(line)
            found.append(
                {
                    "policy": str(row["policy"]),
                    "key": str(row["key"]),
                    "score": float(row["score"]),
                    "seconds": float(row["seconds"]),
                }
            )
        except (ValueError, TypeError, KeyError):
            continue
    return found
