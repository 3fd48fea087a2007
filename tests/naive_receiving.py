"""Receiving side of the oracle's NICs (7), and credits (8.9); a part of `naive.NaiveSimulator`."""

from __future__ import annotations

import naive_repair
from naive_cc import Ack
from naive_state import TIMER, Packet, Qp

from roce_gym.units import PS_PER_S, us_to_ps


class ReceivingNics:
    """What a packet does when it arrives."""

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
