"""PFC of the oracle, its timers and watchdogs (5); a part of `naive.NaiveSimulator`."""

from __future__ import annotations

import naive_dscp
from naive_state import TIMER, Input, Link, Packet, Switch

from roce_gym.units import us_to_ps


class Pfc:
    """Who pauses whom."""

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
