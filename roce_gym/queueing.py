"""Writes weights, shapers, pools and egress bounds into the simulator's arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roce_gym.config import (
    BufferConfig,
    ClassSettings,
    Scenario,
    Settings,
    ShaperConfig,
    check_shapers,
    class_order,
    pool_numbers,
    pool_sizes,
)
from roce_gym.config.devices import require_lossy_limit
from roce_gym.errors import TuningError
from roce_gym.sim import types as t
from roce_gym.topology.graph import NVLINK_CREDIT_BYTES, Network
from roce_gym.units import BPS_PER_GBPS, PS_PER_S


class Queueing:
    """What of :class:`Settings` decides who is served, at what rate, and from which buffer."""

    def __init__(self, scenario: Scenario, network: Network) -> None:
        self._scenario = scenario
        self._network = network
        self._names = [c.name for c in scenario.classes]
        self._column = {self._names[c]: i + 1 for i, c in enumerate(class_order(scenario))}
        self._num_classes = len(self._names) + 1
        self._pool_of = pool_numbers(scenario.classes)
        self._from_switch = network.from_switch
        self._declared = {
            "classes": {c.name: c.shaper for c in scenario.classes},
            "tenants": {x.name: x.shaper for x in scenario.tenants},
        }
        self._has_shapers = any(any(own.values()) for own in self._declared.values())
        self._into_switch = np.flatnonzero(network.link_dst >= network.num_hosts)
        switch = network.link_dst[self._into_switch] - network.num_hosts
        self._num_inputs = np.bincount(switch, minlength=network.num_switches)
        self._first_pool = switch[:, None] * (1 + max(self._pool_of))

    def check(self, settings: Settings) -> None:
        """Settings must be such that this scenario can have them at run time.

        Raises:
            TuningError: names the field.
        """
        of_classes = _of_classes(settings)
        if self._has_shapers or settings.shapers or any(of_classes.values()):
            self._check_shapers("classes", of_classes)
            self._check_shapers("tenants", settings.shapers)
        for c in self._scenario.classes:
            chosen = settings.classes[c.name]
            if chosen.weight != 1 and c.scheduling != "dwrr":
                raise TuningError(
                    f"classes.{c.name}.weight = {chosen.weight} has no meaning with "
                    f"scheduling = {c.scheduling!r}; allowed: 1"
                )
            try:
                require_lossy_limit(chosen.buffer, c.lossless)
            except ValueError as error:
                raise TuningError(f"classes.{c.name}.{error}") from None

    def _check_shapers(self, kind: str, given: Mapping[str, ShaperConfig | None]) -> None:
        _check_presence(kind, given, self._declared[kind])
        try:
            check_shapers(kind, given, self._scenario.nic.largest_packet_bytes)
        except ValueError as error:
            raise TuningError(str(error)) from None
        self._check_rates(kind, given)

    def _check_rates(self, kind: str, given: Mapping[str, ShaperConfig | None]) -> None:
        """A limit above what any port can send is taken for a slip of the pen."""
        links = self._from_switch if kind == "classes" else self._network.host_link
        rates = self._network.link_rate_bps[links]
        fastest = float(rates.max()) / BPS_PER_GBPS if rates.size else 0.0
        for name, shaper in given.items():
            if shaper is not None and shaper.rate_gbps > fastest:
                raise TuningError(
                    f"{kind}.{name}.shaper.rate_gbps = {shaper.rate_gbps} is above the link rate; "
                    f"allowed: at most {fastest:g}, or 0 for no limit"
                )

    def pools(self, settings: Settings, room: NDArray[np.int64]) -> NDArray[np.int64]:
        """Bytes of each (switch, pool), flat.

        Args:
            settings: with the shares.
            room: shape (num_switches,), int64: buffer less headroom and reserve.

        Raises:
            TuningError: shares that contradict each other.
        """
        shares = [settings.classes[name].buffer.pool_share for name in self._names]
        if not any(self._pool_of) and not any(shares) and not self._network.num_servers:
            return np.maximum(room, 0)  # all in the shared pool
        rooms = room.tolist()
        try:
            sizes = {
                bytes_: pool_sizes(self._scenario.classes, self._pool_of, shares, max(0, bytes_))
                for bytes_ in set(rooms)
            }
        except ValueError as error:
            raise TuningError(str(error)) from None
        out = np.array([sizes[bytes_] for bytes_ in rooms], np.int64)
        servers = slice(self._network.num_servers)
        per_port = (self._num_classes - 1) * NVLINK_CREDIT_BYTES
        out[servers] = self._num_inputs[servers, None] * per_port
        return out.reshape(-1)

    def recount_shared(self, state: t.State) -> None:
        """Shared bytes of each (switch, pool), from what its ports hold."""
        beyond = np.maximum(state.ingress["bytes"] - state.ingress["reserved"], 0)
        per_class = beyond.reshape(-1, self._num_classes)[self._into_switch, 1:]
        state.switch["shared"] = np.bincount(
            (self._first_pool + state.class_pool[1:]).reshape(-1),
            weights=per_class.reshape(-1),
            minlength=len(state.switch),
        )

    def apply(
        self, state: t.State, settings: Settings, old: Settings | None, changed: Sequence[str]
    ) -> None:
        """Writes what differs from the settings applied before. PRECONDITION: checked.

        Args:
            state: of the simulator [in/out].
            settings, old: now and before; None: nothing was applied yet.
            changed: names of the classes whose settings differ.
        """
        for name in changed:
            self._bound_egress(state, self._column[name], settings.classes[name].buffer)
            self._shape_class(state, self._column[name], settings.classes[name].shaper)
        if changed and len(state.share):
            self._set_quanta(state, settings.classes)
        for i, tenant in enumerate(self._scenario.tenants):
            shaper = settings.shapers.get(tenant.name)
            if shaper is not None and (old is None or old.shapers[tenant.name] != shaper):
                buckets = state.tenant_bucket.reshape(-1, len(self._scenario.tenants))[:, i]
                _write_shaper(buckets[: self._network.num_places], shaper)

    def _bound_egress(self, state: t.State, cls: int, buffer: BufferConfig) -> None:
        bound: Any = state.egress[cls]
        bound["alpha"] = buffer.egress_alpha or 0.0
        if buffer.egress_limit_bytes is not None:
            bound["limit"] = buffer.egress_limit_bytes
        else:
            bound["limit"] = t.FOREVER if buffer.egress_alpha is None else t.NONE

    def _shape_class(self, state: t.State, cls: int, shaper: ShaperConfig | None) -> None:
        if shaper is not None:
            buckets = state.bucket.reshape(-1, self._num_classes)[:, cls]
            _write_shaper(buckets, shaper, self._from_switch)

    def _set_quanta(self, state: t.State, classes: Mapping[str, ClassSettings]) -> None:
        """Bytes per round: weight times those of weight 1."""
        unit = self._scenario.switch.dwrr_quantum_bytes
        if unit is None:
            weights = [classes[c.name].weight for c in self._scenario.classes if _is_dwrr(c)]
            unit = -(-self._scenario.nic.largest_packet_bytes // min(weights))
        for name, chosen in classes.items():
            quanta = state.share["quantum"].reshape(-1, self._num_classes)
            quanta[:, self._column[name]] = chosen.weight * unit


def _is_dwrr(chosen: Any) -> bool:
    return bool(chosen.scheduling == "dwrr")


def _of_classes(settings: Settings) -> dict[str, ShaperConfig | None]:
    return {name: chosen.shaper for name, chosen in settings.classes.items()}


def _check_presence(
    kind: str,
    given: Mapping[str, ShaperConfig | None],
    declared: Mapping[str, ShaperConfig | None],
) -> None:
    """Buckets are made when the fabric is built; a rate of 0 stands for none."""
    for name in {*given, *declared}:
        if name not in declared:
            raise TuningError(f"shapers: {name!r} is unknown; allowed: {', '.join(declared)}")
        if (given.get(name) is None) != (declared[name] is None):
            wanted = "none is" if declared[name] is None else "one is"
            raise TuningError(
                f"{kind}.{name}.shaper: {wanted} needed, as in the scenario; one with "
                "rate_gbps = 0 does not limit"
            )


def _write_shaper(bucket: NDArray[Any], shaper: ShaperConfig, where: Any = slice(None)) -> None:
    """A new rate acts on packets from now on; the time until the bucket is full stays."""
    rate_bps = round(shaper.rate_gbps * BPS_PER_GBPS)
    bucket["rate_bps"][where] = rate_bps
    if rate_bps > 0:
        bucket["burst_ps"][where] = -(-shaper.burst_bytes * 8 * PS_PER_S // rate_bps)
