"""The fabric: links by use, queues of ports, pauses, hosts by tenant."""

from __future__ import annotations

import numpy as np

from roce_gym.config import Scenario
from roce_gym.render.canvas import (
    FAINT,
    INK,
    MIXED,
    PAPER,
    PAUSED,
    SOFT,
    Canvas,
    Color,
    tenant_color,
    use_color,
)
from roce_gym.render.layout import NAME_WIDTH, WITH_NAME, Layout
from roce_gym.telemetry import Interval
from roce_gym.topology.graph import Network
from roce_gym.units import PS_PER_S
from roce_gym.workload.plan import Plan

FULL_BAR = 0.25
"""Share of a switch's buffer at which a queue's bar is full: one port seldom holds more."""

_NEAR = 3.0
"""Distance between the two directions of a cable."""


class FabricView:
    """Draws one network with its tenants."""

    def __init__(self, scenario: Scenario, network: Network, plan: Plan, layout: Layout) -> None:
        self._network, self._layout = network, layout
        self._buffer = scenario.switch.buffer_bytes
        self._tenants: list[list[int]] = [[] for _ in range(network.num_hosts)]
        for pair in plan.qps:
            for host in {pair.src % network.num_places, pair.dst % network.num_places}:
                if pair.tenant not in self._tenants[host]:
                    self._tenants[host].append(pair.tenant)
        self._class_color: list[Color] = []
        for one in scenario.classes:
            own = [i for i, t in enumerate(scenario.tenants) if t.traffic_class == one.name]
            self._class_color.append(tenant_color(own[0]) if len(own) == 1 else MIXED)

    def draw(self, canvas: Canvas, interval: Interval | None) -> None:
        """Draws the state after an interval; None: nothing was sent yet."""
        use, paused = self._measure(interval)
        order = np.argsort(use, kind="stable").tolist()  # busy ones on top
        for link in order:
            if not self._network.is_nvlink[link]:
                self._link(canvas, link, float(use[link]), float(paused[link]))
        for node in self._layout.switch:
            self._switch(canvas, node, interval)
        for host in self._layout.host:
            self._host(canvas, host)

    def _measure(self, interval: Interval | None) -> tuple[np.ndarray, np.ndarray]:
        """Shape (L,) each: share of the rate that is used, share of time paused (any class)."""
        if interval is None:
            return np.zeros(self._network.num_links), np.zeros(self._network.num_links)
        length = interval.end_ps - interval.start_ps
        bits = 8.0 * interval.tx_bytes.sum(axis=1)
        use = bits / (self._network.link_rate_bps * (length / PS_PER_S))
        return use, interval.paused_ps.max(axis=1) / length

    def _end(self, link: int, node: int) -> tuple[float, float]:
        if node in self._layout.host:
            x, y = self._layout.host[node]
            return x, y - self._layout.host_size / 2
        return self._layout.port[link, node]

    def _link(self, canvas: Canvas, link: int, use: float, paused: float) -> None:
        src, dst = int(self._network.link_src[link]), int(self._network.link_dst[link])
        (x0, y0), (x1, y1) = self._end(link, src), self._end(link, dst)
        length = max(1.0, float(np.hypot(x1 - x0, y1 - y0)))
        dx, dy = (x1 - x0) / length, (y1 - y0) / length
        side = _NEAR / 2
        x0, y0, x1, y1 = x0 - dy * side, y0 + dx * side, x1 - dy * side, y1 + dx * side
        if self._layout.level[src] == self._layout.level[dst]:
            peak = min(y0, y1) - 26.0 - side
            points = [(x0, y0), (x0, peak), (x1, peak), (x1, y1)]
        else:
            points = [(x0, y0), (x1, y1)]
        canvas.line(points, use_color(use), 2.2 if use < 0.02 else 2.6)
        if paused > 0.001:
            self._pause(canvas, (x0, y0), (dx, dy), length, paused)

    def _pause(
        self,
        canvas: Canvas,
        start: tuple[float, float],
        along: tuple[float, float],
        length: float,
        paused: float,
    ) -> None:
        """Red from the sending end on, as far as the share of time, and a bar across."""
        (x, y), (dx, dy) = start, along
        reach = 8.0 + paused * 0.45 * length
        canvas.line([(x, y), (x + dx * reach, y + dy * reach)], PAUSED, 3.4)
        x, y = x + dx * 7.0, y + dy * 7.0
        canvas.line([(x - dy * 5, y + dx * 5), (x + dy * 5, y - dx * 5)], PAUSED, 2.6)

    def _switch(self, canvas: Canvas, node: int, interval: Interval | None) -> None:
        left, top, right, bottom = self._layout.switch[node]
        canvas.box((left, top, right, bottom), PAPER, INK, 1.4)
        middle = (top + bottom) / 2
        has_name = right - left >= WITH_NAME
        canvas.line([(left + has_name * NAME_WIDTH, middle), (right, middle)], FAINT, 1)
        if interval is not None:
            for (link, at), (x, y) in self._layout.port.items():
                if at == node and int(self._network.link_src[link]) == node:
                    self._bar(canvas, link, x, y, middle, interval)
        if has_name:
            name = self._network.tier(node).replace("_", " ")
            label = str(int(self._network.node_label[node]))
            canvas.text(left + 5, middle - 7, name, 10.5, INK, "lm", room=NAME_WIDTH - 6)
            canvas.text(left + 5, middle + 8, label, 10.5, INK, "lm")
            canvas.line([(left + NAME_WIDTH, top), (left + NAME_WIDTH, bottom)], FAINT, 1)

    def _bar(
        self, canvas: Canvas, link: int, x: float, edge: float, middle: float, interval: Interval
    ) -> None:
        """Highest queue of a port, classes on top of each other, from the middle to the edge."""
        node = int(self._network.link_src[link])
        half = min(0.36 * self._layout.slot[node], 9.0)
        room = (edge - middle) * 0.94
        base = middle
        for cls, color in enumerate(self._class_color):
            share = float(interval.queue_max_bytes[link, cls]) / (FULL_BAR * self._buffer)
            tip = base + room * share
            tip = max(tip, middle + room) if room < 0 else min(tip, middle + room)
            if abs(tip - base) >= 0.5:
                low, high = min(base, tip), max(base, tip)
                canvas.box((x - half, low, x + half, high), color)
            base = tip

    def _host(self, canvas: Canvas, host: int) -> None:
        (x, y), size = self._layout.host[host], self._layout.host_size
        left, top, right, bottom = x - size / 2, y - size / 2, x + size / 2, y + size / 2
        tenants = self._tenants[host]
        canvas.box((left, top, right, bottom), FAINT)
        width = size / max(1, len(tenants))
        for i, tenant in enumerate(tenants):
            canvas.box(
                (left + i * width, top, left + (i + 1) * width, bottom), tenant_color(tenant)
            )
        canvas.box((left, top, right, bottom), None, INK, 1)
        if size >= 14:
            label = str(int(self._network.node_label[host]))
            canvas.text(x, bottom + 9, label, 10.5, SOFT, "mm")
