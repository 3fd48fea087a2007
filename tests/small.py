"""A scenario that runs in milliseconds, and intervals made up by hand."""

import dataclasses

import numpy as np

from roce_gym.config import validate_scenario
from roce_gym.sim import types as t
from roce_gym.telemetry import MARK, Interval
from roce_gym.topology import build_network
from roce_gym.workload.planner import make_plan

SMALL = {
    "name": "small",
    "topology": {"kind": "star", "hosts": 6},
    "switch": {"buffer_bytes": 1_000_000},
    "classes": [{"name": "gold", "priority": 3}, {"name": "lead", "priority": 4}],
    "tenants": [
        {
            "name": "ring",
            "traffic_class": "gold",
            "weight": 3,
            "hosts": [0, 1, 2, 3],
            "jobs": [{"kind": "ring_all_reduce", "bytes": {"uniform": [90_000, 110_000]}}],
        },
        {
            "name": "burst",
            "traffic_class": "lead",
            "hosts": [3, 4, 5, 0],
            "jobs": [{"kind": "incast", "bytes": 200_000, "degree": 3, "period_us": 150}],
        },
    ],
    "control": {"interval_us": 50, "horizon_us": 500},
}

RING = SMALL["tenants"][0] | {"jobs": [{"kind": "ring_all_reduce", "bytes": 100_000}]}
"""The ring, whatever the seed."""

TWO = SMALL | {
    "topology": {"kind": "dumbbell", "hosts_per_side": 3, "trunk_rate_gbps": 100},
    "tenants": [RING, SMALL["tenants"][1]],
}
"""The same on two switches: hosts 0, 1, 2 at switch 6, the others at switch 7."""


def parts(raw=None, seed=0):
    """Scenario, network and plan; `SMALL` with its ring at 100,000 bytes unless given."""
    if raw is None:
        raw = SMALL | {"tenants": [RING, SMALL["tenants"][1]]}
    scenario = validate_scenario(raw)
    network = build_network(scenario.topology)
    return scenario, network, make_plan(scenario, network, seed)


def make_interval(scenario, network, plan, start_us=0.0, end_us=100.0, **fields):
    """An interval in which nothing happens but what `fields` say."""
    links, classes = network.num_links, len(scenario.classes)
    values = {"start_ps": int(start_us * 1e6), "end_ps": int(end_us * 1e6)}
    for field in dataclasses.fields(Interval):
        if field.name in ("start_ps", "end_ps"):
            continue
        if field.name == "completions":
            value = np.zeros(0, t.COMPLETION)
        elif field.name == "collectives":
            value = np.zeros(0, t.COLLECTIVE)
        elif field.name == "marks":
            value = np.zeros(0, MARK)
        elif field.name == "deadlock":
            value = ()
        elif field.name == "latency":
            value = None
        elif field.name in ("failed_qps", "unreachable_qps", "events"):
            value = 0
        elif field.name in ("qp_failed", "qp_unreachable"):
            value = np.zeros(len(plan.qps), np.bool_)
        elif field.name == "lost_packets":
            value = np.zeros(links, np.int64)
        elif field.name.startswith("job_"):
            value = np.full(len(plan.jobs), -1 if field.name == "job_begun_ps" else 0, np.int64)
        elif field.name == "alpha":
            value = np.zeros(len(plan.qps))
        elif field.name == "rate_bps":
            value = np.full(len(plan.qps), 100_000_000_000, np.int64)
        elif field.name in (
            *("acked_bytes", "delivered_bytes", "outstanding_bytes", "cnps", "nacks"),
        ):
            value = np.zeros(len(plan.qps), np.int64)
        elif field.name == "queue_mean_bytes":
            value = np.zeros((links, classes))
        else:
            value = np.zeros((links, classes), np.int64)
        values[field.name] = value
    return Interval(**(values | fields))


def completions(*rows):
    """Entries of a log: (job, index, start_us, end_us)."""
    log = np.zeros(len(rows), t.COMPLETION)
    for entry, (job, index, start_us, end_us) in zip(log, rows, strict=True):
        entry["job"], entry["index"] = job, index
        entry["start_ps"], entry["end_ps"] = int(start_us * 1e6), int(end_us * 1e6)
    return log
