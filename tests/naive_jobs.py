"""Jobs of the oracle (9): flows, incast, ring all-reduce, all-to-all."""

from __future__ import annotations

from typing import Any

from naive_state import COMPUTE, Message, uniform

from roce_gym.workload.plan import JobPlan


class Job:
    """A job of the plan. Its timers are numbered by the simulator."""

    def __init__(self, sim: Any, ident: int, plan: JobPlan) -> None:
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


class RoundsJob(Job):
    """Rounds of compute and communication, entered by each member on its own."""

    def __init__(self, sim: Any, ident: int, plan: JobPlan) -> None:
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

    def _may_enter(self, rank: int, t: int) -> bool:
        """Its compute phase is over; whether there is a round for it, which it is then in."""
        p, k = self.plan, self.round[rank]
        if self.end is None and k >= self.rounds_begun:  # the first member to enter round k
            if (p.stop_ps >= 0 and t >= p.stop_ps) or (p.rounds >= 0 and k >= p.rounds):
                self.end = k
        if self.end is not None and k >= self.end:
            return False
        self.rounds_begun = max(self.rounds_begun, k + 1)
        self.communicating[rank] = True
        self.last_entry[k] = t
        return True

    def _compute(self, rank: int, t: int) -> None:
        self.sim.set_member_timer(self, rank, t + self._length(rank, self.plan.compute_ps))

    def _length(self, rank: int, wanted: int) -> int:
        """With jitter."""
        p = self.plan
        u = uniform(self.sim.seed, COMPUTE, p.first_member_id + rank, self.round[rank])
        return int(wanted * (1 + p.jitter * (2 * u - 1)))


class CollectiveJob(RoundsJob):
    """Members that are done with a round when they have received it all."""

    def on_member_timer(self, rank: int, t: int) -> None:
        if self._may_enter(rank, t):
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

    def __init__(self, sim: Any, ident: int, plan: JobPlan) -> None:
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

    def __init__(self, sim: Any, ident: int, plan: JobPlan) -> None:
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
