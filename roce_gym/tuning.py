"""Writes settings into the simulator's arrays, at the start and during a run."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from roce_gym.config import ClassSettings, DcqcnConfig, Scenario, Settings, class_order
from roce_gym.errors import TuningError
from roce_gym.queueing import Queueing
from roce_gym.sim import types as t
from roce_gym.topology.graph import NVLINK_CREDIT_BYTES, Network
from roce_gym.units import mbps_to_bps, us_to_ps

_NEVER_MARK = np.iinfo(np.int32).max
_LINE_RATE = DcqcnConfig(enabled=False)
"""Of queue pairs on NVLink."""


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
        self._rates_bps, self._rate_index = np.unique(network.link_rate_bps, return_inverse=True)
        powers = np.exp2(np.ceil(np.log2(np.maximum(over_host, 1.0))))
        self._alpha_scale = (
            powers if scenario.switch.alpha_scales_with_rate else np.ones_like(powers)
        )
        self._nvlink = np.flatnonzero(network.is_nvlink)
        self._num_servers, self._num_places = network.num_servers, network.num_places
        self._at_switch = np.flatnonzero(network.link_dst >= network.num_hosts)
        self._switch = network.link_dst[self._at_switch] - network.num_hosts
        self._num_switches = network.num_switches
        self._queueing = Queueing(scenario, network)
        self._last: Settings | None = None

    def apply(self, state: t.State, settings: Settings) -> None:
        """Writes all settings that differ from the ones applied last.

        Raises:
            TuningError: wrong names, reserved bytes and headroom exceed a switch's buffer, or
                shares, weights or shapers that the scenario does not allow; nothing is changed
                then.
        """
        check_names(self._scenario, settings)
        self._queueing.check(settings)
        old = self._last
        reserved = sum(c.buffer.reserved_bytes for c in settings.classes.values())
        pools = self._queueing.pools(settings, self._room(state, reserved))
        for name, chosen in settings.classes.items():
            if old is None or old.classes[name] != chosen:
                self._apply_class(state, self._internal[name], chosen)
        for i, tenant in enumerate(self._scenario.tenants):
            new = settings.tenants[tenant.name]
            before = None if old is None else old.tenants[tenant.name]
            if new != before:
                apply_dcqcn(state, i, new)
            if before is None or _bounds(new) != _bounds(before):
                own, is_inside = state.qp["tenant"] == i, state.qp["src"] >= self._num_places
                _adopt(state, np.flatnonzero(own & ~is_inside), new)
                _adopt(state, np.flatnonzero(own & is_inside), _LINE_RATE)
        self._queueing.apply(state, settings, old)
        state.switch["pool"] = pools
        self._queueing.recount_shared(state)
        self._last = settings

    def assume(self, settings: Settings) -> None:
        """The state holds these settings already (it was restored)."""
        self._last = settings

    def _room(self, state: t.State, reserved: int) -> NDArray[np.int64]:
        """Bytes of each switch's buffer less headroom and reserve; not checked inside servers."""
        headroom = state.ingress["headroom"].reshape(-1, self._num_classes)[self._at_switch]
        shared_headroom = self._scenario.switch.headroom_pool_bytes
        per_port = headroom.sum(axis=1, dtype=np.int64) if shared_headroom is None else 0
        room = (
            self._scenario.switch.buffer_bytes
            - (shared_headroom or 0)
            - np.bincount(
                self._switch,
                weights=np.full(len(self._switch), reserved) + per_port,
                minlength=self._num_switches,
            ).astype(np.int64)
        )
        short = room[self._num_servers :]
        if (short < 0).any():
            raise TuningError(
                f"buffer.reserved_bytes: reserve ({reserved} bytes a port) and headroom exceed "
                f"switch.buffer_bytes = {self._scenario.switch.buffer_bytes} by {int(-short.min())}"
            )
        return room

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
        queue["kmin"][self._nvlink] = queue["kmax"][self._nvlink] = _NEVER_MARK
        ingress["static_threshold"][self._nvlink] = NVLINK_CREDIT_BYTES
        ingress["reserved"][self._nvlink] = 0

    def _at_port_rate(self, threshold_bytes: int) -> NDArray[np.int64]:
        """Shape (num_links,), int64: a threshold given at host rate, at each link's rate."""
        if not self._scenario.switch.ecn_scales_with_rate:
            return np.full(len(self._rate_index), threshold_bytes, np.int64)
        scaled = [threshold_bytes * int(rate) // self._host_rate_bps for rate in self._rates_bps]
        return np.minimum(scaled, _NEVER_MARK)[self._rate_index]


def apply_dcqcn(state: t.State, tenant: int, config: DcqcnConfig) -> None:
    """Writes the sender parameters of one tenant; running timers keep their time (rules, 8)."""
    params: Any = state.dcqcn_params[tenant]
    params["alpha_interval_ps"] = us_to_ps(config.alpha_interval_us)
    params["decrease_interval_ps"] = us_to_ps(config.decrease_interval_us)
    params["increase_timer_ps"] = us_to_ps(config.increase_timer_us)
    params["byte_counter"] = config.byte_counter_bytes
    params["fast_recovery_times"] = config.fast_recovery_times
    params["ai_bps"] = mbps_to_bps(config.rate_ai_mbps)
    params["hai_bps"] = mbps_to_bps(config.rate_hai_mbps)
    params["min_bps"] = mbps_to_bps(config.min_rate_mbps)
    params["max_bps"] = mbps_to_bps(config.max_rate_mbps)
    params["first_cnp_bps"] = mbps_to_bps(config.first_cnp_rate_mbps)
    params["g"] = config.g
    params["initial_alpha"] = config.initial_alpha
    params["alpha_cap"] = config.alpha_cap
    params["cut_divisor"] = config.cut_divisor
    params["min_decrease_factor"] = config.min_decrease_factor
    params["clamp"] = config.clamp_target_rate
    params["clamp_after_time"] = config.clamp_target_rate_after_time_inc


def _bounds(config: DcqcnConfig) -> tuple[bool, float]:
    """What existing rates depend on at once."""
    return config.enabled, config.max_rate_mbps


def _adopt(state: t.State, qps: NDArray[np.intp], config: DcqcnConfig) -> None:
    """New bounds hold at once; a QP that changes between DCQCN and none starts afresh."""
    line = state.qp["line_bps"][qps]
    limit = mbps_to_bps(config.max_rate_mbps)
    highest = np.minimum(line, limit) if limit and config.enabled else line
    cc = t.CC_DCQCN if config.enabled else t.CC_NONE
    fresh = (state.sender["cc"][qps] != cc) | (state.sender["rate_bps"][qps] == 0)
    rate = np.where(fresh, highest, np.minimum(state.sender["rate_bps"][qps], highest))
    target = np.where(fresh, highest, np.minimum(state.dcqcn["target_bps"][qps], highest))
    state.sender["rate_bps"][qps] = rate
    state.dcqcn["target_bps"][qps] = target
    state.sender["cc"][qps] = cc
    restart = qps[fresh]
    for field in ("alpha_due_ps", "cut_due_ps", "increase_due_ps"):
        state.dcqcn[field][restart] = t.FOREVER
    state.sender["cc_due_ps"][restart] = t.FOREVER
    for field in ("started", "was_cut", "time_stage", "byte_stage", "bytes", "owed"):
        state.dcqcn[field][restart] = 0
    state.dcqcn["alpha"][restart] = min(config.initial_alpha, config.alpha_cap)
