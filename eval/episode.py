"""One episode of one policy: how it went in total, and how it went along."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from agents.policy import Policy
from roce_gym.env import RoceEnv
from roce_gym.reward import TERMS
from roce_gym.telemetry import Interval

Series = dict[str, list[float | None]]

_ALONG = ("time_us", "pfc_frames_per_s")
_BY_CLASS = ("queue_max_bytes", "marked_fraction")
_BY_TENANT = ("goodput_gbps",)


@dataclass(frozen=True)
class Episode:
    """What an episode came to.

    Attributes:
        tenants, classes: names.
        class_of: traffic class of each tenant.
        default_preset: what the scenario's own settings are based on.
        totals: `score`, `return`, `steps`, `failed` (1 if the fabric failed),
            `pfc_frames_per_s` (a switch port), by tenant `slowdown/…`, `interference/…`,
            `cct_us/…`, `rounds/…`, and episode means of reward terms `raw/…`.
        series: one value an interval: `time_us` (its end), `pfc_frames_per_s`, by class
            `queue_max_bytes/…`, `marked_fraction/…`, by tenant `goodput_gbps/…` (delivered) and
            `rate_gbps/…` (mean that its queue pairs with data to send may send; None if none has).
    """

    tenants: tuple[str, ...]
    classes: tuple[str, ...]
    class_of: tuple[str, ...]
    default_preset: str
    totals: dict[str, float]
    series: Series


def run_episode(env: RoceEnv, policy: Policy, seed: int) -> Episode:
    """Plays the episode of a seed to its end."""
    observation, info = env.reset(seed=seed, options=dict(policy.reset_options))
    policy.reset(env, seed)
    scenario = env.scenario
    tenants = tuple(tenant.name for tenant in scenario.tenants)
    classes = tuple(c.name for c in scenario.classes)
    names = [
        *_ALONG,
        *(f"{what}/{c}" for what in _BY_CLASS for c in classes),
        *(f"{what}/{t}" for what in _BY_TENANT for t in tenants),
    ]
    assert env.fabric is not None
    qp_tenant = np.array([pair.tenant for pair in env.fabric.plan.qps], np.int64)
    series: Series = {name: [] for name in [*names, *(f"rate_gbps/{t}" for t in tenants)]}
    total, steps, is_over, failed = 0.0, 0, False, False
    raw = dict.fromkeys(TERMS, 0.0)
    while not is_over:
        observation, reward, failed, truncated, info = env.step(policy.act(observation))
        is_over = failed or truncated
        total += reward
        steps += 1
        for term in TERMS:
            raw[term] += info[f"raw/{term}"]
        for name in names:
            series[name].append(round(float(info[name]), 3))
        assert env.last_interval is not None
        for index, tenant in enumerate(tenants):
            series[f"rate_gbps/{tenant}"].append(_rate_gbps(env.last_interval, qp_tenant == index))
    totals = _totals(info, tenants) | {
        "return": total,
        "steps": float(steps),
        "failed": float(failed),
        **{f"raw/{term}": value / steps for term, value in raw.items()},
    }
    class_of = tuple(tenant.traffic_class for tenant in scenario.tenants)
    return Episode(tenants, classes, class_of, scenario.preset, totals, series)


def _rate_gbps(interval: Interval, is_own: Any) -> float | None:
    active = is_own & (interval.outstanding_bytes > 0)
    return round(float(interval.rate_bps[active].mean()) / 1e9, 3) if active.any() else None


def _totals(info: Mapping[str, Any], tenants: tuple[str, ...]) -> dict[str, float]:
    by_tenant = ("slowdown", "cct_us", "rounds")
    return {
        "score": float(info["score"]),
        "pfc_frames_per_s": float(info["episode_pfc_frames_per_s"]),
        **{f"{what}/{t}": float(info[f"{what}/{t}"]) for what in by_tenant for t in tenants},
        **{f"interference/{t}": float(info[f"interference_of/{t}"]) for t in tenants},
    }
