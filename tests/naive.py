"""The rules of `docs/rules.md` once more: slow, plain, one event at a time, pure Python integers.

The oracle of the test suite. It shares no code with `roce_gym/sim`; the two must agree to the
picosecond. Section numbers in this file are those of `docs/rules.md`.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import naive_collectives
import naive_dscp
import naive_repair
from naive_cc import SENDERS, Ack, Hop, Path, Sender, base_rtt
from naive_routing import Routes
from naive_senders import REACTING

from roce_gym.config import (
    BufferConfig,
    Scenario,
    SenderConfig,
    Settings,
    ShaperConfig,
    TrafficClass,
    WindowConfig,
    sender_settings,
)
from roce_gym.topology.graph import Network
from roce_gym.units import PS_PER_S, ps_per_kib, us_to_ps
from roce_gym.workload.plan import JobPlan, Plan, QueuePair

ALGORITHMS = SENDERS | REACTING

EVENT_KINDS = ("ARRIVAL", "TX_DONE", "WAKE", "TIMER")
ARRIVAL, TX_DONE, WAKE, TIMER = range(4)
ECN, LOSS, COMPUTE = range(3)
MASK = 0xFFFFFFFFFFFFFFFF


def uniform(seed: int, stream: int, ident: int, counter: int) -> float:
    """A number in [0, 1) that depends on the four arguments only (SplitMix64 finaliser)."""
    z = seed & MASK
    for value in (stream, ident, counter):
        z = (z + (value + 1) * 0x9E3779B97F4A7C15) & MASK
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        z ^= z >> 31
    return (z >> 11) * 2.0**-53


# --------------------------------------------------------------------------- state


@dataclass(eq=False)
class Packet:
    """A frame; `size` is its wire size, `cls` the internal class it travels in."""

    kind: str  # DATA, ACK, NACK, CNP, PAUSE, RESUME
    cls: int
    size: int
    qp: int = -1
    hop: int = 0  # links before the one it is on or waits for
    seq: int = 0  # of the first byte (DATA), next expected byte (ACK, NACK)
    payload: int = 0
    last: bool = False
    asks: bool = False  # for an ACK of its own
    sent: int = 0  # DATA: when; ACK, NACK: of the data packet it answers; -1: brings nothing back
    queued: int = 0  # ACK, NACK: when it joined the receiver's queue
    waited: int = 0  # ACK, NACK: in that queue
    demand: int | None = None  # DATA: end of what its QP has to send, if receivers grant credits
    limit: int = 0  # DATA: end of what it may send already
    granted: int = 0  # ACK, NACK: end of what the QP may send
    ce: bool = False
    cnp_flag: bool = False
    paused_class: int = -1  # PAUSE and RESUME
    came_on: int = -1  # at a switch: input link
    gap: tuple[int, int] = (0, 0)  # NACK of selective repeat
    hops: list[Hop] = field(default_factory=list)  # what switches wrote into the data packet
    level: float = 0.0  # likewise: of the fullest buffer


class Link:
    """One direction of a cable, with the output queues in front of it (class 0 is PFC)."""

    def __init__(self, network: Network, ident: int, num_classes: int) -> None:
        n = num_classes + 1
        self.id = ident
        self.src, self.dst = int(network.link_src[ident]), int(network.link_dst[ident])
        self.rate = int(network.link_rate_bps[ident])
        self.delay = int(network.link_delay_ps[ident])
        self.loss = float(network.link_loss[ident])
        self.ps_per_kib = ps_per_kib(self.rate)
        self.free = 0
        self.tx_done_pending = False
        self.down = False
        self.in_flight: deque[Packet] = deque()
        self.arrivals = 0
        self.queues: list[deque[Packet]] = [deque() for _ in range(n)]
        self.departed = [0] * n
        self.tx_bytes = 0  # of all classes, PFC included
        self.paused = [False] * n  # does not start packets of the class
        self.told = [False] * n  # what the far end said last, unless it has expired
        self.paused_since = [0] * n  # PAUSE since, or last counted
        self.told_since = [0] * n
        self.expires = [0] * n
        self.hold_timer = [False] * n
        self.last_round_robin = 0
        self.deficit = [0] * n
        self.withheld = [False] * n  # lacks tokens

    def serialisation(self, size: int) -> int:
        return (size * self.ps_per_kib) >> 10

    def queue_bytes(self, cls: int) -> int:
        return sum(packet.size for packet in self.queues[cls])


@dataclass(eq=False)
class Input:
    """Buffer use of one (input link, class) of a switch (4)."""

    link: int
    cls: int
    headroom: int
    alpha_factor: int
    bytes: int = 0
    headroom_used: int = 0
    told_to_pause: bool = False
    last_pause: int = 0
    refresh_timer: bool = False


@dataclass(eq=False)
class Watchdog:
    """Looks at one output queue of a switch (5)."""

    stalled: int = 0
    quiet: int = 0
    heard: bool = False
    storming: bool = False
    timer: bool = False


@dataclass(eq=False)
class Switch:
    """The buffer of a switch: its inputs, and what they use beyond their reserve, by pool."""

    shared: list[int]
    inputs: list[Input] = field(default_factory=list)


class Bucket:
    """Tokens, as the time at which all will be there."""

    def __init__(self, shaper: ShaperConfig | None) -> None:
        self.shaper = shaper
        self.full = 0
        self.pending = False  # an event
        self.held: deque[Qp] = deque()  # of a tenant at a host
        self.granted: Qp | None = None

    def _ps(self, size: int) -> int:
        rate = round(self.shaper.rate_gbps * 10**9)
        return -(-size * 8 * PS_PER_S // rate)

    @property
    def limits(self) -> bool:
        return self.shaper is not None and self.shaper.rate_gbps > 0

    def allowed(self, size: int) -> int:
        if not self.limits:
            return 0
        return self.full + self._ps(size) - self._ps(self.shaper.burst_bytes)

    def spend(self, size: int, t: int) -> None:
        if self.limits:
            self.full = max(self.full, t) + self._ps(size)


@dataclass(eq=False)
class Host:
    """The sending side of a NIC (6)."""

    link: Link
    ready: list[set[int]]  # QPs by class
    last_qp: list[int]  # last served, by class
    paced: set[int] = field(default_factory=set)
    wake_at: int | None = None
    credit_queue: deque[Qp] = field(default_factory=deque)  # at the receiver: QPs that want credit
    coming: int = 0  # bytes granted and not arrived
    next_credit: int = 0
    credit_armed: bool = False


@dataclass(eq=False)
class Message:
    """Bytes posted at once; `end` is the sequence number after the last of them."""

    index: int
    bytes: int
    start: int
    end: int


@dataclass(frozen=True)
class Window:
    """Bytes that a QP may have outstanding (6); 0: any number."""

    bytes: int
    follows_rate: bool
    least: int


class Qp:
    """Both ends of a queue pair: sender (6, 8) and receiver (7)."""

    def __init__(self, ident: int, plan: QueuePair, cls: int, cc: Sender, window: Window) -> None:
        self.id, self.plan, self.cls, self.cc, self.window = ident, plan, cls, cc, window
        # sender
        self.messages: deque[Message] = deque()  # not wholly acknowledged
        self.posted = self.snd_nxt = self.snd_una = 0
        self.next_send = 0
        self.owed = 0  # bit x 10^-12 to wait for from next_send on
        self.timer_running = False
        self.last_progress = 0
        self.retries = 0
        self.failed = False
        self.cnps = 0
        self.gaps: deque[tuple[int, int]] = deque()  # reported, not filled (selective repeat)
        # receiver
        self.expected = 0
        self.unacked_packets = 0
        self.ce_seen = False
        self.last_nack: tuple[int, int] | None = None  # value, time
        self.last_cnp: int | None = None
        self.held: dict[int, tuple[Packet, int]] = {}  # beyond the first gap, with time of arrival
        self.reported = 0  # gaps below were reported
        self.reorder_timer = False
        self.message_start = 0
        self.nacks = 0
        self.demand = self.granted = self.coming = 0  # credits

    @property
    def rate_bps(self) -> int:
        return self.cc.rate

    @property
    def target_bps(self) -> int:
        return getattr(self.cc, "target", 0)

    @property
    def alpha(self) -> float:
        return getattr(self.cc, "alpha", 0.0)

    @property
    def sendable(self) -> bool:
        return (self.has_bytes and self.has_open_window) or (bool(self.gaps) and not self.failed)

    @property
    def has_bytes(self) -> bool:
        return not self.failed and self.posted > self.snd_nxt

    @property
    def has_open_window(self) -> bool:
        if self.cc.window is not None:  # its algorithm sets one, while it is on
            return not self.cc.config.enabled or self.snd_nxt - self.snd_una < self.cc.window
        size = self.window.bytes
        if self.window.follows_rate:
            size = max(self.window.least, size * self.cc.rate // self.cc.path.line_rate)
        return self.window.bytes == 0 or self.snd_nxt - self.snd_una < size


# --------------------------------------------------------------------------- jobs (9)


class Job:
    """A job of the plan. Its timers are numbered by the simulator."""

    def __init__(self, sim: NaiveSimulator, ident: int, plan: JobPlan) -> None:
        self.sim, self.id, self.plan = sim, ident, plan

    def begin(self) -> None:
        self.sim.set_job_timer(self, self.plan.start_ps)

    def on_timer(self, t: int) -> None:
        """The timer of the job fired."""

    def on_member_timer(self, rank: int, t: int) -> None:
        """The compute phase of a member is over."""

    def on_delivered(self, lane: int, position: int, t: int) -> None:
        """A message of QP `plan.qps[lane][position]` is at its receiver."""

    def on_acknowledged(self, message: Message, t: int) -> None:
        """The sender knows that a message is at its receiver."""

    def complete(self, index: int, start: int, end: int, size: int) -> None:
        self.sim.completions.append((self.id, index, start, end, size))


class FlowsJob(Job):
    """Given messages at given times."""

    posted = 0

    def begin(self) -> None:
        self._arm()

    def _arm(self) -> None:
        if self.posted < len(self.plan.flow_start_ps):
            self.sim.set_job_timer(self, self.plan.flow_start_ps[self.posted])

    def on_timer(self, t: int) -> None:
        starts = self.plan.flow_start_ps
        while self.posted < len(starts) and starts[self.posted] <= t:
            qp = self.plan.qps[0][self.posted]
            self.sim.post(qp, self.plan.flow_bytes[self.posted], self.posted, t)
            self.posted += 1
        self._arm()

    def on_acknowledged(self, message: Message, t: int) -> None:
        self.complete(message.index, message.start, t, message.bytes)


class IncastJob(Job):
    """Bursts of many senders into one host."""

    burst = 0
    burst_start = 0
    delivered = 0

    def on_timer(self, t: int) -> None:
        p = self.plan
        if p.stop_ps >= 0 and t >= p.stop_ps:
            return
        self.burst_start, self.delivered = t, 0
        for qp in p.qps[0]:
            self.sim.post(qp, p.message_bytes, self.burst, t)

    def on_delivered(self, lane: int, position: int, t: int) -> None:
        self.delivered += 1
        if self.delivered == len(self.plan.qps[0]):
            self.complete(self.burst, self.burst_start, t, 0)
            self.burst += 1
            self._arm_next(t)

    def _arm_next(self, t: int) -> None:
        p = self.plan
        again = max(p.start_ps + self.burst * p.period_ps, t)
        if (p.rounds < 0 or self.burst < p.rounds) and (p.stop_ps < 0 or again < p.stop_ps):
            self.sim.set_job_timer(self, again)


class CollectiveJob(Job):
    """Rounds of compute and communication, entered by each member on its own."""

    def __init__(self, sim: NaiveSimulator, ident: int, plan: JobPlan) -> None:
        super().__init__(sim, ident, plan)
        self.size = len(plan.hosts)
        self.round = [0] * self.size  # the round each member computes for or communicates in
        self.communicating = [False] * self.size
        self.rounds_begun = 0
        self.end: int | None = None  # first round that is not run
        self.last_entry: dict[int, int] = {}
        self.finished: dict[int, int] = {}

    def begin(self) -> None:
        for rank in range(self.size):
            self._compute(rank, self.plan.start_ps)

    def _compute(self, rank: int, t: int) -> None:
        p = self.plan
        u = uniform(self.sim.seed, COMPUTE, p.first_member_id + rank, self.round[rank])
        self.sim.set_member_timer(self, rank, t + int(p.compute_ps * (1 + p.jitter * (2 * u - 1))))

    def on_member_timer(self, rank: int, t: int) -> None:
        p, k = self.plan, self.round[rank]
        if self.end is None and k >= self.rounds_begun:  # the first member to enter round k
            if (p.stop_ps >= 0 and t >= p.stop_ps) or (p.rounds >= 0 and k >= p.rounds):
                self.end = k
        if self.end is not None and k >= self.end:
            return
        self.rounds_begun = max(self.rounds_begun, k + 1)
        self.communicating[rank] = True
        self.last_entry[k] = t
        self._enter(rank, t)
        self._check_finished(rank, t)

    def _check_finished(self, rank: int, t: int) -> None:
        if not self.communicating[rank] or not self._has_received_round(rank):
            return
        k = self.round[rank]
        self.communicating[rank] = False
        self.finished[k] = self.finished.get(k, 0) + 1
        if self.finished[k] == self.size:
            self.complete(k, self.last_entry[k], t, 0)
        self.round[rank] = k + 1
        self._compute(rank, t)

    def _enter(self, rank: int, t: int) -> None:
        raise NotImplementedError

    def _has_received_round(self, rank: int) -> bool:
        raise NotImplementedError


class RingJob(CollectiveJob):
    """Ring all-reduce."""

    def __init__(self, sim: NaiveSimulator, ident: int, plan: JobPlan) -> None:
        super().__init__(sim, ident, plan)
        self.sent = [[0] * self.size for _ in plan.qps]  # [channel][rank], messages of all rounds
        self.received = [[0] * self.size for _ in plan.qps]

    def _enter(self, rank: int, t: int) -> None:
        for channel in range(len(self.plan.qps)):
            self._send(channel, rank, t)

    def _send(self, channel: int, rank: int, t: int) -> None:
        p, k = self.plan, self.round[rank]
        per_round = p.messages_per_round
        ahead = max(k * per_round, self.received[channel][rank]) + p.chunks
        while self.sent[channel][rank] < min((k + 1) * per_round, ahead):
            self.sent[channel][rank] += 1
            self.sim.post(p.qps[channel][rank], p.message_bytes, k, t)

    def on_delivered(self, lane: int, position: int, t: int) -> None:
        rank = (position + 1) % self.size
        self.received[lane][rank] += 1
        if self.communicating[rank]:
            self._send(lane, rank, t)
            self._check_finished(rank, t)

    def _has_received_round(self, rank: int) -> bool:
        needed = (self.round[rank] + 1) * self.plan.messages_per_round
        return all(channel[rank] >= needed for channel in self.received)


class AllToAllJob(CollectiveJob):
    """All-to-all."""

    def __init__(self, sim: NaiveSimulator, ident: int, plan: JobPlan) -> None:
        super().__init__(sim, ident, plan)
        self.received = [[0] * self.size for _ in range(self.size)]  # [receiver][sender]

    def _enter(self, rank: int, t: int) -> None:
        for qp in self.plan.qps[rank]:
            self.sim.post(qp, self.plan.message_bytes, self.round[rank], t)

    def on_delivered(self, lane: int, position: int, t: int) -> None:
        rank = (lane + 1 + position) % self.size
        self.received[rank][lane] += 1
        self._check_finished(rank, t)

    def _has_received_round(self, rank: int) -> bool:
        k = self.round[rank]
        return all(n > k for peer, n in enumerate(self.received[rank]) if peer != rank)


JOB_CLASSES: dict[str, Any] = {
    "graph": naive_collectives.GraphJob,
    "flows": FlowsJob,
    "incast": IncastJob,
    "ring_all_reduce": RingJob,
    "all_to_all": AllToAllJob,
}


# --------------------------------------------------------------------------- simulator


class NaiveSimulator:
    """Runs a plan on a network.

    Attributes:
        now: the time reached.
        events: (time, kind, id) of the events handled, if `trace`.
        completions: (job, index, start, end, bytes), in order.
        collectives: (job, call, round, start, end, bytes), in order.
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
        self.heap: list[tuple[int, int, int]] = []
        self.to_serve: deque[int] = deque()  # hosts, when the current event is over
        # 14: times of messages and of packets, by tenant; of what is inside of a server: none
        self.latencies: list[tuple[list[int], list[int]]] = [([], []) for _ in scenario.tenants]

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

        num_links, num_classes = network.num_links, len(scenario.classes)

        def counter() -> list[list[int]]:
            return [[0] * num_classes for _ in range(num_links)]

        self.tx_packets, self.tx_bytes, self.ecn_marks = counter(), counter(), counter()
        self.max_queue_bytes, self.paused_ps = counter(), counter()
        self.pauses, self.resumes, self.drops = counter(), counter(), counter()
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

        self.links = [Link(network, i, num_classes) for i in range(num_links)]
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

        self.port_buckets = {
            (link.id, c): Bucket(self.classes[c].shaper)
            for link in self.links
            if link.src in self.switches
            for c in range(1, num_classes + 1)
        }
        self.tenant_buckets = [
            [Bucket(tenant.shaper) for tenant in scenario.tenants] for _ in self.hosts
        ]
        self.tenants_shaped = any(tenant.shaper is not None for tenant in scenario.tenants)

        self.qps: list[Qp] = []
        for i, qp in enumerate(plan.qps):
            cls = self.internal_class[scenario.classes[qp.class_index].name]
            path, window = self._path(plan, qp)
            cc = ALGORITHMS[scenario.tenants[qp.tenant].cc](self._sender(qp.tenant), path)
            self.qps.append(Qp(i, qp, cls, cc, window))

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
            if isinstance(job, CollectiveJob | naive_collectives.GraphJob)
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
        for i, storm in enumerate(scenario.faults.storms):
            self._set_pfc_timer("STORM", i, us_to_ps(storm.start_us))
        self.routes = Routes(self)
        self.changes = deque(self.routes.times)
        if self.changes and self.changes[0] == 0:
            self.routes.change(self.changes.popleft())

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

    def _run_events(self, until_ps: int) -> None:
        while self.heap and self.heap[0][0] <= until_ps:
            t, kind, ident = heapq.heappop(self.heap)
            if kind == WAKE and self.hosts[ident].wake_at != t:
                continue  # was moved to an earlier time
            if self.trace:
                self.events.append((t, EVENT_KINDS[kind], ident))
            (self._on_arrival, self._on_tx_done, self._on_wake, self._on_timer)[kind](ident, t)
            while self.to_serve:
                self._serve(self.hosts[self.to_serve.popleft()].link, t)

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

    # ----------------------------------------------------------------------- events (2)

    def _schedule(self, t: int, kind: int, ident: int) -> None:
        heapq.heappush(self.heap, (t, kind, ident))

    def set_qp_timer(self, qp: Qp, t: int) -> None:
        qp.timer_running = True
        self._schedule(t, TIMER, qp.id)

    def set_member_timer(self, job: Job, rank: int, t: int) -> None:
        self._schedule(t, TIMER, len(self.qps) + self.member_id(job, rank))

    def set_job_timer(self, job: Job, t: int) -> None:
        self._schedule(t, TIMER, len(self.qps) + len(self.members) + job.id)

    def set_reorder_timer(self, qp: Qp, t: int) -> None:
        others = len(self.qps) + len(self.members) + len(self.jobs)
        self._schedule(t, TIMER, others + qp.id)

    def member_id(self, job: Job, rank: int) -> int:
        return self.members.index((job, rank))

    def _on_tx_done(self, ident: int, t: int) -> None:
        self.links[ident].tx_done_pending = False
        self._serve(self.links[ident], t)

    def _on_wake(self, ident: int, t: int) -> None:
        self.hosts[ident].wake_at = None
        self._serve(self.hosts[ident].link, t)

    def _on_timer(self, ident: int, t: int) -> None:
        num_qps, num_members = len(self.qps), len(self.members)
        if ident < num_qps:
            self._on_retransmission_timer(self.qps[ident], t)
        elif ident < num_qps + num_members:
            job, rank = self.members[ident - num_qps]
            job.on_member_timer(rank, t)
        elif ident < num_qps + num_members + len(self.jobs):
            self.jobs[ident - num_qps - num_members].on_timer(t)
        else:
            self._on_late_timer(ident - num_qps - num_members - len(self.jobs), t)

    def _on_late_timer(self, ident: int, t: int) -> None:
        reordering = len(self.qps) if self.nic.out_of_order else 0
        of_credits, of_pfc = self._num_credit_timers(), self._num_pfc_timers()
        if ident < reordering:
            qp = self.qps[ident]
            qp.reorder_timer = False
            if naive_repair.report(self, qp, None, t):
                self._serve_later(qp.plan.dst)
        elif ident < reordering + of_credits:
            self._on_credit_timer(ident - reordering, t)
        elif ident < reordering + of_credits + of_pfc:
            self._on_pfc_timer(ident - reordering - of_credits, t)
        else:
            self._on_bucket(ident - reordering - of_credits - of_pfc, t)

    def _num_credit_timers(self) -> int:
        has_credits = any(tenant.cc == "credit" for tenant in self.scenario.tenants)
        return len(self.hosts) if has_credits else 0

    def _first_credit_timer(self) -> int:
        reordering = len(self.qps) if self.nic.out_of_order else 0
        return len(self.qps) + len(self.members) + len(self.jobs) + reordering

    def _first_pfc_timer(self) -> int:
        return self._first_credit_timer() + self._num_credit_timers()

    def _num_pfc_timers(self) -> int:
        return sum(count for _, count in self._pfc_timers())

    def _bucket_timer(self, bucket: Bucket, ident: int, t: int) -> None:
        if not bucket.pending:
            bucket.pending = True
            first = self._first_pfc_timer() + self._num_pfc_timers()
            self._schedule(t, TIMER, first + ident)

    def _on_bucket(self, ident: int, t: int) -> None:
        num_tenants = len(self.scenario.tenants)
        of_tenants = len(self.hosts) * num_tenants if self.tenants_shaped else 0
        if ident < of_tenants:
            self._grant(ident // num_tenants, ident % num_tenants, t)
            return
        link, c = divmod(ident - of_tenants, len(self.classes))
        self.port_buckets[link, c].pending = False
        self.links[link].withheld[c] = False
        self._serve(self.links[link], t)

    def _on_arrival(self, ident: int, t: int) -> None:
        link = self.links[ident]
        packet = link.in_flight.popleft()
        is_pfc = packet.kind in ("PAUSE", "RESUME")
        lost = False
        if link.down or (link.loss > 0 and not is_pfc):
            lost = link.down or uniform(self.seed, LOSS, ident, link.arrivals) < link.loss
            link.arrivals += 1
        if lost:
            self.lost[ident] += 1
        elif is_pfc:
            self._on_pfc(link, packet, t)
        elif link.dst in self.switches:
            self._forward(link, packet, t)
        else:
            self._receive(packet, t)

    # ----------------------------------------------------------------------- links (3)

    def _transmit(self, link: Link, packet: Packet, t: int) -> None:
        link.free = t + link.serialisation(packet.size + self.nic.interframe_gap_bytes)
        link.in_flight.append(packet)
        self._schedule(link.free + link.delay, ARRIVAL, link.id)
        if packet.cls > 0:
            self.tx_packets[link.id][self.scenario_index[packet.cls]] += 1
            self.tx_bytes[link.id][self.scenario_index[packet.cls]] += packet.size

    def _make_tx_done_pending(self, link: Link) -> None:
        self.make_tx_done_pending(link, link.free)

    def make_tx_done_pending(self, link: Link, t: int) -> None:
        if not link.tx_done_pending:
            link.tx_done_pending = True
            self._schedule(t, TX_DONE, link.id)

    def _serve(self, link: Link, t: int) -> None:
        if link.free > t:
            self._make_tx_done_pending(link)
        elif link.tx_done_pending:
            pass
        elif link.src in self.switches:
            self._serve_switch(link, t)
        else:
            self._serve_host(self.hosts[link.src], t)

    def _choose_class(
        self, link: Link, waiting: list[int], next_size: Callable[[int], int]
    ) -> int | None:
        """The class to serve next; `waiting` is in rising order."""
        free = [c for c in waiting if not link.paused[c]]
        if not free:
            return None
        if free[0] < self.num_strict:
            return free[0]
        if self.dwrr:
            return self._choose_by_deficit(link, free, next_size)
        above = [c for c in free if c > link.last_round_robin]
        link.last_round_robin = (above or free)[0]
        return link.last_round_robin

    def _choose_by_deficit(
        self, link: Link, free: list[int], next_size: Callable[[int], int]
    ) -> int:
        """Goes on with the visit under way, or visits one class after the other."""
        c = link.last_round_robin
        if c not in free:
            link.deficit[c] = 0
        while c not in free or link.deficit[c] < next_size(c):
            above = [other for other in free if other > c]
            c = (above or free)[0]
            link.deficit[c] += self._quantum(c)
        link.deficit[c] -= next_size(c)
        link.last_round_robin = c
        return c

    def _quantum(self, c: int) -> int:
        weights = {
            i: self.settings.classes[self.classes[i].name].weight
            for i in range(self.num_strict, len(self.classes))
        }
        unit = self.scenario.switch.dwrr_quantum_bytes
        if unit is None:
            nic = self.nic
            largest = max(nic.mtu_bytes + nic.header_bytes, nic.ack_bytes, nic.cnp_bytes)
            unit = -(-largest // min(weights.values()))
        return weights[c] * unit

    # ----------------------------------------------------------------------- switch (4)

    def _headroom(self, link: Link, c: int) -> int:
        tc, nic = self.classes[c], self.nic
        if not tc.lossless:
            return 0
        if tc.headroom_rate_delays is not None:
            exact = Fraction(tc.headroom_rate_delays) * link.rate * link.delay
            return int(exact / (8 * PS_PER_S))
        if tc.headroom_bytes != "auto":
            return tc.headroom_bytes
        gap = nic.interframe_gap_bytes
        on_the_wire = -(-2 * link.rate * link.delay // (8 * PS_PER_S))
        return on_the_wire + 3 * (nic.mtu_bytes + nic.header_bytes + gap) + nic.pfc_bytes + gap

    def _alpha_factor(self, link: Link) -> int:
        factor = 1
        if self.scenario.switch.alpha_scales_with_rate:
            while link.rate > factor * self.network.host_rate_bps:
                factor *= 2
        return factor

    def _buffer(self, c: int) -> BufferConfig:
        return self.settings.classes[self.classes[c].name].buffer

    def _label_pools(self) -> list[object]:
        """What the pools of a switch are called; None is for classes without one of their own."""
        labels: list[object] = [None]
        for c in self.scenario.classes:
            if self._pool_label(c) not in labels:
                labels.append(self._pool_label(c))
        return labels

    def _pool_label(self, c: TrafficClass) -> object:
        if c.pool is not None:
            return ("pool", c.pool)
        own = c.buffer is not None and c.buffer.pool_share is not None
        return ("class", c.name) if own else None

    def _pool_of(self, c: int) -> int:
        return self.pool_labels.index(self._pool_label(self.classes[c]))

    def _pool(self, switch: Switch, c: int) -> int:
        """Bytes of the pool of a class."""
        common = self.scenario.switch.headroom_pool_bytes
        private = sum(self._buffer(i.cls).reserved_bytes for i in switch.inputs)
        private += sum(i.headroom for i in switch.inputs) if common is None else common
        room = self.scenario.switch.buffer_bytes - private
        shares = [0.0] * len(self.pool_labels)
        for chosen in self.scenario.classes:
            i = self.internal_class[chosen.name]
            shares[self._pool_of(i)] += self._buffer(i).pool_share or 0.0
        sizes = [int(share * room) for share in shares]
        sizes[0] = room - sum(sizes[1:])
        return sizes[self._pool_of(c)]

    def _free(self, switch: Switch, c: int) -> int:
        return self._pool(switch, c) - switch.shared[self._pool_of(c)]

    def _threshold(self, switch: Switch, slot: Input) -> int:
        buffer = self._buffer(slot.cls)
        if buffer.static_threshold_bytes is not None:
            return buffer.static_threshold_bytes
        alpha = min(buffer.alpha * slot.alpha_factor, max(buffer.alpha, 1.0))
        return max(0, int(alpha * self._free(switch, slot.cls)))

    def _used(self, slot: Input) -> int:
        return max(0, slot.bytes - self._buffer(slot.cls).reserved_bytes)

    def _forward(self, link: Link, packet: Packet, t: int) -> None:
        packet.hop += 1
        packet.came_on = link.id
        chosen = self.routes.output(link, packet, t)
        if chosen is None:
            self.lost[link.id] += 1
            return
        packet.cls = naive_dscp.class_at(self, link.dst, packet)
        switch, slot = self.switches[link.dst], self.inputs[link.id, packet.cls]
        c, s, index = packet.cls, packet.size, self.scenario_index[packet.cls]
        for port in (chosen, link.id ^ 1):
            if self.pfc.watchdog.action == "drop" and self._is_storming(port, c):
                self.watchdog_drops[port][index] += 1
                return
        m, u = self._threshold(switch, slot), self._used(slot)
        beyond = slot.bytes + s - self._buffer(c).reserved_bytes
        over = beyond > 0 and (beyond > m or beyond - u > self._free(switch, c))
        output = self.links[chosen]
        # `over` implies the bracket of the rule for dropping; without it the packet fits in the
        # reserve and the shared buffer, and "a packet within the reserve is never dropped".
        common = self.scenario.switch.headroom_pool_bytes
        in_headroom = sum(i.headroom_used for i in switch.inputs)
        no_headroom = s + slot.headroom_used > slot.headroom
        no_headroom = no_headroom or (common is not None and s + in_headroom > common)
        if (over and no_headroom) or self._is_beyond_egress(switch, output, c, s):
            self.drops[link.id][index] += 1
            return
        if over:
            slot.headroom_used += s
        else:
            slot.bytes += s
            switch.shared[self._pool_of(c)] += self._used(slot) - u
        output.queues[c].append(packet)
        most = max(self.max_queue_bytes[output.id][index], output.queue_bytes(c))
        self.max_queue_bytes[output.id][index] = most
        self._check_pause(switch, slot, t)
        self._serve(output, t)

    def _is_beyond_egress(self, switch: Switch, output: Link, c: int, s: int) -> bool:
        buffer = self._buffer(c)
        if buffer.egress_limit_bytes is not None:
            return output.queue_bytes(c) + s > buffer.egress_limit_bytes
        if buffer.egress_alpha is not None:
            limit = max(0, int(buffer.egress_alpha * self._free(switch, c)))
            return output.queue_bytes(c) + s > limit
        return False

    def _serve_switch(self, link: Link, t: int) -> None:
        def waiting() -> list[int]:
            return [c for c, queue in enumerate(link.queues) if queue and not link.withheld[c]]

        for c in waiting():
            if c == 0 or link.paused[c]:
                continue
            bucket = self.port_buckets[link.id, c]
            allowed = bucket.allowed(link.queues[c][0].size)
            if allowed > t:
                link.withheld[c] = True
                ident = len(self.hosts) * len(self.scenario.tenants) if self.tenants_shaped else 0
                ident += link.id * len(self.classes) + c
                self._bucket_timer(bucket, ident, allowed)
        c = self._choose_class(link, waiting(), lambda c: link.queues[c][0].size)
        if c is None:
            return
        packet = link.queues[c].popleft()
        if c > 0:
            self._leave(link, packet, t)
            self.port_buckets[link.id, c].spend(packet.size, t)
        if packet.kind == "DATA":
            queued = sum(link.queue_bytes(k) for k in range(len(self.classes)))
            packet.hops.append(Hop(t, link.tx_bytes, queued, link.rate))
            packet.level = max(packet.level, self._level(link.src, packet))
        link.tx_bytes += packet.size
        self._transmit(link, packet, t)
        if any(not link.paused[c] for c in waiting()):
            self._make_tx_done_pending(link)

    def _level(self, node: int, packet: Packet) -> float:
        """How full the buffer is that a packet has left: 1 at the threshold of PFC."""
        switch, slot = self.switches[node], self.inputs[packet.came_on, packet.cls]
        held, limit = self._used(slot) + slot.headroom_used, self._threshold(switch, slot)
        return held / limit if held < limit else 1.0

    def _leave(self, output: Link, packet: Packet, t: int) -> None:
        """A packet starts transmission at a switch; it is no longer in its queue."""
        c = packet.cls
        self._give_back(output, packet, t)
        n = output.departed[c]
        output.departed[c] += 1
        if self._is_marked(output, c, n):
            packet.ce = True
            self.ecn_marks[output.id][self.scenario_index[c]] += 1

    def _give_back(self, output: Link, packet: Packet, t: int) -> None:
        c = packet.cls
        switch, slot = self.switches[output.src], self.inputs[packet.came_on, c]
        used_before = self._used(slot)
        from_headroom = min(slot.headroom_used, packet.size)
        slot.headroom_used -= from_headroom
        slot.bytes -= packet.size - from_headroom
        switch.shared[self._pool_of(c)] -= used_before - self._used(slot)
        self._check_resume(switch, slot, t)

    def _is_marked(self, output: Link, c: int, n: int) -> bool:
        ecn = self.settings.classes[self.classes[c].name].ecn
        if not ecn.enabled:
            return False
        kmin, kmax = ecn.kmin_bytes, ecn.kmax_bytes
        if self.scenario.switch.ecn_scales_with_rate:
            kmin = kmin * output.rate // self.network.host_rate_bps
            kmax = kmax * output.rate // self.network.host_rate_bps
        q = output.queue_bytes(c)
        if q > kmax:
            return True
        if q <= kmin:
            return False
        draw = uniform(self.seed, ECN, output.id * len(self.classes) + c, n)
        return draw < ecn.pmax * (q - kmin) / (kmax - kmin)

    # ----------------------------------------------------------------------- PFC (5)

    def _check_pause(self, switch: Switch, slot: Input, t: int) -> None:
        if not self.classes[slot.cls].lossless or slot.told_to_pause:
            return
        if slot.headroom_used > 0 or self._used(slot) >= self._threshold(switch, slot):
            slot.told_to_pause = True
            slot.last_pause = t
            if self.pfc.quanta and not slot.refresh_timer:
                slot.refresh_timer = True
                after = self._refresh_after(self.links[slot.link])
                self._set_pfc_timer("REFRESH", self._port(slot.link, slot.cls), t + after)
            self._send_pfc("PAUSE", slot.link, slot.cls, t)

    def _check_resume(self, switch: Switch, slot: Input, t: int) -> None:
        if not slot.told_to_pause or slot.headroom_used > 0:
            return
        used, offset = self._used(slot), self.classes[slot.cls].xon_offset_bytes
        if used == 0 or used + offset <= self._threshold(switch, slot):
            slot.told_to_pause = False
            self._send_pfc("RESUME", slot.link, slot.cls, t)

    def _send_pfc(self, kind: str, link: int, c: int, t: int) -> None:
        """The destination of a link sends a frame to its source."""
        index = self.scenario_index[c]
        (self.pauses if kind == "PAUSE" else self.resumes)[link][index] += 1
        if kind == "PAUSE" and self.first_pause[link][index] < 0:
            self.first_pause[link][index] = t
        back = self.links[link ^ 1]
        back.queues[0].append(Packet(kind, 0, self.nic.pfc_bytes, paused_class=c))
        if back.free <= t and not back.tx_done_pending:
            back.tx_bytes += self.nic.pfc_bytes
            self._transmit(back, back.queues[0].popleft(), t)
        else:
            self._make_tx_done_pending(back)

    def _on_pfc(self, link: Link, packet: Packet, t: int) -> None:
        sender = self.links[link.id ^ 1]
        c = naive_dscp.class_heard(self, link, packet.paused_class)
        if c is None:
            return
        if packet.kind == "RESUME":
            self._end_pause(sender, c, t)
            return
        if not sender.told[c]:
            sender.told[c], sender.paused_since[c], sender.told_since[c] = True, t, t
        forwards = self.pfc.watchdog.action == "forward" and self._is_storming(sender.id, c)
        sender.paused[c] = not forwards
        if self.pfc.quanta:
            sender.expires[c] = t + self._hold(sender)
            if not sender.hold_timer[c]:
                sender.hold_timer[c] = True
                self._set_pfc_timer("HOLD", self._port(sender.id, c), sender.expires[c])
        dog = self.watchdogs.get((sender.id, c))
        if dog is not None:
            dog.heard = True
            if not dog.timer:
                dog.timer = True
                poll = us_to_ps(self.pfc.watchdog.poll_us)
                self._set_pfc_timer("POLL", self._port(sender.id, c), t - t % poll + poll)

    def _end_pause(self, sender: Link, c: int, t: int) -> None:
        if sender.told[c]:
            self._count_pause(sender, c, t)
        sender.told[c] = sender.paused[c] = False
        self._serve(sender, t)

    def _count_pause(self, link: Link, c: int, t: int) -> None:
        self.paused_ps[link.id][self.scenario_index[c]] += t - link.paused_since[c]
        link.paused_since[c] = t

    # ----------------------------------------------------------------------- timers of PFC (5)

    def _port(self, link: int, c: int) -> int:
        return link * len(self.classes) + c

    def _hold(self, link: Link) -> int:
        return link.serialisation(64 * self.pfc.quanta)

    def _refresh_after(self, link: Link) -> int:
        return int(self._hold(link) * self.pfc.refresh_fraction)

    def _is_storming(self, link: int, c: int) -> bool:
        return (link, c) in self.watchdogs and self.watchdogs[link, c].storming

    def _pfc_timers(self) -> list[tuple[str, int]]:
        """Kinds of timers in order, and how many there are of each."""
        ports = len(self.links) * len(self.classes)
        kinds = [("HOLD", ports), ("REFRESH", ports)] if self.pfc.quanta else []
        kinds += [("POLL", ports)] if self.watchdogs else []
        return [*kinds, ("STORM", len(self.scenario.faults.storms))]

    def _set_pfc_timer(self, kind: str, ident: int, t: int) -> None:
        number = self._first_pfc_timer()
        for name, count in self._pfc_timers():
            if name == kind:
                self._schedule(t, TIMER, number + ident)
                return
            number += count

    def _on_pfc_timer(self, ident: int, t: int) -> None:
        for name, count in self._pfc_timers():
            if ident < count:
                if name == "STORM":
                    self._on_storm(ident, t)
                else:
                    link, c = divmod(ident, len(self.classes))
                    {"HOLD": self._on_hold, "REFRESH": self._on_refresh, "POLL": self._on_poll}[
                        name
                    ](self.links[link], c, t)
                return
            ident -= count

    def _on_hold(self, link: Link, c: int, t: int) -> None:
        link.hold_timer[c] = False
        if link.told[c] and link.expires[c] > t:
            link.hold_timer[c] = True
            self._set_pfc_timer("HOLD", self._port(link.id, c), link.expires[c])
        elif link.told[c]:
            self._end_pause(link, c, t)

    def _on_refresh(self, link: Link, c: int, t: int) -> None:
        slot = self.inputs[link.id, c]
        slot.refresh_timer = False
        if not slot.told_to_pause:
            return
        due = slot.last_pause + self._refresh_after(link)
        if due <= t:
            slot.last_pause, due = t, t + self._refresh_after(link)
            self._send_pfc("PAUSE", link.id, c, t)
        slot.refresh_timer = True
        self._set_pfc_timer("REFRESH", self._port(link.id, c), due)

    def _on_storm(self, ident: int, t: int) -> None:
        storm = self.scenario.faults.storms[ident]
        link = self.links[self.hosts[storm.host].link.id ^ 1]
        c = self.internal_class[storm.traffic_class]
        stop = None if storm.stop_us is None else us_to_ps(storm.stop_us)
        if stop is not None and t >= stop:
            if not self.pfc.quanta:
                self._send_pfc("RESUME", link.id, c, t)
            return
        self._send_pfc("PAUSE", link.id, c, t)
        times = [] if stop is None else [stop]
        times += [t + self._refresh_after(link)] if self.pfc.quanta else []
        if times:
            self._set_pfc_timer("STORM", ident, min(times))

    def _on_poll(self, link: Link, c: int, t: int) -> None:
        config, dog = self.pfc.watchdog, self.watchdogs[link.id, c]
        poll, index = us_to_ps(config.poll_us), self.scenario_index[c]
        if dog.storming:
            dog.quiet = 0 if link.told[c] or dog.heard else dog.quiet + poll
            if dog.quiet >= us_to_ps(config.restoration_us):
                dog.storming = False
                self.restored[link.id][index] += 1
        else:
            is_stalled = link.told[c] and link.told_since[c] <= t - poll and bool(link.queues[c])
            dog.stalled = dog.stalled + poll if is_stalled else 0
            if dog.stalled >= us_to_ps(config.detection_us):
                dog.storming, dog.stalled, dog.quiet = True, 0, 0
                self.storms[link.id][index] += 1
                self._act(link, c, t)
        dog.heard = False
        dog.timer = link.told[c] or dog.storming
        if dog.timer:
            self._set_pfc_timer("POLL", self._port(link.id, c), t + poll)

    def _act(self, link: Link, c: int, t: int) -> None:
        """The watchdog does something about a queue in a storm."""
        if self.pfc.watchdog.action == "drop":
            doomed = list(link.queues[c])
            link.queues[c].clear()
            for packet in doomed:
                self.watchdog_drops[link.id][self.scenario_index[c]] += 1
                self._give_back(link, packet, t)
        elif self.pfc.watchdog.action == "forward":
            link.paused[c] = False
            self._serve(link, t)

    # ----------------------------------------------------------------------- sending NIC (6)

    def post(self, ident: int, size: int, index: int, t: int) -> None:
        qp = self.qps[ident]
        qp.posted += size
        qp.messages.append(Message(index, size, t, qp.posted))
        self._refresh(qp, t)
        self._serve_later(qp.plan.src)

    def _serve_later(self, host: int) -> None:
        if not self.to_serve or self.to_serve[-1] != host:
            self.to_serve.append(host)

    def _arm_wake(self, ident: int, t: int) -> None:
        host = self.hosts[ident]
        if host.wake_at is None or t < host.wake_at:
            host.wake_at = t
            self._schedule(t, WAKE, ident)

    def _refresh(self, qp: Qp, t: int, has_sent: bool = False, window_moved: bool = False) -> None:
        """Puts a QP among the ready or paced ones, or takes it out, where that has changed."""
        host = self.hosts[qp.plan.src]
        ready = host.ready[qp.cls]
        bucket = self._tenant_bucket(qp)
        idle = not (qp.has_bytes or (qp.gaps and not qp.failed))
        if window_moved:
            idle = not qp.sendable
        if self.nic.recovery == "selective_repeat" and not qp.window.follows_rate:
            idle = not qp.sendable  # its window has closed; what was left were gaps, now filled
        if has_sent or idle:
            ready.discard(qp.id)
            host.paced.discard(qp.id)
        if idle:
            if qp in bucket.held:
                bucket.held.remove(qp)
            self._end_grant(qp, t)
        if qp.id in ready or qp.id in host.paced or qp in bucket.held:
            return
        if qp.window.follows_rate:
            qp.cc.advance(t, inclusive=True)
        if qp.sendable:
            due = qp.next_send <= max(t, host.link.free) and not qp.owed
            (ready if due else host.paced).add(qp.id)

    def _tenant_bucket(self, qp: Qp) -> Bucket:
        return self.tenant_buckets[qp.plan.src][qp.plan.tenant]

    def _look_at_held(self, qp: Qp, t: int) -> None:
        """If QPs of the tenant are held, and none has a grant, there is an event for the first."""
        bucket = self._tenant_bucket(qp)
        if bucket.held and bucket.granted is None:
            due = max(t, bucket.allowed(self.nic.mtu_bytes + self.nic.header_bytes))
            ident = qp.plan.src * len(self.scenario.tenants) + qp.plan.tenant
            self._bucket_timer(bucket, ident, due)

    def _end_grant(self, qp: Qp, t: int) -> None:
        bucket = self._tenant_bucket(qp)
        if bucket.granted is qp:
            bucket.granted = None
            self._look_at_held(qp, t)

    def _grant(self, host: int, tenant: int, t: int) -> None:
        """The first QP held may send."""
        bucket = self.tenant_buckets[host][tenant]
        bucket.pending = False
        if bucket.held:
            bucket.granted = bucket.held.popleft()
            self.hosts[host].ready[bucket.granted.cls].add(bucket.granted.id)
            self._serve(self.hosts[host].link, t)

    def _may_pass(self, qp: Qp, t: int) -> bool:
        bucket = self._tenant_bucket(qp)
        if not bucket.limits:
            return True
        if bucket.granted is not qp and (bucket.granted is not None or bucket.held):
            return False
        return bucket.allowed(self.nic.mtu_bytes + self.nic.header_bytes) <= t

    def _next_qp(self, host: Host, c: int) -> int:
        above = [i for i in host.ready[c] if i > host.last_qp[c]]
        return min(above or host.ready[c])

    def _hold_back(self, host: Host, t: int) -> None:
        for c in range(1, len(self.classes)):
            while host.ready[c] and not host.link.paused[c]:
                qp = self.qps[self._next_qp(host, c)]
                if self._may_pass(qp, t):
                    break
                host.ready[c].discard(qp.id)
                self._tenant_bucket(qp).held.append(qp)
                self._end_grant(qp, t)
                self._look_at_held(qp, t)

    def _serve_host(self, host: Host, t: int) -> None:
        link = host.link
        for qp in [self.qps[i] for i in host.paced]:
            while qp.owed and qp.next_send <= t:
                qp.cc.advance(t, inclusive=True)
                self._pace(qp, qp.next_send, qp.owed)
            if qp.next_send <= t:
                host.paced.discard(qp.id)
                host.ready[qp.cls].add(qp.id)

        def waiting() -> list[int]:
            return [c for c in range(len(self.classes)) if link.queues[c] or host.ready[c]]

        def controls() -> list[int]:
            return [c for c in range(len(self.classes)) if link.queues[c]]

        def next_size(c: int) -> int:
            if link.queues[c]:
                return link.queues[c][0].size
            qp = self.qps[self._next_qp(host, c)]
            seq = qp.gaps[0][0] if qp.gaps else qp.snd_nxt
            message = next(m for m in qp.messages if m.end > seq)
            payload = min(self.nic.mtu_bytes, message.end - seq)
            return payload + self.nic.header_bytes

        self._hold_back(host, t)
        sent = True
        if self.nic.ack_ignores_pause and controls():
            self._send_queued(link, controls()[0], t)
        else:
            c = self._choose_class(link, waiting(), next_size)
            while c is not None and not link.queues[c] and self._turn_passes(host, c, t):
                self._hold_back(host, t)
                c = self._choose_class(link, waiting(), next_size)
            if c is None:
                sent = False
            elif link.queues[c]:
                self._send_queued(link, c, t)
            else:
                host.last_qp[c] = self._next_qp(host, c)
                self._send_data(self.qps[host.last_qp[c]], link, t)

        next_paced = min((self.qps[i].next_send for i in host.paced), default=None)
        more = any(not link.paused[c] for c in waiting())
        more = more or (self.nic.ack_ignores_pause and bool(controls()))
        more = more or (next_paced is not None and next_paced <= link.free)
        if sent and more:
            self._make_tx_done_pending(link)
        elif next_paced is not None:
            self._arm_wake(link.src, next_paced)

    def _turn_passes(self, host: Host, c: int, t: int) -> bool:
        """Whether the QP whose turn it is has a window that closed since; it is not ready then."""
        qp = self.qps[self._next_qp(host, c)]
        if not qp.window.follows_rate:
            return False
        qp.cc.advance(t, inclusive=True)
        if qp.sendable:
            return False
        host.ready[c].discard(qp.id)
        return True

    def _send_queued(self, link: Link, c: int, t: int) -> None:
        """A control packet of a host leaves its queue."""
        packet = link.queues[c].popleft()
        packet.waited = t - packet.queued
        self._transmit(link, packet, t)

    def _send_data(self, qp: Qp, link: Link, t: int) -> None:
        nic, controlled = self.nic, qp.cc.config.enabled
        again = bool(qp.gaps)
        seq = qp.gaps[0][0] if again else qp.snd_nxt
        message = next(m for m in qp.messages if m.end > seq)
        payload = min(nic.mtu_bytes, message.end - seq)
        packet = Packet(
            "DATA",
            qp.cls,
            payload + nic.header_bytes,
            qp.id,
            seq=seq,
            payload=payload,
            last=seq + payload == message.end,
            asks=qp.cc.asks,
            sent=t,
            demand=qp.posted if qp.cc.is_granted and controlled else None,
            limit=qp.snd_una + (qp.cc.window or 0),
        )
        self._transmit(link, packet, t)
        self._tenant_bucket(qp).spend(packet.size, t)
        self._end_grant(qp, t)
        self._look_at_held(qp, t)
        qp.next_send, qp.owed = link.free, 0
        if controlled:
            qp.cc.advance(t, inclusive=True)
            owed = (packet.size + nic.interframe_gap_bytes) * 8 * PS_PER_S
            if qp.cc.rate < link.rate:
                self._pace(qp, t, owed)
            qp.cc.on_sent(packet.size, owed, t)
        if qp.snd_nxt == qp.snd_una:
            qp.last_progress = t  # bytes are outstanding again
        if again:
            qp.gaps[0] = (seq + payload, qp.gaps[0][1])
            self._trim(qp)
        else:
            qp.snd_nxt += payload
        if not qp.timer_running and self._rto(qp) > 0:
            self.set_qp_timer(qp, t + self._rto(qp))
        self._refresh(qp, t, has_sent=True)

    def _trim(self, qp: Qp) -> None:
        """Forgets the parts of gaps that are acknowledged or sent again."""
        clipped = [(max(start, qp.snd_una), end) for start, end in qp.gaps]
        qp.gaps = deque(gap for gap in clipped if gap[0] < gap[1])

    def _pace(self, qp: Qp, t: int, owed: int) -> None:
        """Waits for `owed` (bit x 10^-12) from `t` on, at most to the next increase of the rate."""
        due = t + owed // qp.cc.rate
        increase = qp.cc.timers.get("increase")
        if increase is not None and increase < due:
            qp.next_send, qp.owed = increase, owed - qp.cc.rate * (increase - t)
        else:
            qp.next_send, qp.owed = due, 0

    def _rto(self, qp: Qp) -> int:
        if qp.plan.timeout_ps is not None:
            return qp.plan.timeout_ps
        return us_to_ps(self.nic.retransmit_timeout_us)

    def _on_retransmission_timer(self, qp: Qp, t: int) -> None:
        rto = self._rto(qp)
        qp.timer_running = False
        if qp.snd_nxt == qp.snd_una:
            return
        if t - qp.last_progress < rto:
            self.set_qp_timer(qp, qp.last_progress + rto)
            return
        qp.retries += 1
        limit = qp.plan.retry_limit
        if qp.retries > (self.nic.retry_limit if limit is None else limit):
            qp.failed = True
            self._refresh(qp, t)
            return
        naive_repair.on_timeout(self, qp)
        qp.snd_nxt = qp.snd_una
        self.set_qp_timer(qp, t + rto)
        if qp.cc.config.enabled:
            qp.cc.on_timeout(qp.retries, t)
        self._refresh(qp, t)
        self._serve_later(qp.plan.src)

    # ----------------------------------------------------------------------- receiving NIC (7)

    def _receive(self, packet: Packet, t: int) -> None:
        qp = self.qps[packet.qp]
        if packet.kind == "DATA":
            if not qp.plan.is_local:
                self.latencies[qp.plan.tenant][1].append(t - packet.sent)
            if self._on_data(qp, packet, t):
                self._serve(self.hosts[qp.plan.dst].link, t)
        elif packet.kind == "CNP":
            self._on_cnp(qp, t)
        else:
            self._on_ack(qp, packet, t)
            self._serve(self.hosts[qp.plan.src].link, t)

    def _on_data(self, qp: Qp, packet: Packet, t: int) -> bool:
        """Takes in a data packet; whether an ACK, NACK or CNP was queued."""
        answered = False
        if packet.ce and self.nic.cnp_mode == "packet" and not packet.asks:
            interval = us_to_ps(self.nic.cnp_interval_us)
            if qp.last_cnp is None or t - qp.last_cnp >= interval:
                qp.last_cnp = t
                self._send_control("CNP", qp, packet, t)
                answered = True
        if self.nic.out_of_order or self.nic.recovery == "go_back_0":
            return naive_repair.take_in(self, qp, packet, t) or answered
        if packet.seq > qp.expected:
            interval = us_to_ps(self.nic.nack_interval_us)
            last = qp.last_nack
            if last is None or last[0] != qp.expected or t - last[1] >= interval:
                qp.last_nack = (qp.expected, t)
                qp.ce_seen = qp.ce_seen or packet.ce
                self._send_control("NACK", qp, packet, t)
                answered = True
        elif packet.seq < qp.expected:
            qp.ce_seen = qp.ce_seen or packet.ce
            self._send_control("ACK", qp, packet, t)
            answered = True
        else:
            qp.expected += packet.payload
            qp.ce_seen = qp.ce_seen or packet.ce
            qp.unacked_packets += 1
            if packet.last or packet.asks or qp.unacked_packets >= self.nic.ack_every:
                self._send_control("ACK", qp, packet, t)
                answered = True
            if packet.last:
                job, lane, position = self.qp_job[qp.id]
                job.on_delivered(lane, position, t)
        if packet.demand is not None:
            self._take_demand(qp, packet, t)
        return answered

    # ----------------------------------------------------------------------- credits (8.9)

    def _take_demand(self, qp: Qp, packet: Packet, t: int) -> None:
        qp.demand = max(qp.demand, packet.demand)
        allowed = min(packet.limit, packet.demand)
        qp.granted = max(qp.granted, packet.seq + packet.payload, allowed)
        self._want_credit(qp, t)

    def _want_credit(self, qp: Qp, t: int) -> None:
        host = self.hosts[qp.plan.dst]
        coming = max(0, qp.granted - qp.expected)
        host.coming += coming - qp.coming
        qp.coming = coming
        if qp.demand > qp.granted and qp not in host.credit_queue:
            host.credit_queue.append(qp)
        self._arm_credit(qp.plan.dst, t)

    def _arm_credit(self, ident: int, t: int) -> None:
        host = self.hosts[ident]
        if host.credit_armed or not host.credit_queue:
            return
        if host.coming < host.credit_queue[0].cc.config.host_window_bytes:
            host.credit_armed = True
            self._schedule(max(t, host.next_credit), TIMER, self._first_credit_timer() + ident)

    def _on_credit_timer(self, ident: int, t: int) -> None:
        host, nic = self.hosts[ident], self.nic
        host.credit_armed = False
        qp = host.credit_queue.popleft()
        size = min(qp.cc.config.credit_bytes, qp.demand - qp.granted)
        if size > 0:
            qp.granted += size
            self._send_control("ACK", qp, Packet("DATA", 0, 0), t)
            packets = -(-size // nic.mtu_bytes)
            wire = size + packets * (nic.header_bytes + nic.interframe_gap_bytes)
            rate = host.link.rate * qp.cc.config.pace
            host.next_credit = t + int(wire * (8.0 * PS_PER_S) / rate)
        self._want_credit(qp, t)
        self._serve_later(ident)

    def _send_control(self, kind: str, qp: Qp, data: Packet | None, t: int) -> Packet:
        """Queues an ACK, NACK or CNP at the receiver, because of a data packet."""
        nic = self.nic
        name = nic.cnp_class if kind == "CNP" else nic.ack_class
        cls = qp.cls if name is None else self.internal_class[name]
        size = nic.cnp_bytes if kind == "CNP" else nic.ack_bytes
        packet = Packet(kind, cls, size, qp.id, seq=qp.expected)
        qp.nacks += kind == "NACK"
        if kind != "CNP":
            asks = False
            if data is None:
                packet.sent = -1  # brings nothing back
            else:
                packet.sent, packet.hops, asks = data.sent, data.hops, data.asks
                packet.level = data.level
            packet.cnp_flag = qp.ce_seen and (nic.cnp_mode == "ack_echo" or asks)
            packet.queued, packet.granted = t, qp.granted
            qp.ce_seen = False
            qp.unacked_packets = 0
        self.hosts[qp.plan.dst].link.queues[cls].append(packet)
        return packet

    def _on_cnp(self, qp: Qp, t: int) -> None:
        qp.cnps += 1
        if qp.cc.config.enabled:
            qp.cc.on_cnp(t)

    def _on_ack(self, qp: Qp, packet: Packet, t: int) -> None:
        if packet.cnp_flag:
            self._on_cnp(qp, t)
        before = qp.snd_una
        qp.snd_una = max(qp.snd_una, packet.seq)
        qp.snd_nxt = max(qp.snd_nxt, qp.snd_una)
        if qp.snd_una > before:
            qp.last_progress = t
            qp.retries = 0
        while qp.messages and qp.messages[0].end <= qp.snd_una:
            message = qp.messages.popleft()
            self.qp_job[qp.id][0].on_acknowledged(message, t)
            if not qp.plan.is_local:
                self.latencies[qp.plan.tenant][0].append(t - message.start)
        is_loss = packet.kind == "NACK" and packet.seq >= before
        if packet.kind == "NACK":
            naive_repair.on_nack(self, qp, packet, before)
        self._trim(qp)
        if qp.cc.config.enabled and packet.sent >= 0:
            ack = Ack(
                seq=packet.seq,
                rtt=t - packet.sent,
                hops=packet.hops,
                waited=packet.waited,
                switches=packet.hop,
                acked=qp.snd_una,
                sent=qp.snd_nxt,
                posted=qp.posted,
                is_nack=packet.kind == "NACK",
                is_loss=is_loss,
                echo=packet.cnp_flag,
                granted=packet.granted,
                level=packet.level,
            )
            moved = qp.cc.on_ack(ack, t)
            if moved is not None:
                qp.next_send += moved
                self.hosts[qp.plan.src].ready[qp.cls].discard(qp.id)
                self.hosts[qp.plan.src].paced.discard(qp.id)
        self._refresh(qp, t, window_moved=qp.cc.window is not None)

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
