"""Routing and link events of the oracle: sections 11 and 12 of `docs/rules.md`, slow and plain."""

from __future__ import annotations

from collections import deque
from typing import Any

from roce_gym.config import LinkDown, LinkLossy, LinkSlow
from roce_gym.routing import stable_hash
from roce_gym.units import gbps_to_bps, ps_per_kib, us_to_ps

ROUTE = 3  # stream of random numbers
FOREVER = 2**62


class Routes:
    """What switches know: next hops, paths, and the state of cables."""

    def __init__(self, sim: Any) -> None:
        self.sim, self.network, self.config = sim, sim.network, sim.scenario.routing
        self.delay = us_to_ps(self.config.reroute_delay_us)
        self.avoided: frozenset[int] = frozenset()
        self.hops: dict[tuple[frozenset[int], int, int], list[int]] = {}
        self.events = [(e, self._links(e), *self._times(e)) for e in sim.scenario.link_events]
        times = {time for *_, start, stop in self.events for time in (start, stop)}
        for event, _, start, stop in self.events:
            if isinstance(event, LinkDown) and start + self.delay < stop:
                times |= {start + self.delay, stop + self.delay}
        self.times = sorted(time for time in times if time < FOREVER)
        self.draws: dict[int, int] = {}
        self.turns: dict[tuple[int, int], int] = {}
        self.flowlets: dict[tuple[int, int], tuple[int, int]] = {}
        paths = [path for qp in sim.qps for path in (qp.plan.data_links, qp.plan.ack_links)]
        for time in (0, *self.times) if self.events else ():
            self.avoided = self._down(time, self.delay)
            paths += [self.path(qp, direction) for qp in sim.qps for direction in (0, 1)]
        self.longest = max(map(len, paths), default=1)
        self.avoided = self._down(0, self.delay)

    # ----------------------------------------------------------------------- link events (12)

    def _links(self, event: Any) -> list[int]:
        labels = self.network.node_label.tolist()
        a, b = (labels.index(label) for label in event.between)
        ends = zip(self.network.link_src.tolist(), self.network.link_dst.tolist(), strict=True)
        link = [i for i, pair in enumerate(ends) if pair == (a, b)][event.cable]
        return [link] if getattr(event, "direction", "both") == "forward" else [link, link ^ 1]

    def _times(self, event: Any) -> tuple[int, int]:
        stop = FOREVER if event.stop_us is None else us_to_ps(event.stop_us)
        return us_to_ps(event.start_us), stop

    def _down(self, t: int, delay: int = 0) -> frozenset[int]:
        return frozenset(
            link
            for event, links, start, stop in self.events
            for link in links
            if isinstance(event, LinkDown)
            and start + delay < stop
            and start + delay <= t < stop + delay
        )

    def change(self, t: int) -> None:
        """What changes at `t`, after all its events (at 0: before them)."""
        sim = self.sim
        for link in sim.links:
            link.loss = float(self.network.link_loss[link.id])
            rate = link.rate
            for event, links, start, stop in self.events:
                if link.id in links and start <= t < stop:
                    if isinstance(event, LinkLossy):
                        link.loss = max(link.loss, event.loss)
                    elif isinstance(event, LinkSlow):
                        rate = min(rate, gbps_to_bps(event.rate_gbps))
            link.ps_per_kib = ps_per_kib(rate)
        for link in sim.links:
            was_down, link.down = link.down, link.id in self._down(t)
            if link.down and not was_down:
                self._cut(link, t)
        self.avoided = self._down(t, self.delay)

    def _cut(self, link: Any, t: int) -> None:
        """Both ends forget pauses; the link is served."""
        for c, told in enumerate(link.told):
            if told:
                self.sim._count_pause(link, c, t)
            link.told[c] = link.paused[c] = False
            if (link.id, c) in self.sim.inputs:
                self.sim.inputs[link.id, c].told_to_pause = False
        self.sim.make_tx_done_pending(link, max(t, link.free))

    # ----------------------------------------------------------------------- routing (12)

    def next_hops(self, node: int, last: int) -> list[int]:
        """Links of a switch on shortest paths to another one."""
        key = (self.avoided, node, last)
        if key not in self.hops:
            far = self._distances(last)
            mine = far.get(node)
            self.hops[key] = [
                link.id
                for link in self._trunks()
                if link.src == node and mine is not None and far.get(link.dst) == mine - 1
            ]
        return self.hops[key]

    def _trunks(self) -> list[Any]:
        base, routed = self.network.num_hosts, self.network.link_routed
        return [
            link
            for link in self.sim.links
            if link.src >= base and link.dst >= base and link.id not in self.avoided
            if routed is None or routed[link.id]
        ]

    def _distances(self, last: int) -> dict[int, int]:
        far, frontier = {last: 0}, deque([last])
        while frontier:
            node = frontier.popleft()
            for link in self._trunks():
                if link.dst == node and link.src not in far:
                    far[link.src] = far[node] + 1
                    frontier.append(link.src)
        return far

    def path(self, qp: Any, direction: int) -> tuple[int, ...]:
        """The path of a QP's data (0) or ACKs (1): the plan's, or a detour if that is broken."""
        plan = qp.plan
        planned = plan.ack_links if direction else plan.data_links
        if plan.is_pinned[direction] or self.avoided.isdisjoint(planned):
            return planned
        return self._detour(plan, direction) or planned

    def _detour(self, plan: Any, direction: int) -> tuple[int, ...] | None:
        hosts, links = self.sim.hosts, self.sim.links
        src, dst = (plan.dst, plan.src) if direction else (plan.src, plan.dst)
        entropy = stable_hash(self.sim.seed, plan.tenant, plan.job, plan.number, direction)
        flow = stable_hash(src, dst, entropy)
        path, node, last = [hosts[src].link.id], hosts[src].link.dst, hosts[dst].link.dst
        while node != last:
            choices = self.next_hops(node, last)
            if not choices:
                return None
            path.append(choices[stable_hash(flow, node) % len(choices)])
            node = links[path[-1]].dst
        path.append(hosts[dst].link.id ^ 1)
        return tuple(path) if self.avoided.isdisjoint(path) else None

    def output(self, link: Any, packet: Any, t: int) -> int | None:
        """The link on which a switch sends a packet that came on `link`."""
        sim, node = self.sim, link.dst
        qp, direction = sim.qps[packet.qp], 0 if packet.kind == "DATA" else 1
        policy = "ecmp" if direction or qp.plan.is_pinned[0] else self.config.policy
        path = self.path(qp, direction)
        if policy == "ecmp" and packet.hop < len(path) and sim.links[path[packet.hop]].src == node:
            return path[packet.hop]
        downlink = sim.hosts[qp.plan.src if direction else qp.plan.dst].link.id ^ 1
        if sim.links[downlink].src == node:
            return downlink
        choices = self.next_hops(node, sim.links[downlink].src)
        if len(choices) < 2:
            return choices[0] if choices else None
        if policy == "ecmp":
            return choices[qp.id % len(choices)]
        place = (qp.id, min(packet.hop, self.longest - 1))
        if policy == "spray_round_robin":
            turn = self.turns.get(place, 0)
            self.turns[place] = turn + 1
            return choices[(qp.id + turn) % len(choices)]
        if policy == "adaptive":
            start = self._count_draw(node) % len(choices)
            order = choices[start:] + choices[:start]
            return min(order, key=self._load)  # the first of the least
        if policy == "flowlet":
            sent, chosen = self.flowlets.get(place, (-FOREVER, -1))
            if t - sent >= us_to_ps(self.config.flowlet_gap_us) or chosen not in choices:
                chosen = self._drawn(node, choices)
            self.flowlets[place] = (t, chosen)
            return chosen
        return self._drawn(node, choices)

    def _load(self, ident: int) -> int:
        return sum(packet.size for queue in self.sim.links[ident].queues for packet in queue)

    def _count_draw(self, node: int) -> int:
        self.draws[node] = self.draws.get(node, 0) + 1
        return self.draws[node] - 1

    def _drawn(self, node: int, choices: list[int]) -> int:
        switch = node - self.network.num_hosts
        u = self.sim.uniform(self.sim.seed, ROUTE, switch, self._count_draw(node))
        return choices[int(u * len(choices))]
