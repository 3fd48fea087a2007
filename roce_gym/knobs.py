"""What an agent may turn: from an action in [-1, 1] to settings, and back.

Almost every knob is logarithmic: the same step of the action multiplies the value by the same
factor. Byte thresholds and rate steps scale with the hosts' link rate, so that a policy carries
over from one rate to another. No action in the box is invalid: `kmax` is a multiple of `kmin`, and
the buffer split always leaves room for headroom and a shared pool.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from gymnasium.spaces import Box
from numpy.typing import NDArray

from roce_gym.action_check import clipped
from roce_gym.config import ClassSettings, DcqcnConfig, EcnConfig, Scenario, Settings
from roce_gym.knob_choice import Knob, choose_knobs
from roce_gym.presets import REFERENCE_RATE_GBPS, resolve_settings
from roce_gym.queueing_knobs import QueueingKnobs
from roce_gym.reserve_budget import reserve_budget_bytes
from roce_gym.topology.graph import Network
from roce_gym.units import BPS_PER_GBPS

LOGIT_RANGE = 4.0
"""Of the buffer split: one class can outweigh the shared pool by e^4 = 55, or be outweighed."""


_CLASS_KNOBS = (
    # setting, low, high, unit, grows with the link rate
    ("kmin", 8_000.0, 800_000.0, "bytes", True),
    ("kmax_ratio", 1.2, 8.0, "", False),
    ("pmax", 0.01, 1.0, "", False),
    ("buffer_alpha", 1 / 32, 1.0, "", False),
)
_TENANT_KNOBS = (
    ("initial_alpha", 0.03, 1.0, "", False),
    ("alpha_cap", 0.03, 1.0, "", False),
    ("g", 1 / 512, 1 / 2, "", False),
    ("increase_timer", 20.0, 600.0, "us", False),
    ("rate_ai", 5.0, 2000.0, "Mb/s", True),
)
_SPLIT = "buffer_split"
SWITCH_SETTINGS = (*(row[0] for row in _CLASS_KNOBS), _SPLIT)
"""Settings of a class that each switch has for itself."""


class KnobSpace:
    """The knobs of a scenario.

    Per traffic class, in all switches (but where `switch.overrides` of the scenario say
    otherwise): `kmin`, `kmax_ratio` (kmax over kmin), `pmax`, `buffer_alpha` (dynamic threshold)
    and, where there are several classes, `buffer_split`: a softmax over the classes and the shared
    pool of the bytes that may be reserved at a port. Per tenant with DCQCN, in its own NICs:
    `initial_alpha`, `alpha_cap`, `g`, `increase_timer`, `rate_ai`.
    Then, where the scenario has them, weights of DWRR, pool shares and rates of shapers. Everything
    else stays as in the scenario's own settings, except that ECN and DCQCN are on where one of
    their knobs exists, and that the hyper increase is at least the additive one. Which knobs exist,
    and their ranges, can be chosen in the scenario (`control.knobs`).

    Attributes:
        space: Box(-1, 1), shape (n,), float32.
        knobs: n of them, in the order of the action.
        names: their names.
        base: the settings the scenario starts with.
    """

    def __init__(self, scenario: Scenario, network: Network, base: Settings | None = None) -> None:
        """Precondition: a fabric can be built from scenario and network.

        Args:
            scenario, network: what there are knobs for.
            base: in place of the settings the scenario starts with.

        Raises:
            ConfigError: `control.knobs` names knobs or ranges that do not exist, or an override is
                for switches that do not exist.
        """
        rate_gbps = network.host_rate_bps / BPS_PER_GBPS
        scale = rate_gbps / REFERENCE_RATE_GBPS
        self.base: Settings = resolve_settings(scenario, rate_gbps) if base is None else base
        self._classes = [c.name for c in scenario.classes]
        self._tenants = [t.name for t in scenario.tenants if t.cc == "dcqcn"]
        self._budget = 0.0
        if len(self._classes) > 1:
            self._budget = reserve_budget_bytes(scenario, network, self.base, scale)
        split = [Knob(_SPLIT, -LOGIT_RANGE, LOGIT_RANGE, "logit", False)] if self._budget else []
        of_class = _scaled(_CLASS_KNOBS, scale) + split
        of_tenant = _scaled(_TENANT_KNOBS, scale)
        every = [
            Knob(f"{kind}/{name}/{k.name}", k.low, k.high, k.unit, k.is_log)
            for kind, owners, knobs in (
                ("class", self._classes, of_class),
                ("tenant", self._tenants, of_tenant),
            )
            for name in owners
            for k in knobs
        ]
        self._queueing = QueueingKnobs(scenario, self.base, rate_gbps)
        self._num_others = len(every)
        every += [Knob(*row) for row in self._queueing.rows]
        every, chosen = choose_knobs(every, scenario.control.knobs, scale)
        self._num_class_knobs = len(of_class)
        self._choose(every, chosen)
        self.space: Box[np.float32] = Box(-1.0, 1.0, (len(self.knobs),), np.float32)

    def _choose(self, every: list[Knob], chosen: NDArray[np.bool_]) -> None:
        """Takes all knobs that there could be, and which of them there are."""
        self._chosen = np.flatnonzero(chosen)
        self.knobs = tuple(every[i] for i in self._chosen)
        self.names = tuple(knob.name for knob in self.knobs)
        self._is_log = np.array([knob.is_log for knob in every])
        self._low = self._line([knob.low for knob in every])
        self._high = self._line([knob.high for knob in every])
        self._first = self._low[self._chosen]
        self._span = self._high[self._chosen] - self._first
        self._is_chosen_log = self._is_log[self._chosen]
        # Knobs left out: the value of the scenario's settings, or the nearest in range if that is
        # no number (ECN or DCQCN off); only felt beside knobs that there are.
        values = np.array(self._values(self.base))
        bounds = np.array([[knob.low, knob.high] for knob in every])
        is_number = np.isfinite(values) & ((values > 0) | ~self._is_log)
        self._fixed = np.where(is_number, values, np.clip(values, *bounds.T))
        width, rows = self._num_class_knobs, chosen[: self._num_others].tolist()
        groups = [rows[i * width : (i + 1) * width] for i in range(len(self._classes))]
        self._has_ecn = [any(row[:3]) for row in groups]
        self._has_alpha = [row[3] for row in groups]
        self._has_split = bool(self._budget) and groups[0][-1]
        rows, width = rows[len(groups) * width :], len(_TENANT_KNOBS)
        self._has_sender = [
            any(rows[i * width : (i + 1) * width]) for i in range(len(self._tenants))
        ]
        self._has_queueing = bool(chosen[self._num_others :].any())

    def _line(self, values: Any) -> NDArray[np.float64]:
        """Values on the scale on which the action is linear; those too small count as tiny."""
        values = np.asarray(values, np.float64)
        logs: NDArray[np.float64] = np.log(np.maximum(values, 1e-300))
        return np.where(self._is_log, logs, values)

    def clip(self, action: Any) -> NDArray[np.float64]:
        """See :func:`roce_gym.action_check.clipped`."""
        return clipped(action, self.names)

    def decode(self, action: Any) -> Settings:
        """The settings that an action stands for.

        Args:
            action: shape (n,); see :meth:`clip`.

        Raises:
            ActionError: see :meth:`clip`.
        """
        values = self._decoded(action)
        start, width = len(self._classes) * self._num_class_knobs, len(_TENANT_KNOBS)
        settings = self.base.model_copy(
            update={
                "classes": self._class_settings(values),
                "tenants": self.base.tenants
                | {
                    name: _sender_settings(
                        self.base.tenants[name], values[start + i * width : start + (i + 1) * width]
                    )
                    for i, name in enumerate(self._tenants)
                    if self._has_sender[i]
                },
            }
        )
        if not self._has_queueing:
            return settings
        return self._queueing.decode(settings, values[self._num_others :])

    def decode_classes(self, action: Any) -> dict[str, ClassSettings]:
        """Of :meth:`decode`, what is of classes; weights, pool shares and shapers as in `base`."""
        return self._class_settings(self._decoded(action))

    def _decoded(self, action: Any) -> list[float]:
        """Values of all knobs that there could be."""
        share = (self.clip(action) + 1.0) / 2.0
        line = self._first + share * self._span
        full = self._fixed.copy()
        full[self._chosen] = np.where(self._is_chosen_log, np.exp(line), line)
        values: list[float] = full.tolist()
        return values

    def _class_settings(self, values: list[float]) -> dict[str, ClassSettings]:
        width, count = self._num_class_knobs, len(self._classes)
        rows = [values[i * width : (i + 1) * width] for i in range(count)]
        reserved = self._reserved([row[-1] for row in rows]) if self._has_split else [None] * count
        return {
            name: _class_settings(
                self.base.classes[name], rows[i], reserved[i], self._has_ecn[i], self._has_alpha[i]
            )
            for i, name in enumerate(self._classes)
        }

    def steps(self, factor: float) -> NDArray[np.float64]:
        """Shape (n,): change of position by which each value is multiplied by a factor.

        A logit changes by the factor's logarithm, which multiplies the ratio it stands for.
        """
        return np.full(len(self._span), 2.0 * math.log(factor)) / self._span

    def encode(self, settings: Settings) -> NDArray[np.float32]:
        """The action whose settings come closest to the given ones.

        ECN or DCQCN that is off counts as marking, or cutting, as little as possible.
        """
        share = (self._line(self._values(settings)) - self._low) / (self._high - self._low)
        return np.clip(2.0 * share[self._chosen] - 1.0, -1.0, 1.0).astype(np.float32)

    def values(self, settings: Settings) -> NDArray[np.float64]:
        """Shape (n,): of settings, in the knobs' units; 0 or infinite where switched off."""
        return np.array(self._values(settings))[self._chosen]

    def _values(self, settings: Settings) -> list[float]:
        """Of all knobs that there could be."""
        values: list[float] = []
        logits = self._logits(settings) if self._budget else []
        for i, name in enumerate(self._classes):
            chosen = settings.classes[name]
            ecn = chosen.ecn
            if ecn.enabled:
                values += [ecn.kmin_bytes, ecn.kmax_bytes / max(ecn.kmin_bytes, 1), ecn.pmax]
            else:
                values += [np.inf, np.inf, 0.0]
            values += [chosen.buffer.alpha, *logits[i : i + 1]]
        for name in self._tenants:
            c = settings.tenants[name]
            if c.enabled:
                values += [c.initial_alpha, c.alpha_cap, c.g, c.increase_timer_us, c.rate_ai_mbps]
            else:
                values += [0.0, 0.0, 0.0, 0.0, np.inf]
        return values + self._queueing.encode(settings)

    def _reserved(self, logits: list[float]) -> list[int]:
        """Bytes reserved at a port, by class: a softmax with the shared pool's logit at 0."""
        weights = np.exp(logits)
        return [int(x) for x in self._budget * weights / (1.0 + weights.sum())]

    def _logits(self, settings: Settings) -> list[float]:
        reserved = [float(settings.classes[c].buffer.reserved_bytes) for c in self._classes]
        shared = max(self._budget - sum(reserved), 1.0)
        return [float(np.log(max(r, 1.0) / shared)) for r in reserved]


def _scaled(table: tuple[tuple[str, float, float, str, bool], ...], scale: float) -> list[Knob]:
    return [
        Knob(name, low * (scale if grows else 1.0), high * (scale if grows else 1.0), unit)
        for name, low, high, unit, grows in table
    ]


def _class_settings(
    base: ClassSettings, row: list[float], reserved: int | None, has_ecn: bool, has_alpha: bool
) -> ClassSettings:
    """Takes kmin, kmax over kmin, pmax and the buffer's alpha; what is not a knob stays."""
    kmin, ratio, pmax, alpha = row[:4]
    update: dict[str, Any] = {}
    if has_ecn:
        update["ecn"] = EcnConfig.model_construct(
            enabled=True,
            kmin_bytes=round(kmin),
            kmax_bytes=round(kmin * ratio),
            pmax=min(pmax, 1.0),
        )
    buffer: dict[str, Any] = {"reserved_bytes": reserved} if reserved is not None else {}
    if has_alpha:
        buffer |= {"alpha": alpha, "static_threshold_bytes": None}
    if buffer:
        update["buffer"] = base.buffer.model_copy(update=buffer)
    return base.model_copy(update=update)


def _sender_settings(base: DcqcnConfig, row: list[float]) -> DcqcnConfig:
    initial_alpha, cap, g, timer_us, ai_mbps = row
    return base.model_copy(
        update={
            "enabled": True,
            "initial_alpha": min(initial_alpha, 1.0),
            "alpha_cap": min(cap, 1.0),
            "g": g,
            "increase_timer_us": timer_us,
            "rate_ai_mbps": ai_mbps,
            "rate_hai_mbps": max(base.rate_hai_mbps, ai_mbps),
        }
    )
