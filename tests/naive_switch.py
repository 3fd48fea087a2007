"""Switches of the oracle (4); a part of `naive.NaiveSimulator`."""

from __future__ import annotations

from fractions import Fraction

import naive_dscp
from naive_cc import Hop
from naive_state import ECN, Input, Link, Packet, Switch, uniform

from roce_gym.config import BufferConfig, ClassOverride, EcnConfig, TrafficClass
from roce_gym.units import PS_PER_S


class Switches:
    """Buffers, thresholds, forwarding, marks."""

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

    def _overrides(self, node: int, c: int) -> list[ClassOverride]:
        """What holds at a switch in place of the class's settings, the last one first."""
        label, tier = int(self.network.node_label[node]), self.network.tier(node)
        if node < self.network.num_hosts + self.network.num_servers:
            return []
        return [
            one.classes[self.classes[c].name]
            for one in reversed(self.settings.switch_overrides)
            if self.classes[c].name in one.classes and (label in one.switches or tier == one.tier)
        ]

    def _ecn(self, node: int, c: int) -> EcnConfig:
        given = [one.ecn for one in self._overrides(node, c) if one.ecn is not None]
        return given[0] if given else self.settings.classes[self.classes[c].name].ecn

    def _buffer(self, c: int) -> BufferConfig:
        return self.settings.classes[self.classes[c].name].buffer

    def _reserved(self, slot: Input) -> int:
        overrides = self._overrides(self.links[slot.link].dst, slot.cls)
        given = [one.reserved_bytes for one in overrides if one.reserved_bytes is not None]
        return given[0] if given else self._buffer(slot.cls).reserved_bytes

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
        private = sum(self._reserved(i) for i in switch.inputs)
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
        base, static = self._buffer(slot.cls).alpha, self._buffer(slot.cls).static_threshold_bytes
        for one in self._overrides(self.links[slot.link].dst, slot.cls):
            if one.alpha is not None or one.static_threshold_bytes is not None:
                base, static = one.alpha, one.static_threshold_bytes
                break
        if static is not None:
            return static
        alpha = min(base * slot.alpha_factor, max(base, 1.0))
        return max(0, int(alpha * self._free(switch, slot.cls)))

    def _used(self, slot: Input) -> int:
        return max(0, slot.bytes - self._reserved(slot))

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
        beyond = slot.bytes + s - self._reserved(slot)
        over = beyond > 0 and (beyond > m or beyond - u > self._free(switch, c))
        output = self.links[chosen]
        # `over` implies the bracket of the rule for dropping; without it the packet fits in the
        # reserve and the shared buffer, and "a packet within the reserve is never dropped".
        common = self.scenario.switch.headroom_pool_bytes
        in_headroom = sum(i.headroom_used for i in switch.inputs)
        no_headroom = s + slot.headroom_used > slot.headroom
        no_headroom = no_headroom or (common is not None and s + in_headroom > common)
        beyond_egress = self._is_beyond_egress(switch, output, c, s)
        if beyond_egress:
            self.drops_at_egress[link.id][index] += 1
            self.egress_drops[output.id][index] += 1
        if (over and no_headroom) or beyond_egress:
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
        ecn = self._ecn(output.src, c)
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
