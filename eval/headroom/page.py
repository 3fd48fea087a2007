"""The page of `eval.headroom`: what was measured, as Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from eval.report import interval
from eval.statistics import LEVEL, Estimate
from eval.summary import Summary
from eval.verdict import is_below_zero

TUNING_PAYS = 0.05
"""Gain in J; the search itself is uncertain by 0.02 to 0.04."""

ADAPTING_PAYS = 0.02
"""Gain in J; between policies of the same search on the same seeds."""


@dataclass(frozen=True)
class Row:
    """One environment.

    Attributes:
        env: id.
        presets: J by name, best first.
        static, oracle: J of the settings found; None without regimes.
        tuning: J of the best static settings less that of the best preset, seed by seed.
        adapting: J of the oracle less that of the better of both; None without regimes.
        about: of the search; has the numbers of its plan.
        seeds: of the comparison.
        episodes, seconds: of the search; seconds of a core.
    """

    env: str
    presets: dict[str, Estimate]
    static: Estimate
    oracle: Estimate | None
    tuning: Estimate
    adapting: Estimate | None
    about: Mapping[str, Any]
    seeds: tuple[int, ...]
    episodes: int
    seconds: float

    @property
    def num_evaluated(self) -> int:
        """Episodes of the comparison."""
        return (len(self.presets) + 1 + (self.oracle is not None)) * len(self.seeds)

    @property
    def tuning_pays(self) -> bool:
        """By the page's rule."""
        return is_below_zero(self.tuning) and self.tuning.mean <= -TUNING_PAYS

    @property
    def adapting_pays(self) -> bool:
        """By the page's rule."""
        gain = self.adapting
        return gain is not None and is_below_zero(gain) and gain.mean <= -ADAPTING_PAYS


def make_row(
    env: str, summary: Summary, about: Mapping[str, Any], episodes: int, seconds: float
) -> Row:
    """Takes presets, `static:…` and, where regimes change, `oracle:…`."""
    scores = {row.policy: row.score for row in summary.rows}
    presets = {k.partition(":")[2]: v for k, v in scores.items() if k.startswith("preset:")}
    static = next(name for name in scores if name.startswith("static:"))
    oracle = next((name for name in scores if name.startswith("oracle:")), None)
    best = f"preset:{next(iter(presets))}"
    held = min(static, best, key=lambda name: scores[name].mean)
    return Row(
        env=env,
        presets=presets,
        static=scores[static],
        oracle=None if oracle is None else scores[oracle],
        tuning=summary.difference(static, best),
        adapting=None if oracle is None else summary.difference(oracle, held),
        episodes=episodes,
        seconds=seconds,
        about=about,
        seeds=summary.seeds,
    )


def as_page(rows: Sequence[Row], command: str, folder: str) -> str:
    """The whole page.

    Args:
        rows: in order.
        command: that made it.
        folder: with the settings found, relative to the page.
    """
    lines = [
        "# Headroom: what tuning and adapting can gain",
        "",
        f"Made by `{command}`; do not edit.",
        "",
        *_gains(rows, folder),
        "",
        *_legend(rows),
        "",
        "## J of every preset",
        "",
        *_presets(rows),
        "",
        "## Again, or on a scenario of your own",
        "",
        "```",
        f"{command}                 # goes on where it was interrupted",
        "python -m eval.evaluate --env RoCE/NoisyNeighbor-v0 --policies preset:default \\",
        f"    static:docs/{folder}/NoisyNeighbor.yaml --seeds 10000:10016 --out runs/eval/mine",
        "python -m eval.search my.yaml --budget 120 --out found.yaml",
        "```",
    ]
    return "\n".join(lines) + "\n"


def _gains(rows: Sequence[Row], folder: str) -> list[str]:
    lines = [
        "| id | best preset | best static settings | tuning gains | per-regime oracle | adapting "
        "gains | what pays |",
        "|:--|--:|--:|--:|--:|--:|:--|",
    ]
    for row in rows:
        best, score = next(iter(row.presets.items()))
        name = row.env.removeprefix("RoCE/").removesuffix("-v0")
        cells = [
            f"`{row.env}`",
            f"{best} {interval(score)}",
            f"{interval(row.static)} ([file]({folder}/{name}.yaml))",
            _gain(row.tuning),
            "–" if row.oracle is None else interval(row.oracle),
            "–" if row.adapting is None else _gain(row.adapting),
            _what_pays(row),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def _gain(difference: Estimate) -> str:
    """A lower J as a positive gain."""
    return interval(Estimate(-difference.mean, -difference.high, -difference.low), "+")


def _what_pays(row: Row) -> str:
    pays = ["tuning"] * row.tuning_pays + ["adapting"] * row.adapting_pays
    return " and ".join(pays) or "**neither**"


def _legend(rows: Sequence[Row]) -> list[str]:
    played = sum(row.episodes for row in rows)
    seconds = sum(row.seconds for row in rows)
    evaluated = sum(row.num_evaluated for row in rows)
    minutes = seconds * (1.0 + evaluated / max(played, 1)) / 60.0
    return [
        "J: weighted mean over tenants of ln(slowdown), plus the cost of PFC; lower is better "
        "(`roce_gym/score.py`). Means over unseen seeds from 10000 on; in brackets "
        f"{LEVEL:.0%} bootstrap intervals over seeds, those of gains from differences seed by "
        "seed.",
        "",
        "* **Best preset**: the best one on these very seeds, which favours presets.",
        "* **Best static settings**: found on training seeds: presets and a Latin hypercube, then "
        "CMA-ES, first with the same values for all tenants, then with all knobs free; the last "
        "ones of each stage meet again on more seeds. A larger budget may find better ones: what "
        "tuning gains is at least this.",
        "* **Per-regime oracle**: other settings in each regime, one regime searched after the "
        "other, switched in the interval in which a regime begins, which the oracle is told. No "
        "fair policy, but what it gains over the better of the two before is there to be gained "
        "by reacting; with more search it may be more. Only where regimes change in an episode.",
        f"* **What pays**: tuning if it gains {TUNING_PAYS} or more, adapting if it gains "
        f"{ADAPTING_PAYS} or more, and the whole interval lies above 0.",
        "",
        "What was spent, by option of the command:",
        "",
        "| id | `--budget` | `--regime-budget` | `--repeats` | `--confirm` | `--training-seeds` | "
        "`--num-seeds` |",
        "|:--|--:|--:|--:|--:|--:|--:|",
        *(_effort(row) for row in rows),
        "",
        f"Searches: {played:,} episodes; comparison: {evaluated:,}; together about {minutes:.0f} "
        "minutes of one core.",
    ]


_EFFORT = ("budget", "regime_budget", "repeats", "confirm", "training_seeds")


def _effort(row: Row) -> str:
    given = [row.about.get(name) for name in _EFFORT]
    cells = [*(str(value or "–") for value in given), str(len(row.seeds))]
    return f"| `{row.env}` | {' | '.join(cells)} |"


def _presets(rows: Sequence[Row]) -> list[str]:
    names = sorted({name for row in rows for name in row.presets})
    lines = [f"| id | {' | '.join(names)} |", f"|:--|{'--:|' * len(names)}"]
    for row in rows:
        cells = [interval(row.presets[name]) for name in names]
        lines.append(f"| `{row.env}` | {' | '.join(cells)} |")
    return [*lines, "", "`default` is what the scenario starts with."]
