"""Random operation graphs and collectives for tiny cases."""

from __future__ import annotations

import random
from typing import Any

from roce_gym.config import ALGORITHMS
from roce_gym.topology.graph import Network
from roce_gym.workload.graph_builder import OpGraphBuilder
from roce_gym.workload.graph_plan import GraphWork
from roce_gym.workload.machines import Options
from roce_gym.workload.op_graph import CollectiveCall, OpGraph, OpKind

SIZES = (1, 900, 5_000, 20_000)


class GraphJobs:
    """Some jobs of the tenants become collectives, or graphs drawn by `random_work`.

    Args:
        number: of the case.
        more: another extra, which comes after.
    """

    def __init__(self, number: int, more: Any = None) -> None:
        self.random = random.Random(f"graphs {number}")
        self.more = more

    def add(self, raw: dict[str, Any], network: Network) -> None:
        r = self.random
        for i, tenant in enumerate(raw["tenants"]):
            for k in range(len(tenant["jobs"])):
                if (i, k) == (0, 0) or r.random() < 0.6:
                    tenant["jobs"][k] = draw_job(r, len(tenant["hosts"]))
        if self.more is not None:
            self.more.add(raw, network)

    def settings(self, settings: Any) -> Any:
        return settings if self.more is None else self.more.settings(settings)


def draw_job(r: random.Random, n: int) -> dict[str, Any]:
    """A collective, or a pipeline in whose place `random_work` puts any graph."""
    common = {
        "start_us": r.choice([0, 0, 3, 7.5]),
        "jitter": r.choice([0, 0.2, 0.9]),
        "rounds": r.choice([1, 3, 5]),
    }
    if r.random() < 0.3:
        common["stop_us"] = r.choice([20, 150])
    if r.random() < 0.5:
        times = {"forward_us": 1, "backward_us": r.choice([0, 1, 5]), "bytes": 1}
        return common | times | {"kind": "pipeline", "micro_batches": r.randint(1, 60_000)}
    operation = r.choice(sorted(ALGORITHMS))
    algorithms = [a for a in ALGORITHMS[operation] if a != "hierarchical"]
    if operation != "all_reduce" and n & (n - 1):
        algorithms = [a for a in algorithms if a != "halving_doubling"]
    options = draw_options(r)
    return (
        common
        | options._asdict()
        | {
            "kind": "collective",
            "operation": operation,
            "algorithm": r.choice(algorithms),
            "bytes": r.choice(SIZES),
            "compute_us": r.choice([0, 0, 1, 10]),
            "in_flight": r.choice([1, 1, 2, 3]),
        }
    )


def draw_options(r: random.Random) -> Options:
    return Options(
        channels=r.choice([1, 1, 2, 3]),
        chunk_bytes=r.choice([1_500, 4_000, 1 << 19]),
        slices=r.choice([1, 1, 2]),
        qps_per_connection=r.choice([1, 1, 2]),
        split_data_on_qps=r.random() < 0.5,
    )


def random_work(job: Any, place: Any, _network: Network, _seed: int) -> GraphWork:
    """In the place of a pipeline: any graph, by its `micro_batches`."""
    r = random.Random(job.micro_batches)
    return GraphWork(
        graph=random_graph(r, len(place.hosts)),
        options=draw_options(r),
        rounds=-1 if job.rounds is None else job.rounds,
        compute_ps=r.choice([0, 0, 1_000_000]),
        jitter=job.jitter,
    )


def random_graph(r: random.Random, n: int) -> OpGraph:
    """Drawn in an order in which it can be executed; numbered in another one, rank by rank or not.

    Every operation depends on some of those of its rank before it.
    """
    build = OpGraphBuilder(n)
    before: list[list[int]] = [[] for _ in range(n)]
    calls: list[CollectiveCall] = []

    def add(rank: int, kind: OpKind, **fields: Any) -> None:
        count = min(len(before[rank]), r.choice([0, 1, 1, 2, 3]))
        op = build.add(rank, kind, needs=r.sample(before[rank], count), **fields)
        before[rank].append(op)

    for _ in range(r.randint(2, 14)):
        what = r.choice(["compute", "mark", "message", "message", "message", "collective"])
        a, b = r.sample(range(n), 2)
        if what == "compute":
            add(a, OpKind.COMPUTE, duration_ps=r.choice([0, 100, 1_000_000, 7_654_321]))
        elif what == "mark":
            add(a, OpKind.MARK)
        elif what == "message":
            tag = r.randint(0, 2)  # those of one tag may be matched with each other
            ends = {"tag": tag, "channel": r.randint(0, 1), "size": SIZES[tag]}
            add(a, OpKind.SEND, peer=b, **ends)
            add(b, OpKind.RECV, peer=a, **ends)
        else:
            ranks = tuple(r.sample(range(n), r.randint(2, n)))
            operation = r.choice(sorted(ALGORITHMS))
            algorithms = [x for x in ALGORITHMS[operation] if x != "hierarchical"]
            if operation != "all_reduce" and len(ranks) & (len(ranks) - 1):
                algorithms = [x for x in algorithms if x != "halving_doubling"]
            calls.append(CollectiveCall(operation, r.choice(algorithms), ranks, r.choice(SIZES)))
            for rank in ranks:
                add(rank, OpKind.COLLECTIVE, peer=len(calls) - 1)
    add(0, OpKind.COMPUTE, duration_ps=500_000)
    return build.graph(calls)
