"""Operation graphs and the step machines of their collectives as `sim/` wants them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from roce_gym.sim import types as t
from roce_gym.workload.graph_plan import GraphPlan
from roce_gym.workload.machines import Machine, Sizes
from roce_gym.workload.op_graph import OpKind
from roce_gym.workload.plan import JobPlan, Plan

Arrays = dict[str, NDArray[Any]]

_DTYPES: dict[str, Any] = {
    "op": t.OP,
    "op_behind": np.int32,
    "crew": t.CREW,
    "compute_op": np.int32,
    "call": t.CALL,
    "phase": t.PHASE,
    "lane": t.LANE,
    "need": t.NEED,
    "fed": np.int32,
    "station": t.STATION,
    "progress": t.PROGRESS,
    "part": t.PART,
}
"""Arrays of `sim.types.State` that belong to graphs, beside `arriving`."""

_ARRIVING = ("arriving", np.int32)


def make_graphs(plan: Plan, first_member: list[int]) -> Arrays:
    """Everything about graphs; empty arrays if there are none.

    Args:
        plan: of all jobs.
        first_member: of each job.
    """
    if all(job.graph is None for job in plan.jobs):
        return {name: np.zeros(0, dtype) for name, dtype in (*_DTYPES.items(), _ARRIVING)}
    maker = _Maker(len(plan.jobs))
    for number, job in enumerate(plan.jobs):
        if job.graph is not None:
            maker.add(number, job, job.graph, first_member[number])
    arrays = {name: maker.joined(name, dtype) for name, dtype in _DTYPES.items()}
    arrays["arriving"] = np.full(len(plan.qps), t.NONE, np.int32)
    return arrays


def joined(dtype: Any, parts: list[NDArray[Any]]) -> NDArray[Any]:
    """One array of all parts; NumPy's own way first compares their fields, which takes longer."""
    out = np.zeros(sum(map(len, parts)), dtype)
    start = 0
    for part in parts:
        out[start : start + len(part)] = part
        start += len(part)
    return out


class _Maker:
    """Appends job after job."""

    def __init__(self, num_jobs: int) -> None:
        self._num_jobs = num_jobs
        self._parts: dict[str, list[NDArray[Any]]] = {name: [] for name in _DTYPES}
        self._counts = dict.fromkeys(_DTYPES, 0)

    def joined(self, name: str, dtype: Any) -> NDArray[Any]:
        """The array so far."""
        return joined(dtype, self._parts[name])

    def _count(self, name: str) -> int:
        return self._counts[name]

    def _append(self, name: str, records: NDArray[Any]) -> None:
        self._parts[name].append(records)
        self._counts[name] += len(records)

    def add(self, number: int, job: JobPlan, plan: GraphPlan, first_member: int) -> None:
        """Appends a job's graph."""
        graph = plan.graph
        others = first_member - self._count("crew")  # members of jobs of other kinds
        self._append("crew", np.zeros(others, t.CREW))
        qps = np.array(job.qps[0], np.int32)
        machines = [
            self._add_machine(machine, qps[lane_qp])
            for machine, lane_qp in zip(plan.machines, plan.lane_qp, strict=True)
        ]
        first_part = self._count("part")
        ops = np.flatnonzero(graph.kind == OpKind.COLLECTIVE)
        ops = ops[np.argsort(graph.peer[ops], kind="stable")]  # of each call by rank
        ends = np.searchsorted(graph.peer[ops], np.arange(len(graph.collectives) + 1))
        for index, call in enumerate(graph.collectives):
            self._add_call(number, index, plan, machines[int(plan.call_machine[index])])
            part = np.zeros(len(call.ranks), t.PART)
            own = ops[ends[index] : ends[index + 1]]
            part["op"] = self._count("op") + own[np.argsort(np.argsort(call.ranks))]
            part["call"] = self._count("call") - 1
            part["rank"] = np.arange(len(call.ranks))
            self._append("part", part)
        self._add_marks(number, np.flatnonzero(graph.kind == OpKind.MARK))
        self._add_ops(job, plan, qps, first_member, first_part)

    def _add_ops(
        self,
        job: JobPlan,
        plan: GraphPlan,
        qps: NDArray[np.int32],
        first_member: int,
        first_part: int,
    ) -> None:
        graph = plan.graph
        first = self._count("op")
        computes = np.flatnonzero(graph.kind == OpKind.COMPUTE)
        sends = np.flatnonzero(graph.kind == OpKind.SEND)
        op = np.zeros(len(graph.rank), t.OP)
        op["kind"] = np.where(graph.kind == OpKind.MARK, t.COLLECTIVE_OP, graph.kind)
        op["member"] = first_member + graph.rank
        op["needs"] = op["left"] = np.diff(graph.first_dependency)
        op["amount"] = np.where(graph.kind == OpKind.SEND, graph.bytes, graph.duration_ps)
        op["target"][computes] = self._count("compute_op") + np.arange(len(computes))
        op["target"][sends] = qps[plan.send_qp[sends]]
        op["mate"][sends] = first + plan.mate[sends]
        if self._count("part") > first_part:
            parts = np.concatenate(self._parts["part"])[first_part:]
            op["target"][parts["op"] - first] = first_part + np.arange(len(parts))
        behind, starts = _by_target(graph.dependency, np.diff(graph.first_dependency), len(op))
        op["first_behind"] = self._count("op_behind") + starts[:-1]
        op["num_behind"] = np.diff(starts)
        crew = np.zeros(len(job.hosts), t.CREW)
        bounds = np.searchsorted(graph.rank, np.arange(len(job.hosts) + 1))
        crew["first_op"] = first + bounds[:-1]
        crew["num_ops"] = np.diff(bounds)
        crew["head"] = crew["tail"] = t.NONE
        self._append("op_behind", (first + behind).astype(np.int32))
        self._append("compute_op", (first + computes).astype(np.int32))
        self._append("crew", crew)
        self._append("op", op)

    def _add_call(
        self, number: int, index: int, plan: GraphPlan, machine: tuple[int, int, Machine]
    ) -> None:
        first_lane, first_station, lanes = machine
        sizes: Sizes = plan.call_sizes[index]
        call = np.zeros(1, t.CALL)
        values = {
            "job": number,
            "index": index,
            "number": self._num_jobs + self._count("call"),
            "bytes": plan.graph.collectives[index].bytes,
            "num_ranks": lanes.num_ranks,
            "first_lane": first_lane,
            "first_station": first_station,
            "first_phase": self._count("phase"),
            "first_progress": self._count("progress"),
            "first_part": self._count("part"),
        }
        for name, value in values.items():
            call[name] = value
        phase = np.zeros(len(sizes), t.PHASE)
        phase["messages"], phase["bytes"], phase["ahead"] = sizes.T
        progress = np.zeros(len(lanes.src), t.PROGRESS)
        progress["call"] = self._count("call")
        progress["lane"] = np.arange(len(lanes.src))
        self._append("phase", phase)
        self._append("progress", progress)
        self._append("call", call)

    def _add_marks(self, number: int, marks: NDArray[np.intp]) -> None:
        """Appends collectives of one rank without lanes and bytes: begun, they are done and logged.

        Args:
            number: of the job.
            marks: operations, by their number in it.
        """
        own = np.arange(len(marks))
        call = np.zeros(len(marks), t.CALL)
        call["job"], call["index"], call["num_ranks"] = number, own, 1
        call["number"] = self._num_jobs + self._count("call") + own
        call["first_station"] = self._count("station")
        call["first_part"] = self._count("part") + own
        part = np.zeros(len(marks), t.PART)
        part["op"] = self._count("op") + marks
        part["call"] = self._count("call") + own
        self._append("station", np.zeros(min(1, len(marks)), t.STATION))
        self._append("part", part)
        self._append("call", call)

    def _add_machine(self, machine: Machine, qp: NDArray[np.int32]) -> tuple[int, int, Machine]:
        """Where its lanes and its stations begin, and the machine."""
        first_lane, first_station = self._count("lane"), self._count("station")
        size = len(machine.src)
        lane = np.zeros(size, t.LANE)
        lane["qp"], lane["phase"] = qp, machine.phase
        lane["src"], lane["dst"] = machine.src, machine.dst
        lane["after"] = machine.after
        lane["then"] = t.NONE
        waits = np.flatnonzero(machine.after >= 0)
        lane["then"][machine.after[waits]] = waits
        counts = np.bincount(machine.need_lane, minlength=size)
        lane["num_needs"] = counts
        lane["first_need"] = self._count("need") + np.cumsum(counts) - counts
        order = np.argsort(machine.need_on, kind="stable")
        counts = np.bincount(machine.need_on, minlength=size)
        lane["num_fed"] = counts
        lane["first_fed"] = self._count("fed") + np.cumsum(counts) - counts
        need = np.zeros(len(machine.need_lane), t.NEED)
        need["lane"], need["whole"] = machine.need_on, machine.need_whole
        station = np.zeros(machine.num_ranks, t.STATION)
        bounds = np.searchsorted(machine.src, np.arange(machine.num_ranks + 1))
        station["first_lane"], station["num_lanes"] = bounds[:-1], np.diff(bounds)
        station["num_into"] = np.bincount(machine.dst, minlength=machine.num_ranks)
        self._append("need", need)
        self._append("fed", machine.need_lane[order].astype(np.int32))
        self._append("lane", lane)
        self._append("station", station)
        return first_lane, first_station, machine


def _by_target(
    dependency: NDArray[np.int64], counts: NDArray[np.int64], size: int
) -> tuple[NDArray[np.intp], NDArray[np.int64]]:
    """Operations that depend on each, ascending, and where those of each begin."""
    op = np.repeat(np.arange(size), counts)
    order = np.argsort(dependency, kind="stable")
    starts = np.searchsorted(dependency[order], np.arange(size + 1))
    return op[order], starts
