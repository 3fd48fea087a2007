"""The results of a run as text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from roce_gym.cli.dscp_results import mismatch_text
from roce_gym.cli.remarks import remarks
from roce_gym.cli.text import facts, left_out, number, percent, table

_MAX_PLACES = 5

_ENDED = {
    "deadlock": " (ended by a deadlock)",
    "failed": " (queue pairs failed)",
    "unreachable": " (queue pairs are cut off)",
}
"""By status; of others there is nothing to say."""


def report(found: dict[str, Any]) -> str:
    """Text for a terminal, of what :mod:`roce_gym.cli.run` found."""
    settings = "the scenario's own" if found["preset"] == "default" else found["preset"]
    changes = "".join(f"  {change}" for change in found["changes"])
    ended = _ENDED.get(found["status"], "")
    parts = [
        f"{found['scenario']}, seed {found['seed']}, {number(found['duration_us'], 0)} us"
        f" simulated in {found['wall_time_s']:.2f} s{ended}; settings: {settings}{changes}"
    ]
    if any(job["flows"] is None for t in found["tenants"].values() for job in t["jobs"]):
        parts.append("collectives (times in us)\n" + _times(found["tenants"], "cct", "rounds"))
    iterations = list(_iterations(found["tenants"]))
    if iterations:
        head = ["tenant", "job", "done", "mean", "exposed to communication"]
        parts.append("iterations (times in us)\n" + table(head, iterations, text_columns=2))
    requests = list(_requests(found["tenants"]))
    if requests:
        head = ["tenant", "job", "of", "arrived", "done", "mean", "p50", "p99", "max"]
        parts.append("requests (times in us)\n" + table(head, requests, text_columns=3))
    bandwidths = list(_bandwidths(found["tenants"]))
    if bandwidths:
        head = ["tenant", "operation", "algorithm", "ranks", "bytes", "done", "CCT mean", "p99"]
        parts.append(
            "bandwidth of collectives (NCCL-tests' definitions, times in us)\n"
            + table([*head, "algbw Gb/s", "busbw Gb/s"], bandwidths)
        )
    if any(tenant["flows"] for tenant in found["tenants"].values()):
        parts.append("flows (times in us)\n" + _times(found["tenants"], "fct", "flows"))
    if found["fabric"]["latency"]:
        parts.append("latency (us)\n" + _latency(found["tenants"]))
    parts.append("fabric\n" + facts(_fabric(found["fabric"], found["tenants"])))
    if found["left_out"]:
        parts.append(left_out(found["left_out"]))
    notes = remarks(found)
    return "\n\n".join(parts + (["\n".join(notes)] if notes else []))


def _times(tenants: dict[str, Any], name: str, what: str) -> str:
    """A row for each tenant, and for each of its jobs if it has several."""
    head = [
        "tenant",
        what,
        *(f"{name.upper()} {part}" for part in ("mean", "p99", "max", "alone")),
        "slowdown",
        "interference",
        "effective Gb/s",
        "goodput Gb/s",
    ]
    rates = ["effective_bandwidth_gbps", "goodput_gbps"]
    if any("nvlink_goodput_gbps" in numbers for numbers in tenants.values()):
        head.append("NVLink Gb/s")
        rates.append("nvlink_goodput_gbps")
    rows = []
    for tenant, numbers in tenants.items():
        jobs = [job for job in numbers["jobs"] if (job["flows"] is None) == (what == "rounds")]
        if not jobs:
            continue
        goodput = [number(numbers[rate], 2) for rate in rates]
        rows.append([tenant, *_cells(numbers, name, what), *goodput])
        if len(numbers["jobs"]) > 1:
            blank = [""] * len(rates)
            rows += [[f"  {job['kind']}", *_cells(job, name, what), *blank] for job in jobs]
    return table(head, rows)


def _iterations(tenants: dict[str, Any]) -> Iterator[list[str]]:
    """A row for each job that has completed a round."""
    for tenant, numbers in tenants.items():
        for job in numbers["jobs"]:
            if job["iteration_mean_us"] is not None:
                counts = [number(job["rounds_completed"]), number(job["iteration_mean_us"])]
                yield [tenant, job["kind"], *counts, percent(job["exposed_share"], 1)]


def _requests(tenants: dict[str, Any]) -> Iterator[list[str]]:
    """Rows for each job that serves requests."""
    kinds = {"time to first token": "ttft", "end-to-end latency": "e2e_latency"}
    for tenant, numbers in tenants.items():
        for job in numbers["jobs"]:
            for what, key in kinds.items() if job["requests"] else ():
                times = job["requests"][key]
                counts = [number(job["requests"]["arrived"]), number(times["count"])]
                cells = [number(times[f"{part}_us"]) for part in ("mean", "p50", "p99", "max")]
                yield [tenant, job["kind"], what, *counts, *cells]


def _bandwidths(tenants: dict[str, Any]) -> Iterator[list[str]]:
    """A row for each kind of collective that a tenant has."""
    for tenant, numbers in tenants.items():
        for job in numbers["jobs"]:
            for row in job["collectives"]:
                times = [number(row[f"cct_{part}_us"]) for part in ("mean", "p99")]
                rates = [number(row[rate], 2) for rate in ("algbw_gbps", "busbw_gbps")]
                counts = [number(row[name]) for name in ("ranks", "bytes", "completed")]
                yield [tenant, row["operation"], row["algorithm"], *counts, *times, *rates]


def _cells(numbers: dict[str, Any], name: str, what: str) -> list[str]:
    done = number(numbers[f"{what}_completed"])
    if what == "flows":
        done += f" of {number(numbers['flows'])}"
    times = [number(numbers[f"{name}_{part}_us"]) for part in ("mean", "p99", "max", "alone")]
    return [done, *times, number(numbers["slowdown"], 3), percent(numbers["interference"], 1)]


def _latency(tenants: dict[str, Any]) -> str:
    """A row for each tenant and kind of time."""
    parts = ["mean", "p50", "p99", "p99.9", "p99.99", "max"]
    keys = [f"{part.replace('.', '_')}_us" for part in parts]
    rows = [
        [tenant, what, number(times["count"]), *(number(times[key]) for key in keys)]
        for tenant, numbers in tenants.items()
        for what, times in numbers["latency"].items()
    ]
    return table(["tenant", "of", "count", *parts], rows, text_columns=2)


def _bandwidth(fabric: dict[str, Any]) -> str:
    text = f"{number(fabric['goodput_gbps'])} Gb/s of payload"
    share = fabric["effective_bandwidth_share"]
    return text if share is None else f"{text}; effective {percent(share, 1)} of that alone"


def _fabric(fabric: dict[str, Any], tenants: dict[str, Any]) -> list[tuple[str, str]]:
    frames = f"{number(fabric['pause_frames'])} frames, "
    frames += f"{number(fabric['pause_frames_per_s'])} a second"
    frames += f" ({number(fabric['pause_frames_per_s_and_port'])} a second and port)"
    if fabric["pause_frames"]:
        worst = number(fabric["pause_frames_of_worst_port"])
        frames += f"; most: {worst} by port {fabric['pause_frames_worst_port']}"
    several = len(fabric["classes"]) > 1
    rows = [
        ("bandwidth", _bandwidth(fabric)),
        ("PFC pauses", frames),
        *_pfc(fabric),
        (
            "paused time",
            f"{percent(fabric['paused_share_mean'])} of all ports' time, "
            f"{percent(fabric['paused_share_max'])} of the worst port's"
            + _by_class(fabric, "paused_share_mean", several),
        ),
        (
            "ECN marked",
            f"{percent(fabric['ecn_marked_share'])} of packets"
            + _by_class(fabric, "ecn_marked_share", several),
        ),
        ("dropped", _counted(fabric["dropped_packets"], fabric["drops"])),
        ("lost on links", _counted(fabric["lost_packets"], fabric["losses"])),
        ("longest queue", _queue(fabric)),
    ]
    if fabric["dscp_mismatches"]:
        rows.append(("DSCP MISMATCH", mismatch_text(fabric["dscp_mismatches"])))
    if fabric["unreachable_queue_pairs"]:
        down = ", ".join(fabric["cables_down"])
        text = f"{fabric['unreachable_queue_pairs']} queue pairs have no route: "
        text += _by_tenant(tenants, "unreachable_queue_pairs")
        rows.append(("CUT OFF", text + (f"; cables are down by {down}" if down else "")))
    if fabric["failed_queue_pairs"]:
        text = f"{fabric['failed_queue_pairs']} queue pairs passed retry limit: "
        rows.append(("FAILED", text + _by_tenant(tenants, "failed_queue_pairs")))
    return rows


def _by_tenant(tenants: dict[str, Any], field: str) -> str:
    counts = [(name, numbers[field]) for name, numbers in tenants.items() if numbers[field]]
    return ", ".join(f"{number(count)} of {name}" for name, count in counts)


def _pfc(fabric: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """What PFC did beyond pausing; rows of which there is nothing to say are left out."""
    first = fabric["first_pause"]
    if first:
        yield "first pause", f"{number(first['time_us'])} us by port {_of_class(first)}"
    if fabric["ports"]:
        full = fabric["ports"][0]
        text = f"{_of_class(full)}: {number(full['peak_bytes'])} B, when headroom began at "
        text += f"{number(full['peak_limit_bytes'])} B; {number(full['headroom_peak_bytes'])} of "
        yield "fullest port", f"{text}{number(full['headroom_bytes'])} B of headroom"
    if fabric["pausing_hosts"]:
        texts = [
            f"{_of_class(host)} sends pauses: {number(host['pause_frames'])} frames since "
            f"{number(host['first_pause_us'])} us, {percent(host['paused_share'])} of the time"
            for host in fabric["pausing_hosts"][:_MAX_PLACES]
        ]
        more = len(fabric["pausing_hosts"]) - _MAX_PLACES
        yield "PAUSING NIC", "; ".join(texts) + (f"; {more} more" if more > 0 else "")
    dog = fabric["watchdog"]
    if dog["storms"]:
        ports = ", ".join(map(_of_class, dog["ports"][:_MAX_PLACES]))
        more = len(dog["ports"]) - _MAX_PLACES
        text = f"{number(dog['storms'])} storms found, {number(dog['restored'])} over, "
        text += f"{number(dog['dropped_packets'])} packets dropped: {ports}"
        yield "PFC watchdog", text + (f", {more} more" if more > 0 else "")
    stuck = fabric["deadlock"]
    if stuck:
        text = f"since {number(stuck['since_us'])} us, class {stuck['class']}; each waits for the "
        yield "DEADLOCK", f"{text}next, the last for the first: {', '.join(stuck['ports'])}"


def _of_class(place: dict[str, Any]) -> str:
    return f"{place['port']} ({place['class']})"


def _by_class(fabric: dict[str, Any], field: str, several: bool) -> str:
    if not several:
        return ""
    shares = (f"{name} {percent(c[field])}" for name, c in fabric["classes"].items())
    return f" ({', '.join(shares)})"


def _counted(total: int, places: list[dict[str, Any]]) -> str:
    text = f"{number(total)} packets"
    shown = [
        f"{number(place['packets'])} at {place['port']}"
        + (f" ({place['class']})" if "class" in place else "")
        + f": {place['cause']}"
        for place in places[:_MAX_PLACES]
    ]
    more = len(places) - len(shown)
    return text + (f": {', '.join(shown)}" if shown else "") + (f", {more} more" if more else "")


def _queue(fabric: dict[str, Any]) -> str:
    if not fabric["queue_max_bytes"]:
        return "none"
    text = f"{number(fabric['queue_max_bytes'])} B at {fabric['queue_max_port']}"
    text += f", class {fabric['queue_max_class']}: {percent(fabric['queue_max_buffer_share'], 1)}"
    text += f" of the buffer ({number(fabric['buffer_bytes'])} B)"
    if fabric["queue_max_kmin_bytes"] is None:
        return f"{text}; ECN off"
    low, high = fabric["queue_max_kmin_bytes"], fabric["queue_max_kmax_bytes"]
    return f"{text}; ECN kmin {number(low)} B, kmax {number(high)} B"
