"""Sending side of the oracle's NICs (6); a part of `naive.NaiveSimulator`."""

from __future__ import annotations

from collections import deque

import naive_repair
from naive_state import WAKE, Bucket, Host, Link, Message, Packet, Qp

from roce_gym.units import PS_PER_S, us_to_ps


class SendingNics:
    """Which queue pair sends, and when."""

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
