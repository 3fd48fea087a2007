"""The Gymnasium environment: knobs in, telemetry and reward out. No physics in here."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import gymnasium
import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.spaces import Box
from numpy.typing import ArrayLike, NDArray

from roce_gym.config import Scenario, Settings, Topology, TopologyFile, validate_scenario
from roce_gym.fabric import Fabric
from roce_gym.knobs import KnobSpace
from roce_gym.measures import Measures
from roce_gym.observation import Observation
from roce_gym.options import (
    OWN_SETTINGS,
    ResetOptions,
    check_layouts,
    check_options,
    check_same_parts,
    check_weights,
)
from roce_gym.progress import Progress, Work
from roce_gym.reference import References, get_references, num_steps
from roce_gym.reward import Reward, RewardTerms
from roce_gym.routing import Router
from roce_gym.scenario_file import apply_overrides, draw, load_raw
from roce_gym.score import Score
from roce_gym.telemetry import Interval
from roce_gym.topology import Network, build_network
from roce_gym.workload.plan import Plan
from roce_gym.workload.planner import make_plan

UNLIMITED_LAYOUTS = 2**31


class Knobs(Protocol):
    """What turns actions into settings; see :class:`KnobSpace`."""

    space: Box[np.float32]
    names: tuple[str, ...]

    def clip(self, action: Any) -> NDArray[np.float64]: ...  # noqa: D102
    def decode(self, action: Any) -> Settings: ...  # noqa: D102
    def encode(self, settings: Settings) -> NDArray[np.float32]: ...  # noqa: D102


class Eyes(Protocol):
    """What turns intervals into observations; see :class:`Observation`."""

    space: Box[np.float32]
    names: tuple[str, ...]

    def __call__(self, interval: Interval, knobs: ArrayLike) -> NDArray[np.float32]: ...  # noqa: D102
    def at_start(self, knobs: ArrayLike) -> NDArray[np.float32]: ...  # noqa: D102


class Judge(Protocol):
    """What turns intervals into rewards; see :class:`Reward`."""

    def __call__(self, interval: Interval, work: Work) -> tuple[float, dict[str, float]]: ...  # noqa: D102
    def at_start(self) -> dict[str, float]: ...  # noqa: D102


class RoceEnv(gymnasium.Env[NDArray[np.float32], NDArray[np.float32]]):
    """Tune a shared RoCEv2 fabric while its tenants run.

    ## Description
    Several tenants run collectives on one Ethernet fabric. In every control interval (100 or
    200 µs of simulated time in the packaged scenarios) the agent sees what switches and NICs report
    and chooses ECN thresholds, buffer thresholds and DCQCN parameters, which hold from then on. The
    aim: collectives that take as long as if each tenant were alone, without PFC pause frames.

    ## Action Space
    `Box(-1, 1, (n,), float32)`; entry names in `env.unwrapped.knobs.names`, ranges in
    `env.unwrapped.knobs.knobs`. Values outside of the box are clipped; NaN, infinity and a wrong
    shape raise `ActionError`. For every traffic class, in all switches (bytes at 100 Gb/s hosts;
    they grow with the link rate):

    | Knob           | -1      | 1       | Scale  | Meaning                                     |
    |----------------|---------|---------|--------|---------------------------------------------|
    | `kmin`         | 8 KB    | 800 KB  | log    | queue at which ECN marking begins           |
    | `kmax_ratio`   | 1.2     | 8       | log    | kmax over kmin                              |
    | `pmax`         | 0.01    | 1       | log    | marking probability at kmax                 |
    | `buffer_alpha` | 1/32    | 1       | log    | dynamic threshold: share of the free buffer |
    | `buffer_split` | -4      | 4       | linear | logit of the class's reserve; the shared    |
    |                |         |         |        | pool has 0; only with several classes       |

    For every tenant, in its NICs:

    | Knob             | -1      | 1         | Scale | Meaning                                    |
    |------------------|---------|-----------|-------|--------------------------------------------|
    | `initial_alpha`  | 0.03    | 1         | log   | alpha at the first notification            |
    | `alpha_cap`      | 0.03    | 1         | log   | alpha never exceeds this                   |
    | `g`              | 1/512   | 1/2       | log   | gain of the alpha average                  |
    | `increase_timer` | 20 µs   | 600 µs    | log   | period of rate increases                   |
    | `rate_ai`        | 5 Mb/s  | 2000 Mb/s | log   | additive increase, at 100 Gb/s             |

    ## Observation Space
    `Box(0, 1, (m,), float32)`; entry names in `env.unwrapped.eyes.names`. Fixed scales, described
    in `roce_gym.observation`:

    | Part   | Entry             | Unit, before scaling                                     |
    |--------|-------------------|----------------------------------------------------------|
    | class  | `queue_max`       | share of the buffer, highest queue of any port; log      |
    | class  | `queue_mean`      | share of the buffer, highest average queue; log          |
    | class  | `marked_fraction` | share of the packets that switches sent                  |
    | class  | `pause_frames`    | 1/s and port; log                                        |
    | class  | `paused_max`      | share of the interval, port paused longest               |
    | class  | `paused_mean`     | share of the interval, mean of ports                     |
    | class  | `drops`           | 1/s; log                                                 |
    | tenant | `throughput`      | share of the line rate                                   |
    | tenant | `cnps`            | 1/µs and host; log                                       |
    | tenant | `rate_mean`       | share of the line rate, queue pairs with data to send; log |
    | tenant | `rate_min`        | as before, lowest                                        |
    | tenant | `active_qps`      | share of queue pairs with data to send                   |
    | fabric | `buffer`          | share of the buffer that is used in the fullest switch   |
    | knob   | each knob         | position in its range                                    |

    ## Rewards
    Weighted sum of three terms, `completion`, `pfc` and `interference` (formulas:
    `roce_gym.reward`), each less its episode mean under the scenario's default settings on the
    same seed. An interval earns what it changes of the episode's logarithms of slowdown and of
    pause frames, and its own interference; their mean over an episode ranks settings as the score
    does. So 0 is as good as the default settings, and more is better. `info` has each term
    (`completion`), its raw value (`raw/completion`), the subtracted mean (`baseline/completion`),
    physical quantities with their unit in the key, and the running `score` of the episode (lower
    is better, independent of the reward's weights; `roce_gym.score`).

    ## Starting State
    An idle fabric with the scenario's default settings. `reset(seed=s)` makes episode `s`; later
    resets without a seed draw an episode seed below `layouts`. It decides sizes, placement, paths
    and everything else that is random. The first reset to a seed also simulates each tenant alone
    and the default settings, which takes a few times as long as an episode; results are kept on
    disk. Options: `{"episode_seed": int}` chooses the episode; `{"preset": name}` holds a preset
    (or `"default"`) with all its parameters for the whole episode, whatever the actions are.

    ## Episode End
    Truncated at the scenario's horizon. Terminated if the fabric fails: a queue pair has passed
    its retry limit, or ports wait for each other for ever (PFC deadlock) and no watchdog will
    break the circle.

    ## Arguments
    * `scenario`: a packaged scenario's name, a YAML file's path, a mapping as such a file holds, or
      a `Scenario`.
    * `overrides`: `dotted.path=value` changes to it.
    * `reward_weights`: by term; those left out stay as the scenario has them.
    * `layouts`: episodes to draw from; None: no limit, and no reference is ever used twice.
      Seeds from `layouts` on are never drawn: keep them for evaluation.
    * `knobs`, `observation`, `reward`: factories that replace :class:`KnobSpace`,
      :class:`Observation` and :class:`Reward`.

    ## Version History
    * v0: first version.
    """

    metadata: dict[str, Any] = {"render_modes": ["ansi"], "render_fps": 10}  # noqa: RUF012

    def __init__(
        self,
        scenario: str | os.PathLike[str] | Mapping[str, Any] | Scenario = "noisy_neighbor",
        *,
        overrides: Sequence[str] = (),
        reward_weights: Mapping[str, float] | None = None,
        layouts: int | None = 256,
        render_mode: str | None = None,
        knobs: Callable[[Scenario, Network], Knobs] = KnobSpace,
        observation: Callable[[Scenario, Network, Plan, tuple[str, ...]], Eyes] = Observation,
        reward: Callable[[RewardTerms, Mapping[str, float], Mapping[str, float]], Judge] = Reward,
    ) -> None:
        """Checks the arguments and builds the spaces; nothing is simulated.

        Raises:
            ConfigError: a scenario, weight or number of layouts that is not acceptable.
        """
        self._raw = apply_overrides(_as_tree(scenario), overrides)
        self._weights = check_weights(reward_weights)
        self._layouts = check_layouts(layouts)
        self.render_mode = render_mode
        self._make_knobs, self._make_eyes, self._make_judge = knobs, observation, reward
        self._first = validate_scenario(draw(self._raw, 0))
        self._topology: Topology | None = None
        self._prepare(self._first, 0)
        self.action_space = self.knobs.space
        self.observation_space = self.eyes.space
        self.fabric: Fabric | None = None
        self.last_interval: Interval | None = None
        self.episode_seed = 0
        self._is_over = True
        self._line = ""

    def _prepare(self, scenario: Scenario, seed: int) -> tuple[Network, Plan]:
        """Builds what depends on the scenario that a seed draws."""
        network, router = self._routed(scenario.topology)
        plan = make_plan(scenario, network, seed, router=router)
        self.scenario = scenario
        self.knobs = self._make_knobs(scenario, network)
        self.eyes = self._make_eyes(scenario, network, plan, self.knobs.names)
        self._num_steps = num_steps(scenario.control)
        return network, plan

    def _routed(self, topology: Topology) -> tuple[Network, Router]:
        """Made once, as long as seeds draw the same; a file may have changed and is read again."""
        if topology != self._topology or isinstance(topology, TopologyFile):
            network = build_network(topology)
            self._topology, self._network, self._router = topology, network, Router(network)
        return self._network, self._router

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """Starts an episode; see the class for seeds and options.

        Raises:
            ConfigError: unknown options, or a scenario that cannot be built with this seed.
        """
        chosen = check_options(options)
        super().reset(seed=seed)
        self.episode_seed = episode_seed = self._choose_seed(seed, chosen)
        scenario = validate_scenario(draw(self._raw, episode_seed))
        check_same_parts(scenario, self._first, episode_seed)
        self._is_over = True
        network, plan = self._prepare(scenario, episode_seed)
        references = get_references(scenario, episode_seed, network, plan)
        preset = None if chosen.preset in (None, OWN_SETTINGS) else chosen.preset
        self.fabric = Fabric(scenario, episode_seed, preset=preset, network=network, plan=plan)
        self._holds_preset = chosen.preset is not None
        self._start_counting(scenario, network, plan, references)
        self._position = self.knobs.encode(self.fabric.settings).astype(np.float64)
        self._step = 0
        self._is_over = False
        self.last_interval = None
        info = self._judge.at_start() | self._score.entries() | self._measures.at_start()
        return self.eyes.at_start(self._position), self._finish(info)

    def _choose_seed(self, seed: int | None, chosen: ResetOptions) -> int:
        if chosen.episode_seed is not None:
            return chosen.episode_seed
        if seed is not None:
            return seed
        return int(self.np_random.integers(self._layouts or UNLIMITED_LAYOUTS))

    def _start_counting(
        self, scenario: Scenario, network: Network, plan: Plan, references: References
    ) -> None:
        self._progress = Progress(scenario, plan)
        self._terms = RewardTerms(
            scenario, network, self._progress, references.alone, references.pace
        )
        weights: dict[str, float] = dict(scenario.control.reward_weights.items()) | self._weights
        self._judge = self._make_judge(self._terms, references.baseline, weights)
        self._score = Score(scenario, self._progress, references.alone)
        self._measures = Measures(scenario, network, plan)

    def step(
        self, action: NDArray[np.float32]
    ) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        """Applies an action and simulates one control interval.

        Raises:
            ActionError: wrong shape, NaN or infinity.
            ResetNeeded: before the first reset, or after the end of an episode.
        """
        if self.fabric is None or self._is_over:
            raise ResetNeeded(
                "step() needs reset() first: "
                + ("no episode was started" if self.fabric is None else "the episode is over")
            )
        position = self.knobs.clip(action)
        if not self._holds_preset:
            self._position = position
            self.fabric.apply(self.knobs.decode(position))
        interval = self.fabric.advance(us=self.scenario.control.interval_us)
        work = self._progress(interval)
        self._step += 1
        self.last_interval = interval
        reward, entries = self._judge(interval, work)
        pfc = self._terms.pfc_frames_per_s(interval)
        self._score.add(work, interval.end_ps - interval.start_ps, pfc)
        terminated = interval.failed_qps > 0 or self.fabric.is_deadlocked
        truncated = self._step >= self._num_steps
        self._is_over = terminated or truncated
        info = entries | self._score.entries(work) | self._measures(interval)
        observation = self.eyes(interval, self._position)
        return observation, reward, terminated, truncated, self._finish(info)

    @property
    def observation_names(self) -> tuple[str, ...]:
        """Of the entries of an observation, in order."""
        return self.eyes.names

    def check_action(self, action: Any) -> None:
        """Does nothing but raise the :class:`ActionError` that `step` would raise."""
        self.knobs.clip(action)

    def _finish(self, info: dict[str, Any]) -> dict[str, Any]:
        info["episode_seed"] = self.episode_seed
        self._last_info = info
        return dict(info)

    def render(self) -> str | None:
        """With `render_mode="ansi"`: the state of the episode in a line."""
        if self.render_mode != "ansi" or self.fabric is None:
            return None
        info = self._last_info
        tenants = "  ".join(
            f"{t.name} {info[f'goodput_gbps/{t.name}']:.0f} Gb/s x{info[f'slowdown/{t.name}']:.2f}"
            for t in self.scenario.tenants
        )
        return (
            f"{info['time_us'] / 1000:7.3f} ms  {tenants}  "
            f"{info['pfc_frames_per_s']:.0f} pauses/s/port  score {info['score']:.3f}"
        )


def _as_tree(scenario: str | os.PathLike[str] | Mapping[str, Any] | Scenario) -> dict[str, Any]:
    if isinstance(scenario, Scenario):
        return scenario.model_dump(mode="json", exclude_unset=True)
    if isinstance(scenario, Mapping):
        return dict(scenario)
    return load_raw(scenario)
