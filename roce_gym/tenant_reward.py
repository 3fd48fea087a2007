"""The reward taken apart by tenants."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from roce_gym.config import Scenario
from roce_gym.env import RoceEnv
from roce_gym.progress import Work
from roce_gym.reference import References
from roce_gym.reward import TERMS, Judge, RewardTerms
from roce_gym.telemetry import Interval
from roce_gym.topology import Network
from roce_gym.workload.plan import Plan


class TenantJudge:
    """Judges as another one does, and keeps each tenant's own completion term.

    Attributes:
        completion: by tenant, of the last interval, less its value under the default settings.
        entries: what the other one had for `info`.
    """

    def __init__(self, judge: Judge, terms: Mapping[str, RewardTerms]) -> None:
        """Takes that judge, and for each tenant terms in which only that tenant has a weight."""
        self._judge = judge
        self._terms = terms
        self.completion: dict[str, float] = {}
        self.entries: dict[str, float] = {}

    def __call__(self, interval: Interval, work: Work) -> tuple[float, dict[str, float]]:
        """See :class:`roce_gym.reward.Reward`."""
        total, self.entries = self._judge(interval, work)
        self.completion = {
            name: terms(interval, work)["completion"] - terms.default_completion
            for name, terms in self._terms.items()
        }
        return total, self.entries

    def at_start(self) -> dict[str, float]:
        """See :class:`roce_gym.reward.Reward`."""
        return self._judge.at_start()


class TenantCore(RoceEnv):
    """The single-agent environment, with a reward for each tenant.

    A tenant's completion term is its own `-ln(T / W)` (`roce_gym.reward.RewardTerms` with its
    weight alone), less the same under the default settings. Weighted by the tenants' weights these
    add up to the term of all; exactly so unless a job is busy for less than a twentieth of an
    episode under the default settings, where the sums differ by a constant.
    """

    def _start_counting(
        self, scenario: Scenario, network: Network, plan: Plan, references: References
    ) -> None:
        super()._start_counting(scenario, network, plan, references)
        self._judge: Any = TenantJudge(
            self._judge,
            {
                tenant.name: RewardTerms(
                    _only(scenario, tenant.name),
                    network,
                    self._progress,
                    references.alone,
                    references.pace,
                )
                for tenant in scenario.tenants
            },
        )

    def rewards(self) -> dict[str, float]:
        """By tenant, of the last step."""
        weights = dict(self.scenario.control.reward_weights.items()) | self._weights
        common = sum(
            weights.get(term, 0.0) * self._judge.entries[term]
            for term in TERMS
            if term != "completion"
        )
        own = weights.get("completion", 0.0)
        return {name: float(own * x + common) for name, x in self._judge.completion.items()}


def _only(scenario: Scenario, name: str) -> Scenario:
    """Nobody else has a weight."""
    tenants = [t.model_copy(update={"weight": float(t.name == name)}) for t in scenario.tenants]
    return scenario.model_copy(update={"tenants": tuple(tenants)})
