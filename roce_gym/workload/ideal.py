"""How long a round would take if the network took no time."""

from __future__ import annotations

from roce_gym.workload.graph_check import order_of
from roce_gym.workload.plan import JobPlan


def ideal_round_ps(job: JobPlan) -> int:
    """Time in ps from the moment all members have entered a round to its end, on such a network.

    Rings, all-to-alls and incasts do nothing but communicate then. A graph takes its critical
    path: computing, and waiting for what others compute, as in a pipeline. Jitter is left out, so
    that the durations of a round, and with them its path, differ by up to that share.

    Args:
        job: any but a list of flows.
    """
    if job.graph is None:
        return 0
    return int(order_of(job.graph.graph, job.graph.mate).end_ps.max(initial=0))
