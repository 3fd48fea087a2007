r"""Searches settings that score low on average over training episodes.

    python -m eval.search RoCE/RegimeShift-v0 --budget 120 --regime-budget 48 --out mine.yaml
    python -m eval.evaluate --env RoCE/RegimeShift-v0 --out runs/eval/mine \
        --policies preset:default static:mine.yaml oracle:mine.yaml

Presets and a Latin hypercube are tried first, then CMA-ES goes on from the best. With
--regime-budget, settings are also searched for each regime of scenarios in which something comes
and goes. Episodes played so far are kept beside the file; the same command goes on after an
interruption.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from agents.settings_file import read_settings, write_settings
from eval.command import run_resumable
from eval.evaluate import parse_seeds
from eval.search.plan import Search, SearchPlan
from roce_gym.errors import ConfigError
from training.environment import EVALUATION_SEEDS_FROM, EnvChoice, warm_up


def search(plan: SearchPlan, out: Path, jobs: int = 1) -> None:
    """Searches, and writes what it found.

    Raises:
        ConfigError: the plan is not acceptable, or the file exists and is something else.
        CheckpointError: a process ended unexpectedly.
    """
    one = Search(plan)
    if out.exists():
        read_settings(out)  # refuses to replace anything else
    warm_up(plan.choice)
    write_settings(out, one.run(log_of(out), jobs), one.knobs)


def log_of(out: Path) -> Path:
    """Where the episodes of a search are kept."""
    return out.with_name(f"{out.name}.episodes.jsonl")


def main(argv: Sequence[str] | None = None) -> int:
    """Searches; exit code 0: done, 2: refused, 130: interrupted."""
    arguments = _parser().parse_args(argv)

    def work() -> str:
        search(_checked(arguments), arguments.out, arguments.jobs)
        found = arguments.out
        return f"done: {found}; to compare: eval.evaluate --policies static:{found}"

    return run_resumable(work)


def _checked(arguments: argparse.Namespace) -> SearchPlan:
    seeds = parse_seeds(arguments.seeds)
    if max(seeds) >= EVALUATION_SEEDS_FROM:
        raise ConfigError(
            f"seeds: {max(seeds)} is not allowed; allowed: below {EVALUATION_SEEDS_FROM}, as "
            "others are for evaluation"
        )
    return SearchPlan(
        EnvChoice(arguments.env, tuple(arguments.overrides)),
        seeds,
        arguments.budget,
        arguments.regime_budget,
        arguments.repeats,
        arguments.confirm,
        arguments.random_seed,
    )


def _parser() -> argparse.ArgumentParser:
    summary, _, usage = (__doc__ or "").partition("\n\n")
    parser = argparse.ArgumentParser(
        prog="python -m eval.search",
        description=summary,
        epilog=usage,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("env", help="environment id, scenario, or scenario file")
    parser.add_argument("--overrides", nargs="+", default=[], help="as in eval.evaluate")
    parser.add_argument("--budget", type=int, default=120, help="settings tried (120)")
    parser.add_argument(
        "--regime-budget", type=int, default=0, help="settings tried for each regime (0: none)"
    )
    parser.add_argument("--repeats", type=int, default=3, help="seeds for each setting (3)")
    parser.add_argument("--confirm", type=int, default=8, help="seeds for the last settings (8)")
    parser.add_argument("--seeds", default="0:24", help="training seeds to take them from (0:24)")
    parser.add_argument("--random-seed", type=int, default=0, help="of the search itself (0)")
    parser.add_argument("--out", type=Path, required=True, help="file for what it finds")
    parser.add_argument(
        "--jobs", type=int, default=1, choices=range(1, 65), metavar="N", help="processes (1)"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
