"""Requests of inference jobs: the moments that matter of each, and the times between them.

A request arrives when the first rank of its replica knows of it. Its first token is there when the
last rank has computed the prompt, and it is done when the last rank has computed the last token.
What they are called: NVIDIA, "LLM Benchmarking, Metrics" (time to first token and end-to-end
request latency, both with queueing), vLLM's `time_to_first_token_seconds` and
`e2e_request_latency_seconds`; MLPerf's server scenario also counts from the scheduled arrival.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from roce_gym.workload.op_graph import OpGraph, OpKind

Ints = NDArray[np.int64]


class Moment(IntEnum):
    """What a MARK operation marks; all but arrivals for the whole batch."""

    ARRIVAL = 0
    FIRST_TOKEN = 1
    DONE = 2


def tag_of(moment: Moment, request: int) -> int:
    """Tag of a MARK.

    Args:
        moment: what it marks.
        request: number in the round, over all replicas; the last one of a batch stands for it.
    """
    return len(Moment) * request + moment


class RequestTimes(NamedTuple):
    """Times of the requests of a job, in the order of rounds, and of numbers in them.

    Attributes:
        arrived: how many have arrived.
        ttft_ps: shape (those whose prompt is computed,), int64, time to first token.
        e2e_ps: shape (those done,), int64, end-to-end latency.
    """

    arrived: int
    ttft_ps: Ints
    e2e_ps: Ints


def request_times(graph: OpGraph, marks: NDArray[Any]) -> RequestTimes | None:
    """Times from arrivals on, so that waiting for a batch and for requests before is in them.

    Args:
        graph: of an inference job; None is returned for others, which have no MARK operations.
        marks: structured, fields of `telemetry.MARK`: those of this job, from time 0 on.
    """
    tags = graph.tag[graph.kind == OpKind.MARK]
    if not len(tags):
        return None
    count = int(tags.max()) // len(Moment) + 1
    ranks = np.bincount(tags, minlength=count * len(Moment)).reshape(count, len(Moment))
    seen, first_ps, last_ps = _over_ranks(tags[marks["mark"]], marks, ranks.size)
    shape = (seen.size // ranks.size, *ranks.shape)
    seen, first_ps, last_ps = (part.reshape(shape) for part in (seen, first_ps, last_ps))
    since_ps = []
    for moment in (Moment.FIRST_TOKEN, Moment.DONE):
        marked = np.flatnonzero(ranks[:, moment])
        last = marked[np.searchsorted(marked, np.arange(count))]  # of the batch of each
        is_there = seen[:, last, moment] == ranks[last, moment]
        since_ps.append((last_ps[:, last, moment] - first_ps[:, :, Moment.ARRIVAL])[is_there])
    return RequestTimes(int((seen[:, :, Moment.ARRIVAL] > 0).sum()), *since_ps)


def _over_ranks(tags: Ints, marks: NDArray[Any], num_tags: int) -> tuple[Ints, Ints, Ints]:
    """Shape (rounds * num_tags,), each: how many ranks have marked it, the first and the last."""
    rounds = int(marks["round"].max(initial=-1)) + 1
    cell = marks["round"] * num_tags + tags
    first_ps = np.full(rounds * num_tags, np.iinfo(np.int64).max)
    np.minimum.at(first_ps, cell, marks["time_ps"])
    last_ps = np.zeros(rounds * num_tags, np.int64)
    np.maximum.at(last_ps, cell, marks["time_ps"])
    return np.bincount(cell, minlength=rounds * num_tags), first_ps, last_ps
