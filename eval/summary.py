"""From records to figures: one row a policy, means over seeds with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from eval.records import Record
from eval.statistics import Estimate, bootstrap_mean
from roce_gym.errors import CheckpointError, ConfigError

DEFAULT = "preset:default"
"""The policy that others are compared with: what the scenario starts with."""


@dataclass(frozen=True)
class Row:
    """What one policy came to, means over seeds.

    Attributes:
        policy: its name.
        score: J, lower is better.
        difference: of J to the compared policy on the same seeds; None for that one itself, or if
            there is none.
        total_reward: return of an episode.
        slowdown, interference, cct_us: by tenant, in the order of `Summary.tenants`, over the
            episodes in which it had rounds; NaN if there are none.
        pfc_frames_per_s: a switch port.
        failures: episodes in which the fabric failed.
    """

    policy: str
    score: Estimate
    difference: Estimate | None
    total_reward: Estimate
    slowdown: tuple[float, ...]
    interference: tuple[float, ...]
    cct_us: tuple[float, ...]
    pfc_frames_per_s: float
    failures: int


@dataclass(frozen=True)
class Summary:
    """An evaluation in figures.

    Attributes:
        rows: best score first.
        tenants: names.
        seeds: those that every policy was played on; others are left out.
        left_out: number of records on other seeds.
        compared_with: name of the policy, empty if it was not played.
        default_preset: what the scenario's own settings are based on.
        scores: by policy, J by seed in the order of `seeds`.
    """

    rows: tuple[Row, ...]
    tenants: tuple[str, ...]
    seeds: tuple[int, ...]
    left_out: int
    compared_with: str
    default_preset: str
    scores: dict[str, tuple[float, ...]]

    def difference(self, policy: str, other: str) -> Estimate:
        """J of one policy less that of another, seed by seed."""
        return bootstrap_mean(np.subtract(self.scores[policy], self.scores[other]))


def summarize(records: Sequence[Record], compared_with: str = DEFAULT) -> Summary:
    """Computes means and intervals.

    Args:
        records: of one evaluation.
        compared_with: a policy in them; if it is absent and the default, nothing is compared.

    Raises:
        ConfigError: no such policy.
        CheckpointError: records that cannot be compared.
    """
    table: dict[str, dict[int, Record]] = {}
    for record in records:
        table.setdefault(record.policy, {})[record.seed] = record
    if compared_with not in table and compared_with != DEFAULT:
        raise ConfigError(f"compare: {compared_with!r} is unknown; allowed: {', '.join(table)}")
    seeds = _common_seeds(table)
    tenants = records[0].episode.tenants
    scores = {
        policy: tuple(by_seed[seed].episode.totals["score"] for seed in seeds)
        for policy, by_seed in table.items()
    }
    reference = scores.get(compared_with)
    rows = []
    for policy, by_seed in table.items():
        is_compared = reference is not None and policy != compared_with
        difference = np.subtract(scores[policy], reference) if is_compared else None  # type: ignore[arg-type]
        rows.append(_row(policy, [by_seed[seed] for seed in seeds], tenants, difference))
    return Summary(
        rows=tuple(sorted(rows, key=lambda row: row.score.mean)),
        tenants=tenants,
        seeds=seeds,
        left_out=len(records) - len(seeds) * len(table),
        compared_with=compared_with if reference is not None else "",
        default_preset=records[0].episode.default_preset,
        scores=scores,
    )


def _common_seeds(table: dict[str, dict[int, Record]]) -> tuple[int, ...]:
    seeds = sorted(set.intersection(*(set(by_seed) for by_seed in table.values())))
    if not seeds:
        raise CheckpointError("no seed was played by every policy; run eval.evaluate to its end")
    for seed in seeds:
        if len({by_seed[seed].key for by_seed in table.values()}) > 1:
            raise CheckpointError(
                f"records of seed {seed} were made with different simulators or scenarios; "
                "run eval.evaluate again with all policies"
            )
    return tuple(seeds)


def _row(
    policy: str, records: list[Record], tenants: tuple[str, ...], difference: np.ndarray | None
) -> Row:
    totals = [record.episode.totals for record in records]

    def means(what: str, known_by: str) -> tuple[float, ...]:
        """By tenant, over the episodes in which it is known: where this total is not 0."""
        return tuple(
            _mean([t[f"{what}/{name}"] for t in totals if t[f"{known_by}/{name}"] > 0])
            for name in tenants
        )

    return Row(
        policy=policy,
        score=bootstrap_mean([total["score"] for total in totals]),
        difference=None if difference is None else bootstrap_mean(difference),
        total_reward=bootstrap_mean([total["return"] for total in totals]),
        slowdown=means("slowdown", "slowdown"),
        interference=means("interference", "slowdown"),
        cct_us=means("cct_us", "rounds"),
        pfc_frames_per_s=_mean([total["pfc_frames_per_s"] for total in totals]),
        failures=int(sum(total["failed"] for total in totals)),
    )


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if values else float("nan")
