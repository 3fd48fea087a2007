"""Links of the oracle, and whose turn it is on them (3); a part of `naive.NaiveSimulator`."""

from __future__ import annotations

from collections.abc import Callable

from naive_state import ARRIVAL, TX_DONE, Link, Packet


class Links:
    """Transmission, and the choice among classes."""

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
