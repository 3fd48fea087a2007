"""Timing: packet-hops a second, starts of a process, steps of an environment."""

from __future__ import annotations

import heapq
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium.utils.performance import benchmark_step, benchmark_vector_step

import roce_gym  # noqa: F401  (registers the environments)
from eval.benchmarks.cases import Case
from roce_gym.batch import num_cores
from roce_gym.fabric import Fabric
from roce_gym.scenario_file import load_scenario
from roce_gym.starts import forget_starts
from roce_gym.topology import build_network
from roce_gym.workload.planner import make_plan

_LAYOUTS = 2
_RESETS = 9
_YARDSTICK_EVENTS = 100_000
_COST_AIM = 1.05
_COST_REPETITIONS = 3
"""Times as many as of other rows, as the aim is close to what is measured."""

_START = """
from roce_gym.config import validate_scenario
from roce_gym.fabric import Fabric

job = {"kind": "all_to_all", "bytes": 4096}
scenario = {
    "name": "start",
    "topology": {"kind": "star", "hosts": 2},
    "tenants": [{"name": "pair", "hosts": [0, 1], "jobs": [job]}],
}
Fabric(validate_scenario(scenario)).advance(us=1)
"""


@dataclass(frozen=True)
class Row:
    """One measured figure.

    Attributes:
        name: what.
        value, unit: the figure; median of the repetitions.
        yardstick_ratio: value over the yardstick measured beside it; 0 where that makes no sense.
        aim: what we want, 0 = no aim.
        at_most: the aim is an upper bound.
        plain_ratio: value over that of the plain workload, timed in turn with it; 0 = none.
        plain_aim: least of that, 0 = no aim.
    """

    name: str
    value: float
    unit: str
    yardstick_ratio: float = 0.0
    aim: float = 0.0
    at_most: bool = False
    plain_ratio: float = 0.0
    plain_aim: float = 0.0

    @property
    def reached(self) -> bool:
        """Whether the aim is reached; True without one."""
        if self.plain_ratio < self.plain_aim:
            return False
        if not self.aim:
            return True
        return self.value <= self.aim if self.at_most else self.value >= self.aim


def yardstick() -> float:
    """Events a second of a plain Python event queue (`heapq` of tuples, 1,000 waiting)."""
    queue = [(i, i) for i in range(1000)]
    heapq.heapify(queue)
    begun = time.perf_counter()
    for i in range(_YARDSTICK_EVENTS):
        due, _ = heapq.heappop(queue)
        heapq.heappush(queue, (due + 1 + i % 997, i))
    return _YARDSTICK_EVENTS / (time.perf_counter() - begun)


class _Stretch:
    """A stretch of simulated time that can be timed again and again."""

    def __init__(self, case: Case) -> None:
        self._us = case.timed_us
        self._fabric = Fabric(case.scenario, seed=1)
        self._links = np.array([len(pair.data_links) for pair in self._fabric.plan.qps])
        self._mtu_bytes = case.scenario.nic.mtu_bytes
        self._fabric.advance(us=case.warm_us)
        self._start = self._fabric.snapshot()
        self._fabric.advance(us=self._us)  # pools and pages are as large as they get

    def packet_hops_per_s(self, clock: Callable[[], float] = time.perf_counter) -> float:
        """Data packets times links they cross, per second of a clock. ACKs do not count."""
        self._fabric.restore(self._start)
        begun = clock()
        interval = self._fabric.advance(us=self._us)
        elapsed = clock() - begun
        return float((interval.delivered_bytes / self._mtu_bytes * self._links).sum()) / elapsed


def packet_hops(case: Case, repeat: int) -> Row:
    """Times a workload; where there is a plain one to compare it with, both in turn."""
    timed_one = _Stretch(case)
    plain = None if case.plain is None else _Stretch(case.plain)
    rates, ratios, plain_ratios = [], [], []
    for _ in range(repeat):
        beside = yardstick()
        rates.append(timed_one.packet_hops_per_s())
        ratios.append(rates[-1] / ((beside + yardstick()) / 2))
        if plain is not None:
            plain_ratios.append(rates[-1] / plain.packet_hops_per_s())
    return Row(
        case.name,
        statistics.median(rates),
        "packet-hops/s",
        statistics.median(ratios),
        case.aim,
        plain_ratio=statistics.median(plain_ratios) if plain_ratios else 0.0,
        plain_aim=case.plain_aim,
    )


def cost(case: Case, repeat: int) -> Row:
    """What a step machine costs: seconds a packet-hop, over those of the list of flows beside it.

    Both are run in turns, in processor time, so that other processes disturb both alike.
    """
    if case.plain is None:
        raise ValueError(f"{case.name} has no workload to be compared with")
    machine, flows = _Stretch(case), _Stretch(case.plain)
    clock = time.process_time
    ratios = [
        flows.packet_hops_per_s(clock) / machine.packet_hops_per_s(clock)
        for _ in range(_COST_REPETITIONS * repeat)
    ]
    return Row(case.name, statistics.median(ratios), "x flow list", aim=_COST_AIM, at_most=True)


def planning() -> Row:
    """From the scenario's file to all queue pairs, paths and step machines; processor time."""
    begun = time.process_time()
    scenario = load_scenario("case_study_8_tenants", overrides=["scale=16384"])
    make_plan(scenario, build_network(scenario.topology), seed=1)
    elapsed = time.process_time() - begun
    return Row("workload of 16,384 GPUs is planned", elapsed, "s", aim=10.0, at_most=True)


def starts() -> list[Row]:
    """A process that compiles the simulator, and one that finds it compiled, until 1 us is over."""
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "NUMBA_CACHE_DIR": cache}
        cold = _process(environment)
        warm = [_process(environment) for _ in range(3)]
    return [
        Row("first start, compiles", cold, "s"),
        Row("second process is ready", statistics.median(warm), "s", aim=2.0, at_most=True),
    ]


def _process(environment: dict[str, str]) -> float:
    begun = time.perf_counter()
    subprocess.run(
        [sys.executable, "-c", _START],
        check=True,
        env=environment,
        stderr=subprocess.DEVNULL,
        cwd=Path(__file__).parents[2],
    )
    return time.perf_counter() - begun


def env_steps(env_id: str, seconds: int, aim: float = 0.0) -> Row:
    """Steps a second by Gymnasium's own benchmark: random actions, resets included.

    Episodes are of two seeds whose references are known, so that no reset computes them.
    """
    env = gymnasium.make(env_id, layouts=_LAYOUTS)
    for seed in range(_LAYOUTS):
        env.reset(seed=seed)
    env.step(env.action_space.sample())
    rate, ratio = _beside_yardstick(lambda: benchmark_step(env, seconds, seed=0))
    env.close()
    return Row(f"{env_id}, one core", rate, "steps/s", ratio, aim)


def vector_steps(env_id: str, seconds: int, aim: float = 0.0) -> Row:
    """The same of the native vector environment, with a thread a core and two environments each."""
    cores = num_cores()
    envs = gymnasium.make_vec(env_id, num_envs=2 * cores, layouts=_LAYOUTS)
    for seed in range(_LAYOUTS):
        envs.reset(seed=[seed] * envs.num_envs)
    rate, ratio = _beside_yardstick(lambda: benchmark_vector_step(envs, seconds, seed=0))
    envs.close()
    return Row(f"{env_id}, {envs.num_envs} on {cores} cores", rate, "steps/s", ratio, aim)


def reset_costs(env_id: str, aim: float) -> list[Row]:
    """What a reset costs, in steps: to a seed that was played before, and to one that was not.

    References are known for both; resets and steps are timed in whole episodes of random actions.
    """
    env = gymnasium.make(env_id)
    env.action_space.seed(0)
    seeds = range(_RESETS)
    for seed in seeds:
        env.reset(seed=seed)
    again, step_s = _episodes(env, seeds, lambda: None)
    anew, _ = _episodes(env, seeds, forget_starts)
    env.close()
    return [
        Row(f"{env_id}, reset", again / step_s, "steps", aim=aim, at_most=True),
        Row(f"{env_id}, first reset to a seed", anew / step_s, "steps"),
    ]


def _episodes(
    env: gymnasium.Env[Any, Any], seeds: Iterable[int], before: Callable[[], None]
) -> tuple[float, float]:
    """Median seconds of processor time of a reset, and of a step: median of episodes' means."""
    resets, steps = [], []
    for seed in seeds:
        before()
        begun = time.process_time()
        env.reset(seed=seed)
        resets.append(time.process_time() - begun)
        done, count, begun = False, 0, time.process_time()
        while not done:
            _, _, terminated, truncated, _ = env.step(env.action_space.sample())
            done, count = terminated or truncated, count + 1
        steps.append((time.process_time() - begun) / count)
    return statistics.median(resets), statistics.median(steps)


def _beside_yardstick(measure: Callable[[], float]) -> tuple[float, float]:
    beside = yardstick()
    rate = measure()
    return rate, rate / ((beside + yardstick()) / 2)


def peak_memory() -> Row:
    """Most memory this process has used so far."""
    kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return Row("peak memory of all of the above", kib / 1024, "MiB")


def timed(measure: Callable[[], Row | list[Row]]) -> list[Row]:
    """Always a list."""
    rows = measure()
    return rows if isinstance(rows, list) else [rows]
