"""Trains an agent for a few minutes and compares it with every preset: `python -m eval.demo`.

    OUT/summary.md       what came out, on a page
    OUT/table.md .csv    the table
    OUT/scores.png       scores with intervals
    OUT/timeline.png     queues, rates and pauses over time, of one seed
    OUT/model.zip        the agent: sb3:OUT/model.zip
    OUT/training, OUT/evaluation

An earlier demo in the same folder is replaced.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from agents.checkpoint import find_checkpoint, read_checkpoint
from agents.files import write_whole
from eval.command import INTERRUPTED
from eval.evaluate import Evaluation, evaluate
from eval.plots import draw_all
from eval.records import read_records
from eval.report import as_markdown, as_text, write_tables
from eval.summary import DEFAULT, Summary, summarize
from eval.verdict import verdict
from roce_gym.errors import ConfigError, RoceGymError
from roce_gym.presets import PRESETS
from training.args import Args, load_args
from training.environment import EVALUATION_SEEDS_FROM

_MARK = ".roce-gym-demo"

_QUICK_OVERRIDES = ("control.horizon_us=4000",)


@dataclass(frozen=True)
class Size:
    """How much the demo does."""

    args: Args
    num_seeds: int


def full_size() -> Size:
    """A few minutes."""
    return Size(load_args("demo"), 16)


def quick_size() -> Size:
    """A check that everything works: too short to learn much."""
    args = load_args("demo")
    short = replace(
        args,
        overrides=(*args.overrides, *_QUICK_OVERRIDES),
        num_envs=2,
        n_steps=20,
        batch_size=20,
        total_steps=2_400,
        layouts=8,
        checkpoint_every=1_200,
        max_minutes=0.5,
    )
    return Size(short, 8)


def run(size: Size, out: Path, jobs: int = 2) -> Summary:
    """Trains, evaluates, reports.

    Raises:
        ConfigError: the folder holds something else.
    """
    begun = time.monotonic()
    clear(out)
    from training.ppo import train  # imports PyTorch, which takes seconds

    _say("1/3 training an agent")
    if train(size.args, out / "training") == "interrupted":
        raise KeyboardInterrupt
    trained = time.monotonic()
    model = out / "model.zip"
    shutil.copyfile(find_checkpoint(out / "training"), model)
    steps = int(read_checkpoint(model).about["steps"])

    agent = f"sb3:{model}"
    evaluation = _evaluation(size, out, agent)
    _say(f"2/3 evaluating {len(evaluation.policies)} policies on {size.num_seeds} seeds")
    evaluate(evaluation, jobs)

    _say("3/3 tables and pictures")
    records = read_records(evaluation.out)
    summary = summarize(records)
    title = " ".join([size.args.env, *size.args.overrides])
    write_tables(summary, out, title)
    draw_all(evaluation.out)
    for picture in ("scores.png", "timeline.png"):
        shutil.copyfile(evaluation.out / picture, out / picture)
    page = _page(size, summary, agent, steps, trained - begun, time.monotonic() - trained)
    write_whole(out / "summary.md", page.encode())
    print(f"\n{as_text(summary)}")
    print("\n".join(verdict(summary, agent)))
    print(f"\n{time.monotonic() - begun:.0f} s; everything is in {out}, begin with summary.md")
    return summary


def _evaluation(size: Size, out: Path, agent: str) -> Evaluation:
    """Every preset once: the scenario's own is what `default` stands for."""
    own = size.args.choice.scenario(0).preset
    others = [f"preset:{name}" for name in sorted(PRESETS) if name != own]
    first = EVALUATION_SEEDS_FROM
    return Evaluation(
        size.args.choice,
        (DEFAULT, *others, "random", agent),
        tuple(range(first, first + size.num_seeds)),
        out / "evaluation",
    )


def clear(out: Path) -> None:
    """Deletes an earlier demo, and nothing else."""
    if out.exists() and any(out.iterdir()):
        if not (out / _MARK).is_file():
            raise ConfigError(f"out: {out} exists and is no demo; choose another folder")
        shutil.rmtree(out)
    write_whole(out / _MARK, b"")


def _page(
    size: Size, summary: Summary, agent: str, steps: int, training_s: float, rest_s: float
) -> str:
    """The page that tells what was done and what came out."""
    args = size.args
    length = f"{steps:,} steps"
    if steps < args.whole_steps:
        length += f" (of {args.whole_steps:,}: the time limit was reached)"
    lines = [
        "# Demo",
        "",
        f"Scenario: {' '.join([args.env, *args.overrides])}.",
        f"The agent (PPO) was trained for {length} in {training_s:.0f} s on layouts "
        f"0 … {args.layouts - 1}, starting from the default settings. Then it, every preset and a "
        f"random policy played seeds {summary.seeds[0]} … {summary.seeds[-1]}, none of which it "
        f"had seen ({rest_s:.0f} s).",
        "",
        "## Result",
        "",
        *verdict(summary, agent),
        "",
        as_markdown(summary),
        "![scores](scores.png)",
        "",
        "![queues, rates and pauses over time](timeline.png)",
        "",
        "## To go on",
        "",
        "```",
        "python -m training.ppo --config noisy_neighbor          # longer training",
        f"python -m eval.evaluate --env {args.env} --policies preset:default {agent} \\",
        "    --seeds 10000:10032 --out runs/eval/mine",
        "python -m eval.report runs/eval/mine",
        "```",
    ]
    return "\n".join(lines) + "\n"


def _say(text: str) -> None:
    print(f"== {text}", file=sys.stderr, flush=True)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the demo; exit code 0: done, 2: refused, 130: interrupted."""
    summary, _, files = (__doc__ or "").partition("\n\n")
    parser = argparse.ArgumentParser(
        prog="python -m eval.demo",
        description=summary,
        epilog=files,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--quick", action="store_true", help="a check that everything works")
    parser.add_argument("--out", type=Path, default=Path("runs/demo"), help="runs/demo")
    arguments = parser.parse_args(argv)
    try:
        run(quick_size() if arguments.quick else full_size(), arguments.out)
    except RoceGymError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\ninterrupted; the demo begins anew next time", file=sys.stderr)
        return INTERRUPTED
    return 0


if __name__ == "__main__":
    sys.exit(main())
