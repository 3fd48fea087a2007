"""Our results against the reference's: one row a metric."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from eval.validate.ns3_limits import LIMITS, Draws, Kind, Limit
from eval.validate.ns3_types import Reference, Results


@dataclass(frozen=True)
class Row:
    """One metric of one variant.

    Attributes:
        scenario, variant, draws, metric: what was compared.
        ours, theirs: means over seeds, where there are several.
        error: share of theirs (of 1 where theirs is 0).
        limit: as `error`, the spread included.
        plain_limit: as `error`, without it.
        spread: as `error`, highest - lowest of the reference's seeds; 0 where seeds do not matter.
        ok: the error is within the limit.
    """

    scenario: str
    variant: str
    draws: Draws
    metric: str
    ours: float
    theirs: float
    error: float
    limit: float
    plain_limit: float
    spread: float
    ok: bool

    @property
    def closeness(self) -> float:
        """The error as a share of what is allowed."""
        return abs(self.error) / self.limit if self.limit else float(self.error != 0)


@dataclass(frozen=True)
class Comparer:
    """Compares runs of one variant.

    Attributes:
        scenario, variant, draws: for the report.
        kind: which limits hold.
    """

    scenario: str
    variant: str
    draws: Draws
    kind: Kind

    def compare(
        self,
        ours: Sequence[Results],
        theirs: Sequence[Results],
        repeats: Sequence[Results] = (),
    ) -> list[Row]:
        """All metrics.

        Where flows are cut off by the end of the run, goodput stands in for completion times.

        Args:
            ours, theirs: one entry a seed.
            repeats: runs of the reference with more seeds, from which its spread is measured.
        """
        # A run that hangs where the reference's did not makes all other metrics worthless.
        limits = {"flows_done": Limit(0.0)} | LIMITS[self.kind]
        if any(result.goodput_gbps > 0 for result in theirs):
            del limits["max_fct_ns"]
            limits = {"goodput_gbps" if k == "mean_fct_ns" else k: v for k, v in limits.items()}
        rows = []
        for metric, limit in limits.items():
            means = fmean(_values(ours, metric)), fmean(_values(theirs, metric))
            by_seed = _values(repeats, metric) if metric != "flows_done" else []
            width = max(by_seed) - min(by_seed) if by_seed else 0.0
            rows.append(self.judge(metric, limit, *means, width))
        return rows

    def judge(
        self, metric: str, limit: Limit, ours: float, theirs: float, width: float = 0.0
    ) -> Row:
        """Compares the means of one metric; `width` is highest - lowest of the reference's."""
        scale = abs(theirs) or 1.0
        error, spread = (ours - theirs) / scale, width / scale
        plain = max(limit.share, limit.absolute / scale)
        largest = max(plain, spread)
        return Row(
            self.scenario,
            self.variant,
            self.draws,
            metric,
            ours,
            theirs,
            error,
            largest,
            plain,
            spread,
            ok=abs(error) <= largest,
        )


def seed_groups(reference: Reference) -> dict[str, list[str]]:
    """Variants that differ in their seed only, by the first of them.

    Those that another variant repeats and carries on (sampled more finely, say) are left out.
    """
    groups: dict[str, list[str]] = {}
    for variant, parameters in reference.parameters.items():
        if any(parameters.is_start_of(other) for other in reference.parameters.values()):
            continue
        groups.setdefault(parameters.settings, []).append(variant)
    return {variants[0]: variants for variants in groups.values()}


def _values(results: Sequence[Results], metric: str) -> list[float]:
    return [float(getattr(result, metric)) for result in results]
