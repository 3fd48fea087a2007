"""`roce-gym list`."""

from __future__ import annotations

from typing import Any

from roce_gym.asics import ASICS, Asic
from roce_gym.cli.text import facts, number, short, to_json
from roce_gym.presets import PRESETS
from roce_gym.registration import ENVIRONMENTS
from roce_gym.scenario_file import available_scenarios, load_raw


def list_all(*, as_json: bool) -> int:
    """Prints what is in the package."""
    found = _catalogue()
    if as_json:
        print(to_json(found))
        return 0
    for title, rows in found.items():
        print(f"{title}\n{facts(list(rows.items()))}\n")
    print("More: roce-gym describe SCENARIO, roce-gym run SCENARIO")
    return 0


def _catalogue() -> dict[str, dict[str, Any]]:
    return {
        "scenarios": {
            name: " ".join(str(load_raw(name).get("summary", "")).split())
            for name in available_scenarios()
        },
        "environments": {
            env_id: f"on scenario {scenario}" for env_id, scenario in sorted(ENVIRONMENTS.items())
        },
        "presets": {name: PRESETS[name].source for name in sorted(PRESETS)},
        "switch ASICs": {name: describe_asic(asic) for name, asic in ASICS.items()},
    }


def describe_asic(asic: Asic) -> str:
    """One line with all that is known about an ASIC."""
    ports = f", {asic.ports}" if asic.ports else ""
    alpha = "not known" if asic.alpha is None else f"{asic.alpha:g} (dynamic_th {asic.dynamic_th})"
    return (
        f"{asic.name}, {short(asic.capacity_gbps / 1000)} Tb/s{ports}, "
        f"buffer {number(asic.buffer_bytes)} B in cells of {asic.cell_bytes} B, alpha {alpha}. "
        f"{asic.source}"
    )
