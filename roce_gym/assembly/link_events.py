"""What happens to cables during a run, and where packets go then (rules, section 13).

What a link and a route are like at a time is a function of the time alone, so that nothing but the
clock has to be restored with a snapshot.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roce_gym.assembly.endpoints import make_paths
from roce_gym.assembly.routes import groups, make_tables
from roce_gym.config import LinkDown, LinkEvent, LinkLossy, LinkSlow, Scenario
from roce_gym.errors import ConfigError, TopologyError
from roce_gym.routing import Router
from roce_gym.sim import types as t
from roce_gym.topology.graph import Network
from roce_gym.units import gbps_to_bps, ps_per_kib, us_to_ps
from roce_gym.workload.plan import Plan
from roce_gym.workload.queue_pairs import path_entropy


@dataclass(frozen=True)
class _Change:
    """One event of the scenario, on directed links."""

    event: LinkEvent
    links: tuple[int, ...]
    start_ps: int
    stop_ps: int

    def is_on(self, now_ps: int, delay_ps: int = 0) -> bool:
        """Whether it is under way; with a delay: as routing knows it."""
        start_ps = self.start_ps + delay_ps
        return start_ps < self.stop_ps and start_ps <= now_ps < self.stop_ps + delay_ps

    def times(self, delay_ps: int) -> set[int]:
        """When something about it changes."""
        out = {self.start_ps, self.stop_ps}
        if isinstance(self.event, LinkDown) and self.start_ps + delay_ps < self.stop_ps:
            out |= {self.start_ps + delay_ps, self.stop_ps + delay_ps}
        return {time for time in out if time < t.FOREVER}


@dataclass(frozen=True)
class _Detours:
    """Routes while some links are out of use.

    Attributes:
        paths: by (QP, 0 for data or 1 for ACKs): paths other than the plan's.
        unreachable: QPs whose ends are apart.
        tables: see :func:`make_tables`.
    """

    paths: dict[tuple[int, int], tuple[int, ...]]
    unreachable: frozenset[int]
    tables: dict[str, NDArray[Any]]


class LinkSchedule:
    """All link events of a scenario, and their effects on a state."""

    def __init__(self, scenario: Scenario, network: Network, plan: Plan, seed: int) -> None:
        """Resolves cables and finds all detours.

        Raises:
            ConfigError: an event concerns a cable that there is not; names it.
        """
        self._network, self._plan, self._seed = network, plan, seed
        self._changes = [
            _resolve(f"link_events.{i}", event, network)
            for i, event in enumerate(scenario.link_events)
        ]
        self._delay_ps = us_to_ps(scenario.routing.reroute_delay_us)
        times = {time for change in self._changes for time in change.times(self._delay_ps)}
        self._times = sorted(times)
        self._detours: dict[frozenset[int], _Detours] = {}
        if self._changes:
            for time in (0, *self._times):
                self._detours_at(time)

    @property
    def longest_detour(self) -> int:
        """Links of the longest path that any QP may get; at least 1."""
        paths = [path for detours in self._detours.values() for path in detours.paths.values()]
        return max(map(len, paths), default=1)

    @property
    def lowest_rate_bps(self) -> NDArray[np.int64]:
        """Shape (num_links,), int64: the lowest rate that each link will have."""
        lowest = self._network.link_rate_bps.copy()
        for change in self._changes:
            if isinstance(change.event, LinkSlow):
                rate_bps = gbps_to_bps(change.event.rate_gbps)
                links = list(change.links)
                lowest[links] = np.minimum(lowest[links], rate_bps)
        return lowest

    def next_change_ps(self, now_ps: int) -> int:
        """The first time after `now_ps` at which something changes; FOREVER: none."""
        return next((time for time in self._times if time > now_ps), int(t.FOREVER))

    def apply(self, state: t.State, now_ps: int) -> tuple[t.State, tuple[int, ...]]:
        """Makes links and routes what they are from `now_ps` on.

        Args:
            state: of the simulator [in/out].
            now_ps: a time at which something changes.

        Returns:
            The state, of which arrays of routes are new; and the links that go down now, which
            have to be served: those paused are so no longer.
        """
        self._set_links(state, now_ps)
        cut = {link for link in self._down(now_ps) if link not in self._down(now_ps - 1)}
        for link in cut:
            _forget_pauses(state, link, now_ps)
        detours = self._detours_at(now_ps)
        max_hops = int(state.params[0]["max_hops"])
        path, _ = make_paths(self._plan, max_hops)
        rows = path.reshape(-1, 2, max_hops)
        for (qp, direction), links in detours.paths.items():
            rows[qp, direction] = t.NONE
            rows[qp, direction, : len(links)] = links
        state.path[:] = path
        core: Any = state.core[0]
        core["unreachable_qps"] = len(detours.unreachable)
        return state._replace(**detours.tables), tuple(sorted(cut))

    def unreachable_qps(self, now_ps: int) -> frozenset[int]:
        """QPs between whose ends there is no route, as far as routing knows."""
        return self._detours_at(now_ps).unreachable if self._changes else frozenset()

    def _set_links(self, state: t.State, now_ps: int) -> None:
        rate = self._network.link_rate_bps.copy()
        loss = self._network.link_loss.copy()
        for change in self._changes:
            if not change.is_on(now_ps):
                continue
            links = list(change.links)
            if isinstance(change.event, LinkSlow):
                rate_bps = gbps_to_bps(change.event.rate_gbps)
                rate[links] = np.minimum(rate[links], rate_bps)
            elif isinstance(change.event, LinkLossy):
                loss[links] = np.maximum(loss[links], change.event.loss)
            else:
                loss[links] = t.DOWN
        touched = sorted({link for change in self._changes for link in change.links})
        state.link["loss"][touched] = loss[touched]
        state.link["ps_per_kib"][touched] = [ps_per_kib(int(rate[link])) for link in touched]

    def _down(self, now_ps: int, delay_ps: int = 0) -> frozenset[int]:
        return frozenset(
            link
            for change in self._changes
            if isinstance(change.event, LinkDown) and change.is_on(now_ps, delay_ps)
            for link in change.links
        )

    def _detours_at(self, now_ps: int) -> _Detours:
        avoided = self._down(now_ps, self._delay_ps)
        if avoided not in self._detours:
            self._detours[avoided] = self._find_detours(avoided)
        return self._detours[avoided]

    def _find_detours(self, avoided: frozenset[int]) -> _Detours:
        """Paths that meet none of the links; those that meet none anyway stay as they are."""
        network = self._network
        routed = np.ones(network.num_links, np.bool_)
        if network.link_routed is not None:
            routed = network.link_routed.copy()
        routed[list(avoided)] = False
        router = Router(replace(network, link_routed=routed))
        paths: dict[tuple[int, int], tuple[int, ...]] = {}
        apart: set[int] = set()
        for i, pair in enumerate(self._plan.qps):
            for direction, links in enumerate((pair.data_links, pair.ack_links)):
                if avoided.isdisjoint(links):
                    continue
                found = None
                if not pair.is_pinned[direction]:
                    found = self._path(router, i, direction, avoided)
                if found is None:
                    apart.add(i)
                else:
                    paths[i, direction] = found
        tables = make_tables(network, router, groups(network, self._plan))
        return _Detours(paths, frozenset(apart), tables)

    def _path(
        self, router: Router, qp: int, direction: int, avoided: frozenset[int]
    ) -> tuple[int, ...] | None:
        pair = self._plan.qps[qp]
        ends = (pair.dst, pair.src) if direction else (pair.src, pair.dst)
        entropy = path_entropy(self._seed, pair.tenant, pair.job, pair.number, direction)
        try:
            links = router.ecmp_path(*ends, entropy)
        except TopologyError:
            return None
        return links if avoided.isdisjoint(links) else None  # the cable of a host has no detour


def corrupting_links(
    scenario: Scenario, network: Network, start_ps: int, stop_ps: int
) -> NDArray[np.bool_]:
    """Shape (num_links,), bool: links which lose packets by chance in that time and are never down.

    What such a link loses has a wrong checksum when it arrives; what is lost elsewhere never does.
    """
    lossy, down = _troubled_links(scenario, network, start_ps, stop_ps)
    return lossy & ~down


def loss_causes(scenario: Scenario, network: Network, stop_ps: int) -> list[str]:
    """Of each link: why it may have lost packets until then, in words; empty: for no reason.

    Only where packets are routed hop by hop may a switch have no route for them; what it loses
    then counts on the link on which it came.
    """
    lossy, down = _troubled_links(scenario, network, 0, stop_ps)
    nowhere = np.zeros(network.num_links, np.bool_)
    if scenario.routing.policy != "ecmp" and down.any():
        nowhere[network.into_switch] = True
    causes = (("corrupted", lossy), ("link down", down), ("no route", nowhere & ~down))
    return [
        " or ".join(text for text, concerned in causes if concerned[link])
        for link in range(network.num_links)
    ]


def _troubled_links(
    scenario: Scenario, network: Network, start_ps: int, stop_ps: int
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Shape (num_links,), bool, both: that lose packets by chance in that time; that are down."""
    lossy = network.link_loss > 0
    down = np.zeros(network.num_links, np.bool_)
    for i, event in enumerate(scenario.link_events):
        change = _resolve(f"link_events.{i}", event, network)
        if change.start_ps < stop_ps and start_ps < change.stop_ps:
            if isinstance(event, LinkLossy):
                lossy[list(change.links)] = True
            elif isinstance(event, LinkDown):
                down[list(change.links)] = True
    return lossy, down


def _resolve(name: str, event: LinkEvent, network: Network) -> _Change:
    """The directed links of an event."""
    labels = event.between
    nodes = [network.node_of_label.get(label) for label in labels]
    for label, node in zip(labels, nodes, strict=True):
        if node is None:
            raise ConfigError(
                f"{name}.between: node {label} does not exist; nodes are within "
                f"{network.node_label.min()} … {network.node_label.max()}"
            )
    cables = np.flatnonzero((network.link_src == nodes[0]) & (network.link_dst == nodes[1]))
    if not len(cables):
        near = sorted({int(network.node_label[n]) for n in _neighbours(network, nodes[0])})
        raise ConfigError(
            f"{name}.between: no cable joins {labels[0]} and {labels[1]}; {labels[0]} is joined "
            f"to {', '.join(map(str, near))}"
        )
    if event.cable >= len(cables):
        raise ConfigError(
            f"{name}.cable = {event.cable} is not allowed; {labels[0]} and {labels[1]} are joined "
            f"by {len(cables)} cable(s), counted from 0"
        )
    link = int(cables[event.cable])
    one_way = not isinstance(event, LinkDown) and event.direction == "forward"
    return _Change(
        event=event,
        links=(link,) if one_way else (link, link ^ 1),
        start_ps=us_to_ps(event.start_us),
        stop_ps=int(t.FOREVER) if event.stop_us is None else us_to_ps(event.stop_us),
    )


def _neighbours(network: Network, node: int | None) -> list[int]:
    return [int(n) for n in network.link_dst[network.link_src == node]]


def _forget_pauses(state: t.State, link: int, now_ps: int) -> None:
    """Neither end of a link that is cut knows of a pause any more."""
    num_classes = int(state.params[0]["num_classes"])
    here = slice(link * num_classes, (link + 1) * num_classes)
    ports = state.pfc[here]
    paused = ports["paused_since_ps"] != t.FOREVER
    ports["paused_ps"][paused] += now_ps - ports["paused_since_ps"][paused]
    ports["paused_since_ps"] = t.FOREVER
    state.ingress["flags"][here] &= ~t.TOLD_TO_PAUSE
    state.link["paused"][link] = 0
