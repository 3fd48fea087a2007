"""A scenario as text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from roce_gym.cli.case import Case
from roce_gym.cli.describe_devices import (
    buffer_rows,
    class_table,
    nic_rows,
    override_rows,
    pfc_rows,
    shaper_rows,
)
from roce_gym.cli.describe_network import plural
from roce_gym.cli.dscp_results import dscp_rows
from roce_gym.cli.text import facts, left_out, number, percent, short, table
from roce_gym.config import (
    DcqcnConfig,
    FlowList,
    Incast,
    LinkEvent,
    PoissonJob,
    Scenario,
    Tenant,
    TraceJob,
    sender_settings,
)
from roce_gym.config.jobs import RoundsJob

_SCALES = {True: "log", False: "linear"}
_SENDER_FIELDS = tuple(name for name in DcqcnConfig.model_fields if name != "enabled")


def describe_in_text(case: Case, found: dict[str, Any]) -> str:
    """Text for a terminal, of what :mod:`roce_gym.cli.describe` found."""
    own = f"the scenario's own, on top of {case.base.preset}"
    control = case.base.control
    parts = [
        f"{case.base.name}: {case.base.summary}".rstrip(": "),
        facts(
            [
                ("seed", str(case.seed)),
                ("settings", own if case.preset == "default" else case.preset),
                *([("changes", "  ".join(case.changes))] if case.changes else []),
                ("horizon", f"{short(control.horizon_us)} us"),
                ("interval", f"{short(control.interval_us)} us"),
            ]
        ),
        "topology\n" + facts(_topology_rows(case, found["network"])),
        "traffic classes\n" + class_table(case, found["buffer"]),
        *(["switch overrides\n" + facts(rows)] if (rows := override_rows(case)) else []),
        *(["DSCP to class\n" + facts(list(dscp_rows(found["dscp"])))] if found["dscp"] else []),
        "switch buffer\n" + facts(buffer_rows(case, found["buffer"])),
        "PFC\n" + facts(pfc_rows(case)),
        *(["shapers\n" + facts(shapers)] if (shapers := shaper_rows(case)) else []),
        "NIC\n" + facts(nic_rows(case.base.nic)),
        "tenants\n" + facts(_tenant_rows(case, found["tenants"])),
        *([left_out(found["left_out"])] if found["left_out"] else []),
        *(["DCQCN\n" + _dcqcn_table(case)] if _with_dcqcn(case) else []),
        "knobs of the environment\n" + _knob_table(found["knobs"]),
    ]
    return "\n\n".join(parts)


def _topology_rows(case: Case, network: dict[str, Any]) -> list[tuple[str, str]]:
    rows = [
        ("kind", case.base.topology.kind),
        ("hosts", str(network["hosts"]) + _servers(network)),
        ("switches", str(network["switches"]) + _tiers(network["tiers"])),
    ]
    for cable in network["cables"]:
        rows.append(
            (
                "links",
                f"{cable['count']} x {short(cable['rate_gbps'])} Gb/s, "
                f"{short(cable['delay_ns'])} ns, {cable['between']}",
            )
        )
    if network["oversubscription"]:
        ratios = network["oversubscription"].items()
        text = ", ".join(f"{short(ratio)}:1 at {plural(tier)}" for tier, ratio in ratios)
        rows.append(("oversubscription", text))
    count = network["paths_between_first_and_last_host"]
    rows.append(("shortest paths", f"{count or 'none'} between the first host and the last"))
    if network["routed_one_way"]:
        rows.append(("routing", "clockwise only"))
    if network["lossy_links"]:
        rows.append(("lossy links", f"{network['lossy_links']} (one direction each)"))
    rows += _routing_rows(case.base)
    return rows + [("link event", _link_event(event)) for event in case.base.link_events]


def _routing_rows(scenario: Scenario) -> list[tuple[str, str]]:
    routing = scenario.routing
    gap = f", gap {short(routing.flowlet_gap_us)} us" if routing.policy == "flowlet" else ""
    rows = [("load balancing", routing.policy + gap)]
    if any(event.kind == "down" for event in scenario.link_events):
        delay = f"{_setting(routing.reroute_delay_us)} us after a cable goes down or comes back"
        rows.append(("rerouting", delay))
    return rows


def _link_event(event: LinkEvent) -> str:
    what = {
        "down": lambda e: "down",
        "slow": lambda e: f"{short(e.rate_gbps)} Gb/s",
        "lossy": lambda e: f"loss {e.loss:g}",
    }[event.kind](event)
    arrow = "->" if getattr(event, "direction", "both") == "forward" else "-"
    ends = arrow.join(map(str, event.between))
    ends += f" (cable {event.cable})" if event.cable else ""
    stop = "on" if event.stop_us is None else f"to {short(event.stop_us)} us"
    return f"{ends}: {what} from {short(event.start_us)} us {stop}"


def _servers(network: dict[str, Any]) -> str:
    return f" (GPUs of {network['servers']} servers)" if network["servers"] else ""


def _tiers(tiers: dict[str, int]) -> str:
    if len(tiers) < 2:
        return ""
    sizes = (f"{size} {plural(name) if size > 1 else name}" for name, size in tiers.items())
    return f" ({', '.join(sizes)})"


def _tenant_rows(case: Case, tenants: dict[str, Any]) -> list[tuple[str, str]]:
    rows = []
    for tenant in case.base.tenants:
        planned = tenants[tenant.name]
        hosts = planned["hosts"]
        shown = " ".join(map(str, hosts[:32])) + (" …" if len(hosts) > 32 else "")
        rows.append(
            (
                tenant.name,
                f"class {tenant.traffic_class}, weight {short(tenant.weight)}, "
                f"{number(planned['queue_pairs'])} queue pairs{_on_nvlink(planned)}, "
                f"{len(hosts)} hosts: {shown}",
            )
        )
        for job in tenant.jobs:
            flows = (
                f"{number(planned['flows'])} flows"
                if isinstance(job, FlowList | PoissonJob)
                else ""
            )
            rows.append(("", f"  {job.kind}: {flows or _job(job)}{_span(job)}{_nccl(job)}"))
        rows += [("", f"  {line}") for line in _sender_lines(case, tenant)]
    return rows


def _sender_lines(case: Case, tenant: Tenant) -> list[str]:
    """Windows, and algorithms other than DCQCN."""
    lines = []
    chosen = sender_settings(tenant, case.settings)
    if tenant.cc != "dcqcn":
        fields = ((name, getattr(chosen, name)) for name in type(chosen).model_fields)
        values = ", ".join(f"{name} {_setting(v)}" for name, v in fields if name != "enabled")
        lines.append(f"senders: {tenant.cc}{'' if chosen.enabled else ', off'}, {values}")
    window = tenant.own_window
    if window is not None:
        size = "one BDP" if window.bytes == "bdp" else f"{number(window.bytes)} B"
        rtt = f" of {short(window.base_rtt_us)} us" if window.base_rtt_us else ""
        kind = "in proportion to the rate" if window.follows_rate else "fixed"
        lines.append(f"window: {size}{rtt}, {kind}")
    return lines


def _on_nvlink(planned: dict[str, Any]) -> str:
    inside = planned["queue_pairs_on_nvlink"]
    return f" ({number(inside)} on NVLink)" if inside else ""


def _job(job: Any) -> str:
    """Size and rhythm in words where they are known, then all else that is given."""
    if isinstance(job, TraceJob):
        return f"{job.file}" + (f", {job.rounds} rounds" if job.rounds else "")
    words, said = [], {"kind", "start_us", "stop_us", "nccl", "rounds", "bytes"}
    if hasattr(job, "bytes"):
        words.append(f"{number(job.bytes)} B")
    if isinstance(job, Incast):
        words[0] += f" from each of {job.degree} senders every {short(job.period_us)} us"
        said |= {"degree", "period_us"}
    elif isinstance(job, RoundsJob):
        jitter = f" ± {percent(job.jitter, 0)}" if job.jitter else ""
        words += [f"compute {short(job.compute_us)} us{jitter}"] if job.compute_us else []
        said |= {"compute_us", "jitter"}
    given = job.model_dump(mode="json", exclude_defaults=True, exclude=said)
    words += [f"{name} {_setting(value)}" for name, value in _flat(given)]
    return ", ".join(words + ([f"{job.rounds} rounds"] if job.rounds else []))


def _flat(given: dict[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    """Dotted paths and values."""
    for name, value in given.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{path}{name}.")
        else:
            yield path + name, value


def _span(job: Any) -> str:
    start = f", from {short(job.start_us)} us" if job.start_us else ""
    return start + (f", until {short(job.stop_us)} us" if job.stop_us else "")


def _nccl(job: Any) -> str:
    given = job.nccl.given if job.nccl else ()
    return "".join(f", {name} {getattr(job.nccl, name)}" for name in given)


def _with_dcqcn(case: Case) -> list[str]:
    """Names of the tenants whose senders have it."""
    return [tenant.name for tenant in case.base.tenants if tenant.cc == "dcqcn"]


def _dcqcn_table(case: Case) -> str:
    names = _with_dcqcn(case)
    chosen = [case.settings.tenants[name] for name in names]
    rows = [["enabled", *("yes" if c.enabled else "no" for c in chosen)]]
    for field in _SENDER_FIELDS if any(c.enabled for c in chosen) else ():
        rows.append([field, *(_setting(getattr(c, field)) if c.enabled else "-" for c in chosen)])
    return table(["", *names], rows)


def _setting(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None:
        return "none"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_setting, value))}]"
    if callable(value):
        return str(getattr(value, "__name__", value))
    if isinstance(value, str):
        return value
    return short(value) if value else "0"


def _knob_table(knobs: list[dict[str, Any]]) -> str:
    rows = [
        [k["name"], _SCALES[k["is_log"]], short(k["low"]), short(k["high"]), k["unit"]]
        for k in knobs
    ]
    return table(["name", "scale", "at -1", "at 1", "unit"], rows, text_columns=2)
