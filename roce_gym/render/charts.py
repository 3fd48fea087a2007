"""Two curves over time: collective times and pause frames."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from roce_gym.render.canvas import FAINT, INK, PAUSED, SOFT, Canvas, Color, tenant_color
from roce_gym.render.trail import Trail
from roce_gym.render.values import short

Area = tuple[float, float, float, float]

MAX_WINDOW_US = 50_000.0
"""Longer episodes show their last part."""

PAUSE_TICKS = (0, 10, 100, 1000, 10_000, 100_000)


def nice_ceiling(value: float) -> float:
    """1, 2 or 5 times a power of ten, not below the value."""
    power = 10.0 ** math.floor(math.log10(max(value, 1e-9)))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= value * 0.999)


class _Axes:
    """Frame, ticks, and where a point is."""

    def __init__(self, area: Area, start_us: float, stop_us: float) -> None:
        self.area = area
        self._start_us, self._span_us = start_us, stop_us - start_us

    def x(self, time_us: float) -> float:
        left, _, right, _ = self.area
        return left + (right - left) * (time_us - self._start_us) / self._span_us

    def y(self, share: float) -> float:
        _, top, _, bottom = self.area
        return bottom - (bottom - top) * min(max(share, 0.0), 1.0)

    def draw(self, canvas: Canvas, title: str, ticks: Sequence[tuple[float, str]]) -> None:
        left, top, right, bottom = self.area
        canvas.text(left, top - 11, title, 12, INK, "lm")
        for share, label in ticks:
            canvas.line([(left, self.y(share)), (right, self.y(share))], FAINT, 1)
            canvas.text(left - 6, self.y(share), label, 10.5, SOFT, "rm")
        step = nice_ceiling(self._span_us / 10)
        time_us = math.ceil(self._start_us / step) * step
        while time_us <= self._start_us + self._span_us * 1.001:
            canvas.line([(self.x(time_us), bottom), (self.x(time_us), bottom + 3)], SOFT, 1)
            canvas.text(self.x(time_us), bottom + 11, f"{time_us / 1000:g}", 10.5, SOFT, "mm")
            time_us += step
        canvas.text(right + 12, bottom + 11, "ms", 10.5, SOFT, "lm")
        canvas.line([(left, bottom), (right, bottom)], SOFT, 1)


def draw_charts(
    canvas: Canvas, trail: Trail | None, now_us: float, areas: tuple[Area, Area]
) -> None:
    """Collective times above, pause frames below."""
    horizon_us = now_us if trail is None else trail.horizon_us
    stop_us = max(horizon_us if horizon_us <= MAX_WINDOW_US else now_us, 1.0)
    start_us = max(0.0, stop_us - MAX_WINDOW_US)
    rounds = [] if trail is None else trail.rounds
    seen = [[p for p in row if p[0] >= start_us] for row in rounds]
    top_us = nice_ceiling(max([c for row in seen for _, c in row], default=1000.0))
    axes = _Axes(areas[0], start_us, stop_us)
    ticks = [(s, short(s * top_us / 1000)) for s in (0.0, 0.5, 1.0)]
    axes.draw(canvas, "completion time of each collective or burst, ms", ticks)
    for index, row in enumerate(seen):
        _curve(canvas, axes, row, lambda us: us / top_us, tenant_color(index))
    pauses = [] if trail is None else [p for p in trail.pauses if p[0] >= start_us]
    axes = _Axes(areas[1], start_us, stop_us)
    top = math.log10(1 + PAUSE_TICKS[-1])
    axes.draw(
        canvas,
        "PFC pause frames per second, mean of switch ports (log)",
        [(math.log10(1 + t) / top, short(t)) for t in PAUSE_TICKS],
    )
    _curve(canvas, axes, pauses, lambda v: math.log10(1 + v) / top, PAUSED, dots=False)


def _curve(
    canvas: Canvas,
    axes: _Axes,
    points: Sequence[tuple[float, float]],
    share: Callable[[float], float],
    color: Color,
    dots: bool = True,
) -> None:
    places = [(axes.x(time), axes.y(share(value))) for time, value in points]
    if len(places) > 1:
        canvas.line(places, color, 1.4)
    for x, y in places if dots else ():
        canvas.dot(x, y, 2.6, color)
