"""Flows that arrive at random: open-loop traffic at a given load."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from roce_gym.errors import ConfigError
from roce_gym.traces.limits import MAX_FLOWS
from roce_gym.traces.size_cdf import SizeCdf
from roce_gym.units import PS_PER_S


class Flows(NamedTuple):
    """Flows by start; f of them."""

    src: NDArray[np.int64]  # [f] rank
    dst: NDArray[np.int64]  # [f] rank, another one
    bytes: NDArray[np.int64]  # [f]
    start_ps: NDArray[np.int64]  # [f] from the begin of the job


def poisson_flows(
    cdf: SizeCdf,
    load: float,
    rate_bps: int,
    num_ranks: int,
    seed: np.random.SeedSequence,
    until_ps: int | None = None,
    num_flows: int | None = None,
) -> Flows:
    """Draws flows between random pairs.

    Each rank begins flows as a Poisson process of `load × rate / (8 × mean size)` flows per second,
    to another rank drawn uniformly, as the traffic generator of the HPCC simulator does. Sizes are
    drawn independently of everything else.

    Args:
        cdf: of the sizes.
        load: share of the rate of a host that its flows need on average.
        rate_bps: of a host.
        num_ranks: at least 2.
        seed: of the draws; a later end only adds flows after the others.
        until_ps: no flow starts from then on.
        num_flows: most flows.

    Raises:
        ConfigError: there would be too many flows, or no end is given.
    """
    per_ps = num_ranks * load * rate_bps / (8 * cdf.mean_bytes) / PS_PER_S
    expected = np.inf if until_ps is None else per_ps * until_ps
    expected = min(expected, np.inf if num_flows is None else num_flows)
    if expected > MAX_FLOWS:
        raise ConfigError(f"about {expected:g} flows; allowed: 1 … {MAX_FLOWS}")
    gaps, pairs, quantiles = map(np.random.default_rng, seed.spawn(3))
    limit = MAX_FLOWS + 1 if num_flows is None else num_flows
    start_ps = _arrivals(gaps, per_ps, until_ps, limit)
    if start_ps.size > MAX_FLOWS:
        raise ConfigError(f"more than {MAX_FLOWS} flows; allowed: 1 … {MAX_FLOWS}")
    # One row a flow, so that more flows do not change those before.
    ends = pairs.random((start_ps.size, 2))
    src = (ends[:, 0] * num_ranks).astype(np.int64)
    step = 1 + (ends[:, 1] * (num_ranks - 1)).astype(np.int64)
    return Flows(
        src=src,
        dst=(src + step) % num_ranks,
        bytes=cdf.sizes(quantiles.random(start_ps.size)),
        start_ps=start_ps,
    )


def _arrivals(
    gaps: np.random.Generator, per_ps: float, until_ps: int | None, limit: int
) -> NDArray[np.int64]:
    """Ascending times, up to an end or a number."""
    block = 1024
    found: list[NDArray[np.int64]] = []
    now, count = 0.0, 0
    while count < limit and (until_ps is None or now < until_ps):
        times = now + np.cumsum(gaps.exponential(1 / per_ps, block))
        now = float(times[-1])
        if now > 2**62:
            raise ConfigError(f"flow {count} starts after {2**62} ps; allowed: a higher load")
        times = np.floor(times)
        kept = times if until_ps is None else times[times < until_ps]
        found.append(kept[: limit - count].astype(np.int64))
        count += found[-1].size
    return np.concatenate(found) if found else np.zeros(0, np.int64)
