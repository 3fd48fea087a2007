"""An episode's state as text."""

from __future__ import annotations

from typing import Any

from roce_gym.config import Scenario, Settings
from roce_gym.render.values import knob_rows


def as_text(scenario: Scenario, knobs: Any, settings: Settings, info: dict[str, Any]) -> str:
    """A line on the fabric, one a tenant, one a knob setting."""
    head = (
        f"{scenario.name}  {info['time_us'] / 1000:.3f} ms of "
        f"{scenario.control.horizon_us / 1000:g} ms  score {info['score']:.3f}  "
        f"{info['pfc_frames_per_s']:.0f} pause frames/s/port"
    )
    names = [tenant.name for tenant in scenario.tenants]
    width = max(map(len, names))
    tenants = [
        f"  {name:{width}}  {info[f'goodput_gbps/{name}']:6.1f} Gb/s  "
        f"slowdown x{info[f'slowdown/{name}']:.2f}  {info[f'rounds/{name}']:.0f} rounds of "
        f"{info[f'cct_us/{name}'] / 1000:.3f} ms"
        for name in names
    ]
    rows = [
        f"  {row.label}: " + ", ".join(f"{cell.owner} {cell.text}" for cell in row.cells)
        for row in knob_rows(knobs, settings)
    ]
    return "\n".join([head, *tenants, *rows])
