"""Writes settings into the simulator's arrays, at the start and during a run."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roce_gym.config import (
    SENDER_CONFIGS,
    ClassSettings,
    Scenario,
    SenderConfig,
    Settings,
    UserConfig,
    class_order,
    sender_settings,
)
from roce_gym.errors import TuningError
from roce_gym.queueing import Queueing
from roce_gym.sim import types as t
from roce_gym.sim.cc.records import qp_records, tenant_params
from roce_gym.sim.cc.registry import ALGORITHMS
from roce_gym.switch_settings import by_switch
from roce_gym.topology.graph import NVLINK_CREDIT_BYTES, Network
from roce_gym.units import BPS_PER_MBPS, PS_PER_US, mbps_to_bps

_NEVER_MARK = np.iinfo(np.int32).max


def check_names(scenario: Scenario, settings: Settings) -> None:
    """Settings must name exactly the scenario's classes and tenants.

    Raises:
        TuningError: a name is missing or unknown.
    """
    for field, given, wanted in (
        ("classes", set(settings.classes), {c.name for c in scenario.classes}),
        ("tenants", set(settings.tenants), {x.name for x in scenario.tenants}),
    ):
        if given != wanted:
            raise TuningError(f"settings.{field}: got {sorted(given)}; needed: {sorted(wanted)}")
    kinds = {x.name: SENDER_CONFIGS[x.cc] for x in scenario.tenants if x.cc != "dcqcn"}
    for name, given_sender in settings.senders.items():
        if type(given_sender) is not kinds.get(name):
            allowed = ", ".join(f"{key}: {kind.__name__}" for key, kind in kinds.items()) or "none"
            raise TuningError(
                f"settings.senders.{name}: a {type(given_sender).__name__} is not allowed; "
                f"allowed: {allowed}"
            )
    for tenant in scenario.tenants:
        new, own = settings.senders.get(tenant.name), tenant.user
        if isinstance(new, UserConfig) and own is not None:
            if (new.file, new.function) != (own.file, own.function):
                raise TuningError(
                    f"settings.senders.{tenant.name}: file and function = {new.file!r}, "
                    f"{new.function!r} cannot change; allowed: {own.file!r}, {own.function!r}"
                )


def _has_same_names(settings: Settings, checked: Settings) -> bool:
    """Whether :func:`check_names` has nothing to find that it has not found before."""
    return (
        settings.classes.keys() == checked.classes.keys()
        and settings.tenants.keys() == checked.tenants.keys()
        and settings.senders is checked.senders
    )


class Tuner:
    """Applies :class:`Settings` to a state; precomputes what does not change."""

    def __init__(self, scenario: Scenario, network: Network) -> None:
        self._scenario, self._network = scenario, network
        self._num_classes = len(scenario.classes) + 1
        self._internal = {
            scenario.classes[c].name: i + 1 for i, c in enumerate(class_order(scenario))
        }
        over_host = network.link_rate_bps / network.host_rate_bps
        self._host_rate_bps = network.host_rate_bps
        self._rates_bps, self._rate_index = network.rate_kinds
        powers = np.exp2(np.ceil(np.log2(np.maximum(over_host, 1.0))))
        self._alpha_scale = (
            powers if scenario.switch.alpha_scales_with_rate else np.ones_like(powers)
        )
        self._nvlink = np.flatnonzero(network.is_nvlink)
        self._num_hosts = network.num_hosts
        self._num_servers, self._num_places = network.num_servers, network.num_places
        self._at_switch = np.flatnonzero(network.link_dst >= network.num_hosts)
        self._switch = network.link_dst[self._at_switch] - network.num_hosts
        self._num_switches = network.num_switches
        self._num_ports = np.bincount(self._switch, minlength=network.num_switches)
        self._unreserved: NDArray[np.int64] | None = None
        self._queueing = Queueing(scenario, network)
        self._last: Settings | None = None

    def apply(self, state: t.State, settings: Settings) -> None:
        """Writes all settings that differ from the ones applied last.

        Raises:
            TuningError: wrong names, reserved bytes and headroom exceed a switch's buffer, or
                shares, weights or shapers that the scenario does not allow; nothing is changed
                then.
        """
        old = self._last
        if old is None or not _has_same_names(settings, old):
            check_names(self._scenario, settings)
        self._queueing.check(settings)
        kinds, kind_of = by_switch(settings, self._network)
        reserves = [sum(c.buffer.reserved_bytes for c in kind.values()) for kind in kinds]
        reserved = np.array(reserves, np.int64)[kind_of[self._num_hosts :]]
        pools = self._queueing.pools(settings, self._room(state, reserved))
        overrides = settings.switch_overrides
        changed = [
            name
            for name, chosen in settings.classes.items()
            if old is None or (old.classes[name], old.switch_overrides) != (chosen, overrides)
        ]
        for name in changed:
            chosen = [kind[name] for kind in kinds]
            self._apply_class(state, self._internal[name], chosen, kind_of)
        for i, tenant in enumerate(self._scenario.tenants):
            new = sender_settings(tenant, settings)
            before = None if old is None else sender_settings(tenant, old)
            if new != before:
                apply_sender(state, i, new)
            if before is None or _bounds(new) != _bounds(before):
                own, is_inside = state.qp["tenant"] == i, state.qp["src"] >= self._num_places
                _adopt(state, i, np.flatnonzero(own & ~is_inside), *_bounds(new))
                _adopt(state, i, np.flatnonzero(own & is_inside), False, 0.0)  # NVLink
        self._queueing.apply(state, settings, old, changed)
        state.switch["pool"] = pools
        self._queueing.recount_shared(state)
        self._last = settings

    def assume(self, settings: Settings) -> None:
        """The state holds these settings already (it was restored)."""
        self._last = settings

    def _room(self, state: t.State, reserved: NDArray[np.int64]) -> NDArray[np.int64]:
        """Bytes of each switch's buffer less headroom and reserve; not checked inside servers.

        `reserved`: shape (num_switches,), bytes at a port.
        """
        if self._unreserved is None:
            self._unreserved = self._find_unreserved(state)
        room = self._unreserved - reserved * self._num_ports
        short = room[self._num_servers :]
        if (short < 0).any():
            fullest = self._num_servers + int(short.argmin())
            raise TuningError(
                f"buffer.reserved_bytes: reserve ({reserved[fullest]} bytes a port) and headroom "
                f"exceed switch.buffer_bytes = {self._scenario.switch.buffer_bytes} by "
                f"{-room[fullest]}"
            )
        return room

    def _find_unreserved(self, state: t.State) -> NDArray[np.int64]:
        """Bytes of each switch's buffer less headroom, which does not change during a run."""
        size, shared = self._scenario.switch.buffer_bytes, self._scenario.switch.headroom_pool_bytes
        if shared is not None:
            return np.full(self._num_switches, size - shared, np.int64)
        headroom = state.ingress["headroom"].reshape(-1, self._num_classes)[self._at_switch]
        per_port = headroom.sum(axis=1, dtype=np.int64)
        taken = np.bincount(self._switch, per_port, self._num_switches).astype(np.int64)
        return size - taken

    def _apply_class(
        self, state: t.State, cls: int, chosen: list[ClassSettings], kind_of: NDArray[np.intp]
    ) -> None:
        """Writes what holds for a class: `chosen` by kind of node, `kind_of` by node."""
        sender, receiver = kind_of[self._network.link_src], kind_of[self._network.link_dst]
        queue = state.queue.reshape(-1, self._num_classes)[:, cls]
        lines = [c.ecn for c in chosen]
        for field in ("kmin", "kmax"):
            given = [getattr(e, f"{field}_bytes") if e.enabled else None for e in lines]
            queue[field] = self._at_port_rate(given, sender)
        queue["pmax"] = np.array([e.pmax for e in lines])[sender]
        ingress = state.ingress.reshape(-1, self._num_classes)[:, cls]
        buffers = [c.buffer for c in chosen]
        alpha = np.array([b.alpha for b in buffers])[receiver]
        ingress["alpha"] = np.minimum(alpha * self._alpha_scale, np.maximum(alpha, 1.0))
        static = [b.static_threshold_bytes for b in buffers]
        thresholds = np.array([t.NONE if x is None else x for x in static], np.int64)
        ingress["static_threshold"] = thresholds[receiver]
        ingress["reserved"] = np.array([b.reserved_bytes for b in buffers], np.int64)[receiver]
        queue["kmin"][self._nvlink] = queue["kmax"][self._nvlink] = _NEVER_MARK
        ingress["static_threshold"][self._nvlink] = NVLINK_CREDIT_BYTES
        ingress["reserved"][self._nvlink] = 0

    def _at_port_rate(
        self, given_bytes: list[int | None], kind: NDArray[np.intp]
    ) -> NDArray[np.int64]:
        """Shape (num_links,), int64: a threshold at each link's rate.

        Args:
            given_bytes: at host rate, by kind of node; None where nothing is marked.
            kind: shape (num_links,), of the node that sends.
        """
        rates = [self._host_rate_bps] * len(self._rates_bps)
        if self._scenario.switch.ecn_scales_with_rate:
            rates = [int(rate) for rate in self._rates_bps]
        scaled = [
            [_NEVER_MARK if x is None else x * rate // self._host_rate_bps for rate in rates]
            for x in given_bytes
        ]
        return np.minimum(scaled, _NEVER_MARK)[kind, self._rate_index]


def apply_sender(state: t.State, tenant: int, config: SenderConfig) -> None:
    """Writes the sender parameters of one tenant; running timers keep their time (rules, 8).

    A record's field `x_ps` is the setting `x_us`, `x_bps` is `x_mbps`; others have the same name.
    """
    algorithm = ALGORITHMS[state.cc_kind[tenant] - 1]
    tenant_params(state, algorithm.params)[tenant] = tuple(
        [
            getattr(config, setting) if unit is None else round(getattr(config, setting) * unit)
            for setting, unit in _sources(algorithm.params)
        ]
    )


@cache
def _sources(record: np.dtype[Any]) -> list[tuple[str, int | None]]:
    """Of each field: the setting that it is made of, and by what this has to be multiplied."""
    sources: list[tuple[str, int | None]] = []
    for field in record.names or ():
        if field.endswith("_ps"):
            sources.append((field.removesuffix("_ps") + "_us", PS_PER_US))
        elif field.endswith("_bps"):
            sources.append((field.removesuffix("_bps") + "_mbps", BPS_PER_MBPS))
        else:
            sources.append((field, None))
    return sources


def _bounds(config: SenderConfig) -> tuple[bool, float]:
    """What existing rates depend on at once."""
    return config.enabled, config.max_rate_mbps


def _adopt(
    state: t.State, tenant: int, qps: NDArray[np.intp], enabled: bool, max_rate_mbps: float
) -> None:
    """New bounds hold at once; a QP whose algorithm is switched on or off starts afresh."""
    kind = int(state.cc_kind[tenant])
    algorithm = ALGORITHMS[kind - 1]
    line = state.qp["line_bps"][qps]
    limit = mbps_to_bps(max_rate_mbps)
    highest = np.minimum(line, limit) if limit and enabled else line
    cc = kind if enabled else t.CC_NONE
    fresh = (state.sender["cc"][qps] != cc) | (state.sender["rate_bps"][qps] == 0)
    rate = np.where(fresh, highest, np.minimum(state.sender["rate_bps"][qps], highest))
    state.sender["rate_bps"][qps] = rate
    state.sender["cc"][qps] = cc
    state.sender["cc_due_ps"][qps[fresh]] = t.FOREVER
    records = qp_records(state, algorithm.record)
    own = records[qps]
    algorithm.module.bound(own, highest)
    records[qps] = own
    own = records[qps[fresh]]
    params = tenant_params(state, algorithm.params)[tenant]
    algorithm.module.fresh(own, rate[fresh], params)
    records[qps[fresh]] = own
    if algorithm.owns_window:
        first = algorithm.module.first_window(params, int(state.params[0]["mtu"]))
        state.window[qps[fresh]] = first if enabled else t.FOREVER
