r"""Plays policies on seeds and keeps a record of each episode: `python -m eval.evaluate --help`.

    python -m eval.evaluate --env RoCE/NoisyNeighbor-v0 \
        --policies preset:default preset:pfc_only random sb3:runs/mine \
        --seeds 10000:10016 --out runs/eval/mine
    python -m eval.report runs/eval/mine

The same command goes on after an interruption, and plays only what is missing or out of date.
"""

from __future__ import annotations

import argparse
import functools
import multiprocessing
import sys
from collections.abc import Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path

from agents.policy import Policy
from agents.registry import allowed_policies, make_policy
from eval.command import count, run_resumable
from eval.episode import run_episode
from eval.progress import Counter
from eval.records import Record, claim, read_record, record_path, write_record
from roce_gym.env import RoceEnv
from roce_gym.errors import CheckpointError, ConfigError
from roce_gym.processes import interrupts_ignored, of_a_death
from roce_gym.reference import cache_key
from training.environment import EVALUATION_SEEDS_FROM, EnvChoice, warm_up

Todo = list[tuple[str, int]]
"""Policies and seeds."""


@dataclass(frozen=True)
class Evaluation:
    """What to evaluate.

    Attributes:
        choice: the environment.
        policies: see :func:`agents.registry.make_policy`.
        seeds: of episodes.
        out: folder for records.
    """

    choice: EnvChoice
    policies: tuple[str, ...]
    seeds: tuple[int, ...]
    out: Path


def evaluate(evaluation: Evaluation, jobs: int = 2) -> None:
    """Plays what is missing.

    Args:
        evaluation: what to do.
        jobs: processes.

    Raises:
        ConfigError: unknown policy or environment, or the folder holds something else.
        CheckpointError: a learned policy cannot be loaded or does not fit.
    """
    env = evaluation.choice.make()
    fingerprints = {}
    for spec in evaluation.policies:
        policy = make_policy(spec)
        policy.check(env)
        fingerprints[spec] = policy.fingerprint
    claim(evaluation.out, evaluation.choice)
    todo = _find_missing(evaluation, fingerprints)
    total = len(evaluation.policies) * len(evaluation.seeds)
    if len(todo) < total:
        print(f"{total - len(todo)} of {total} records are there already", file=sys.stderr)
    if todo:
        warm_up(evaluation.choice)
        _play_all(evaluation, todo, min(jobs, len(todo)))


def _find_missing(evaluation: Evaluation, fingerprints: dict[str, str]) -> Todo:
    """What to play: all of one policy first, so that no two processes meet at a new seed."""
    keys = {s: cache_key(evaluation.choice.scenario(s), s) for s in evaluation.seeds}
    todo: Todo = []
    for spec in evaluation.policies:
        for seed in evaluation.seeds:
            path = record_path(evaluation.out, spec, seed)
            reason = "" if path.exists() else "missing"
            if not reason:
                try:
                    record = read_record(path)
                    if (record.key, record.fingerprint) != (keys[seed], fingerprints[spec]):
                        reason = f"{path}: made with another simulator, scenario or policy"
                except CheckpointError as error:
                    reason = str(error)
                if reason:
                    print(f"warning: {reason}; is done again", file=sys.stderr)
            if reason:
                todo.append((spec, seed))
    return todo


def _play_all(evaluation: Evaluation, todo: Todo, jobs: int) -> None:
    context = multiprocessing.get_context("spawn")
    counter = Counter("episodes", len(todo))
    pool = ProcessPoolExecutor(jobs, mp_context=context)
    futures: dict[Future[str], str] = {}
    try:
        with interrupts_ignored():
            for spec, seed in todo:
                future = pool.submit(play, evaluation.choice, spec, seed, evaluation.out)
                futures[future] = evaluation.choice.describe_episode(spec, seed)
        for future in as_completed(futures):
            counter.add(future.result())
    except BrokenProcessPool:
        raise CheckpointError(
            f"{evaluation.out}: {of_a_death(futures, jobs)}; finished records are kept, the same "
            "command goes on"
        ) from None
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def play(choice: EnvChoice, spec: str, seed: int, out: Path) -> str:
    """Plays one episode and writes its record; returns a line about it."""
    env, policy = _env(choice), _policy(spec)
    episode = run_episode(env, policy, seed)
    key = cache_key(env.scenario, seed)
    write_record(out, Record(spec, policy.fingerprint, seed, key, episode))
    return f"{spec}, seed {seed}: J {episode.totals['score']:.3f}"


@functools.lru_cache(maxsize=1)
def _env(choice: EnvChoice) -> RoceEnv:
    return choice.make()


@functools.lru_cache(maxsize=8)
def _policy(spec: str) -> Policy:
    return make_policy(spec)


def parse_seeds(text: str) -> tuple[int, ...]:
    """Seeds as `10000:10008` (the last one excluded), single ones, or several with commas.

    Raises:
        ConfigError: not of this form, none, or some twice.
    """
    seeds: list[int] = []
    for part in text.split(","):
        first, colon, last = part.strip().partition(":")
        try:
            seeds += range(int(first), int(last)) if colon else [int(first)]
        except ValueError:
            raise ConfigError(
                f"seeds: {text!r} is not allowed; allowed: 10000:10008, or 10000,10003"
            ) from None
    if not seeds or min(seeds) < 0 or len(set(seeds)) < len(seeds):
        raise ConfigError(f"seeds: {text!r} gives none, negative ones, or some twice")
    return tuple(seeds)


def main(argv: Sequence[str] | None = None) -> int:
    """Evaluates; exit code 0: done, 2: refused, 130: interrupted."""
    arguments = _parser().parse_args(argv)

    def work() -> str:
        evaluate(_checked(arguments), arguments.jobs)
        return f"done; for tables: python -m eval.report {arguments.out}"

    return run_resumable(work)


def _checked(arguments: argparse.Namespace) -> Evaluation:
    seeds = parse_seeds(arguments.seeds)
    if min(seeds) < EVALUATION_SEEDS_FROM and not arguments.any_seeds:
        raise ConfigError(
            f"seeds: {min(seeds)} is not allowed; allowed: {EVALUATION_SEEDS_FROM} and above, as "
            "agents are trained on lower ones (--any-seeds turns this check off)"
        )
    choice = EnvChoice(arguments.env, tuple(arguments.overrides))
    policies = tuple(dict.fromkeys(arguments.policies))
    return Evaluation(choice, policies, seeds, arguments.out)


def _parser() -> argparse.ArgumentParser:
    summary, _, usage = (__doc__ or "").partition("\n\n")
    parser = argparse.ArgumentParser(
        prog="python -m eval.evaluate",
        description=summary,
        epilog=usage,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--env", required=True, help="environment id, scenario, or scenario file")
    parser.add_argument(
        "--overrides", nargs="+", default=[], help="changes to the scenario, dotted.path=value"
    )
    parser.add_argument("--policies", nargs="+", required=True, help=allowed_policies())
    parser.add_argument("--seeds", default="10000:10016", help="default: 10000:10016")
    parser.add_argument("--any-seeds", action="store_true", help="also seeds that were trained on")
    parser.add_argument("--out", type=Path, required=True, help="folder for records")
    parser.add_argument("--jobs", type=count, default=2, help="processes (2)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
