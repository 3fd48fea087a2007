"""`roce-gym run`: simulates a scenario and reports."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

from roce_gym.cli.alone import AloneRuns, alone_warnings, run_alone
from roce_gym.cli.bandwidth import add_bandwidth
from roce_gym.cli.case import Case, left_out_of, load_case
from roce_gym.cli.fabric_results import fabric_results
from roce_gym.cli.latency_results import add_latency
from roce_gym.cli.output_file import OutputFile
from roce_gym.cli.prometheus import exposition
from roce_gym.cli.report import report
from roce_gym.cli.tally import Tally
from roce_gym.cli.tenant_results import tenant_results
from roce_gym.cli.terminal import Interrupts, Ticker, wait_for
from roce_gym.cli.text import to_json
from roce_gym.cli.timeline import TimelineFile
from roce_gym.cli.trace import Trace
from roce_gym.counters import Sampler
from roce_gym.errors import ConfigError
from roce_gym.fabric import Fabric
from roce_gym.telemetry import Interval
from roce_gym.units import PS_PER_US, us_to_ps

_INTERRUPTED = 130


def run(arguments: argparse.Namespace) -> int:
    """Runs a scenario; the exit code."""
    case = _measured(load_case(arguments), arguments.latency)
    ticker = Ticker()
    tally, wall_s, status = _simulate(case, arguments, ticker)
    interrupted = status == "interrupted"
    alone = None
    if not interrupted:
        try:
            alone = wait_for(lambda: run_alone(case), ticker, "each tenant alone")
        except KeyboardInterrupt:
            status = "interrupted"
            interrupted = True
    ticker.clear()
    found = _results(case, tally, alone, wall_s, status)
    print(to_json(found) if arguments.json else report(found))
    if interrupted:
        print("interrupted: these results are partial", file=sys.stderr)
    elif status != "completed":
        print(f"{status}: these results are partial", file=sys.stderr)
    return _INTERRUPTED if interrupted else 0


def _simulate(
    case: Case, arguments: argparse.Namespace, ticker: Ticker
) -> tuple[Tally, float, str]:
    """Counters of the run, wall-clock seconds, and how it ended; see `_results`."""
    tally = Tally()
    horizon_ps = us_to_ps(case.base.control.horizon_us)
    step_ps = us_to_ps(case.base.control.interval_us)
    with ExitStack() as stack:
        outputs = _Outputs(case, arguments, stack)
        interrupts = stack.enter_context(Interrupts())
        fabric = Fabric(case.scenario, case.seed, network=case.network, plan=case.plan)
        began = time.perf_counter()
        while fabric.now_ps < horizon_ps and not interrupts.hit and not fabric.is_deadlocked:
            interval = fabric.advance(ps=min(step_ps, horizon_ps - fabric.now_ps))
            tally.add(interval)
            outputs.add(interval)
            interrupts.armed = True
            ticker.show(f"{100 * fabric.now_ps / horizon_ps:.0f} % simulated")
        wall_s = time.perf_counter() - began
        outputs.finish()
    status = "deadlock" if fabric.is_deadlocked else _status(tally)
    return tally, wall_s, "interrupted" if interrupts.hit else status


def _status(tally: Tally) -> str:
    """How a run ended that came to its horizon."""
    if tally.last is None or not (tally.last.failed_qps or tally.last.unreachable_qps):
        return "completed"
    return "failed" if tally.last.failed_qps else "unreachable"


def _measured(case: Case, latency: bool) -> Case:
    """With latencies measured in the run under test; what is "alone" does not need them."""
    if not latency:
        return case
    simulator = case.scenario.simulator.model_copy(update={"latency_histograms": True})
    return replace(case, scenario=case.scenario.model_copy(update={"simulator": simulator}))


class _Outputs:
    """The files that a run writes, as far as they are wanted."""

    def __init__(self, case: Case, arguments: argparse.Namespace, stack: ExitStack) -> None:
        """Opens them; `stack` closes them, and puts them in their places if all went well."""
        _refuse_same_files(arguments)
        parts = (case.scenario, case.network, case.plan)
        self._sampler = None
        if arguments.timeline is not None or arguments.prometheus is not None:
            self._sampler = Sampler(*parts)
        self._adders: list[Callable[[Interval], None]] = []
        self._metrics: OutputFile | None = None
        if arguments.trace is not None:
            trace = stack.enter_context(Trace(arguments.trace, arguments.force, *parts))
            self._adders.append(trace.add)
        if self._sampler is not None:
            self._adders.append(self._sampler.add)
        if self._sampler is not None and arguments.timeline is not None:
            sampler, path = self._sampler, arguments.timeline
            rows = stack.enter_context(TimelineFile(path, arguments.force, sampler))
            self._adders.append(lambda _: rows.add(sampler.sample()))
        if arguments.prometheus is not None:
            file = OutputFile(arguments.prometheus, "--prometheus", arguments.force)
            self._metrics = stack.enter_context(file)

    def add(self, interval: Interval) -> None:
        """Hands the next interval to all."""
        for add in self._adders:
            add(interval)

    def finish(self) -> None:
        """Writes what is known at the end only."""
        if self._metrics is not None and self._sampler is not None:
            text = exposition(self._sampler, self._sampler.sample())
            try:
                self._metrics.partial.write_text(text, encoding="utf-8")
            except OSError as error:
                raise self._metrics.unwritable(error) from None


def _refuse_same_files(arguments: argparse.Namespace) -> None:
    files = {f"--{name}": getattr(arguments, name) for name in ("trace", "timeline", "prometheus")}
    given = {option: path.resolve() for option, path in files.items() if path is not None}
    for option, path in given.items():
        others = [other for other in given if other != option and given[other] == path]
        if others:
            raise ConfigError(f"{option}, {', '.join(others)}: name the same file {str(path)!r}")


def _results(
    case: Case, tally: Tally, alone: AloneRuns | None, wall_s: float, status: str
) -> dict[str, Any]:
    """What is printed.

    `status` is "interrupted" or "deadlock" if that ended the run; "failed" if queue pairs have
    passed their retry limit, "unreachable" if to some no route leads at the end; else "completed".
    """
    tenants = tenant_results(tally, case.base, case.plan, alone.times if alone else None)
    fabric = fabric_results(tally, case.base, case.settings, case.network)
    add_bandwidth(tenants, fabric, tally, case.plan)
    add_latency(tenants, fabric, tally.latency)
    return {
        "scenario": case.base.name,
        "source": case.source,
        "seed": case.seed,
        "preset": case.preset,
        "changes": list(case.changes),
        "duration_us": tally.duration_ps / PS_PER_US,
        "horizon_us": case.base.control.horizon_us,
        "status": status,
        "interrupted": status == "interrupted",
        "wall_time_s": wall_s,
        "tenants": tenants,
        "fabric": fabric,
        "settings": case.settings.model_dump(mode="json"),
        "left_out": left_out_of(case),
        "warnings": alone_warnings(case, alone) if alone else [],
    }
