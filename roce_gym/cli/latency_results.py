"""Latencies of messages and packets, for results."""

from __future__ import annotations

from typing import Any

from roce_gym.latency import QUANTILES, WHAT, Histogram, Latencies
from roce_gym.units import PS_PER_US


def add_latency(tenants: dict[str, Any], fabric: dict[str, Any], latency: Latencies | None) -> None:
    """Adds `latency` to every tenant and to the fabric: by "message" and "packet", the number of
    them and times in us; None where latencies were not measured.

    Args:
        tenants: results by name, in the scenario's order [in/out].
        fabric: results [in/out].
        latency: of the run.
    """  # noqa: D205
    for index, results in enumerate(tenants.values()):
        results["latency"] = _by_kind(latency, [index])
    fabric["latency"] = _by_kind(latency, slice(None))


def _by_kind(latency: Latencies | None, tenants: list[int] | slice) -> dict[str, Any] | None:
    if latency is None:
        return None
    return {what: _numbers(latency.of(what, tenants)) for what in WHAT}


def _numbers(times: Histogram) -> dict[str, Any]:
    if not times.count:
        return {"count": 0, **dict.fromkeys(("mean_us", *_names(), "max_us"))}
    return {
        "count": times.count,
        "mean_us": times.mean_ps / PS_PER_US,
        **{
            name: times.quantile_ps(share) / PS_PER_US
            for name, share in zip(_names(), QUANTILES.values(), strict=True)
        },
        "max_us": times.max_ps / PS_PER_US,
    }


def _names() -> list[str]:
    return [f"{name}_us" for name in QUANTILES]
