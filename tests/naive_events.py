"""Events of the oracle, and which timer is which (2); a part of `naive.NaiveSimulator`."""

from __future__ import annotations

import heapq

import naive_repair
from naive_jobs import Job
from naive_state import EVENT_KINDS, LOSS, TIMER, WAKE, Bucket, Qp, uniform


class Events:
    """What happens, and when."""

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
