"""The Gymnasium environment: knobs in, telemetry and reward out. No physics in here."""

from __future__ import annotations

import copy
import os
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium.error import ResetNeeded
from numpy.typing import NDArray

from roce_gym.action_modes import Actions, Knobs, make_actions
from roce_gym.config import Scenario, Topology, TopologyFile, validate_scenario
from roce_gym.deployable import DeployableObservation
from roce_gym.env_snapshot import EnvSnapshot, put, take
from roce_gym.errors import ConfigError
from roce_gym.fabric import Fabric
from roce_gym.knobs import KnobSpace
from roce_gym.measures import Measures
from roce_gym.observation import Observation
from roce_gym.options import (
    OWN_SETTINGS,
    ResetOptions,
    check_limit,
    check_options,
    check_same_parts,
    check_same_spaces,
    check_split,
    check_weights,
    with_control,
)
from roce_gym.parts import Parts, run_in_turn
from roce_gym.progress import Progress
from roce_gym.reference import References, get_references, num_steps
from roce_gym.reward import Judge, Reward, RewardTerms
from roce_gym.routing import Router
from roce_gym.scenario_file import (
    Drawer,
    apply_changes,
    apply_overrides,
    changes_of,
    read_source,
    seed_in,
)
from roce_gym.score import Score
from roce_gym.sight import Eyes, Sight
from roce_gym.starts import Start, digest_of, keep, recall
from roce_gym.telemetry import Interval
from roce_gym.topology import Network, build_network
from roce_gym.workload.plan import Plan
from roce_gym.workload.planner import make_plan

UNLIMITED_LAYOUTS = 2**31


OBSERVATIONS: dict[str, Callable[[Scenario, Network, Plan, tuple[str, ...]], Eyes]] = {
    "full": Observation,
    "deployable": DeployableObservation,
}
"""By `control.observation`."""


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
    shape raise `ActionError`. What an entry means depends on `knob_mode`: its knob's position
    (`absolute`), or a step: the value is multiplied by `max_factor ** entry` (`delta`; 2 unless the
    scenario says otherwise). With `multidiscrete`, the space is `MultiDiscrete([5] * n)`: a factor
    of 1/2, 1/√2, 1, √2 or 2. The scenario can leave out knobs and change ranges
    (`control.knobs`); by default there are, for every traffic class, in all switches (bytes at
    100 Gb/s hosts; they grow with the link rate):

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
    `Box(0, 1, (m,), float32)`; entry names in `env.unwrapped.sight.names`. Fixed scales, described
    in `roce_gym.observation` (with `observation="deployable"`: in `roce_gym.deployable`):

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
    disk. Options, each for one episode:

    * `split`: `"train"`, `"held_out"` or `"stress"`. Splits are ranges of episode seeds, 10^12
      each, so that none shares an episode with another: with `"held_out"`, seed `s` makes episode
      `10^12 + s`. A scenario may say what else is different in a split.
    * `episode_seed`: chooses the episode, whatever `seed` is.
    * `preset`: its name, or `"default"`: held with all its parameters for the whole episode;
      actions are not looked at.
    * `scenario`: another scenario, which must have the same spaces; changed by `overrides`, too.
    * `params`: values of the scenario by dotted path, such as
      `{"tenants.checkpoint.jobs.0.degree": 5}`; they win over everything else.

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
    * `split`: for resets that ask for none.
    * `knob_mode`, `history`, `telemetry_delay`, `action_delay`, `noise`: in place of the scenario's
      (`control.…`). Delays are in intervals; `history` is how many observations are shown
      together; `noise` is the relative error of measured values (standard deviation).
    * `observation`: `"full"`, `"deployable"`, or a factory that replaces :class:`Observation`.
    * `knobs`, `reward`: factories that replace :class:`KnobSpace` (with
      :class:`roce_gym.switch_knobs.SwitchKnobSpace`, each switch has its own) and :class:`Reward`.
    * `render_mode`: `"rgb_array"` (needs Pillow, extra `report`), `"ansi"`, or, through Gymnasium's
      wrapper, `"human"`.

    ## Version History
    * v0: first version.
    """

    metadata: dict[str, Any] = {"render_modes": ["rgb_array", "ansi"], "render_fps": 10}  # noqa: RUF012

    def __init__(
        self,
        scenario: str | os.PathLike[str] | Mapping[str, Any] | Scenario | None = "noisy_neighbor",
        *,
        overrides: Sequence[str] = (),
        reward_weights: Mapping[str, float] | None = None,
        layouts: int | None = 256,
        split: str = "train",
        render_mode: str | None = None,
        knob_mode: str | None = None,
        history: int | None = None,
        telemetry_delay: int | None = None,
        action_delay: int | None = None,
        noise: float | None = None,
        knobs: Callable[[Scenario, Network], Knobs] = KnobSpace,
        observation: str | Callable[[Scenario, Network, Plan, tuple[str, ...]], Eyes] | None = None,
        reward: Callable[[RewardTerms, Mapping[str, float], Mapping[str, float]], Judge] = Reward,
    ) -> None:
        """Checks the arguments and builds the spaces; nothing is simulated.

        Raises:
            ConfigError: an argument that is not acceptable.
        """
        self._overrides = tuple(overrides)
        self._control = {
            "knob_mode": knob_mode,
            "history": history,
            "telemetry_delay": telemetry_delay,
            "action_delay": action_delay,
            "noise": noise,
            "observation": observation if isinstance(observation, str) else None,
        }
        self._source = read_source(scenario)
        self._raw = self._changed(self._source.tree)
        self._weights = check_weights(reward_weights)
        self._layouts = check_limit("layouts", layouts)
        self._split = check_split(split)
        if render_mode not in (None, *self.metadata["render_modes"]):
            raise ConfigError(
                f"render_mode = {render_mode!r} is not allowed; allowed: None, "
                f"{', '.join(self.metadata['render_modes'])}; 'human' through gymnasium.make"
            )
        self.render_mode = render_mode
        self._make_knobs, self._make_judge = knobs, reward
        self._own_eyes = observation if callable(observation) else None
        self.source_digest = digest_of(self._raw)
        self._drawer = Drawer(self._raw)
        self._first = validate_scenario(self._drawer(0))
        self.source_name = self._first.name
        self._topology: Topology | None = None
        self._check_splits()
        self._adopt(self._first, *self._build(self._first, 0), 0)
        self._names = (self.knobs.names, self.sight.names)
        self.action_space = self.actions.space
        self.observation_space = self.sight.space
        self.fabric: Fabric | None = None
        self.last_interval: Interval | None = None
        self.episode_seed = 0
        self._is_over = True
        self._trail: Any = None
        self._artist: Any = None

    def _changed(self, tree: dict[str, Any]) -> dict[str, Any]:
        """A scenario with this environment's overrides and arguments."""
        return with_control(apply_overrides(tree, self._overrides), self._control)

    def _check_splits(self) -> None:
        """What a split changes must make a scenario of the same parts."""
        for split in changes_of(self._raw):
            seed = seed_in(split, 0)
            try:
                scenario = validate_scenario(self._drawer(seed))
            except ConfigError as error:
                raise ConfigError(f"splits.{split}: {error}") from None
            check_same_parts(scenario, self._first, seed)

    def _build(self, scenario: Scenario, seed: int) -> tuple[Network, Plan, Knobs, Actions]:
        """Builds what depends on the scenario that a seed draws."""
        network, router = self._routed(scenario.topology)
        plan = make_plan(scenario, network, seed, router=router)
        knobs = self._make_knobs(scenario, network)
        return network, plan, knobs, make_actions(scenario.control, knobs)

    def _adopt(
        self,
        scenario: Scenario,
        network: Network,
        plan: Plan,
        knobs: Knobs,
        actions: Actions,
        seed: int,
    ) -> None:
        """Makes an episode's parts the environment's."""
        self.scenario, self.knobs, self.actions = scenario, knobs, actions
        self.eyes = self._open_eyes(scenario, network, plan)
        self.sight = Sight(self.eyes, scenario.control, seed)
        self._num_steps = num_steps(scenario.control)

    def _open_eyes(self, scenario: Scenario, network: Network, plan: Plan) -> Eyes:
        make_eyes = self._own_eyes or OBSERVATIONS[scenario.control.observation]
        return make_eyes(scenario, network, plan, self.knobs.names)

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

        It also ends the one before, whatever happens: a reset that fails leaves no episode, and
        what needs one asks for another reset.

        Raises:
            ConfigError: unknown options, a scenario that cannot be built with this seed or has
                other spaces, or a scenario file that has changed since the environment was made.
        """
        self.fabric = None  # until all else is there
        chosen = check_options(options)
        self._source.check()
        super().reset(seed=seed)
        self.episode_seed = episode_seed = self._choose_seed(seed, chosen)
        start, fabric = self._start(chosen, episode_seed)
        scenario = start.scenario
        self._holds_preset = chosen.preset is not None
        self._start_counting(scenario, start.network, start.plan, start.references)
        self._position = self.knobs.encode(fabric.settings).astype(np.float64)
        delay = scenario.control.action_delay
        self._pending: deque[NDArray[np.float64] | None] = deque([None] * delay)
        self._step = 0
        self._is_over = False
        self.last_interval = None
        self._trail = None
        observation = self.sight.at_start(self._position)
        info = self._judge.at_start() | self._score.entries() | self._measures.at_start()
        info = self._finish(info)
        self.fabric = fabric
        return observation, info

    def _start(self, chosen: ResetOptions, seed: int) -> tuple[Start, Fabric]:
        """Builds or recalls where an episode starts from, and adopts all of it but the fabric."""
        preset = None if chosen.preset == OWN_SETTINGS else chosen.preset
        key = (self.source_digest, seed, preset)
        comes_again = self._layouts is not None and self._make_knobs is KnobSpace
        comes_again = comes_again and chosen.scenario is None and not chosen.params
        known = recall(key) if comes_again else None
        if known is not None:
            parts = (known.scenario, known.network, known.plan, known.knobs, known.actions)
            self._adopt(*parts, seed)
            return known, copy.copy(known.fabric)
        scenario = validate_scenario(self._drawer_of(chosen)(seed))
        check_same_parts(scenario, self._first, seed)
        network, plan, knobs, actions = self._build(scenario, seed)
        self._adopt(scenario, network, plan, knobs, actions, seed)
        check_same_spaces((knobs.names, self.sight.names), self._names, seed)
        if actions.space != self.action_space:
            raise ConfigError(
                f"control.knob_mode = {scenario.control.knob_mode!r} of seed {seed} needs "
                f"{actions.space}; the environment has {self.action_space}"
            )
        references = get_references(scenario, seed, network, plan)
        fabric = Fabric(scenario, seed, preset=preset, network=network, plan=plan)
        start = Start(scenario, network, plan, knobs, actions, references, fabric)
        if comes_again:
            keep(key, start)
        return start, fabric

    def _drawer_of(self, chosen: ResetOptions) -> Drawer:
        """Draws from the environment's scenario, or from that of one episode."""
        if chosen.scenario is None and not chosen.params:
            return self._drawer
        raw = self._raw
        if chosen.scenario is not None:
            raw = self._changed(read_source(chosen.scenario).tree)
        return Drawer(apply_changes(raw, chosen.params.items()) if chosen.params else raw)

    def _choose_seed(self, seed: int | None, chosen: ResetOptions) -> int:
        if chosen.episode_seed is not None:
            number = chosen.episode_seed
            return number if chosen.split is None else seed_in(chosen.split, number)
        split = chosen.split or self._split
        if seed is not None:
            return seed_in(split, seed) if chosen.split or split != "train" else seed
        return seed_in(split, int(self.np_random.integers(self._layouts or UNLIMITED_LAYOUTS)))

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
            ActionError: wrong shape, NaN or infinity, or, with `multidiscrete`, no such factor;
                nothing has happened then. Any other error ends the episode.
            ResetNeeded: before the first reset, after the end of an episode, or after an error.
        """
        return run_in_turn(self.step_in_parts(action))

    def step_in_parts(
        self, action: NDArray[np.float32]
    ) -> Parts[tuple[NDArray[np.float32], Any, bool, bool, dict[str, Any]]]:
        """As :meth:`step`, which calls it, as does the vector environment; see `roce_gym.parts`."""
        if self.fabric is None or self._is_over:
            raise ResetNeeded(
                "step() needs reset() first: "
                + (
                    "no episode was started"
                    if self.fabric is None
                    else "the episode is over or has failed"
                )
            )
        if not self._holds_preset:
            self._position = self.actions(action, self._position)
        self._is_over = True  # unless all goes well: half a step cannot be gone on from
        if not self._holds_preset:
            self._pending.append(self._position)
            due = self._pending.popleft()
            if due is not None:
                self.fabric.apply(self.knobs.decode(due))
        interval_us = self.scenario.control.interval_us
        interval = yield from self.fabric.advance_in_parts(us=interval_us)
        work = self._progress(interval)
        self._step += 1
        self.last_interval = interval
        reward, entries = self._judge(interval, work)
        pfc = self._terms.pfc_frames_per_s(interval)
        self._score.add(work, interval.end_ps - interval.start_ps, pfc)
        terminated = interval.failed_qps > 0 or self.fabric.is_deadlocked
        truncated = self._step >= self._num_steps
        info = entries | self._score.entries(work) | self._measures(interval)
        observation = self.sight(interval, self._position)
        info = self._finish(info)
        self._is_over = terminated or truncated
        return observation, reward, terminated, truncated, info

    def snapshot(self) -> EnvSnapshot:
        """Copies the episode under way, with all random states, for :meth:`restore`.

        Raises:
            ResetNeeded: before the first reset.
        """
        if self.fabric is None:
            raise ResetNeeded("snapshot() needs reset() first: no episode was started")
        return take(self)

    def restore(self, snapshot: EnvSnapshot) -> None:
        """Goes back to a snapshot; what follows is repeated bit for bit.

        Works in the environment that made it, whatever episode it is in by now, and in others with
        the same arguments.

        Raises:
            ConfigError: no snapshot, or one of an environment with other spaces or of another
                scenario, overrides included; nothing has changed then.
        """
        put(self, snapshot)

    def __getstate__(self) -> dict[str, Any]:
        """For pickle and copy: all but what draws pictures, which is made again when needed."""
        return vars(self) | {"_artist": None}

    @property
    def observation_names(self) -> tuple[str, ...]:
        """Of the entries of an observation, in order."""
        return self.sight.names

    def check_action(self, action: Any) -> None:
        """Does nothing but raise the :class:`ActionError` that `step` would raise."""
        self.actions(action, np.zeros(len(self.knobs.names)))

    def _finish(self, info: dict[str, Any]) -> dict[str, Any]:
        info["episode_seed"] = self.episode_seed
        self._last_info = info
        if self.render_mode == "rgb_array":
            self._remember()
        return dict(info)

    def _remember(self) -> None:
        """Keeps what pictures show of the past."""
        from roce_gym.render.trail import Trail

        if self._trail is None:
            self._trail = Trail(self.scenario)
        self._trail.add(self._last_info, self.last_interval, self._progress.job_tenant)

    def render(self) -> Any:
        """The state of the episode; None before the first reset, or without a render mode.

        `rgb_array`: shape (720, 1280, 3), uint8; `ansi`: lines of text.

        Raises:
            DependencyNotInstalled: `rgb_array` without Pillow.
        """
        if self.render_mode is None or self.fabric is None:
            return None
        if self.render_mode == "ansi":
            from roce_gym.render.text import as_text

            return as_text(self.scenario, self.knobs, self.fabric.settings, self._last_info)
        if self._artist is None:
            from roce_gym.render.picture import Artist

            self._artist = Artist()
        return self._artist(
            self.scenario,
            self.fabric.network,
            self.fabric.plan,
            self.knobs,
            self.fabric.settings,
            self.last_interval,
            self._trail,
            self._last_info,
        )
