"""The rules of `docs/rules.md` once more: slow, plain, one event at a time, pure Python integers.

The oracle of the test suite. It shares no code with `roce_gym/sim`; the two must agree to the
picosecond. Section numbers in this file are those of `docs/rules.md`.
"""

from __future__ import annotations

import heapq
from collections import deque
from dataclasses import dataclass, field
from fractions import Fraction

from naive_senders import SENDERS, Ack

from roce_gym.config import (
    BufferConfig,
    DcqcnConfig,
    Scenario,
    SenderConfig,
    Settings,
    TrafficClass,
    sender_settings,
)
from roce_gym.topology.graph import Network
from roce_gym.units import PS_PER_S, mbps_to_bps, ns_to_ps, ps_per_kib, us_to_ps
from roce_gym.workload.plan import JobPlan, Plan, QueuePair

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
    path: tuple[int, ...] = ()
    hop: int = 0  # path[hop] is the link it is on or waits for
    seq: int = 0  # of the first byte (DATA), next expected byte (ACK, NACK)
    payload: int = 0
    last: bool = False
    asks: bool = False  # for an ACK of its own
    sent: int = 0  # DATA: when; ACK, NACK: of the data packet it answers
    queued: int = 0  # ACK, NACK: when it joined the receiver's queue
    waited: int = 0  # ACK, NACK: in that queue
    demand: int | None = None  # DATA: end of what its QP has to send, if receivers grant credits
    limit: int = 0  # DATA: end of what it may send already
    granted: int = 0  # ACK, NACK: end of what the QP may send
    ce: bool = False
    cnp_flag: bool = False
    paused_class: int = -1  # PAUSE and RESUME


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
        self.in_flight: deque[Packet] = deque()
        self.arrivals = 0
        self.queues: list[deque[Packet]] = [deque() for _ in range(n)]
        self.departed = [0] * n
        self.paused = [False] * n
        self.paused_since = [0] * n
        self.last_round_robin = 0

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


@dataclass(eq=False)
class Switch:
    """The shared buffer of a switch: its inputs, and what they use beyond their reserve."""

    inputs: list[Input] = field(default_factory=list)
    shared: int = 0


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


class Dcqcn:
    """Rate control of one QP (8)."""

    ORDER = ("alpha", "increase", "cut")  # among timers of one time
    asks = False
    is_granted = False
    window = None

    def __init__(self, config: DcqcnConfig, line_rate: int) -> None:
        self.line_rate = line_rate
        self._configure(config)
        self.rate = self.target = self.max_rate if config.enabled else line_rate
        self.alpha = min(config.initial_alpha, config.alpha_cap)
        self.time_stage = self.byte_stage = self.byte_count = 0
        self.cnp_for_alpha = self.cnp_for_cut = False
        self.seen_cnp = self.was_cut = False
        self.timers: dict[str, int] = {}

    def adopt(self, config: DcqcnConfig) -> None:
        """New parameters; running timers keep their time, rates obey a new bound at once."""
        if config.enabled != self.config.enabled:
            self.__init__(config, self.line_rate)
            return
        self._configure(config)
        if config.enabled:
            self.rate = min(self.rate, self.max_rate)
            self.target = min(self.target, self.max_rate)

    def _configure(self, config: DcqcnConfig) -> None:
        self.config = config
        self.min_rate = mbps_to_bps(config.min_rate_mbps)
        given = mbps_to_bps(config.max_rate_mbps)
        self.max_rate = min(given, self.line_rate) if given > 0 else self.line_rate

    def advance(self, until: int, inclusive: bool) -> None:
        """Lets every timer due before `until` (or also at `until`) fire, in order of time."""
        while self.timers:
            time, rank = min((at, self.ORDER.index(name)) for name, at in self.timers.items())
            if time > until or (time == until and not inclusive):
                return
            {"alpha": self._alpha, "increase": self._increase, "cut": self._cut}[self.ORDER[rank]](
                time
            )

    def on_cnp(self, t: int) -> None:
        self.advance(t, inclusive=False)
        c = self.config
        self.cnp_for_cut = True
        if self.seen_cnp:
            self.cnp_for_alpha = True
            return
        self.seen_cnp = True
        self.alpha = min(c.initial_alpha, c.alpha_cap)
        self.cnp_for_alpha = False
        first = mbps_to_bps(c.first_cnp_rate_mbps)
        if 0 < first < self.rate:
            self.rate = self.target = first
        self.timers["alpha"] = t + us_to_ps(c.alpha_interval_us)
        self.timers["cut"] = t + us_to_ps(c.decrease_interval_us) + ns_to_ps(1)

    def on_ack(self, ack: Ack, t: int) -> None:
        """Acknowledgements say nothing to it."""

    def on_timeout(self, retries: int, t: int) -> None:
        """Nor do timeouts."""

    def on_sent(self, wire_bytes: int, t: int) -> None:
        limit = self.config.byte_counter_bytes
        if limit == 0 or not self.was_cut:
            return
        self.byte_count += wire_bytes
        while self.byte_count >= limit:
            self.byte_count -= limit
            self._step()
            self.byte_stage += 1

    def _alpha(self, t: int) -> None:
        c = self.config
        added = c.g if self.cnp_for_alpha else 0.0
        self.alpha = min((1 - c.g) * self.alpha + added, c.alpha_cap)
        self.cnp_for_alpha = False
        self.timers["alpha"] = t + us_to_ps(c.alpha_interval_us)

    def _increase(self, t: int) -> None:
        self._step()
        self.time_stage += 1
        self.timers["increase"] = t + us_to_ps(self.config.increase_timer_us)

    def _cut(self, t: int) -> None:
        c = self.config
        self.timers["cut"] = t + us_to_ps(c.decrease_interval_us)
        if not self.cnp_for_cut:
            return
        after_time_increase = self.time_stage > 0 and c.clamp_target_rate_after_time_inc
        if c.clamp_target_rate or self.byte_stage > 0 or after_time_increase:
            self.target = self.rate
        wanted = max(
            self.rate * (1 - self.alpha / c.cut_divisor), self.rate * c.min_decrease_factor
        )
        self.rate = int(min(max(wanted, self.min_rate), self.max_rate))
        self.time_stage = self.byte_stage = self.byte_count = 0
        self.cnp_for_cut = False
        self.was_cut = True
        self.timers["increase"] = t + us_to_ps(c.increase_timer_us)

    def _step(self) -> None:
        """One increase, by the stages before it."""
        c = self.config
        stages = [self.time_stage]
        if c.byte_counter_bytes > 0:
            stages.append(self.byte_stage)
        if max(stages) >= c.fast_recovery_times:
            hyper = min(stages) > c.fast_recovery_times
            step = mbps_to_bps(c.rate_hai_mbps if hyper else c.rate_ai_mbps)
            self.target = min(self.max_rate, self.target + step)
        self.rate = (self.rate + self.target) // 2


class Qp:
    """Both ends of a queue pair: sender (6, 8) and receiver (7)."""

    def __init__(self, ident: int, plan: QueuePair, cls: int, cc: Dcqcn, window: int) -> None:
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
        # receiver
        self.expected = 0
        self.unacked_packets = 0
        self.ce_seen = False
        self.last_nack: tuple[int, int] | None = None  # value, time
        self.last_cnp: int | None = None
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
        window = self.window
        if self.cc.window is not None:  # its algorithm sets one, while it is on
            window = self.cc.window if self.cc.config.enabled else 0
        open_window = window == 0 or self.snd_nxt - self.snd_una < window
        return not self.failed and self.posted > self.snd_nxt and open_window


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


JOB_CLASSES = {
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
        tx_packets, tx_bytes, ecn_marks, max_queue_bytes: [link][class of the scenario], at the
            sending end of the link.
        pauses, resumes, drops: [link][class], at the receiving end.
        paused_ps: [link][class], time its sending end was paused.
        lost: [link], packets lost on it.
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
        self.trace = trace
        self.events: list[tuple[int, str, int]] = []
        self.completions: list[tuple[int, int, int, int, int]] = []
        self.heap: list[tuple[int, int, int]] = []
        self.to_serve: deque[int] = deque()  # hosts, when the current event is over

        # 1: class 0 is PFC, then strict ones by falling, then others by rising priority
        strict = sorted(
            (c for c in scenario.classes if c.scheduling == "strict"), key=lambda c: -c.priority
        )
        others = sorted(
            (c for c in scenario.classes if c.scheduling != "strict"), key=lambda c: c.priority
        )
        self.classes: list[TrafficClass | None] = [None, *strict, *others]
        self.num_strict = 1 + len(strict)
        self.scenario_index = [-1] + [scenario.classes.index(c) for c in strict + others]
        self.internal_class = {c.name: i for i, c in enumerate(self.classes) if c is not None}

        num_links, num_classes = network.num_links, len(scenario.classes)

        def counter() -> list[list[int]]:
            return [[0] * num_classes for _ in range(num_links)]

        self.tx_packets, self.tx_bytes, self.ecn_marks = counter(), counter(), counter()
        self.max_queue_bytes, self.paused_ps = counter(), counter()
        self.pauses, self.resumes, self.drops = counter(), counter(), counter()
        self.lost = [0] * num_links

        self.links = [Link(network, i, num_classes) for i in range(num_links)]
        self.hosts = [
            Host(
                self.links[int(network.host_link[h])],
                [set() for _ in self.classes],
                [-1] * len(self.classes),
            )
            for h in range(network.num_hosts)
        ]
        self.switches = {network.num_hosts + i: Switch() for i in range(network.num_switches)}
        self.inputs: dict[tuple[int, int], Input] = {}
        for link in self.links:
            if link.dst in self.switches:
                for c in range(1, num_classes + 1):
                    slot = Input(link.id, c, self._headroom(link, c), self._alpha_factor(link))
                    self.inputs[link.id, c] = slot
                    self.switches[link.dst].inputs.append(slot)

        self.qps: list[Qp] = []
        for i, qp in enumerate(plan.qps):
            cls = self.internal_class[scenario.classes[qp.class_index].name]
            config = self._sender(qp.tenant)
            if isinstance(config, DcqcnConfig):
                cc = Dcqcn(config, self.hosts[qp.src].link.rate)
            else:
                cc = SENDERS[type(config)](config, self.hosts[qp.src].link.rate, self.nic)
            self.qps.append(Qp(i, qp, cls, cc, self.nic.window_bytes))

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
            if isinstance(job, CollectiveJob)
            for rank in range(job.size)
        ]
        for job in self.jobs:
            job.begin()

    def run(self, until_ps: int) -> None:
        """Handles all events up to and including `until_ps`."""
        while self.heap and self.heap[0][0] <= until_ps:
            t, kind, ident = heapq.heappop(self.heap)
            if kind == WAKE and self.hosts[ident].wake_at != t:
                continue  # was moved to an earlier time
            if self.trace:
                self.events.append((t, EVENT_KINDS[kind], ident))
            (self._on_arrival, self._on_tx_done, self._on_wake, self._on_timer)[kind](ident, t)
            while self.to_serve:
                self._serve(self.hosts[self.to_serve.popleft()].link, t)
        self.now = until_ps
        for qp in self.qps:
            qp.cc.advance(until_ps, inclusive=True)
        for link in self.links:
            for c, paused in enumerate(link.paused):
                if paused:
                    self._count_pause(link, c, until_ps)

    def set_settings(self, settings: Settings) -> None:
        """New settings from now on."""
        self.settings = settings
        for qp in self.qps:
            config = self._sender(qp.plan.tenant)
            if config.enabled != qp.cc.config.enabled:
                qp.owed = 0
            qp.cc.adopt(config)
        for switch in self.switches.values():
            switch.shared = sum(self._used(i) for i in switch.inputs)

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
            self._on_credit_timer(ident - num_qps - num_members - len(self.jobs), t)

    def _on_arrival(self, ident: int, t: int) -> None:
        link = self.links[ident]
        packet = link.in_flight.popleft()
        if packet.kind in ("PAUSE", "RESUME"):
            self._on_pfc(link, packet, t)
            return
        n = link.arrivals
        link.arrivals += 1
        if uniform(self.seed, LOSS, ident, n) < link.loss:
            self.lost[ident] += 1
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
        if not link.tx_done_pending:
            link.tx_done_pending = True
            self._schedule(link.free, TX_DONE, link.id)

    def _serve(self, link: Link, t: int) -> None:
        if link.free > t:
            self._make_tx_done_pending(link)
        elif link.tx_done_pending:
            pass
        elif link.src in self.switches:
            self._serve_switch(link, t)
        else:
            self._serve_host(self.hosts[link.src], t)

    def _choose_class(self, link: Link, waiting: list[int]) -> int | None:
        """The class to serve next; `waiting` is in rising order."""
        free = [c for c in waiting if not link.paused[c]]
        if not free:
            return None
        if free[0] < self.num_strict:
            return free[0]
        above = [c for c in free if c > link.last_round_robin]
        link.last_round_robin = (above or free)[0]
        return link.last_round_robin

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

    def _pool(self, switch: Switch) -> int:
        private = sum(i.headroom + self._buffer(i.cls).reserved_bytes for i in switch.inputs)
        return self.scenario.switch.buffer_bytes - private

    def _threshold(self, switch: Switch, slot: Input) -> int:
        buffer = self._buffer(slot.cls)
        if buffer.static_threshold_bytes is not None:
            return buffer.static_threshold_bytes
        alpha = min(buffer.alpha * slot.alpha_factor, max(buffer.alpha, 1.0))
        return max(0, int(alpha * (self._pool(switch) - switch.shared)))

    def _used(self, slot: Input) -> int:
        return max(0, slot.bytes - self._buffer(slot.cls).reserved_bytes)

    def _forward(self, link: Link, packet: Packet, t: int) -> None:
        switch, slot = self.switches[link.dst], self.inputs[link.id, packet.cls]
        c, s, index = packet.cls, packet.size, self.scenario_index[packet.cls]
        m, u = self._threshold(switch, slot), self._used(slot)
        beyond = slot.bytes + s - self._buffer(c).reserved_bytes
        free_pool = self._pool(switch) - switch.shared
        over = beyond > 0 and (beyond > m or beyond - u > free_pool)
        # `over` implies the bracket of the rule for dropping; without it the packet fits in the
        # reserve and the shared buffer, and "a packet within the reserve is never dropped".
        if over and s + slot.headroom_used > slot.headroom:
            self.drops[link.id][index] += 1
            return
        if over:
            slot.headroom_used += s
        else:
            slot.bytes += s
            switch.shared += self._used(slot) - u
        packet.hop += 1
        output = self.links[packet.path[packet.hop]]
        output.queues[c].append(packet)
        most = max(self.max_queue_bytes[output.id][index], output.queue_bytes(c))
        self.max_queue_bytes[output.id][index] = most
        self._check_pause(switch, slot, t)
        self._serve(output, t)

    def _serve_switch(self, link: Link, t: int) -> None:
        c = self._choose_class(link, [c for c, queue in enumerate(link.queues) if queue])
        if c is None:
            return
        packet = link.queues[c].popleft()
        if c > 0:
            self._leave(link, packet, t)
        self._transmit(link, packet, t)
        if any(queue and not link.paused[c] for c, queue in enumerate(link.queues)):
            self._make_tx_done_pending(link)

    def _leave(self, output: Link, packet: Packet, t: int) -> None:
        """A packet starts transmission at a switch; it is no longer in its queue."""
        c = packet.cls
        switch, slot = self.switches[output.src], self.inputs[packet.path[packet.hop - 1], c]
        used_before = self._used(slot)
        from_headroom = min(slot.headroom_used, packet.size)
        slot.headroom_used -= from_headroom
        slot.bytes -= packet.size - from_headroom
        switch.shared -= used_before - self._used(slot)
        self._check_resume(switch, slot, t)
        n = output.departed[c]
        output.departed[c] += 1
        if self._is_marked(output, c, n):
            packet.ce = True
            self.ecn_marks[output.id][self.scenario_index[c]] += 1

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
            self.pauses[slot.link][self.scenario_index[slot.cls]] += 1
            self._send_pfc("PAUSE", slot, t)

    def _check_resume(self, switch: Switch, slot: Input, t: int) -> None:
        if not slot.told_to_pause or slot.headroom_used > 0:
            return
        used, offset = self._used(slot), self.classes[slot.cls].xon_offset_bytes
        if used == 0 or used + offset <= self._threshold(switch, slot):
            slot.told_to_pause = False
            self.resumes[slot.link][self.scenario_index[slot.cls]] += 1
            self._send_pfc("RESUME", slot, t)

    def _send_pfc(self, kind: str, slot: Input, t: int) -> None:
        back = self.links[slot.link ^ 1]
        back.queues[0].append(Packet(kind, 0, self.nic.pfc_bytes, paused_class=slot.cls))
        self._serve(back, t)

    def _on_pfc(self, link: Link, packet: Packet, t: int) -> None:
        sender, c = self.links[link.id ^ 1], packet.paused_class
        if packet.kind == "PAUSE":
            sender.paused[c], sender.paused_since[c] = True, t
        else:
            self._count_pause(sender, c, t)
            sender.paused[c] = False
            self._serve(sender, t)

    def _count_pause(self, link: Link, c: int, t: int) -> None:
        self.paused_ps[link.id][self.scenario_index[c]] += t - link.paused_since[c]
        link.paused_since[c] = t

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

    def _refresh(self, qp: Qp, t: int, has_sent: bool = False) -> None:
        """Puts a QP among the ready or paced ones, or takes it out, where that has changed."""
        host = self.hosts[qp.plan.src]
        ready = host.ready[qp.cls]
        if has_sent or not qp.sendable:
            ready.discard(qp.id)
            host.paced.discard(qp.id)
        if qp.sendable and qp.id not in ready and qp.id not in host.paced:
            due = qp.next_send <= max(t, host.link.free) and not qp.owed
            (ready if due else host.paced).add(qp.id)

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

        sent = True
        if self.nic.ack_ignores_pause and controls():
            self._send_queued(link, controls()[0], t)
        else:
            c = self._choose_class(link, waiting())
            if c is None:
                sent = False
            elif link.queues[c]:
                self._send_queued(link, c, t)
            else:
                above = [i for i in host.ready[c] if i > host.last_qp[c]]
                host.last_qp[c] = min(above or host.ready[c])
                self._send_data(self.qps[host.last_qp[c]], link, t)

        next_paced = min((self.qps[i].next_send for i in host.paced), default=None)
        more = any(not link.paused[c] for c in waiting())
        more = more or (self.nic.ack_ignores_pause and bool(controls()))
        more = more or (next_paced is not None and next_paced <= link.free)
        if sent and more:
            self._make_tx_done_pending(link)
        elif next_paced is not None:
            self._arm_wake(link.src, next_paced)

    def _send_queued(self, link: Link, c: int, t: int) -> None:
        """A control packet of a host leaves its queue."""
        packet = link.queues[c].popleft()
        packet.waited = t - packet.queued
        self._transmit(link, packet, t)

    def _send_data(self, qp: Qp, link: Link, t: int) -> None:
        nic, controlled = self.nic, qp.cc.config.enabled
        message = next(m for m in qp.messages if m.end > qp.snd_nxt)
        payload = min(nic.mtu_bytes, message.end - qp.snd_nxt)
        packet = Packet(
            "DATA",
            qp.cls,
            payload + nic.header_bytes,
            qp.id,
            qp.plan.data_links,
            seq=qp.snd_nxt,
            payload=payload,
            last=qp.snd_nxt + payload == message.end,
            asks=qp.cc.asks,
            sent=t,
            demand=qp.posted if qp.cc.is_granted and controlled else None,
            limit=qp.snd_una + (qp.cc.window or 0),
        )
        self._transmit(link, packet, t)
        qp.next_send, qp.owed = link.free, 0
        if controlled:
            qp.cc.advance(t, inclusive=True)
            if qp.cc.rate < link.rate:
                bits = (packet.size + nic.interframe_gap_bytes) * 8
                self._pace(qp, t, bits * PS_PER_S)
            qp.cc.on_sent(packet.size, t)
        if qp.snd_nxt == qp.snd_una:
            qp.last_progress = t  # bytes are outstanding again
        qp.snd_nxt += payload
        if not qp.timer_running and nic.retransmit_timeout_us > 0:
            self.set_qp_timer(qp, t + us_to_ps(nic.retransmit_timeout_us))
        self._refresh(qp, t, has_sent=True)

    def _pace(self, qp: Qp, t: int, owed: int) -> None:
        """Waits for `owed` (bit x 10^-12) from `t` on, at most to the next increase of the rate."""
        due = t + owed // qp.cc.rate
        increase = qp.cc.timers.get("increase")
        if increase is not None and increase < due:
            qp.next_send, qp.owed = increase, owed - qp.cc.rate * (increase - t)
        else:
            qp.next_send, qp.owed = due, 0

    def _on_retransmission_timer(self, qp: Qp, t: int) -> None:
        rto = us_to_ps(self.nic.retransmit_timeout_us)
        qp.timer_running = False
        if qp.snd_nxt == qp.snd_una:
            return
        if t - qp.last_progress < rto:
            self.set_qp_timer(qp, qp.last_progress + rto)
            return
        qp.retries += 1
        if qp.retries > self.nic.retry_limit:
            qp.failed = True
            self._refresh(qp, t)
            return
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

    # ----------------------------------------------------------------------- credits (11)

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
            timer = len(self.qps) + len(self.members) + len(self.jobs) + ident
            self._schedule(max(t, host.next_credit), TIMER, timer)

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

    def _send_control(self, kind: str, qp: Qp, data: Packet, t: int) -> None:
        """Queues an ACK, NACK or CNP at the receiver."""
        nic = self.nic
        name = nic.cnp_class if kind == "CNP" else nic.ack_class
        cls = qp.cls if name is None else self.internal_class[name]
        size = nic.cnp_bytes if kind == "CNP" else nic.ack_bytes
        packet = Packet(kind, cls, size, qp.id, qp.plan.ack_links, seq=qp.expected)
        if kind != "CNP":
            packet.cnp_flag = qp.ce_seen and (nic.cnp_mode == "ack_echo" or data.asks)
            packet.sent, packet.queued = data.sent, t
            packet.granted = qp.granted
            qp.ce_seen = False
            qp.unacked_packets = 0
        self.hosts[qp.plan.dst].link.queues[cls].append(packet)

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
            self.qp_job[qp.id][0].on_acknowledged(qp.messages.popleft(), t)
        is_loss = packet.kind == "NACK" and packet.seq >= before
        if is_loss:
            qp.snd_nxt = qp.snd_una
        rate = qp.cc.rate
        if qp.cc.config.enabled:
            qp.cc.on_ack(
                Ack(
                    rtt=t - packet.sent,
                    waited=packet.waited,
                    switches=packet.hop,
                    acked=qp.snd_una,
                    sent=qp.snd_nxt,
                    posted=qp.posted,
                    is_nack=packet.kind == "NACK",
                    is_loss=is_loss,
                    echo=packet.cnp_flag,
                    granted=packet.granted,
                ),
                t,
            )
        self._refresh(qp, t, has_sent=qp.cc.rate != rate or qp.cc.window is not None)

    def _sender(self, tenant: int) -> SenderConfig:
        return sender_settings(self.scenario.tenants[tenant], self.settings)
