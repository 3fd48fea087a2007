"""`roce-gym pages`: a page on each environment, made from the environment itself."""

from __future__ import annotations

import argparse
import inspect
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from roce_gym.config import AllToAll, Collective, Incast, Job, RingAllReduce, Scenario
from roce_gym.env import RoceEnv
from roce_gym.errors import ConfigError
from roce_gym.registration import ENVIRONMENTS
from roce_gym.render.values import short
from roce_gym.scenario_file import changes_of, load_raw
from roce_gym.scenario_file.read import find_file

_GENERAL = ("Rewards", "Starting State", "Episode End", "Arguments", "Version History")
"""Sections of the class that hold for every environment."""


def pages(arguments: argparse.Namespace) -> int:
    """Writes pages into a folder, or prints the one that is asked for.

    Raises:
        ConfigError: unknown id, or the folder does not exist.
    """
    if arguments.env is not None and arguments.env not in ENVIRONMENTS:
        raise ConfigError(
            f"environment {arguments.env!r} is unknown; allowed: {', '.join(ENVIRONMENTS)}"
        )
    if arguments.out is None:
        print("\n".join(page(i) for i in ENVIRONMENTS if arguments.env in (None, i)))
        return 0
    if not arguments.out.is_dir():
        raise ConfigError(f"--out: the folder {arguments.out} does not exist")
    for env_id in ENVIRONMENTS:
        if arguments.env in (None, env_id):
            path = arguments.out / file_name(env_id)
            path.write_text(page(env_id), encoding="utf-8")
            print(path)
    return 0


def file_name(env_id: str) -> str:
    """Of an environment's page."""
    return env_id.rpartition("/")[2].rpartition("-")[0] + ".md"


def page(env_id: str) -> str:
    """Markdown: description, spaces as tables, rewards, episodes, arguments, versions."""
    name = ENVIRONMENTS[env_id]
    env = RoceEnv(name)
    general = sections()
    parts = [
        f"# {env_id}",
        "_Made by `roce-gym pages`; what it says is what the environment says._",
        f"`gymnasium.make({env_id!r})`, on `envs_config/{name}.yaml` (`roce-gym describe {name}`).",
        "## Description",
        _header(find_file(name)),
        env.scenario.summary,
        _fabric(env),
        "Tenants of seed 0; what differs from seed to seed is in the scenario.",
        _tenants(env.scenario),
        "## Action Space",
        f"`{_space(env.action_space)}`: each entry is the position of a knob in its range "
        "(other modes: argument `knob_mode`).",
        _actions(env),
        "## Observation Space",
        f"`{_space(env.observation_space)}`, with fixed scales (`roce_gym.observation`).",
        _observations(env),
    ]
    parts += [text for key in _GENERAL for text in (f"## {key}", general[key])]
    splits = _splits(name)
    if splits:
        at = parts.index("## Episode End")
        parts[at:at] = ["What is different in splits (otherwise only the seeds are):", splits]
    return "\n\n".join(part for part in parts if part) + "\n"


def sections() -> dict[str, str]:
    """The sections of :class:`RoceEnv`'s docstring, by heading."""
    out: dict[str, str] = {}
    for block in inspect.cleandoc(RoceEnv.__doc__ or "").split("\n## ")[1:]:
        heading, _, text = block.partition("\n")
        out[heading] = text.strip()
    return out


def _header(path: Path) -> str:
    """The comment at the top of a scenario file."""
    lines = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            break
        lines.append(line.removeprefix("#").removeprefix(" "))
    return "\n".join(lines)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows)]
    return "\n".join(lines)


def _fabric(env: RoceEnv) -> str:
    control, scenario = env.scenario.control, env.scenario
    steps = int(np.ceil(control.horizon_us / control.interval_us))
    return (
        f"Control interval {control.interval_us:g} us, {steps} intervals an episode "
        f"({control.horizon_us / 1000:g} ms of simulated time). Switch buffer "
        f"{scenario.switch.buffer_bytes / 1e6:g} MB. Default settings: `{scenario.preset}`."
    )


def _tenants(scenario: Scenario) -> str:
    total = sum(tenant.weight for tenant in scenario.tenants)
    rows = [
        (
            f"`{tenant.name}`",
            f"`{tenant.traffic_class}`",
            f"{tenant.weight / total:.3g}",
            tenant.score,
            "; ".join(_job(job) for job in tenant.jobs),
        )
        for tenant in scenario.tenants
    ]
    return _table(("Tenant", "Class", "Weight", "Score takes", "Jobs"), rows)


def _job(job: Job) -> str:
    until = f", {job.start_us:g} to {job.stop_us:g} us" if job.stop_us is not None else ""
    if isinstance(job, Incast):
        size = f"{job.bytes / 1e6:.3g} MB each"
        return f"incast of {job.degree}, {size}, every {job.period_us:.4g} us{until}"
    kind = (job.operation if isinstance(job, Collective) else job.kind).replace("_", " ")
    if not isinstance(job, RingAllReduce | AllToAll | Collective):
        return f"{kind}{until}"
    compute = f", {job.compute_us:.3g} us compute" if job.compute_us else ""
    return f"{kind} of {job.bytes / 1e6:.3g} MB{compute}{until}"


def _space(space: object) -> str:
    return str(space).replace("\n", " ")


def _actions(env: RoceEnv) -> str:
    rows = [
        (
            str(i),
            f"`{knob.name}`",
            short(knob.low),
            short(knob.high),
            knob.unit or "–",
            "log" if knob.is_log else "linear",
        )
        for i, knob in enumerate(env.knobs.knobs)  # type: ignore[attr-defined]
    ]
    return _table(("Entry", "Knob", "-1", "1", "Unit", "Scale"), rows)


_SIGNALS = {
    "queue_max": "highest queue of any switch port, share of the buffer; log",
    "queue_mean": "highest average queue of any port, share of the buffer; log",
    "marked_fraction": "share of the packets that switches sent",
    "pause_frames": "PFC pause frames per second and port; log",
    "paused_max": "share of the interval, port paused longest",
    "paused_mean": "share of the interval, mean of ports",
    "drops": "packets per second; log",
    "throughput": "share of the line rate",
    "cnps": "congestion notifications per us and host; log",
    "rate_mean": "mean rate of queue pairs with data to send, share of the line rate; log",
    "rate_min": "lowest of them; log",
    "active_qps": "share of queue pairs with data to send",
    "buffer": "share of the buffer used in the fullest switch",
}


def _observations(env: RoceEnv) -> str:
    rows = []
    for i, name in enumerate(env.sight.names):
        if name.startswith("knob/"):
            rows.append((f"{i} … {len(env.sight.names) - 1}", "`knob/…`", "position in its range"))
            break
        rows.append((str(i), f"`{name}`", _SIGNALS[name.rpartition("/")[2]]))
    return _table(("Entry", "Name", "Meaning and unit before scaling; range [0, 1]"), rows)


def _splits(name: str) -> str:
    rows = [
        (f"`{split}`", ", ".join(f"`{path}`" for path in changes))
        for split, changes in changes_of(load_raw(name)).items()
    ]
    return _table(("Split", "Fields that are different"), rows) if rows else ""
