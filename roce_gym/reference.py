"""Frozen counterfactuals: each tenant alone, and the default settings, on the same seed.

They never depend on the settings under test, so that nothing an agent does can move the yardstick.
Each costs as many runs as there are tenants plus one, and is remembered in memory and on disk.
"""

from __future__ import annotations

import hashlib
import json
import math
import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from roce_gym.cache import cache_folder, write_whole
from roce_gym.config import (
    ControlConfig,
    FlowList,
    Job,
    PoissonJob,
    Scenario,
    TopologyFile,
    TraceJob,
)
from roce_gym.fabric import Fabric
from roce_gym.progress import Alone, Pace, Progress, Work
from roce_gym.reward import TERMS, RewardTerms
from roce_gym.sim.jit import source_hash
from roce_gym.tail import Tails, late_slowdowns
from roce_gym.topology.graph import Network
from roce_gym.traces import trace_files
from roce_gym.units import PS_PER_S, us_to_ps
from roce_gym.workload.plan import Plan

ALONE_PRESET = "pfc_only"
"""Settings under which a tenant is alone: nothing holds it back but the fabric."""

MEMORY_ENTRIES = 1024


@dataclass(frozen=True)
class References:
    """What runs of one scenario and seed are compared with.

    Attributes:
        alone: see :class:`Alone`.
        pace: see :class:`Pace`.
        baseline: mean over the episode of each raw reward term under the default settings.
    """

    alone: Alone
    pace: Pace
    baseline: dict[str, float]


def num_steps(control: ControlConfig) -> int:
    """Control intervals until the horizon is reached or passed."""
    return max(1, math.ceil(us_to_ps(control.horizon_us) / us_to_ps(control.interval_us)))


def compute_references(
    scenario: Scenario, seed: int, network: Network | None = None, plan: Plan | None = None
) -> References:
    """Runs the counterfactuals.

    Args:
        scenario, seed: as for :class:`Fabric`.
        network, plan: of all tenants, if built before.
    """
    alone = _alone(scenario, seed, network)
    fabric = Fabric(scenario, seed, network=network, plan=plan)
    progress = Progress(scenario, fabric.plan)
    into_switch = fabric.network.into_switch
    steps = num_steps(scenario.control)
    intervals = [fabric.advance(us=scenario.control.interval_us) for _ in range(steps)]
    works = [progress(interval) for interval in intervals]
    ends_ps = [interval.end_ps for interval in intervals]
    length_ps = ends_ps[-1]
    frames = sum(interval.pause_frames[into_switch].sum() for interval in intervals)
    busy_ps = np.sum([work.busy_ps for work in works], axis=0)
    rounds = np.sum([work.rounds for work in works], axis=0)
    pace = Pace(
        length_ps=float(length_ps),
        pfc_frames_per_s=float(frames / len(into_switch) / (length_ps / PS_PER_S)),
        busy_ps=tuple(busy_ps.tolist()),
        needed_ps=tuple((rounds * np.array(alone.cct_ps)).tolist()),
        rounds=_rounds(
            Tails(scenario, progress, np.array(alone.cct_ps)).jobs, alone, ends_ps, works
        ),
    )
    terms = RewardTerms(scenario, fabric.network, progress, alone, pace)
    rows = [terms(interval, work) for interval, work in zip(intervals, works, strict=True)]
    return References(alone, pace, {t: float(np.mean([row[t] for row in rows])) for t in TERMS})


def _rounds(
    jobs: Sequence[int], alone: Alone, ends_ps: Sequence[int], works: Sequence[Work]
) -> tuple[tuple[float, ...], ...]:
    """As in :class:`Pace`, of these jobs."""
    rows: list[tuple[float, ...]] = []
    for end_ps, work in zip(ends_ps, works, strict=True):
        rows += [(job, end_ps, time_ps) for job, time_ps in work.times.T.tolist() if job in jobs]
    late = late_slowdowns(works[-1], np.array(alone.cct_ps))
    rows += [(job, ends_ps[-1], late[job] * alone.cct_ps[job]) for job in jobs if late[job] > 0]
    return tuple(tuple(float(value) for value in row) for row in rows)


def _alone(scenario: Scenario, seed: int, network: Network | None) -> Alone:
    horizon_ps = num_steps(scenario.control) * us_to_ps(scenario.control.interval_us)
    cct_ps: list[float] = []
    busy_fraction: list[float] = []
    rounds: list[int] = []
    dropped_packets: list[int] = []
    for tenant in scenario.tenants:
        fabric = Fabric(
            scenario, seed, preset=ALONE_PRESET, only_tenant=tenant.name, network=network
        )
        interval = fabric.advance(ps=horizon_ps)
        work = Progress(scenario, fabric.plan)(interval)
        mean = work.ended_ps / np.maximum(work.ended, 1.0)
        guess = work.busy_ps / np.maximum(work.rounds, 1e-12)  # none ended: busy time per progress
        begun = work.rounds > 0
        cct_ps += np.where(work.ended > 0, mean, np.where(begun, guess, 0.0)).tolist()
        busy_fraction.append(float(work.busy_ps[begun].sum()) / horizon_ps)
        rounds += work.ended.astype(int).tolist()
        dropped_packets.append(interval.all_dropped_packets)
    return Alone(tuple(cct_ps), tuple(busy_fraction), tuple(rounds), tuple(dropped_packets))


# --------------------------------------------------------------------------- cache

_memory: OrderedDict[str, References] = OrderedDict()
_lock = threading.Lock()


def get_references(
    scenario: Scenario, seed: int, network: Network | None = None, plan: Plan | None = None
) -> References:
    """As :func:`compute_references`, from memory or disk where it was computed before."""
    if not is_reproducible(scenario):
        return compute_references(scenario, seed, network, plan)
    key = cache_key(_without_agent(scenario), seed)
    with _lock:
        if key in _memory:
            _memory.move_to_end(key)
            return _memory[key]
    path = _path(key)
    found = _load(path, scenario)
    if found is None:
        found = compute_references(scenario, seed, network, plan)
        _save(path, found)
    with _lock:
        _memory[key] = found
        while len(_memory) > MEMORY_ENTRIES:
            _memory.popitem(last=False)
    return found


def _without_agent(scenario: Scenario) -> Scenario:
    """What the counterfactuals depend on: of `control`, the times only."""
    control = scenario.control
    bare = ControlConfig(interval_us=control.interval_us, horizon_us=control.horizon_us)
    return scenario.model_copy(update={"control": bare})


def forget_references() -> None:
    """Empties the memory; files stay."""
    with _lock:
        _memory.clear()


def cache_key(scenario: Scenario, seed: int) -> str:
    """Changes with the scenario, the files it names, the seed, and this package's source."""
    digest = hashlib.sha256(f"{_code_hash()} {seed} {scenario.model_dump_json()}".encode())
    for name in named_files(scenario):
        digest.update(hashlib.sha256(Path(name).read_bytes()).digest())
    return digest.hexdigest()[:40]


def is_reproducible(scenario: Scenario) -> bool:
    """Whether it and its files say all; nothing tells functions given in memory apart."""
    return not any(t.cc == "user" and t.user and t.user.file is None for t in scenario.tenants)


def named_files(scenario: Scenario) -> list[str | Path]:
    """The files that a scenario names."""
    files = [name for t in scenario.tenants for job in t.jobs for name in _files_of(job)]
    files += [t.user.file for t in scenario.tenants if t.cc == "user" and t.user is not None]
    if isinstance(scenario.topology, TopologyFile):
        files.append(scenario.topology.path)
    return [name for name in files if name is not None]


def _files_of(job: Job) -> list[str | Path | None]:
    if isinstance(job, FlowList):
        return [job.file]
    if isinstance(job, PoissonJob):
        return [job.sizes_file]
    if isinstance(job, TraceJob):
        return [*trace_files(job.file, job.format), job.groups_file]
    return []


@cache
def _code_hash() -> str:
    digest = hashlib.sha256(f"{source_hash()} {np.__version__}".encode())
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _path(key: str) -> Path | None:
    folder = cache_folder()
    return None if folder is None else folder / "references" / f"{key}.json"


def _load(path: Path | None, scenario: Scenario) -> References | None:
    """What a file holds; None if it cannot be read or does not fit the scenario."""
    if path is None:
        return None
    try:
        raw: Any = json.loads(path.read_text(encoding="utf-8"))
        alone = Alone(
            _numbers(raw["cct_ps"]),
            _numbers(raw["busy_fraction"]),
            tuple(map(int, raw["rounds"])),
            tuple(map(int, raw["dropped_packets"])),
        )
        length_ps, frames = _numbers([raw["length_ps"], raw["default_pfc_frames_per_s"]])
        pace = Pace(
            length_ps,
            frames,
            _numbers(raw["default_busy_ps"]),
            _numbers(raw["default_needed_ps"]),
            tuple(_numbers(row) for row in raw["default_rounds"]),
        )
        baseline = dict(zip(TERMS, _numbers([raw["baseline"][t] for t in TERMS]), strict=True))
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None
    jobs = sum(len(tenant.jobs) for tenant in scenario.tenants)
    by_job = (alone.cct_ps, alone.rounds, pace.busy_ps, pace.needed_ps)
    fits = all(len(values) == jobs for values in by_job) and pace.length_ps > 0
    by_tenant = (alone.busy_fraction, alone.dropped_packets)
    fits = fits and all(len(values) == len(scenario.tenants) for values in by_tenant)
    fits = fits and all(len(row) == 3 and 0 <= row[0] < jobs for row in pace.rounds)
    return References(alone, pace, baseline) if fits else None


def _numbers(values: Any) -> tuple[float, ...]:
    numbers = tuple(float(value) for value in values)
    if not all(math.isfinite(number) for number in numbers):
        raise ValueError("not finite")
    return numbers


def _save(path: Path | None, references: References) -> None:
    """Writes a file whole or not at all; where nothing can be written, nothing happens."""
    if path is None:
        return
    text = json.dumps(
        {
            "cct_ps": references.alone.cct_ps,
            "busy_fraction": references.alone.busy_fraction,
            "rounds": references.alone.rounds,
            "dropped_packets": references.alone.dropped_packets,
            "length_ps": references.pace.length_ps,
            "default_pfc_frames_per_s": references.pace.pfc_frames_per_s,
            "default_busy_ps": references.pace.busy_ps,
            "default_needed_ps": references.pace.needed_ps,
            "default_rounds": references.pace.rounds,
            "baseline": references.baseline,
        }
    )
    write_whole(path, text)
