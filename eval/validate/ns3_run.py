"""Runs cases on this simulator, several seeds at a time on several processes."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eval.validate.ns3_scenario import Case
from eval.validate.ns3_types import Results
from roce_gym.fabric import Fabric
from roce_gym.units import PS_PER_MS, PS_PER_NS

_STEP_PS = PS_PER_MS // 4


@dataclass(frozen=True)
class Task:
    """A case with a seed."""

    case: Case
    seed: int


def simulate(case: Case, seed: int) -> Results:
    """Runs until all flows are done, nothing moves any more, or the case's end."""
    fabric = Fabric(case.scenario, seed, network=case.network, plan=case.plan)
    network = fabric.network
    from_switch = network.link_src >= network.num_hosts
    fct_ps: list[int] = []
    pauses = marks = max_queue = 0
    received = np.zeros(len(fabric.plan.qps), np.int64)
    while fabric.now_ps < case.stop_ps and fabric.flows_done < fabric.num_flows:
        interval = fabric.advance(ps=min(_STEP_PS, case.stop_ps - fabric.now_ps))
        ended = interval.completions
        fct_ps += (ended["end_ps"] - ended["start_ps"]).tolist()
        pauses += int(interval.pause_frames.sum())
        marks += int(interval.cnps.sum())
        max_queue = max(max_queue, int(interval.queue_max_bytes[from_switch].max()))
        received += interval.delivered_bytes
    all_done = len(fct_ps) == fabric.num_flows
    return Results(
        flows_done=len(fct_ps),
        mean_fct_ns=sum(fct_ps) / len(fct_ps) / PS_PER_NS if fct_ps else 0.0,
        max_fct_ns=max(fct_ps, default=0) / PS_PER_NS,
        goodput_gbps=0.0 if all_done else _goodput_gbps(fabric, received),
        pause_frames=pauses,
        max_queue_bytes=max_queue,
        marked_packets=marks,
    )


def _goodput_gbps(fabric: Fabric, received: NDArray[np.int64]) -> float:
    """Payload that arrived per time from a flow's start to now, mean over flows."""
    job = fabric.plan.jobs[0]
    duration_ps = fabric.now_ps - np.array(job.flow_start_ps)
    bits = 8 * received[list(job.qps[0])]
    rates = np.where(duration_ps > 0, bits * (1000.0 / np.maximum(duration_ps, 1)), 0.0)
    return float(rates.mean())


def run_tasks(
    tasks: Sequence[Task], jobs: int, progress: Callable[[int, int], None]
) -> list[Results]:
    """Runs all tasks; results in their order.

    Args:
        tasks: what to run.
        jobs: processes; 1 runs everything in this one.
        progress: called with the numbers of tasks done and of all tasks.
    """
    done: dict[int, Results] = {}
    if jobs == 1:
        for i, task in enumerate(tasks):
            done[i] = simulate(task.case, task.seed)
            progress(len(done), len(tasks))
    else:
        largest_first = sorted(range(len(tasks)), key=lambda i: -_size(tasks[i].case))
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(jobs, mp_context=context) as pool:
            numbers = {
                pool.submit(simulate, tasks[i].case, tasks[i].seed): i for i in largest_first
            }
            for future in as_completed(numbers):
                done[numbers[future]] = future.result()
                progress(len(done), len(tasks))
    return [done[i] for i in range(len(tasks))]


def _size(case: Case) -> int:
    """Bytes times hops, about proportional to the time a run takes."""
    job = case.plan.jobs[0]
    return sum(
        size * len(case.plan.qps[qp].data_links)
        for size, qp in zip(job.flow_bytes, job.qps[0], strict=True)
    )
