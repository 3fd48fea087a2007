"""The rules of `docs/rules.md` once more: slow, plain, one event at a time, pure Python integers.

The oracle of the test suite. It shares no code with `roce_gym/sim`; the two must agree to the
picosecond. Each `naive_*.py` has a part of the rules, with the numbers of its sections.
"""

from __future__ import annotations

from collections import deque

from naive_cc import SENDERS, Path, base_rtt
from naive_collectives import GraphJob
from naive_events import Events
from naive_jobs import AllToAllJob, FlowsJob, IncastJob, RingJob, RoundsJob
from naive_links import Links
from naive_pfc import Pfc
from naive_receiving import ReceivingNics
from naive_routing import Routes
from naive_senders import REACTING
from naive_sending import SendingNics
from naive_state import LOSS, Bucket, Host, Input, Link, Qp, Switch, Watchdog, Window, uniform
from naive_switch import Switches

from roce_gym.config import (
    Scenario,
    SenderConfig,
    Settings,
    TrafficClass,
    WindowConfig,
    sender_settings,
)
from roce_gym.topology.graph import Network
from roce_gym.units import PS_PER_S, us_to_ps
from roce_gym.workload.plan import Plan, QueuePair

__all__ = ["LOSS", "NaiveSimulator", "uniform"]

ALGORITHMS = SENDERS | REACTING

JOB_CLASSES = {
    "flows": FlowsJob,
    "incast": IncastJob,
    "ring_all_reduce": RingJob,
    "all_to_all": AllToAllJob,
    "graph": GraphJob,
}


class NaiveSimulator(Events, Links, Switches, Pfc, SendingNics, ReceivingNics):
    """Runs a plan on a network.

    Attributes:
        now: the time reached.
        events: (time, kind, id) of the events handled, if `trace`.
        completions: (job, index, start, end, bytes), in order.
        collectives: (job, call, round, start, end, bytes), in order.
        marks: (job, number among the MARKs of its graph, round, time), in order.
        tx_packets, tx_bytes, ecn_marks, max_queue_bytes: [link][class of the scenario], at the
            sending end of the link.
        pauses, resumes, drops: [link][class], at the receiving end.
        paused_ps: [link][class], time its sending end was paused.
        lost: [link], packets lost on it.
        first_pause: [link][class], when its receiving end sent the first PAUSE; -1: never.
        storms, restored, watchdog_drops: [link][class], at the sending end.
        qps: with `snd_una`, `snd_nxt`, `expected`, `rate_bps`, `target_bps`, `alpha`, `cnps`,
            `failed`.
    """

    def __init__(
        self,
        scenario: Scenario,
        network: Network,
        plan: Plan,
        settings: Settings,
        seed: int,
        trace: bool = False,
    ) -> None:
        self.scenario, self.network, self.settings, self.seed = scenario, network, settings, seed
        self.nic = scenario.nic
        self.now = 0
        self.uniform = uniform
        self.trace = trace
        self.events: list[tuple[int, str, int]] = []
        self.completions: list[tuple[int, int, int, int, int]] = []
        self.collectives: list[tuple[int, ...]] = []
        self.marks: list[tuple[int, ...]] = []
        self.heap: list[tuple[int, int, int]] = []
        self.to_serve: deque[int] = deque()  # hosts, when the current event is over
        # 14: times of messages and of packets, by tenant; of what is inside of a server: none
        self.latencies: list[tuple[list[int], list[int]]] = [([], []) for _ in scenario.tenants]
        self._order_classes(scenario)
        self._make_counters(scenario, network)
        self._build(scenario, network)
        self._make_qps(plan)
        self._start_jobs(plan)
        self.routes = Routes(self)
        self.changes = deque(self.routes.times)
        if self.changes and self.changes[0] == 0:
            self.routes.change(self.changes.popleft())

    def _order_classes(self, scenario: Scenario) -> None:
        # 1: class 0 is PFC, then strict ones by falling, then others by rising priority
        strict = sorted(
            (c for c in scenario.classes if c.scheduling == "strict"), key=lambda c: -c.priority
        )
        others = sorted(
            (c for c in scenario.classes if c.scheduling != "strict"), key=lambda c: c.priority
        )
        self.classes: list[TrafficClass | None] = [None, *strict, *others]
        self.num_strict = 1 + len(strict)
        self.dwrr = any(c.scheduling == "dwrr" for c in others)
        self.scenario_index = [-1] + [scenario.classes.index(c) for c in strict + others]
        self.internal_class = {c.name: i for i, c in enumerate(self.classes) if c is not None}

    def _make_counters(self, scenario: Scenario, network: Network) -> None:
        num_links, num_classes = network.num_links, len(scenario.classes)

        def counter() -> list[list[int]]:
            return [[0] * num_classes for _ in range(num_links)]

        self.tx_packets, self.tx_bytes, self.ecn_marks = counter(), counter(), counter()
        self.max_queue_bytes, self.paused_ps = counter(), counter()
        self.pauses, self.resumes, self.drops = counter(), counter(), counter()
        self.drops_at_egress, self.egress_drops = counter(), counter()
        self.storms, self.restored, self.watchdog_drops = counter(), counter(), counter()
        self.first_pause = [[-1] * num_classes for _ in range(num_links)]
        self.lost = [0] * num_links
        self.pfc = scenario.pfc
        self.watchdogs = {
            (i, c): Watchdog()
            for i in network.from_switch.tolist()
            for c in range(1, num_classes + 1)
            if scenario.pfc.watchdog.enabled
        }

    def _build(self, scenario: Scenario, network: Network) -> None:
        num_classes = len(scenario.classes)
        self.links = [Link(network, i, num_classes) for i in range(network.num_links)]
        self.hosts = [
            Host(
                self.links[int(network.host_link[h])],
                [set() for _ in self.classes],
                [-1] * len(self.classes),
            )
            for h in range(network.num_hosts)
        ]
        self.pool_labels = self._label_pools()
        self.switches = {
            network.num_hosts + i: Switch([0] * len(self.pool_labels))
            for i in range(network.num_switches)
        }
        self.inputs: dict[tuple[int, int], Input] = {}
        for link in self.links:
            if link.dst in self.switches:
                for c in range(1, num_classes + 1):
                    slot = Input(link.id, c, self._headroom(link, c), self._alpha_factor(link))
                    self.inputs[link.id, c] = slot
                    self.switches[link.dst].inputs.append(slot)
        self._make_buckets(scenario)

    def _make_buckets(self, scenario: Scenario) -> None:
        self.port_buckets = {
            (link.id, c): Bucket(self.classes[c].shaper)
            for link in self.links
            if link.src in self.switches
            for c in range(1, len(self.classes))
        }
        self.tenant_buckets = [
            [Bucket(tenant.shaper) for tenant in scenario.tenants] for _ in self.hosts
        ]
        self.tenants_shaped = any(tenant.shaper is not None for tenant in scenario.tenants)

    def _make_qps(self, plan: Plan) -> None:
        scenario = self.scenario
        self.qps: list[Qp] = []
        for i, qp in enumerate(plan.qps):
            cls = self.internal_class[scenario.classes[qp.class_index].name]
            path, window = self._path(plan, qp)
            cc = ALGORITHMS[scenario.tenants[qp.tenant].cc](self._sender(qp.tenant), path)
            self.qps.append(Qp(i, qp, cls, cc, window))

    def _start_jobs(self, plan: Plan) -> None:
        self.jobs = [JOB_CLASSES[p.kind](self, i, p) for i, p in enumerate(plan.jobs)]
        self.qp_job = {  # QP -> job, lane, position
            qp: (job, lane, position)
            for job in self.jobs
            for lane, qps in enumerate(job.plan.qps)
            for position, qp in enumerate(qps)
        }
        self.members = [
            (job, rank)
            for job in self.jobs
            if isinstance(job, RoundsJob)
            for rank in range(job.size)
        ]
        self.members += [
            (job, job.size + i)
            for job in self.jobs
            if job.plan.kind == "graph"
            for i in range(len(job.computes))
        ]
        for job in self.jobs:
            job.begin()
        for i, storm in enumerate(self.scenario.faults.storms):
            self._set_pfc_timer("STORM", i, us_to_ps(storm.start_us))

    def run(self, until_ps: int) -> None:
        """Handles all events up to and including `until_ps`."""
        while self.changes and self.changes[0] <= until_ps:
            self._run_events(self.changes[0])
            self.routes.change(self.changes.popleft())
        self._run_events(until_ps)
        self.now = until_ps
        for qp in self.qps:
            qp.cc.advance(until_ps, inclusive=True)
        for link in self.links:
            for c in range(1, len(link.told)):
                if link.told[c]:
                    self._count_pause(link, c, until_ps)

    def set_settings(self, settings: Settings) -> None:
        """New settings from now on."""
        self.settings = settings
        for qp in self.qps:
            if qp.cc.adopt(self._sender(qp.plan.tenant)):
                qp.owed = 0
        for switch in self.switches.values():
            switch.shared = [0] * len(self.pool_labels)
            for i in switch.inputs:
                switch.shared[self._pool_of(i.cls)] += self._used(i)
        for (_, c), bucket in self.port_buckets.items():
            bucket.shaper = settings.classes[self.classes[c].name].shaper
        for buckets in self.tenant_buckets:
            for tenant, bucket in zip(self.scenario.tenants, buckets, strict=True):
                bucket.shaper = settings.shapers.get(tenant.name)

    def _sender(self, tenant: int) -> SenderConfig:
        """The parameters in force, of the tenant's own algorithm."""
        return sender_settings(self.scenario.tenants[tenant], self.settings)

    def _path(self, plan: Plan, qp: QueuePair) -> tuple[Path, Window]:
        """What a QP's sender knows about its way, and the window it has."""
        nic, own = self.nic, self.scenario.tenants[qp.tenant].window
        if own is None and self.scenario.tenants[qp.tenant].cc == "hpcc":
            own = WindowConfig()
        line, longest = self.hosts[qp.src].link.rate, 1
        least = (nic.ack_every - 1) * nic.mtu_bytes + 1
        for other in (other for other in plan.qps if other.tenant == qp.tenant):
            data, ack = (
                [(self.links[i].rate, self.links[i].delay) for i in links]
                for links in (other.data_links, other.ack_links)
            )
            longest = max(longest, base_rtt(nic.mtu_bytes, data, ack))
        most = nic.reorder_window_packets * nic.mtu_bytes if nic.out_of_order else 2**62
        if own is None:
            size, follows = nic.window_bytes, False
            if nic.out_of_order:
                size = min(size, most) if size else most
        else:
            if own.base_rtt_us is not None:
                longest = us_to_ps(own.base_rtt_us)
            bdp = max(1 if own.follows_rate else least, longest * line // PS_PER_S // 8)
            size, follows = (bdp if own.bytes == "bdp" else own.bytes), own.follows_rate
            size = min(size, most)
        return Path(line, longest, size, nic), Window(size, follows, least)
