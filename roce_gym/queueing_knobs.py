"""Knobs of weights, pool shares and shapers: those that a scenario has, after all others.

A scenario without DWRR, pools or shapers has none of them.
"""

from __future__ import annotations

from typing import Any

from roce_gym.config import MAX_WEIGHT, MIN_SHAPER_GBPS, Scenario, Settings

Row = tuple[str, float, float, str]
"""Name, values at -1 and 1, unit; all logarithmic."""

MOST_SHARED = 0.95
"""Sum of all pool shares at most, so that classes without one keep some buffer."""

_LEAST_SHARE = 0.02
_LEAST_RATE_SHARE = 0.02
"""Of the hosts' link rate."""


class QueueingKnobs:
    """Reads and writes those knobs.

    Attributes:
        rows: what they are called and how far they go.
    """

    def __init__(self, scenario: Scenario, base: Settings, host_rate_gbps: float) -> None:
        weighted = [c.name for c in scenario.classes if c.scheduling == "dwrr"]
        self._weighted = weighted if len(weighted) > 1 else []
        self._sharing = [
            name for name, c in base.classes.items() if c.buffer.pool_share is not None
        ]
        self._shaped = [name for name, c in base.classes.items() if c.shaper is not None]
        self._tenants = list(base.shapers)
        self._line_gbps = host_rate_gbps
        slowest = max(MIN_SHAPER_GBPS, _LEAST_RATE_SHARE * host_rate_gbps)
        rate = (slowest, max(slowest, host_rate_gbps), "Gb/s")
        self.rows: tuple[Row, ...] = (
            *((f"class/{name}/weight", 1.0, float(MAX_WEIGHT), "") for name in self._weighted),
            *((f"class/{name}/pool_share", _LEAST_SHARE, 1.0, "") for name in self._sharing),
            *((f"class/{name}/shaper_rate", *rate) for name in self._shaped),
            *((f"tenant/{name}/shaper_rate", *rate) for name in self._tenants),
        )

    def decode(self, settings: Settings, values: list[float]) -> Settings:
        """Settings with these values; shares whose sum is too large are all lowered alike."""
        if not values:
            return settings
        # Rounding may leave a value a little above its range.
        rest = iter(min(v, row[2]) for v, row in zip(values, self.rows, strict=True))
        classes: dict[str, dict[str, Any]] = {name: {} for name in settings.classes}
        for name in self._weighted:
            classes[name]["weight"] = round(next(rest))
        shares = [next(rest) for _ in self._sharing]
        scale = min(1.0, MOST_SHARED / sum(shares)) if shares else 1.0
        for name, share in zip(self._sharing, shares, strict=True):
            buffer = settings.classes[name].buffer
            classes[name]["buffer"] = buffer.model_copy(update={"pool_share": share * scale})
        for name in self._shaped:
            shaper = settings.classes[name].shaper
            if shaper is not None:
                classes[name]["shaper"] = shaper.model_copy(update={"rate_gbps": next(rest)})
        shapers = {
            name: settings.shapers[name].model_copy(update={"rate_gbps": next(rest)})
            for name in self._tenants
        }
        return settings.model_copy(
            update={
                "classes": {
                    name: chosen.model_copy(update=classes[name])
                    for name, chosen in settings.classes.items()
                },
                "shapers": shapers,
            }
        )

    def encode(self, settings: Settings) -> list[float]:
        """The values; a shaper without a limit counts as one at line rate."""
        classes = settings.classes
        shapers = [classes[name].shaper for name in self._shaped]
        shapers += [settings.shapers[name] for name in self._tenants]
        return [
            *(float(classes[name].weight) for name in self._weighted),
            *(classes[name].buffer.pool_share or 0.0 for name in self._sharing),
            *((s.rate_gbps if s else 0.0) or self._line_gbps for s in shapers),
        ]
