"""The compiled core and the oracle on one case, moved forward together."""

from __future__ import annotations

from typing import Any

import numpy as np
from naive import NaiveSimulator
from tiny_cases import Case

from roce_gym.fabric import Fabric
from roce_gym.sim.cc.dcqcn import DCQCN
from roce_gym.sim.cc.hpcc import HPCC
from roce_gym.sim.cc.int_throttle import INT_THROTTLE
from roce_gym.sim.cc.records import qp_records
from roce_gym.sim.cc.registry import CODES
from roce_gym.sim.cc.timely import TIMELY
from roce_gym.sim.types import CC_NONE, OWN_WINDOW
from roce_gym.telemetry import Interval

TOTALS = {
    "tx_packets": "tx_packets",
    "tx_bytes": "tx_bytes",
    "ecn_marked_packets": "ecn_marks",
    "pause_frames": "pauses",
    "resume_frames": "resumes",
    "dropped_packets": "drops",
    "dropped_at_egress_packets": "drops_at_egress",
    "egress_dropped_packets": "egress_drops",
    "paused_ps": "paused_ps",
    "lost_packets": "lost",
    "watchdog_storms": "storms",
    "watchdog_restored": "restored",
    "watchdog_dropped_packets": "watchdog_drops",
}
"""Counters of an `Interval` and what the oracle calls their sum."""

SENDER_FIELDS = (
    ("dcqcn", DCQCN, {"target_bps": "target", "alpha": "alpha"}),
    ("timely", TIMELY, {"update_seq": "update_seq", "last_rtt_ps": "last_rtt"}),
    ("timely", TIMELY, {"rtt_diff_ns": "rtt_diff_ns", "increases": "increases"}),
    ("hpcc", HPCC, {"reference_bps": "reference", "update_seq": "update_seq"}),
    ("hpcc", HPCC, {"utilisation": "utilisation", "stage": "stage"}),
    ("int_throttle", INT_THROTTLE, {"reference_bps": "reference", "updated_ps": "updated"}),
)
"""Fields of the algorithms' records and what the oracle calls them."""


def latency_bucket(time_ps: int) -> int:
    """Rules, section 15, on Python's integers."""
    units = time_ps // 1024
    k = max(0, units.bit_length() - 7)
    return min(64 * k + units // 2**k, 2047)


class SideBySide:
    """Both simulators; `differences` names what they disagree on.

    Args:
        counts_events: whether the numbers of events are compared, too. Where a wake-up is farther
            ahead than the core's wheel reaches, the core looks again in between.
    """

    def __init__(self, case: Case, *, counts_events: bool = True) -> None:
        self.case = case
        self.counts_events = counts_events
        first = case.settings[0][1]
        self.fabric = Fabric(case.scenario, case.seed, network=case.network, plan=case.plan)
        assert self.fabric.settings == first
        self.naive = NaiveSimulator(
            case.scenario, case.network, case.plan, first, case.seed, trace=True
        )
        self.later = dict(case.settings[1:])
        self.completions: list[tuple[int, ...]] = []
        self.collectives: list[tuple[int, ...]] = []
        self.marks: list[tuple[int, ...]] = []
        self.events = 0
        self.failed = 0
        self.sums: dict[str, Any] = dict.fromkeys(TOTALS, 0)
        self.max_queue: Any = 0
        self.first_pause: Any = None
        self.latency: Any = None

    def advance(self, until_ps: int) -> list[str]:
        """Moves both to `until_ps`, where settings may change; returns the differences there."""
        self._take_in(self.fabric.advance(ps=until_ps - self.fabric.now_ps))
        self.naive.run(until_ps)
        found = self.differences()
        if until_ps in self.later:
            self.fabric.apply(self.later[until_ps])
            self.naive.set_settings(self.later[until_ps])
        return found

    def _take_in(self, interval: Interval) -> None:
        self.completions += [tuple(map(int, entry)) for entry in interval.completions]
        self.collectives += [tuple(map(int, entry)) for entry in interval.collectives]
        self.marks += [tuple(map(int, entry)) for entry in interval.marks]
        self.events += interval.events
        self.failed = interval.failed_qps
        for name in TOTALS:
            self.sums[name] = self.sums[name] + getattr(interval, name)
        self.first_pause = interval.first_pause_ps
        if interval.latency is not None:
            self.latency = interval.latency + self.latency if self.latency else interval.latency
        self.max_queue = np.maximum(self.max_queue, interval.queue_max_bytes)

    def _latencies(self) -> dict[str, tuple[Any, Any]]:
        """Buckets, sums and maxima of all tenants."""
        counts = np.zeros_like(self.latency.counts)
        for tenant, kinds in enumerate(self.naive.latencies):
            for kind, times in enumerate(kinds):
                for time in times:
                    counts[tenant, kind, latency_bucket(time)] += 1
        both = [[sum(times) for times in kinds] for kinds in self.naive.latencies]
        longest = [[max(times, default=0) for times in kinds] for kinds in self.naive.latencies]
        return {
            "latency counts": (self.latency.counts, counts),
            "latency sum": (self.latency.sum_ps, both),
            "latency max": (self.latency.max_ps, longest),
        }

    def _senders(self) -> dict[str, tuple[Any, Any]]:
        """The algorithms' own state, by algorithm."""
        state = self.fabric._state
        kind = state.cc_kind[state.qp["tenant"]]
        pairs: dict[str, tuple[Any, Any]] = {}
        for name, dtype, fields in SENDER_FIELDS:
            own = np.flatnonzero((kind == CODES[name]) & (state.sender["cc"] != 0))
            records = qp_records(state, dtype)[own]
            for field, theirs in fields.items():
                expected = [getattr(self.naive.qps[i].cc, theirs) for i in own]
                pairs[f"{name} {field}"] = (records[field], expected)
        return pairs

    def differences(self) -> list[str]:
        """Names of everything that is not exactly equal."""
        naive, state = self.naive, self.fabric._state
        at_switch = self.case.network.link_src >= self.case.network.num_hosts
        num_links, num_classes = len(at_switch), len(self.case.scenario.classes)
        queues = [[link.queue_bytes(c) for c in range(num_classes + 1)] for link in naive.links]
        inputs = [naive.inputs[key] for key in sorted(naive.inputs)]
        pairs: dict[str, tuple[Any, Any]] = {
            name: (self.sums[name], getattr(naive, counterpart))
            for name, counterpart in TOTALS.items()
        }
        into_switch = np.flatnonzero(self.case.network.link_dst >= self.case.network.num_hosts)
        ports = state.ingress.reshape(num_links, -1)[into_switch, 1:].reshape(-1)
        pairs |= {
            "first_pause": (self.first_pause, naive.first_pause),
            "completions": (self.completions, naive.completions),
            "collectives": (self.collectives, naive.collectives),
            "marks": (self.marks, naive.marks),
            "max_queue": (self.max_queue[at_switch], np.array(naive.max_queue_bytes)[at_switch]),
            "queue": (state.queue["bytes"].reshape(num_links, -1), queues),
            "ingress bytes": (ports["bytes"], [i.bytes for i in inputs]),
            "ingress headroom": (ports["headroom_used"], [i.headroom_used for i in inputs]),
            "shared": (
                state.switch["shared"],
                [shared for s in naive.switches.values() for shared in s.shared],
            ),
            "failed": (self.failed, sum(q.failed for q in naive.qps)),
        }
        pairs |= self._senders()
        for name, records, theirs in (
            ("posted", state.qp, "posted"),
            ("snd_una", state.sender, "snd_una"),
            ("snd_nxt", state.sender, "snd_nxt"),
            ("rate_bps", state.sender, "rate_bps"),
            ("expected", state.receiver, "expected"),
            ("cnps", state.qp, "cnps"),
            ("nacks", state.receiver, "nacks"),
        ):
            pairs[name] = (records[name], [getattr(q, theirs) for q in naive.qps])
        sets_window = state.sender["traits"] & OWN_WINDOW != 0
        sets_window &= state.sender["cc"] != CC_NONE
        if sets_window.any():
            theirs = [
                q.cc.window for q in naive.qps if q.cc.window is not None and q.cc.config.enabled
            ]
            pairs["window"] = (state.window[sets_window], theirs)
        if len(state.latency):
            pairs |= self._latencies()
        if self.counts_events:
            pairs["events"] = (self.events, len(naive.events))
        return [name for name, (ours, theirs) in pairs.items() if not np.array_equal(ours, theirs)]
