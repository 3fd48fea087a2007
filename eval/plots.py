"""Pictures from records, without simulating anything: `python -m eval.plots OUT`.

Writes scores.png and timeline.png into OUT.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import matplotlib
import numpy as np

from eval.records import Record, read_records
from eval.summary import DEFAULT, Summary, summarize
from roce_gym.errors import ConfigError, RoceGymError

matplotlib.use("Agg")

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""One a tenant: Okabe and Ito (2008), which colour-blind readers tell apart, too."""

SHARED_COLOURS = ("#444444", "#999999", "#bbbbbb")
"""For what is no single tenant's."""


def plot_timeline(records: Sequence[Record], path: Path) -> None:
    """Queues, rates and pauses over time; one column a policy, one row a quantity.

    Args:
        records: of one seed and several policies.
        path: of the PNG.
    """
    rows = (_queues, _rates, _goodput, _pauses)
    figure, grid = plt.subplots(
        len(rows),
        len(records),
        figsize=(1.5 + 4.2 * len(records), 9.2),
        sharex=True,
        sharey="row",
        squeeze=False,
        layout="constrained",
    )
    for column, record in enumerate(records):
        totals = record.episode.totals
        frames = totals["pfc_frames_per_s"]
        title = f"{_short(record.policy)}\nJ {totals['score']:.3f}, {frames:,.0f} pauses/s/port"
        grid[0, column].set_title(title, fontsize=11)
        for row, draw in enumerate(rows):
            axes = grid[row, column]
            draw(axes, record)
            axes.grid(alpha=0.3)
            axes.margins(x=0.01)
            axes.xaxis.set_major_locator(MaxNLocator(5))
            if column:
                axes.set_ylabel("")
        grid[-1, column].set_xlabel("simulated time [ms]")
    for row in grid:  # when all is drawn: fixing one end stops the scaling of the whole row
        row[0].set_ylim(bottom=0)
    _add_legend(figure, records[0])
    figure.suptitle(f"Seed {records[0].seed}: the same work under different settings", fontsize=13)
    _save(figure, path)


def plot_scores(summary: Summary, path: Path) -> None:
    """Score of every policy with its interval; dots are seeds."""
    rows = summary.rows[::-1]
    figure, axes = plt.subplots(figsize=(8.5, 1.4 + 0.45 * len(rows)), layout="constrained")
    for y, row in enumerate(rows):
        colour = COLOURS[1] if row.policy.startswith("sb3:") else COLOURS[0]
        values = summary.scores[row.policy]
        axes.plot(values, np.full(len(values), y - 0.22), ".", color=colour, alpha=0.35, ms=5)
        axes.plot([row.score.low, row.score.high], [y, y], color=colour, lw=3)
        axes.plot(row.score.mean, y, "o", color=colour, ms=7)
    axes.set_yticks(range(len(rows)), [_short(row.policy) for row in rows])
    axes.set_xlabel("J (lower is better): mean, 95 % interval; small dots: seeds")
    axes.grid(axis="x", alpha=0.3)
    _save(figure, path)


def _queues(axes: Axes, record: Record) -> None:
    time_ms = _time_ms(record)
    for name, (colour, _) in _class_styles(record).items():
        values = _values(record, f"queue_max_bytes/{name}") / 1000.0
        axes.plot(time_ms, values, color=colour, lw=1.2)
    axes.set_ylabel("longest queue in\ninterval [KB]")


def _rates(axes: Axes, record: Record) -> None:
    for index, name in enumerate(record.episode.tenants):
        values = _values(record, f"rate_gbps/{name}")
        colour = COLOURS[index % len(COLOURS)]
        axes.plot(_time_ms(record), values, color=colour, lw=1.2, marker=".", ms=3)
    axes.set_ylabel("sending rate of a\nqueue pair, mean [Gb/s]")


def _goodput(axes: Axes, record: Record) -> None:
    for index, name in enumerate(record.episode.tenants):
        values = _values(record, f"goodput_gbps/{name}")
        axes.plot(_time_ms(record), values, color=COLOURS[index % len(COLOURS)], lw=1.2)
    axes.set_ylabel("delivered, tenant\nin total [Gb/s]")


def _pauses(axes: Axes, record: Record) -> None:
    time_ms = _time_ms(record)
    values = _values(record, "pfc_frames_per_s") / 1000.0
    axes.bar(time_ms, values, width=time_ms[0], align="edge", color=SHARED_COLOURS[0])
    axes.set_ylabel("PFC pause frames\n[1,000/s and port]")


def _class_styles(record: Record) -> dict[str, tuple[str, bool]]:
    """By class: its colour, and whether that is the colour of the only tenant that uses it."""
    episode = record.episode
    styles: dict[str, tuple[str, bool]] = {}
    for name in episode.classes:
        users = [index for index, used in enumerate(episode.class_of) if used == name]
        if len(users) == 1:
            styles[name] = (COLOURS[users[0] % len(COLOURS)], True)
        else:
            styles[name] = (SHARED_COLOURS[len(styles) % len(SHARED_COLOURS)], False)
    return styles


def _add_legend(figure: Figure, record: Record) -> None:
    """One legend below everything: no data is covered."""
    episode, styles = record.episode, _class_styles(record)
    entries = [
        (f"tenant {name}" + (", and its traffic class" if styles[used][1] else ""), colour)
        for name, used, colour in zip(episode.tenants, episode.class_of, COLOURS, strict=False)
    ]
    entries += [
        (f"traffic class {name}, shared", colour)
        for name, (colour, is_own) in styles.items()
        if not is_own
    ]
    handles = [Line2D([], [], color=colour, lw=2.5, label=text) for text, colour in entries]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), frameon=False)


def _short(policy: str) -> str:
    if policy.startswith("sb3:"):
        return f"agent ({'/'.join(Path(policy[4:]).parts[-2:])})"
    return policy.removeprefix("preset:") + (" (preset)" if policy.startswith("preset:") else "")


def _time_ms(record: Record) -> np.ndarray:
    return _values(record, "time_us") / 1000.0


def _values(record: Record, name: str) -> np.ndarray:
    """A series; gaps where nothing is known."""
    return np.array(record.episode.series[name], np.float64)


def _save(figure: Figure, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def choose(records: Sequence[Record], summary: Summary) -> tuple[str, ...]:
    """Policies worth a column: the default preset, the best other preset, the best agent."""
    names = [row.policy for row in summary.rows]
    chosen = [name for name in names if name == DEFAULT]
    presets = [name for name in names if name.startswith("preset:") and name != DEFAULT]
    agents = [name for name in names if name.startswith("sb3:")]
    chosen += presets[:1] + agents[:1]
    return tuple(chosen) or tuple(names[:3])


def main(argv: Sequence[str] | None = None) -> int:
    """Draws; exit code 0: done, 2: refused."""
    parser = argparse.ArgumentParser(prog="python -m eval.plots", description=__doc__)
    parser.add_argument("out", type=Path, help="the --out of eval.evaluate")
    parser.add_argument("--seed", type=int, help="for timeline.png (default: the first)")
    parser.add_argument("--policies", nargs="+", help="for timeline.png")
    arguments = parser.parse_args(argv)
    try:
        draw_all(arguments.out, arguments.seed, arguments.policies)
    except RoceGymError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(f"{arguments.out / 'scores.png'}\n{arguments.out / 'timeline.png'}")
    return 0


def draw_all(out: Path, seed: int | None = None, policies: Sequence[str] | None = None) -> None:
    """Draws both pictures of an evaluation.

    Raises:
        CheckpointError: no records, or damaged ones.
        ConfigError: a seed or policy that is not in them.
    """
    records = read_records(out)
    summary = summarize(records)
    seed = summary.seeds[0] if seed is None else seed
    chosen = []
    for policy in policies or choose(records, summary):
        found = [r for r in records if (r.policy, r.seed) == (policy, seed)]
        if not found:
            allowed = ", ".join(summary.scores)
            raise ConfigError(
                f"plots: no record of {policy!r} and seed {seed}; policies: {allowed}; "
                f"seeds: {', '.join(map(str, summary.seeds))}"
            )
        chosen += found
    plot_scores(summary, out / "scores.png")
    plot_timeline(chosen, out / "timeline.png")


if __name__ == "__main__":
    sys.exit(main())
