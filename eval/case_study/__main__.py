"""Command line: `python -m eval.case_study [--set scale=1024]`; `make case-study`."""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from eval.case_study.measure import Measured, alone_us, measure
from eval.case_study.table import table
from eval.case_study.variants import Variant, variants
from eval.command import count
from eval.progress import Counter
from roce_gym.config import Scenario
from roce_gym.errors import RoceGymError
from roce_gym.fabric import Fabric
from roce_gym.reference import num_steps
from roce_gym.topology import build_network
from roce_gym.topology.graph import Network

SEEDS = 3
"""DCQCN is chaotic: one run tells little."""

OUT = Path("runs/case_study")

NOISY = "checkpointing"
"""The tenant that harms the others; it is nobody's neighbour in the table."""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs both variants and prints the table; exit code 0, or 2: it could not run."""
    arguments = _parser().parse_args(argv)
    try:
        found = run(arguments.changes, arguments.seeds)
    except RoceGymError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    text = table(*([one.values for one in found[name]] for name in found))
    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / "table.md").write_text(text, encoding="utf-8")
    record = {"changes": arguments.changes, "seeds": arguments.seeds, **_plain(found)}
    (arguments.out / "table.json").write_text(json.dumps(record, indent=1), encoding="utf-8")
    print(text)
    print(f"written to {arguments.out / 'table.md'} and table.json")
    return 0


def run(changes: Sequence[str], seeds: int) -> dict[str, list[Measured]]:
    """What each seed gave, by variant.

    Raises:
        ConfigError: a change that is not acceptable.
    """
    found: dict[str, list[Measured]] = {}
    counter: Counter | None = None
    for seed in range(seeds):
        both = variants(seed, changes)
        base = both[0].scenario
        network = build_network(base.topology)
        if counter is None:
            print(_what(base, network.num_hosts, seeds), file=sys.stderr)
            _require_room(both, network)
            runs = len(base.tenants) + len(both)
            counter = Counter("simulated", seeds * runs * num_steps(base.control))
        alone = alone_us(base, seed, network, counter.add)
        for variant in both:
            one = measure(variant.scenario, seed, network, alone, NOISY, counter.add)
            found.setdefault(variant.name, []).append(one)
    return found


def _require_room(both: Sequence[Variant], network: Network) -> None:
    """Whether buffers are large enough for all classes, before anything runs.

    Raises:
        ConfigError: they are not.
    """
    for variant in both:
        first = variant.scenario.tenants[0].name
        Fabric(variant.scenario, only_tenant=first, network=network)


def _what(scenario: Scenario, hosts: int, seeds: int) -> str:
    return (
        f"{len(scenario.tenants)} tenants, {scenario.scale} GPUs of {hosts} hosts, "
        f"{scenario.control.horizon_us / 1000:g} ms, {seeds} seed{'s' if seeds > 1 else ''}; "
        "each tenant alone, then all together before and after"
    )


def _plain(found: dict[str, list[Measured]]) -> dict[str, Any]:
    """For JSON, which knows no NaN."""
    return {
        name: [
            {
                "values": {k: None if math.isnan(v) else v for k, v in one.values.items()},
                **one.detail,
            }
            for one in seeds
        ]
        for name, seeds in found.items()
    }


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m eval.case_study", description=__doc__)
    parser.add_argument(
        "--set",
        dest="changes",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="change the scenario, before and after alike: scale=1024, control.horizon_us=4000",
    )
    parser.add_argument("--seeds", type=count, default=SEEDS, help=f"number of runs ({SEEDS})")
    parser.add_argument("--out", type=Path, default=OUT, help=f"folder of the results ({OUT})")
    return parser


if __name__ == "__main__":
    sys.exit(main())
