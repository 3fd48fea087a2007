"""The kernels that are called from Python, one for each use: what they call is compiled with them.

There are two to run a simulation: one with the code of all features, and a smaller and faster one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from roce_gym.sim.cc.registry import CODES
from roce_gym.sim.collective import start_jobs
from roce_gym.sim.engine import run_until
from roce_gym.sim.handle import plain_state_of, state_of
from roce_gym.sim.jit import entry, source_hash
from roce_gym.sim.pfc_timers import start_storms
from roce_gym.sim.types import State
from roce_gym.sim.wheel import push_far


def _make_run(_key: int) -> Any:
    def run(table, until_ps):
        """As `engine.run_until`."""
        _ = _key  # part of the cache key, see jit.py
        return run_until(state_of(table), until_ps)

    return entry(run)


def _make_run_plain(_key: int) -> Any:
    def run_plain(table, until_ps):
        """As `run`, for a state that `is_plain`."""
        _ = _key
        return run_until(plain_state_of(table), until_ps)

    return entry(run_plain)


def is_plain(state: State) -> bool:
    """Whether a simulation uses none of the features whose code `run_plain` leaves out."""
    params: Any = state.params[0]
    off = (
        *("special", "hop_by_hop", "receiving", "watchdog", "feedback"),
        *("num_marks", "maps_priorities"),
        *("scheduled_order", "mrg32k3a", "ack_ignores_pause", "latency"),
    )
    return (
        not any(params[name] for name in off)
        and params["clock_ps"] == 1
        and state.window.size == 0
        and bool(np.isin(state.cc_kind, (CODES["dcqcn"], CODES["none"])).all())
    )


def _make_start(_key: int) -> Any:
    def start(table):
        """Arms the first timers of jobs and storms."""
        _ = _key
        s = state_of(table)
        start_jobs(s)
        start_storms(s)

    return entry(start)


def _make_kick(_key: int) -> Any:
    def kick(table, link):
        """Has a link served as soon as it is free: something outside of the run has changed."""
        _ = _key
        s = state_of(table)
        wire = s.link[link]
        if wire["done_pending"] == 0:
            wire["done_pending"] = 1
            due_ps = max(s.core[0]["now_ps"], wire["free_ps"])
            push_far(s, s.params[0]["num_links"] + link, due_ps)

    return entry(kick)


_KEY = source_hash()
run = _make_run(_KEY)
run_plain = _make_run_plain(_KEY)
start = _make_start(_KEY)
kick = _make_kick(_KEY)
