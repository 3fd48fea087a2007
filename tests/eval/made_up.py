"""Records that nobody simulated."""

from eval.episode import Episode
from eval.records import Record


def make_record(policy, seed, score, *, key=None, slowdowns=(1.2, 1.5), rounds=4.0, frames=30.0):
    tenants, classes = ("ring", "burst"), ("gold", "lead")
    totals = {"score": score, "return": -score, "steps": 3.0, "failed": 0.0}
    totals["pfc_frames_per_s"] = frames
    for tenant, slowdown in zip(tenants, slowdowns, strict=True):
        totals[f"slowdown/{tenant}"] = slowdown
        totals[f"interference/{tenant}"] = slowdown - 1.0 if slowdown else 0.0
        totals[f"cct_us/{tenant}"] = 100.0 * slowdown
        totals[f"rounds/{tenant}"] = rounds if slowdown else 0.0
    series = {"time_us": [50.0, 100.0, 150.0], "pfc_frames_per_s": [0.0, 90.0, 0.0]}
    for name in classes:
        series[f"queue_max_bytes/{name}"] = [1e3, 5e4, 2e3]
        series[f"marked_fraction/{name}"] = [0.0, 0.1, 0.0]
    for name in tenants:
        series[f"goodput_gbps/{name}"] = [10.0, 90.0, 40.0]
        series[f"rate_gbps/{name}"] = [100.0, None, 50.0]
    episode = Episode(tenants, classes, classes, "connectx_default", totals, series)
    return Record(policy, policy, seed, f"key {seed}" if key is None else key, episode)


def make_records(scores):
    """Takes scores by policy and seed."""
    return [
        make_record(policy, seed, score)
        for policy, by_seed in scores.items()
        for seed, score in by_seed.items()
    ]
