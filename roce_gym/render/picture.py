"""One picture of everything: fabric, tenants, knobs, what happened so far."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from roce_gym.config import Scenario, Settings
from roce_gym.render.canvas import FAINT, Canvas
from roce_gym.render.charts import draw_charts
from roce_gym.render.fabric_view import FabricView
from roce_gym.render.layout import make_layout
from roce_gym.render.panels import LEFT, draw_knobs, draw_legend, draw_tenants, draw_title
from roce_gym.render.trail import Trail
from roce_gym.render.values import knob_rows
from roce_gym.telemetry import Interval
from roce_gym.topology.graph import Network
from roce_gym.workload.plan import Plan

FABRIC = (74.0, 62.0, 856.0, 392.0)
LEGEND_Y = 428.0
CHARTS = ((60.0, 468.0, 838.0, 566.0), (60.0, 606.0, 838.0, 694.0))


class Artist:
    """Draws frames; remembers where things are while the network stays the same."""

    def __init__(self) -> None:
        self._plan: Plan | None = None
        self._view: FabricView | None = None

    def __call__(
        self,
        scenario: Scenario,
        network: Network,
        plan: Plan,
        knobs: Any,
        settings: Settings,
        interval: Interval | None,
        trail: Trail | None,
        info: dict[str, Any],
    ) -> NDArray[np.uint8]:
        """Shape (720, 1280, 3), uint8.

        Args:
            scenario, network, plan: of the episode.
            knobs: see :class:`roce_gym.knobs.KnobSpace`.
            settings: in force.
            interval: the last one; None at the start.
            trail: what happened so far.
            info: as `step` or `reset` returned it.

        Raises:
            DependencyNotInstalled: without Pillow.
        """
        canvas = Canvas()
        if self._view is None or self._plan is not plan:
            self._view = FabricView(scenario, network, plan, make_layout(network, FABRIC))
            self._plan = plan
        self._view.draw(canvas, interval)
        draw_title(canvas, scenario, info)
        draw_legend(canvas, scenario, 16, LEGEND_Y)
        canvas.line([(LEFT - 14, 56), (LEFT - 14, 704)], FAINT, 1)
        y = draw_tenants(canvas, scenario, info, 66)
        draw_knobs(canvas, scenario, knob_rows(knobs, settings), y + 14)
        draw_charts(canvas, trail, info["time_us"], CHARTS)
        return canvas.pixels()
