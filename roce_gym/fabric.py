"""The only door to the simulator: build it, tune it, let time pass, look, go back."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from functools import partial
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from roce_gym.assembly import build_state
from roce_gym.assembly.link_events import LinkSchedule
from roce_gym.assembly.pools import link_free_list
from roce_gym.config import Scenario, Settings, class_order
from roce_gym.deadlock import find_deadlock, queue_of
from roce_gym.errors import SimulationError
from roce_gym.meter import Meter
from roce_gym.parts import Parts, run_in_turn
from roce_gym.presets import resolve_settings
from roce_gym.sim import kernels
from roce_gym.sim import types as t
from roce_gym.sim.handle import packed
from roce_gym.sim.jit import call_announced
from roce_gym.sim.readout import read_out
from roce_gym.telemetry import Interval
from roce_gym.topology import build_network
from roce_gym.topology.graph import Network
from roce_gym.tuning import Tuner
from roce_gym.units import BPS_PER_GBPS, us_to_ps
from roce_gym.user_sender import bind
from roce_gym.workload.plan import Plan
from roce_gym.workload.planner import make_plan

_ready: set[Any] = set()
"""Kernels that were called before in this process."""


def _call(kernel: Any, *args: Any) -> Any:
    """Calls a kernel; the first call may have to compile it, and says so."""
    if kernel in _ready:
        return kernel(*args)
    result = call_announced(kernel, *args)
    _ready.add(kernel)
    return result


_BESIDE_PACKETS = ("packet_order", "sent", "seen", "span", "waited", "level", "credit")
_GROWING = ("packet", *_BESIDE_PACKETS, "message", "hop_set", "hop_link")
"""Arrays that change their length during a run."""


def _doubled(array: NDArray[Any]) -> NDArray[Any]:
    """Twice as long, with zeros behind."""
    return np.concatenate([array, np.zeros_like(array)])


@dataclass(frozen=True)
class Snapshot:
    """A copy of a fabric's whole state; opaque."""

    arrays: tuple[NDArray[Any], ...]
    settings: Settings


class Fabric:
    """A simulated RoCEv2 fabric with its tenants.

    Example:
        >>> from roce_gym.scenario_file import load_scenario
        >>> fabric = Fabric(load_scenario("noisy_neighbor"), seed=1)
        >>> interval = fabric.advance(us=200)
        >>> int(interval.pause_frames.sum())
        0
    """

    def __init__(
        self,
        scenario: Scenario,
        seed: int = 0,
        *,
        preset: str | None = None,
        only_tenant: str | None = None,
        without_tenant: str | None = None,
        network: Network | None = None,
        plan: Plan | None = None,
    ) -> None:
        """Builds the fabric at time 0.

        Args:
            scenario: what to build.
            seed: of every random draw: paths, placement, compute jitter, ECN, loss.
            preset: settings to start with, instead of the scenario's own.
            only_tenant: leave out the jobs of all other tenants; paths and draws stay the same.
            without_tenant: leave out the jobs of this one, likewise.
            network, plan: built before from the same scenario (and seed), to save time.

        Raises:
            ConfigError: anything in the scenario that cannot be built, with its field.
        """
        if not 0 <= seed < 2**63:
            raise SimulationError(f"seed: {seed} is not allowed; 0 <= seed < 2^63")
        self.scenario = scenario
        self.seed = seed
        self.network = network if network is not None else build_network(scenario.topology)
        self.plan = (
            plan
            if plan is not None
            else make_plan(scenario, self.network, seed, only_tenant, without_tenant)
        )
        host_rate_gbps = self.network.host_rate_bps / BPS_PER_GBPS
        self._links = LinkSchedule(scenario, self.network, self.plan, seed)
        self._hold(build_state(scenario, self.network, self.plan, seed, self._links))
        self._run = kernels.run_plain if kernels.is_plain(self._state) else kernels.run
        self._tuner = Tuner(scenario, self.network)
        self.settings = resolve_settings(scenario, host_rate_gbps, preset)
        self._tuner.apply(self._state, self.settings)
        order = class_order(scenario)
        columns = tuple(order.index(c) + 1 for c in range(len(order)))
        self._meter = Meter(len(order) + 1, columns)
        self._meter.reset(self._state, self._read_out)
        self._deadlock: tuple[tuple[int, int, int], ...] = ()
        _call(kernels.start, self._argument)
        if self._links.next_change_ps(-1) == 0:
            self._change_links()

    def __getstate__(self) -> dict[str, Any]:
        """For pickle and copy: all but the table, which holds addresses, and the kernel."""
        return {
            name: value for name, value in vars(self).items() if name not in ("_argument", "_run")
        }

    def __copy__(self) -> Fabric:
        """A fabric of its own, however it is made; this way, with what never changes in common."""
        twin = self._twin()
        twin._hold(self._state)
        return twin

    def _twin(self) -> Fabric:
        twin = object.__new__(type(self))
        vars(twin).update(self.__getstate__(), _run=self._run)
        twin._tuner, twin._meter = copy.copy(self._tuner), copy.copy(self._meter)
        return twin

    def at_rest(self, other: Fabric | None = None) -> tuple[Fabric, int]:
        """A copy that is only to be copied again, and how many bytes of its state are its own.

        Args:
            other: where it has the same arrays, these are used; another one at rest.
        """
        twin, own_bytes, arrays = self._twin(), 0, []
        for mine, found in zip(self._state, other._state if other else self._state, strict=True):
            if other is None or mine.tobytes() != found.tobytes():
                found = mine.view(np.uint8).copy().view(mine.dtype)  # with what is between fields
                own_bytes += found.nbytes
            arrays.append(found)
        twin._state = t.State(*arrays)
        return twin, own_bytes

    @property
    def state_bytes(self) -> int:
        """Bytes of the whole state."""
        return sum(array.nbytes for array in self._state)

    def __setstate__(self, values: dict[str, Any]) -> None:
        """A copy has a table of its own arrays."""
        vars(self).update(values)
        self._hold(self._state)
        self._run = kernels.run_plain if kernels.is_plain(self._state) else kernels.run

    @property
    def now_ps(self) -> int:
        """Simulated time."""
        return int(self._state.core[0]["now_ps"])

    @property
    def flows_done(self) -> int:
        """Flows of all flow lists that are wholly acknowledged."""
        return int(self._state.job["flows_done"].sum())

    @property
    def num_flows(self) -> int:
        """Flows of all flow lists."""
        return int(self._state.job["num_flows"].sum())

    def apply(self, settings: Settings) -> None:
        """Changes the settings from now on.

        Raises:
            TuningError: wrong names or no room in the buffer; nothing is changed then.
        """
        self._tuner.apply(self._state, settings)
        self.settings = settings

    def advance(self, *, us: float | None = None, ps: int | None = None) -> Interval:
        """Lets time pass and returns what happened. Give either `us` or `ps`.

        Raises:
            SimulationError: the core stopped; names status and time.
        """
        return run_in_turn(self.advance_in_parts(us=us, ps=ps))

    def advance_in_parts(
        self, *, us: float | None = None, ps: int | None = None
    ) -> Parts[Interval]:
        """As :meth:`advance`; the parts are calls of the simulator, which releases the GIL."""
        if (us is None) == (ps is None):
            raise SimulationError("advance: give either us or ps")
        given = us if us is not None else ps
        if not isinstance(given, (int, float, np.number)) or not np.isfinite(given):
            raise SimulationError(f"advance: duration {given!r} must be a finite number")
        duration_ps = us_to_ps(us) if us is not None else int(given)
        if duration_ps <= 0:
            raise SimulationError(f"advance: duration {duration_ps} ps must be positive")
        until_ps = self.now_ps + duration_ps
        logged: list[NDArray[Any]] = []
        while True:
            change_ps = self._links.next_change_ps(self.now_ps)
            status = yield partial(_call, self._run, self._argument, min(until_ps, change_ps))
            logged.append(self._drain_log())
            if status != t.OK:
                self._mend(status)
                continue
            if self.now_ps == change_ps:
                self._change_links()
            if self.now_ps == until_ps:
                break
        self._deadlock = self._find_deadlock()
        log = logged[0] if len(logged) == 1 else np.concatenate(logged)
        unreachable = self._links.unreachable_qps(self.now_ps)
        return self._meter.close(self._state, self._read_out, log, self._deadlock, unreachable)

    @property
    def is_deadlocked(self) -> bool:
        """Whether ports wait for each other for ever, and no watchdog will see to it."""
        dog = self.scenario.pfc.watchdog
        return bool(self._deadlock) and (not dog.enabled or dog.action == "alert")

    def _find_deadlock(self) -> tuple[tuple[int, int, int], ...]:
        """Links, classes of the scenario, and since when they are paused."""
        circle = find_deadlock(self._state)
        if not circle:
            return ()
        order, since = class_order(self.scenario), self._state.pfc["paused_since_ps"]
        ports = (link * (len(order) + 1) + cls for link, cls in circle)
        return tuple(
            (link, order[cls - 1], int(since[queue_of(self._state, port)]))
            for (link, cls), port in zip(circle, ports, strict=True)
        )

    def _change_links(self) -> None:
        """Cables and routes become what the schedule says about this moment."""
        state, cut = self._links.apply(self._state, self.now_ps)
        self._hold(state)
        for link in cut:
            _call(kernels.kick, self._argument, link)

    def _hold(self, state: t.State) -> None:
        """Takes a copy of a state, with what kernels take: its table, or itself without JIT."""
        self._state, table = packed(state)
        bind(self.scenario, self._state)
        self._argument: Any = self._state if numba.config.DISABLE_JIT else table

    def _read_out(self, *arguments: NDArray[Any]) -> None:
        _call(read_out, self._argument, *arguments)

    def _drain_log(self) -> NDArray[Any]:
        core: Any = self._state.core[0]
        entries = self._state.log[: core["log_length"]].copy()
        core["log_length"] = 0
        return entries

    def _mend(self, status: int) -> None:
        """Enlarges what the core ran out of; the run goes on as if it had been large enough."""
        if status == t.PACKETS_LOW:
            self._enlarge("packet", "free_packet", "packets_left")
            beside = {
                name: _doubled(getattr(self._state, name))
                for name in _BESIDE_PACKETS
                if len(getattr(self._state, name)) > 1
            }
            self._hold(self._state._replace(**beside))
        elif status == t.MESSAGES_LOW:
            self._enlarge("message", "free_message", "messages_left")
        elif status != t.LOG_FULL:
            raise SimulationError(f"the core stopped with status {status} at {self.now_ps} ps")

    def _enlarge(self, name: str, head: str, left: str) -> None:
        old = getattr(self._state, name)
        new = _doubled(old)
        link_free_list(new, len(old))
        core: Any = self._state.core[0]
        new["next"][-1] = core[head]
        core[head] = len(old)
        core[left] += len(old)
        self._hold(self._state._replace(**{name: new}))

    def snapshot(self) -> Snapshot:
        """Copies the whole state; between two `advance` calls."""
        return Snapshot(tuple(array.copy() for array in self._state), self.settings)

    def restore(self, snapshot: Snapshot) -> None:
        """Goes back to a snapshot of this fabric; what follows is repeated bit for bit.

        Raises:
            SimulationError: the snapshot is of another scenario or seed.
        """
        then = t.State(*snapshot.arrays)
        fixed = (name for name in t.State._fields if name not in _GROWING)
        if not np.array_equal(self._state.params, then.params) or any(
            getattr(self._state, name).shape != getattr(then, name).shape for name in fixed
        ):
            raise SimulationError("restore: the snapshot is of another scenario or seed")
        self._hold(then)
        self._deadlock = self._find_deadlock()
        self._tuner.assume(snapshot.settings)
        self.settings = snapshot.settings
        self._meter.reset(self._state, self._read_out)
