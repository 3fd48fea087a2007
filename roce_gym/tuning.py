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
        self._scenario = scenario
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
        reserved = sum(c.buffer.reserved_bytes for c in settings.classes.values())
        pools = self._queueing.pools(settings, self._room(state, reserved))
        changed = [
            name
            for name, chosen in settings.classes.items()
            if old is None or old.classes[name] != chosen
        ]
        for name in changed:
            self._apply_class(state, self._internal[name], settings.classes[name])
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

    def _room(self, state: t.State, reserved: int) -> NDArray[np.int64]:
        """Bytes of each switch's buffer less headroom and reserve; not checked inside servers."""
        if self._unreserved is None:
            self._unreserved = self._find_unreserved(state)
        room = self._unreserved - reserved * self._num_ports
        short = room[self._num_servers :]
        if (short < 0).any():
            raise TuningError(
                f"buffer.reserved_bytes: reserve ({reserved} bytes a port) and headroom exceed "
                f"switch.buffer_bytes = {self._scenario.switch.buffer_bytes} by {int(-short.min())}"
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

    def _apply_class(self, state: t.State, cls: int, chosen: ClassSettings) -> None:
        queue = state.queue.reshape(-1, self._num_classes)[:, cls]
        ecn = chosen.ecn
        if ecn.enabled:
            queue["kmin"] = self._at_port_rate(ecn.kmin_bytes)
            queue["kmax"] = self._at_port_rate(ecn.kmax_bytes)
        else:
            queue["kmin"] = queue["kmax"] = _NEVER_MARK
        queue["pmax"] = ecn.pmax
        ingress = state.ingress.reshape(-1, self._num_classes)[:, cls]
        alpha = chosen.buffer.alpha
        ingress["alpha"] = np.minimum(alpha * self._alpha_scale, max(alpha, 1.0))
        static = chosen.buffer.static_threshold_bytes
        ingress["static_threshold"] = t.NONE if static is None else static
        ingress["reserved"] = chosen.buffer.reserved_bytes
        if not len(self._nvlink):
            return
        queue["kmin"][self._nvlink] = queue["kmax"][self._nvlink] = _NEVER_MARK
        ingress["static_threshold"][self._nvlink] = NVLINK_CREDIT_BYTES
        ingress["reserved"][self._nvlink] = 0

    def _at_port_rate(self, threshold_bytes: int) -> NDArray[np.int64] | np.int64:
        """Shape (num_links,), or () if all are equal: a threshold at each link's rate.

        Args:
            threshold_bytes: at host rate.
        """
        if not self._scenario.switch.ecn_scales_with_rate:
            return np.int64(threshold_bytes)
        scaled = [threshold_bytes * int(rate) // self._host_rate_bps for rate in self._rates_bps]
        if len(scaled) == 1:
            return np.int64(min(scaled[0], _NEVER_MARK))
        return np.minimum(scaled, _NEVER_MARK)[self._rate_index]


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
