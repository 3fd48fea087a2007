"""Repeats the runs of an ns-3 reference and compares results."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path

from eval.validate.ns3_compare import (
    HEADER,
    Kind,
    Row,
    as_json,
    as_table,
    compare,
    kind_of,
    seed_groups,
    summary,
)
from eval.validate.ns3_reference import TABLE, Reference, Results, read_references, write_table
from eval.validate.ns3_run import Task, run_tasks
from eval.validate.ns3_scenario import Case, build_case
from roce_gym.errors import ConfigError

REPORT = Path("runs/validate/ns3.json")


@dataclass(frozen=True)
class _Comparison:
    """A group of variants, and the run of ours that stands against it."""

    reference: Reference
    variants: list[str]
    key: tuple[str, str]
    kind: Kind


def validate_ns3(folder: Path = TABLE, only: str = "", seeds: int = 10, jobs: int = 2) -> bool:
    """Runs all scenarios of a folder, prints the comparison and writes it to :data:`REPORT`.

    Args:
        folder: in the layout of :mod:`eval.validate.ns3_reference`.
        only: scenarios whose name contains this.
        seeds: of ours, where results are random.
        jobs: processes.

    Returns:
        Whether everything is within its limits.

    Raises:
        ConfigError: nothing to compare, or a folder that cannot be read; names the file.
    """
    references = read_references(folder, only)
    comparisons, cases = _plan(references)
    if not comparisons:
        raise ConfigError(f"--only: no scenario of {folder} has {only!r} in its name")
    tasks = [
        Task(key, case, seed)
        for key, case in cases.items()
        for seed in range(seeds if case.draws else 1)
    ]
    ours = run_tasks(tasks, jobs, _show_progress)
    rows: list[Row] = []
    for one in comparisons:
        theirs = [one.reference.results[variant] for variant in one.variants]
        name = one.variants[0]
        relatives = _relatives(one, comparisons)
        rows += compare(one.reference.name, name, one.kind, ours[one.key], theirs, relatives)
    print("\n".join([HEADER, *as_table(rows), "", *summary(rows)]))
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
    write_table(references, folder)
    print(f"{len(references)} scenarios written to {TABLE}")


def _plan(
    references: list[Reference],
) -> tuple[list[_Comparison], dict[tuple[str, str], Case]]:
    """What to compare, and the runs needed; variants that differ in seed share one."""
    comparisons = []
    cases: dict[tuple[str, str], Case] = {}
    for reference in references:
        for first, variants in seed_groups(reference).items():
            parameters = reference.parameters[first]
            key = (reference.name, parameters.settings)
            if key not in cases:
                cases[key] = build_case(reference, first)
            kind = kind_of(parameters, cases[key].draws)
            comparisons.append(_Comparison(reference, variants, key, kind))
    return comparisons, cases


def _relatives(one: _Comparison, comparisons: list[_Comparison]) -> list[list[Results]]:
    """Results of the scenario's groups with several seeds and the same senders."""
    parameters, results = one.reference.parameters, one.reference.results
    senders = parameters[one.variants[0]].senders
    return [
        [results[variant] for variant in other.variants]
        for other in comparisons
        if other.reference is one.reference
        and len(other.variants) > 1
        and parameters[other.variants[0]].senders == senders
    ]


def _show_progress(done: int, total: int) -> None:
    if sys.stderr.isatty():
        print(f"\r{done} of {total} runs", end="\n" if done == total else "", file=sys.stderr)
    elif done == total or done % max(1, total // 10) == 0:
        print(f"{done} of {total} runs", file=sys.stderr, flush=True)
