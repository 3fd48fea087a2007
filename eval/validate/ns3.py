"""Repeats the runs of an ns-3 reference and compares results."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

from eval.validate.ns3_compare import Comparer, Row, seed_groups
from eval.validate.ns3_limits import Draws, kind_of
from eval.validate.ns3_reference import TABLE, read_references
from eval.validate.ns3_report import as_json, as_table, default_rules, heading, summary
from eval.validate.ns3_run import Task, run_tasks
from eval.validate.ns3_scenario import Case, build_case
from eval.validate.ns3_table import write_table
from eval.validate.ns3_types import Reference, Results
from roce_gym.errors import ConfigError

REPORT = Path("runs/validate/ns3.json")
SEEDS = 20
_LOSSY_FACTOR = 2  # losses are few: it takes more seeds for a sharp mean
_LEAST_REPEATS = 10


class _Run(NamedTuple):
    """Tells the runs of a group apart.

    Attributes:
        rules: as in the reference, with the draws in question, or the simulator's defaults.
        seed: of the generator drawn from.
    """

    rules: Draws | Literal["default"]
    seed: int = 0


@dataclass(frozen=True)
class _Group:
    """Variants of a scenario that differ in their seed only.

    Attributes:
        reference: their scenario.
        variants: their names.
        case: their run, without draws.
        seeds: of ours, where draws are our own.
    """

    reference: Reference
    variants: list[str]
    case: Case
    seeds: int

    def tasks(self) -> dict[_Run, Task]:
        """All runs that the comparison needs."""
        case = self.case
        if not case.draws:
            default = case.with_default_rules()
            return {_Run("none"): Task(case, 0), _Run("default"): Task(default, 0)}
        runs = {_Run("own", seed): Task(case, seed) for seed in range(self.seeds)}
        for seed in self._same_seeds():
            runs[_Run("same", seed)] = Task(case.with_draws_of(seed), 0)
        return runs

    def _same_seeds(self) -> list[int]:
        """Seeds of the reference's generator to run with; its draws for losses are not known."""
        if self.case.loses_at_random:
            return []
        repeats = range(1, _num_repeats(self.seeds) + 1)
        return sorted({*repeats, *(self._seed(variant) for variant in self.variants)})

    def _seed(self, variant: str) -> int:
        return self.reference.parameters[variant].seed

    def rows(self, ours: dict[_Run, Results]) -> list[Row]:
        """The comparison, with results of all tasks."""
        if not self.case.draws:
            return self._rows("none", self.variants[:1], [ours[_Run("none")]])
        rows = []
        repeats = [result for run, result in ours.items() if run.rules == "same"]
        if repeats:
            for variant in self.variants:
                same = ours[_Run("same", self._seed(variant))]
                rows += self._rows("same", [variant], [same], repeats)
        own = [result for run, result in ours.items() if run.rules == "own"]
        return rows + self._rows("own", self.variants, own, repeats)

    def default_rows(self, ours: dict[_Run, Results]) -> list[Row]:
        """The comparison under the default rules, where nothing is random."""
        if self.case.draws:
            return []
        return self._rows("none", self.variants[:1], [ours[_Run("default")]])

    def _rows(
        self,
        draws: Draws,
        variants: list[str],
        ours: Sequence[Results],
        repeats: Sequence[Results] = (),
    ) -> list[Row]:
        kind = kind_of(self.reference.parameters[variants[0]], draws)
        theirs = [self.reference.results[variant] for variant in variants]
        comparer = Comparer(self.reference.name, variants[0], draws, kind)
        own_seeds = theirs if draws == "own" else ()
        return comparer.compare(ours, theirs, repeats or own_seeds)


def validate_ns3(folder: Path = TABLE, only: str = "", seeds: int = SEEDS, jobs: int = 2) -> bool:
    """Runs all scenarios of a folder, prints the comparison and writes it to :data:`REPORT`.

    Args:
        folder: in the layout of :mod:`eval.validate.ns3_reference`.
        only: scenarios whose name contains this.
        seeds: of ours, where marks are drawn at random; twice as many where losses are.
        jobs: processes.

    Returns:
        Whether everything is within its limits.

    Raises:
        ConfigError: nothing to compare, or a folder that cannot be read; names the file.
    """
    groups = _groups(read_references(folder, only), seeds)
    if not groups:
        raise ConfigError(f"--only: no scenario of {folder} has {only!r} in its name")
    tasks = {
        (number, run): task
        for number, group in enumerate(groups)
        for run, task in group.tasks().items()
    }
    results: list[dict[_Run, Results]] = [{} for _ in groups]
    for (number, run), result in zip(
        tasks, run_tasks(list(tasks.values()), jobs, _show_progress), strict=True
    ):
        results[number][run] = result
    rows: list[Row] = []
    default_rows: list[Row] = []
    for group, ours in zip(groups, results, strict=True):
        rows += group.rows(ours)
        default_rows += group.default_rows(ours)
    lines = heading(seeds, _LOSSY_FACTOR * seeds, _num_repeats(seeds)) + as_table(rows)
    print("\n".join([*lines, "", *default_rules(default_rows), "", *summary(rows)]))
    REPORT.parent.mkdir(parents=True, exist_ok=True)
    REPORT.write_text(json.dumps(as_json(rows), indent=1) + "\n", encoding="utf-8")
    print(f"Written to {REPORT}")
    return all(row.ok for row in rows)


def rewrite_table(folder: Path) -> None:
    """Makes the project's copy of the reference anew from a folder.

    Raises:
        TraceFileError: the folder cannot be read; names the file.
    """
    references = read_references(folder)
    write_table(references, TABLE)
    print(f"{len(references)} scenarios written to {TABLE}")


def _num_repeats(seeds: int) -> int:
    """Seeds of the reference's generator: as many as of ours, but enough for a spread."""
    return max(seeds, _LEAST_REPEATS)


def _groups(references: list[Reference], seeds: int) -> list[_Group]:
    groups = []
    for reference in references:
        for first, variants in seed_groups(reference).items():
            case = build_case(reference, first)
            factor = _LOSSY_FACTOR if case.loses_at_random else 1
            groups.append(_Group(reference, variants, case, seeds * factor))
    return groups


def _show_progress(done: int, total: int) -> None:
    if sys.stderr.isatty():
        print(f"\r{done} of {total} runs", end="\n" if done == total else "", file=sys.stderr)
    elif done == total or done % max(1, total // 10) == 0:
        print(f"{done} of {total} runs", file=sys.stderr, flush=True)
