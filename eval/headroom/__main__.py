r"""Measures what there is to gain in each environment over the presets.

    python -m eval.headroom                       # all ids, then docs/headroom.md
    python -m eval.headroom RoCE/RegimeShift-v0   # one of them

For each id: searches settings on training seeds (eval.search), plays all presets and what it found
on others, and writes a page with all ids that have been measured so far. The same command goes on
after an interruption.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path

from agents.files import write_whole
from agents.preset import preset_names
from agents.registry import make_policy
from agents.settings_file import read_settings
from eval.command import run_resumable
from eval.evaluate import Evaluation, evaluate
from eval.headroom.page import Row, as_page, make_row
from eval.records import read_records
from eval.search.__main__ import log_of, search
from eval.search.episodes import spent
from eval.search.plan import SearchPlan
from eval.summary import summarize
from roce_gym.registration import ENVIRONMENTS
from training.environment import EVALUATION_SEEDS_FROM, EnvChoice

IDS = tuple(ENVIRONMENTS)

COMMAND = "python -m eval.headroom"


@dataclass(frozen=True)
class Size:
    """How much is done for each id."""

    budget: int = 120
    regime_budget: int = 40
    repeats: int = 3
    confirm: int = 8
    training_seeds: int = 24
    num_seeds: int = 12

    def plan(self, env: str) -> SearchPlan:
        """The search for an environment; training seeds."""
        return SearchPlan(
            EnvChoice(env),
            tuple(range(self.training_seeds)),
            self.budget,
            self.regime_budget,
            self.repeats,
            self.confirm,
        )

    @property
    def seeds(self) -> tuple[int, ...]:
        """Of the comparison."""
        return tuple(range(EVALUATION_SEEDS_FROM, EVALUATION_SEEDS_FROM + self.num_seeds))


_SIZE_HELP = {
    "budget": "settings tried",
    "regime_budget": "settings tried for each regime",
    "repeats": "training seeds for each of them",
    "confirm": "training seeds for the last ones of a stage",
    "training_seeds": "how many there are",
    "num_seeds": "unseen seeds of the comparison",
}


def measure(env: str, size: Size, out: Path, jobs: int = 1) -> None:
    """Searches and evaluates what is missing for an environment.

    Raises:
        ConfigError: unknown environment, or the folder holds something else.
        CheckpointError: a process ended unexpectedly.
    """
    folder = folder_of(env, out)
    settings = folder / "settings.yaml"
    search(size.plan(env), settings, jobs)
    evaluation = Evaluation(
        EnvChoice(env), policies_of(settings), size.seeds, folder / "evaluation"
    )
    evaluate(evaluation, jobs)


def folder_of(env: str, out: Path) -> Path:
    """Where everything about an environment lies."""
    return out / short_name(env)


def short_name(env: str) -> str:
    """`RegimeShift` of `RoCE/RegimeShift-v0`."""
    return Path(env).stem.removesuffix("-v0")


def policies_of(settings: Path) -> tuple[str, ...]:
    """Presets, and what a file offers."""
    found = [f"static:{settings}"]
    if read_settings(settings).regimes:
        found.append(f"oracle:{settings}")
    return (*(f"preset:{name}" for name in preset_names()), *found)


def row_of(env: str, out: Path) -> Row | None:
    """What was measured; None if that is not finished."""
    folder = folder_of(env, out)
    settings = folder / "settings.yaml"
    if not settings.exists() or not (folder / "evaluation" / "records").exists():
        return None
    wanted = {make_policy(spec).fingerprint for spec in policies_of(settings)}
    records = [r for r in read_records(folder / "evaluation") if r.fingerprint in wanted]
    if {record.fingerprint for record in records} != wanted:
        return None
    about = read_settings(settings).about
    return make_row(env, summarize(records), about, *spent(log_of(settings)))


def write_page(envs: Sequence[str], out: Path, page: Path) -> None:
    """Writes the page, and beside it a folder with the settings that were found."""
    rows = [(env, row_of(env, out)) for env in envs]
    done = [row for _, row in rows if row is not None]
    for env, row in rows:
        if row is not None:
            content = (folder_of(env, out) / "settings.yaml").read_bytes()
            write_whole(page.with_suffix("") / f"{short_name(env)}.yaml", content)
    write_whole(page, as_page(done, COMMAND, page.stem).encode())


def main(argv: Sequence[str] | None = None) -> int:
    """Measures; exit code 0: done, 2: refused, 130: interrupted."""
    arguments = _parser().parse_args(argv)
    size = Size(**{field.name: getattr(arguments, field.name) for field in fields(Size)})

    def work() -> str:
        for env in () if arguments.only_page else arguments.envs or IDS:
            print(f"== {env}", file=sys.stderr, flush=True)
            measure(env, size, arguments.out, arguments.jobs)
            write_page(IDS, arguments.out, arguments.page)
        write_page(IDS, arguments.out, arguments.page)
        return f"done: {arguments.page}"

    return run_resumable(work)


def _parser() -> argparse.ArgumentParser:
    summary, _, usage = (__doc__ or "").partition("\n\n")
    parser = argparse.ArgumentParser(
        prog=COMMAND,
        description=summary,
        epilog=usage,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("envs", nargs="*", metavar="env", help=f"ids ({', '.join(IDS)})")
    for field in fields(Size):
        name, default = field.name.replace("_", "-"), field.default
        what = f"{_SIZE_HELP[field.name]} ({default})"
        parser.add_argument(f"--{name}", type=int, default=default, metavar="N", help=what)
    parser.add_argument("--only-page", action="store_true", help="of what has been measured")
    parser.add_argument("--out", type=Path, default=Path("runs/headroom"), help="runs/headroom")
    parser.add_argument(
        "--page", type=Path, default=Path("docs/headroom.md"), help="docs/headroom.md"
    )
    parser.add_argument(
        "--jobs", type=int, default=1, choices=range(1, 65), metavar="N", help="processes (1)"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
