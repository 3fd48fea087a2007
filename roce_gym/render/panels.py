"""Tables and explanations beside the fabric."""

from __future__ import annotations

from typing import Any

from roce_gym.config import Scenario
from roce_gym.render.canvas import (
    FAINT,
    INK,
    MIXED,
    PAUSED,
    SOFT,
    Canvas,
    Color,
    tenant_color,
    use_color,
)
from roce_gym.render.fabric_view import FULL_BAR
from roce_gym.render.values import Row, short

LEFT, RIGHT = 884.0, 1264.0


def draw_title(canvas: Canvas, scenario: Scenario, info: dict[str, Any]) -> None:
    """Name, time, and the score so far."""
    canvas.text(16, 22, scenario.name, 20, INK, "lm")
    canvas.text(300, 23, " ".join(scenario.summary.split()), 12, SOFT, "lm", room=700)
    now, horizon = info["time_us"] / 1000, scenario.control.horizon_us / 1000
    canvas.text(RIGHT, 15, f"{now:.2f} ms of {horizon:g} ms", 14, INK, "rm")
    score = f"score so far {info['score']:.3f} (lower is better)"
    canvas.text(RIGHT, 34, score, 12, SOFT, "rm")


def draw_tenants(canvas: Canvas, scenario: Scenario, info: dict[str, Any], top: float) -> float:
    """A row a tenant; returns where the table ends."""
    columns = ((1060, "slowdown"), (1128, "goodput"), (1206, "mean time"), (RIGHT, "rounds"))
    canvas.text(LEFT, top, "tenants", 13, INK, "lm")
    for x, label in columns:
        canvas.text(x, top, label, 11, SOFT, "rm")
    y = top
    for index, tenant in enumerate(scenario.tenants):
        name, y = tenant.name, y + 20
        canvas.box((LEFT, y - 6, LEFT + 12, y + 6), tenant_color(index), INK, 0.5)
        canvas.text(LEFT + 18, y, name, 12, INK, "lm", room=112)
        values = (
            f"{info[f'slowdown/{name}']:.2f}" if info[f"slowdown/{name}"] else "-",
            f"{info[f'goodput_gbps/{name}']:.0f} Gb/s",
            f"{short(info[f'cct_us/{name}'] / 1000)} ms" if info[f"rounds/{name}"] else "-",
            f"{info[f'rounds/{name}']:.0f}",
        )
        for (x, _), text in zip(columns, values, strict=True):
            canvas.text(x, y, text, 12, INK, "rm")
    return y + 14


def draw_knobs(canvas: Canvas, scenario: Scenario, rows: list[Row], top: float) -> float:
    """Values in force, by setting and owner, with a bar for the place in the knob's range."""
    y = top
    colors = {t.name: tenant_color(i) for i, t in enumerate(scenario.tenants)}
    for kind, title in (("class", "switches, by class"), ("tenant", "NICs, by tenant")):
        own = [row for row in rows if row.kind == kind]
        if not own:
            continue
        owners = list(dict.fromkeys(cell.owner for row in own for cell in row.cells))
        width = min(76.0, (RIGHT - LEFT - 112) / len(owners))
        edges = {owner: RIGHT - width * (len(owners) - 1 - i) for i, owner in enumerate(owners)}
        canvas.text(LEFT, y, title, 13, INK, "lm", room=RIGHT - width * len(owners) - LEFT - 4)
        for owner, x in edges.items():
            color: Color = colors[owner] if kind == "tenant" else _of_class(scenario, owner)
            canvas.box((x - width + 6, y + 8, x, y + 11), color)
            canvas.text(x, y, owner, 10.5, INK, "rm", room=width - 5)
        y += 23
        for row in own:
            canvas.text(LEFT, y, row.label, 11, SOFT, "lm")
            for cell in row.cells:
                _cell(canvas, edges[cell.owner], y, width, cell.text, cell.share)
            y += 21
        y += 6
    if rows:
        for note in (
            "Bar under a value: its place in the knob's range.",
            "Hosts, curves and queues have the colours of tenants;",
            "queues of a class that several tenants share are grey.",
            "A cable is two lines, one for each direction.",
        ):
            y += 15
            canvas.text(LEFT, y, note, 10.5, SOFT, "lm")
    return y


def _of_class(scenario: Scenario, name: str) -> Color:
    own = [i for i, t in enumerate(scenario.tenants) if t.traffic_class == name]
    return tenant_color(own[0]) if len(own) == 1 else MIXED


def _cell(canvas: Canvas, right: float, y: float, width: float, text: str, share: float) -> None:
    canvas.text(right, y, text, 11 if width > 45 else 9.5, INK, "rm")
    left = right - width + 6
    canvas.box((left, y + 8, right, y + 10), FAINT)
    if share == share:  # not NaN
        canvas.box((left, y + 8, left + share * (right - left), y + 10), SOFT)


def draw_legend(canvas: Canvas, scenario: Scenario, left: float, y: float) -> None:
    """What colours, bars and marks mean, in a line under the fabric."""
    for i in range(40):
        canvas.box((left + i * 2, y - 4, left + i * 2 + 2, y + 4), use_color(i / 39))
    canvas.text(left + 86, y, "link use, 0 to 100 % of its rate", 11, SOFT, "lm")
    x = left + 290
    canvas.line([(x, y), (x + 22, y)], PAUSED, 3.4)
    canvas.line([(x + 7, y - 5), (x + 7, y + 5)], PAUSED, 2.6)
    canvas.text(x + 28, y, "paused by PFC (longer: more of the time)", 11, SOFT, "lm")
    x = left + 560
    canvas.box((x, y - 7, x + 9, y + 7), None, INK, 1)
    canvas.box((x + 1, y - 1, x + 8, y + 6), MIXED)
    full = f"{FULL_BAR * scenario.switch.buffer_bytes / 1e6:.2g} MB"
    canvas.text(x + 15, y, f"queue of a port, highest (full bar: {full})", 11, SOFT, "lm")
