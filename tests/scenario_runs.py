"""Runs of shipped scenarios to their horizon, remembered, and what tests compare of them."""

from __future__ import annotations

import math
from functools import cache
from itertools import pairwise

import numpy as np

from roce_gym.fabric import Fabric
from roce_gym.reward import pfc_cost
from roce_gym.scenario_file import load_scenario
from roce_gym.score import PFC_WEIGHT

SEEDS = (0, 1, 2)


class Run:
    """Rounds by tenant and job, times in us; pause frames a second and switch port; spine bytes."""

    def __init__(self, fabric, intervals):
        self.scenario, self.network = fabric.scenario, fabric.network
        self.intervals, jobs = intervals, fabric.plan.jobs
        tenants = [tenant.name for tenant in self.scenario.tenants]
        self.names = [tenants[job.tenant] for job in jobs]
        self.hosts = {
            name: tuple(map(int, job.hosts)) for name, job in zip(self.names, jobs, strict=True)
        }
        self.log = np.concatenate([interval.completions for interval in intervals])
        self.times_us = (self.log["end_ps"] - self.log["start_ps"]) / 1e6
        self.cct_us = {name: self.mean_us(name) for name in tenants}
        ports, seconds = len(self.network.into_switch), fabric.now_ps / 1e12
        self.pauses = sum(map(self.pauses_in, intervals)) / ports / seconds
        ends = np.stack((self.network.link_src, self.network.link_dst))
        between = (ends >= self.network.num_hosts).all(axis=0)
        self.spine_bytes = sum(int(interval.tx_bytes[between].sum()) for interval in intervals)

    def rounds(self, tenant):
        """Which entries of the log are the tenant's."""
        return np.array([name == tenant for name in self.names])[self.log["job"]]

    def mean_us(self, tenant):
        times = self.times_us[self.rounds(tenant)]
        return float(times.mean()) if len(times) else math.nan

    def pauses_in(self, interval):
        """Frames that switches sent."""
        return int(interval.pause_frames[self.network.into_switch].sum())

    def cost(self, weights=None):
        """J but for a constant: what each job takes alone, which no setting under test changes.

        Args:
            weights: by tenant, instead of the scenario's.
        """
        weights = weights or {tenant.name: tenant.weight for tenant in self.scenario.tenants}
        by_tail = {tenant.name for tenant in self.scenario.tenants if tenant.score == "p95"}
        logs = {name: [] for name in weights}
        for index, name in enumerate(self.names):
            times = self.times_us[self.log["job"] == index]
            logs[name].append(
                math.log(np.percentile(times, 95) if name in by_tail else times.mean())
            )
        total = sum(weight * np.mean(logs[name]) for name, weight in weights.items())
        return float(total / sum(weights.values()) + PFC_WEIGHT * pfc_cost(self.pauses))


@cache
def run(name, *changes, preset=None, seed=0, only=None, stops_us=()):
    """To the horizon, with an interval that ends at each stop."""
    scenario = load_scenario(name, seed, changes)
    fabric = Fabric(scenario, seed, preset=preset, only_tenant=only)
    times_us = (0, *stops_us, scenario.control.horizon_us)
    return Run(fabric, [fabric.advance(us=end - start) for start, end in pairwise(times_us)])


def mean(quantity, name, *changes, preset=None, seeds=SEEDS):
    return float(np.mean([quantity(run(name, *changes, preset=preset, seed=s)) for s in seeds]))


def cct(tenant):
    return lambda found: found.cct_us[tenant]


def pauses(found):
    return found.pauses


def ecn(kmin_bytes, kmax_bytes, pmax=0.2):
    """Marks of the one class that all tenants share."""
    line = f"{{kmin_bytes: {kmin_bytes}, kmax_bytes: {kmax_bytes}, pmax: {pmax}}}"
    return f"classes.shared.ecn={line}"
