"""Operation graphs once more, plainly: section 9.1 of `docs/rules.md`.

Every message of a collective is a record of its own (`naive_textbook.py`); what may be sent is
found by looking at all of them.
"""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, field
from typing import Any

from naive_jobs import RoundsJob
from naive_textbook import Transfer, expand

COMPUTE, SEND, RECV, COLLECTIVE, MARK = range(5)


@dataclass
class Op:
    rank: int
    kind: int
    peer: int
    bytes: int
    duration: int
    needs: set[int]
    mate: int = -1
    left: set[int] = field(default_factory=set)
    arrived: int = 0  # RECV: messages so far
    waits: bool = False


@dataclass
class CallRound:
    """A collective in one round."""

    begun: dict[int, int] = field(default_factory=dict)  # rank of the call -> time
    finished: set[int] = field(default_factory=set)
    unsent: list[list[int]] = field(default_factory=list)  # by sender, in order
    missing: list[int] = field(default_factory=list)  # by receiver
    missing_of: Counter[tuple[int, int]] = field(default_factory=Counter)  # by channel and step
    received: set[int] = field(default_factory=set)


class Call:
    def __init__(self, job: GraphJob, index: int) -> None:
        plan = job.plan.graph
        self.call = plan.graph.collectives[index]
        self.algorithm = plan.machines[plan.call_machine[index]].algorithm
        self.ranks = list(self.call.ranks)
        server = [job.server(rank) for rank in self.ranks]
        self.transfers: list[Transfer] = expand(
            self.call.operation,
            self.algorithm,
            len(self.ranks),
            server,
            self.call.bytes,
            plan.options,
        )
        self.rounds: dict[int, CallRound] = {}
        self.group = -1

    def round(self, k: int) -> CallRound:
        if k not in self.rounds:
            new = self.rounds[k] = CallRound()
            new.unsent = [[] for _ in self.ranks]
            new.missing = [0] * len(self.ranks)
            for number, transfer in enumerate(self.transfers):
                new.unsent[transfer.src].append(number)
                new.missing[transfer.dst] += 1
                new.missing_of[transfer.group] += 1
        return self.rounds[k]


class GraphJob(RoundsJob):
    """Rounds of compute and a graph."""

    def __init__(self, sim: Any, ident: int, plan: Any) -> None:
        super().__init__(sim, ident, plan)
        graph = plan.graph.graph
        starts = graph.first_dependency.tolist()
        self.ops = [
            Op(
                rank=int(graph.rank[i]),
                kind=int(graph.kind[i]),
                peer=int(graph.peer[i]),
                bytes=int(graph.bytes[i]),
                duration=int(graph.duration_ps[i]),
                needs=set(graph.dependency[starts[i] : starts[i + 1]].tolist()),
            )
            for i in range(len(graph.rank))
        ]
        assert all(len(op.needs) == starts[i + 1] - starts[i] for i, op in enumerate(self.ops))
        self.computes = [i for i, op in enumerate(self.ops) if op.kind == COMPUTE]
        self.marks = [i for i, op in enumerate(self.ops) if op.kind == MARK]
        self.channel = graph.channel.tolist()
        self._match(graph.tag.tolist())
        self.calls = [Call(self, index) for index in range(len(graph.collectives))]
        kinds: list[tuple[Any, ...]] = []
        for call in self.calls:
            kind = (call.ranks, call.algorithm)
            if kind not in kinds:
                kinds.append(kind)
            call.group = kinds.index(kind)
        self.qp_at = {tuple(c): i for i, c in enumerate(plan.graph.connections)}
        self.on_way = [deque() for _ in plan.graph.connections]  # messages by queue pair
        self.queue: list[deque[int]] = [deque() for _ in range(self.size)]
        self.left = [0] * self.size  # operations not done in this round
        self.waiting = [False] * self.size
        self.pauses = [False] * self.size
        self.closed = 0

    def server(self, rank: int) -> int:
        network = self.sim.network
        if not network.num_servers:
            return rank
        link = int(network.host_link[network.num_places + self.plan.hosts[rank]])
        return int(network.link_dst[link])

    def _match(self, tags: list[int]) -> None:
        """The k-th SEND with some ends, tag and channel belongs to the k-th such RECV."""
        receives: dict[tuple[int, ...], deque[int]] = {}
        for i, op in enumerate(self.ops):
            if op.kind == RECV:
                key = (op.peer, op.rank, tags[i], self.channel[i])
                receives.setdefault(key, deque()).append(i)
        for i, op in enumerate(self.ops):
            if op.kind == SEND:
                op.mate = receives[op.rank, op.peer, tags[i], self.channel[i]].popleft()

    # ------------------------------------------------------------------- rounds

    def on_timer(self, t: int) -> None:
        raise AssertionError("graphs have no such timer")

    def _compute(self, rank: int, t: int) -> None:
        self.waiting[rank] = False
        super()._compute(rank, t)

    def on_member_timer(self, rank: int, t: int) -> None:
        if rank >= self.size:
            op = self.computes[rank - self.size]
            self._end(op)
            self._go_on(self.ops[op].rank, t)
            return
        if self.pauses[rank]:
            self.pauses[rank] = False
            self._go_on(rank, t)
            return
        if not self._may_enter(rank, t):
            return
        own = [i for i, op in enumerate(self.ops) if op.rank == rank]
        self.left[rank] = len(own)
        for i in own:
            self.ops[i].left = set(self.ops[i].needs)
            if not self.ops[i].left:
                self.queue[rank].append(i)
        self._go_on(rank, t)

    def _finish(self, rank: int, t: int) -> None:
        k = self.round[rank]
        self.communicating[rank] = False
        self.waiting[rank] = True
        self.round[rank] = k + 1
        self.finished[k] = self.finished.get(k, 0) + 1
        who = [rank]
        if self.finished[k] == self.size:
            self.complete(k, self.last_entry[k], t, 0)
            self.closed += 1
            assert self.closed == k + 1
            who = list(range(self.size))
        for other in who:
            if self.waiting[other] and self.round[other] <= self.closed + 1:
                self._compute(other, t)

    # ------------------------------------------------------------------- operations

    def _end(self, i: int) -> None:
        rank = self.ops[i].rank
        self.left[rank] -= 1
        for k, other in enumerate(self.ops):
            if i in other.left:
                other.left.remove(i)
                if not other.left:
                    self.queue[rank].append(k)

    def _go_on(self, rank: int, t: int) -> None:
        collectives = 0
        while self.queue[rank] and not self.pauses[rank]:
            op = self.ops[self.queue[rank][0]]
            collectives += op.kind in (COLLECTIVE, MARK)
            if op.kind in (COLLECTIVE, MARK) and collectives == 2:
                self.pauses[rank] = True
                self.sim.set_member_timer(self, rank, t)
                return
            i = self.queue[rank].popleft()
            if op.kind == COMPUTE:
                self.sim.set_member_timer(
                    self,
                    self.size + self.computes.index(i),
                    t + self._length(rank, op.duration),
                )
            elif op.kind == SEND:
                qp = self.qp_at[-1, rank, op.peer, self.channel[i]]
                self._post(qp, op.bytes, ("recv", op.mate), rank, t)
                self._end(i)
            elif op.kind == RECV:
                op.waits = True
                self._look_at_receive(i)
            elif op.kind == MARK:
                self.sim.marks.append((self.id, self.marks.index(i), self.round[rank], t))
                self._end(i)
            elif self._begin_call(i, t):
                self._end(i)
        if self.communicating[rank] and self.left[rank] == 0:
            self._finish(rank, t)

    def _post(self, qp: int, size: int, what: tuple[Any, ...], rank: int, t: int) -> None:
        self.on_way[qp].append(what)
        self.sim.post(self.plan.qps[0][qp], size, self.round[rank], t)

    def _look_at_receive(self, i: int) -> None:
        op = self.ops[i]
        if op.waits and op.arrived > self.round[op.rank]:
            op.waits = False
            self._end(i)

    def on_delivered(self, lane: int, position: int, t: int) -> None:
        what = self.on_way[position].popleft()
        if what[0] == "recv":
            i = what[1]
            self.ops[i].arrived += 1
            self._look_at_receive(i)
            rank = self.ops[i].rank
        else:
            _, index, k, number = what
            call = self.calls[index]
            member = call.transfers[number].dst
            rank = call.ranks[member]
            state = call.round(k)
            state.received.add(number)
            state.missing[member] -= 1
            state.missing_of[call.transfers[number].group] -= 1
            if member in call.round(k).begun and self.round[rank] == k:
                if self._advance(index, k, member, t):
                    self._end(self._op_of(index, rank))
        self._go_on(rank, t)

    # ------------------------------------------------------------------- collectives

    def _op_of(self, index: int, rank: int) -> int:
        (found,) = (
            i
            for i, op in enumerate(self.ops)
            if op.kind == COLLECTIVE and op.peer == index and op.rank == rank
        )
        return found

    def _begin_call(self, i: int, t: int) -> bool:
        op = self.ops[i]
        call, k = self.calls[op.peer], self.round[op.rank]
        member = call.ranks.index(op.rank)
        call.round(k).begun[member] = t
        return self._advance(op.peer, k, member, t)

    def _advance(self, index: int, k: int, member: int, t: int) -> bool:
        """Sends what a rank may send; whether it has received all, which it finds only once."""
        call = self.calls[index]
        state = call.round(k)
        kept = []
        for number in state.unsent[member]:
            transfer = call.transfers[number]
            if transfer.needs <= state.received and not any(
                state.missing_of[group] for group in transfer.whole
            ):
                qp = self._connection(call, transfer)
                what = ("call", index, k, number)
                self._post(qp, transfer.bytes, what, call.ranks[member], t)
            else:
                kept.append(number)
        state.unsent[member] = kept
        if member in state.finished or state.missing[member]:
            return False
        assert not kept
        state.finished.add(member)
        if len(state.finished) == len(call.ranks):
            begun = max(state.begun.values())
            entry = (self.id, index, k, begun, t, call.call.bytes)
            self.sim.collectives.append(entry)
        return True

    def _connection(self, call: Call, transfer: Transfer) -> int:
        """Queue pairs are shared by collectives of the same ranks and algorithm."""
        src, dst = call.ranks[transfer.src], call.ranks[transfer.dst]
        return self.qp_at[call.group, src, dst, transfer.connection]
