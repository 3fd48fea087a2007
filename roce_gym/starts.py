"""Where episodes start from, remembered: a seed that comes again is not built again.

Training draws its seeds from a fixed number of layouts, so that each comes many times. What is kept
of one never changes: episodes run on copies of its fabric.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Any

from roce_gym.action_modes import Actions, Knobs
from roce_gym.config import Scenario
from roce_gym.fabric import Fabric
from roce_gym.reference import References, is_reproducible, named_files
from roce_gym.topology.graph import Network
from roce_gym.workload.plan import Plan

MEMORY_BYTES = 64 * 2**20
"""Of all that is kept. A choice: 256 layouts of any packaged environment need less."""

_PLAN_BYTES = 512
"""About what a queue pair or an operation takes in a plan."""

_OTHER_BYTES = 50 * 2**10
"""About what scenario, settings, knobs and counters take."""


@dataclass(frozen=True)
class Start:
    """All that an episode's scenario, seed and preset decide, but what watches it.

    Attributes:
        scenario, network, plan: what there is.
        knobs, actions: how it can be tuned.
        references: what it is compared with.
        fabric: at time 0.
    """

    scenario: Scenario
    network: Network
    plan: Plan
    knobs: Knobs
    actions: Actions
    references: References
    fabric: Fabric


_memory: OrderedDict[Hashable, tuple[Start, int]] = OrderedDict()
_lock = threading.Lock()


def digest_of(raw: dict[str, Any]) -> str:
    """Of a scenario as from :func:`~roce_gym.scenario_file.load_raw`; the same in any process.

    Functions in memory go by their names.
    """
    return hashlib.sha256(json.dumps(raw, default=_as_text).encode()).hexdigest()


def _as_text(value: Any) -> str:
    named = callable(value) and hasattr(value, "__qualname__")
    return f"{value.__module__}.{value.__qualname__}" if named else repr(value)


def recall(key: Hashable) -> Start | None:
    """What was kept under a key, with a fabric to be copied; None: nothing, or not any more."""
    with _lock:
        if key not in _memory:
            return None
        _memory.move_to_end(key)
        return _memory[key][0]


def keep(key: Hashable, start: Start) -> None:
    """Remembers a start, if nothing but the key decides it and it is not too large.

    Where all together take more than MEMORY_BYTES, those go that were not needed for longest.

    PRECONDITION: its fabric is at time 0.
    """
    scenario, plan = start.scenario, start.plan
    if named_files(scenario) or not is_reproducible(scenario):
        return
    if start.fabric.state_bytes > MEMORY_BYTES // 4:
        return
    graphs = (job.graph.graph for job in plan.jobs if job.graph is not None)
    num_ops = sum(len(graph.rank) for graph in graphs)
    with _lock:
        latest = next(reversed(_memory.values()))[0].fabric if _memory else None
        fabric, own_bytes = start.fabric.at_rest(latest)
        size = own_bytes + _OTHER_BYTES + _PLAN_BYTES * (len(plan.qps) + num_ops)
        _memory[key] = replace(start, fabric=fabric), size
        while sum(size for _, size in _memory.values()) > MEMORY_BYTES:
            _memory.popitem(last=False)


def forget_starts() -> None:
    """Empties the memory."""
    with _lock:
        _memory.clear()
