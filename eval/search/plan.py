"""What to search, in which stages.

First all tenants share one value of each sender knob, and all classes one of each switch knob: few
dimensions, in which presets and a Latin hypercube are a good beginning. Then every knob is free.
Then, where regimes change, the settings of one regime after the other, the rest being held.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from agents.regimes import find_regimes
from agents.settings_file import Positions, SettingsFile
from eval.progress import Counter
from eval.search.episodes import Episodes
from eval.search.minimise import Effort, Point, minimise, seed_stream
from roce_gym.env import RoceEnv
from roce_gym.errors import ConfigError
from roce_gym.knob_choice import Knob
from roce_gym.presets import PRESETS, resolve_settings
from roce_gym.topology import build_network
from roce_gym.units import BPS_PER_GBPS
from training.environment import EnvChoice

WIDE, NARROW = 0.4, 0.2
"""First standard deviations: a fifth of the box where little is known, a tenth near good points."""


@dataclass(frozen=True)
class SearchPlan:
    """A search.

    Attributes:
        choice: the environment.
        seeds: of training episodes.
        budget: settings tried that hold throughout.
        regime_budget: settings tried for each regime; 0: none.
        repeats: seeds each of them is played on.
        confirm: seeds that the last few of a stage are played on; all of them, and with what is
            held already, for a regime.
        random_seed: of the search's own draws.
    """

    choice: EnvChoice
    seeds: tuple[int, ...]
    budget: int = 120
    regime_budget: int = 0
    repeats: int = 3
    confirm: int = 8
    random_seed: int = 0

    def check(self) -> None:
        """Checks what can be checked without simulating.

        Raises:
            ConfigError: a number that is not acceptable.
        """
        least = 2 * len(PRESETS)
        for name, value, low in (
            ("budget", self.budget, least),
            ("regime budget", self.regime_budget or least, least),
            ("repeats", self.repeats, 1),
            ("confirm", self.confirm, 1),
        ):
            if value < low:
                raise ConfigError(f"{name} = {value} is not allowed; allowed: {low} or more")
        most = max(self.repeats, self.confirm)
        if len(self.seeds) < most:
            raise ConfigError(
                f"seeds: {len(self.seeds)} are too few; allowed: {most} or more, as many as "
                "repeats and confirm"
            )


class Search:
    """One search; the same plan always finds the same settings."""

    def __init__(self, plan: SearchPlan) -> None:
        """Checks the plan and the environment.

        Raises:
            ConfigError: they are not acceptable.
        """
        plan.check()
        self._plan = plan
        self._env = plan.choice.make()
        mode = self._env.scenario.control.knob_mode
        if mode != "absolute":
            raise ConfigError(
                f"control.knob_mode = {mode!r} is not allowed in a search; allowed: absolute"
            )
        self._names = self._env.knobs.names
        self._tied = tied_knobs(self._names)
        self._presets = _preset_points(self._env)
        seeds = plan.seeds
        found = {r.name for s in seeds for r in find_regimes(plan.choice.scenario(s))}
        self.regimes = tuple(sorted(found)) if plan.regime_budget and len(found) > 1 else ()

    @property
    def knobs(self) -> Sequence[Knob]:
        """Of the environment."""
        knobs: Any = self._env.knobs  # a KnobSpace, as EnvChoice makes it
        return tuple(knobs.knobs)

    def run(self, log: Path, jobs: int = 1) -> SettingsFile:
        """Searches.

        Args:
            log: what was played; a search goes on from there.
            jobs: processes.

        Raises:
            CheckpointError: a process ended unexpectedly.
        """
        stages = self._stages()
        counter = Counter("episodes", sum(effort.episodes for effort in stages.values()))
        with Episodes(self._plan.choice, log, jobs, counter) as episodes:
            best = self._static(episodes, stages)
            content = SettingsFile(self._positions(best))
            held: dict[str, Positions] = dict.fromkeys(self.regimes, content.settings)
            for regime in self.regimes:
                held[regime] = self._of_regime(regime, held, best, episodes, stages[regime])
            about = self._about(episodes)
            return replace(content, regimes=held, about=about)

    def _stages(self) -> dict[str, Effort]:
        """By name, in order."""
        plan = self._plan
        whole = Effort(plan.budget, plan.repeats, plan.confirm, WIDE)
        if max(self._tied) + 1 == len(self._names):
            stages = {"tied": whole}
        else:
            first = (3 * plan.budget + 4) // 5
            rest = replace(whole, points=plan.budget - first, sigma=NARROW)
            stages = {"tied": replace(whole, points=first), "free": rest}
        # What a regime gains is small beside what seeds differ by: its last ones meet on all.
        by_regime = Effort(plan.regime_budget, plan.repeats, len(plan.seeds), NARROW)
        return stages | dict.fromkeys(self.regimes, by_regime)

    def _static(self, episodes: Episodes, stages: Mapping[str, Effort]) -> Point:
        tied, effort = self._tied, stages["tied"]
        starts = [_mean_by_group(point, tied) for point in self._presets]
        best = self._minimise(
            "tied", lambda x: self._held(x[tied]), starts, effort.points // 3, effort, episodes
        )[tied]
        if "free" not in stages:
            return best
        return self._minimise("free", self._held, [best], 0, stages["free"], episodes)

    def _of_regime(
        self,
        regime: str,
        held: Mapping[str, Positions],
        best: Point,
        episodes: Episodes,
        effort: Effort,
    ) -> Positions:
        """The best for one regime while the others keep what they hold."""
        usual = self._positions(best)

        def content(point: Point) -> SettingsFile:
            return SettingsFile(usual, {**held, regime: self._positions(point)})

        starts = [best, *self._presets]
        return self._positions(self._minimise(regime, content, starts, 0, effort, episodes, 1))

    def _minimise(
        self,
        stage: str,
        content: Callable[[Point], SettingsFile],
        starts: Sequence[Point],
        screened: int,
        effort: Effort,
        episodes: Episodes,
        incumbents: int = 0,
    ) -> Point:
        tag = hashlib.sha256(stage.encode()).digest()[:4]
        rng = np.random.default_rng([self._plan.random_seed, int.from_bytes(tag, "big")])
        return minimise(
            lambda points, seeds: episodes([content(point) for point in points], seeds),
            starts,
            screened,
            effort,
            seed_stream(self._plan.seeds, rng),
            rng,
            incumbents,
        )

    def _positions(self, point: Point) -> Positions:
        return dict(zip(self._names, map(float, point), strict=True))

    def _held(self, point: Point) -> SettingsFile:
        return SettingsFile(self._positions(point))

    def _about(self, episodes: Episodes) -> dict[str, object]:
        plan = self._plan
        return {
            "env": plan.choice.env,
            "overrides": list(plan.choice.overrides),
            "budget": plan.budget,
            "regime_budget": plan.regime_budget if self.regimes else 0,
            "repeats": plan.repeats,
            "confirm": plan.confirm,
            "training_seeds": len(plan.seeds),
        }


def tied_knobs(names: Sequence[str]) -> list[int]:
    """For each knob, a number that it shares with those of the same setting."""
    settings = [name.rpartition("/")[2] for name in names]
    order = list(dict.fromkeys(settings))
    return [order.index(setting) for setting in settings]


def _mean_by_group(point: Point, groups: Sequence[int]) -> Point:
    counts = np.bincount(groups)
    return np.bincount(groups, point) / counts


def _preset_points(env: RoceEnv) -> list[Point]:
    """Where the scenario's own settings and all presets are among the knobs."""
    scenario = env.scenario
    rate_gbps = build_network(scenario.topology).host_rate_bps / BPS_PER_GBPS
    settings = [resolve_settings(scenario, rate_gbps, name) for name in (None, *sorted(PRESETS))]
    return [env.knobs.encode(one).astype(np.float64) for one in settings]
