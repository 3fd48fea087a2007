"""Random tiny scenarios: every rule of `docs/rules.md` gets its turn, in a few thousand events."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from sender_cases import DRAWN

from roce_gym.assembly.devices import headroom_bytes
from roce_gym.config import SENDER_CONFIGS, Scenario, Settings, validate_scenario
from roce_gym.config.senders import OWN_WINDOWS
from roce_gym.topology import build_network
from roce_gym.topology.graph import Network
from roce_gym.workload.plan import Plan
from roce_gym.workload.planner import make_plan

US = 1_000_000
MOST_RESERVED = 4_096


@dataclass(frozen=True)
class Case:
    """What to run, and when which settings come into force."""

    scenario: Scenario
    network: Network
    plan: Plan
    seed: int
    settings: tuple[tuple[int, Settings], ...]  # (from when on, ps), the first from 0 on
    end_ps: int


class Extra(Protocol):
    """What a family of cases adds."""

    def add(self, raw: dict[str, Any], network: Network) -> None:
        """Changes the scenario in place."""

    def settings(self, settings: Settings) -> Settings:
        """Settings that use what was added."""


def make_case(
    number: int,
    algorithms: tuple[str, ...] = (),
    extra: Extra | None = None,
    *,
    pfc: bool = False,
    varied: bool = False,
) -> Case:
    """The tiny case of that number, always the same.

    Args:
        number: any.
        algorithms: each tenant's senders have one of these, and perhaps windows.
        extra: adds to the scenario and its settings; see `queueing_cases.py`.
        pfc: whether pauses may be short, watched, and made up by NICs in a storm.
        varied: with several ways to go, any routing and recovery, and cables that change.
    """
    r, v = random.Random(number), random.Random(f"varied {number}")
    raw: dict[str, Any] = {
        "name": f"tiny {number}",
        "topology": _many_ways(v) if varied else _topology(r),
        "switch": {
            "buffer_bytes": 2**31 - 1,
            "ecn_scales_with_rate": r.random() < 0.5,
            "alpha_scales_with_rate": r.random() < 0.5,
        },
        "classes": _classes(r),
    }
    names = [c["name"] for c in raw["classes"]]
    raw["nic"] = _nic(r, names)
    raw["tenants"] = _tenants(r, _num_hosts(raw["topology"]), names)
    if pfc:
        raw |= _pfc(random.Random(f"pfc {number}"), raw)
    if varied:
        _vary(v, raw)
    r_senders = random.Random(f"senders {number}")
    if raw.get("routing", {}).get("policy", "ecmp") != "ecmp":
        algorithms = tuple(name for name in algorithms if name != "hpcc")
    if raw["nic"].get("out_of_order") or raw["nic"].get("recovery") == "go_back_0":
        algorithms = tuple(name for name in algorithms if name not in OWN_WINDOWS)
    if algorithms:
        _add_senders(r_senders, raw, algorithms)
    network = build_network(validate_scenario(raw).topology)
    if extra is not None:
        extra.add(raw, network)
    scenario = validate_scenario(raw)
    raw["switch"]["buffer_bytes"] = _private_bytes(scenario, network) + r.choice(
        [3_000, 12_000, 40_000, 150_000, 1_000_000]
    )
    settings = [_settings(r, validate_scenario(raw))]
    if extra is not None:
        settings[0] = extra.settings(settings[0])
    for given in (*raw["classes"], *raw["tenants"]):
        given |= _given(settings[0], given["name"])
    scenario = validate_scenario(raw)
    settings[0] = settings[0].model_copy(update={"senders": _senders(r_senders, scenario)})
    for given in raw["tenants"]:
        if given["name"] in settings[0].senders:
            given[given["cc"]] = settings[0].senders[given["name"]].model_dump()
    scenario = validate_scenario(raw)
    if r.random() < 0.4:
        some = np.array([r.random() < 0.3 for _ in range(network.num_links)])
        network = replace(network, link_loss=some * r.choice([0.002, 0.02, 0.1]))
    changes = sorted(r.randrange(1, 600 * US) for _ in range(r.choice([0, 0, 1, 3])))
    for _ in changes:
        changed = _changed(r, settings[-1], _settings(r, scenario))
        senders = _senders(r_senders, scenario)
        settings.append(changed.model_copy(update={"senders": senders}))
        if extra is not None:
            settings[-1] = extra.settings(settings[-1])
    return Case(
        scenario,
        network,
        make_plan(scenario, network, number),
        number,
        tuple(zip((0, *changes), settings, strict=True)),
        r.choice([300, 1_000, 3_000]) * US,
    )


def _topology(r: random.Random) -> dict[str, Any]:
    rates = [10, 25, 33.3, 40, 100, 400]
    common = {"host_rate_gbps": r.choice(rates), "link_delay_ns": r.choice([0, 1, 150, 1_000])}
    kind = r.choice(["star", "dumbbell", "leaf_spine"])
    if kind == "star":
        return common | {"kind": kind, "hosts": r.randint(2, 6)}
    if kind == "dumbbell":
        size = {"hosts_per_side": r.randint(1, 3), "trunk_rate_gbps": r.choice(rates)}
        return common | {"kind": kind} | size
    return common | {
        "kind": kind,
        "leaves": 2,
        "hosts_per_leaf": r.randint(1, 3),
        "spines": r.randint(1, 2),
        "spine_rate_gbps": r.choice(rates),
    }


def _pfc(r: random.Random, raw: dict[str, Any]) -> dict[str, Any]:
    """Pauses, a watchdog and storms; the first class is made lossless, so that there are some."""
    first, *others = raw["classes"]
    topology = raw["topology"]
    if r.random() < 0.3:
        rates = {key: topology[key] for key in ("host_rate_gbps", "link_delay_ns")}
        topology = {"kind": "triangle", "routing": "clockwise"} | rates
    poll = r.choice([0.7, 3, 10])
    lossless = [first["name"], *(c["name"] for c in others if c["lossless"])]
    return {
        "topology": topology,
        "classes": [first | {"lossless": True}, *others],
        "tenants": _tenants(
            r,
            3 if topology["kind"] == "triangle" else _num_hosts(topology),
            [c["name"] for c in raw["classes"]],
        ),
        "pfc": {
            "quanta": r.choice([0, 100, 300, 3_000, 65_535]),
            "refresh_fraction": r.choice([0.1, 0.5, 0.5, 0.99]),
            "watchdog": {
                "enabled": r.random() < 0.8,
                "action": r.choice(["drop", "forward", "alert"]),
                "poll_us": poll,
                "detection_us": poll * r.choice([1, 2.5, 6]),
                "restoration_us": poll * r.choice([1, 3]),
            },
        },
        "faults": {"storms": [_storm(r, lossless) for _ in range(r.choice([0, 1, 1, 2]))]},
    }


def _storm(r: random.Random, lossless: list[str]) -> dict[str, Any]:
    start = r.choice([0, 5, 50])
    stop = r.choice([None, start + 20.5, start + 150])
    host = r.randrange(2)
    return {"host": host, "traffic_class": r.choice(lossless), "start_us": start, "stop_us": stop}


def _num_hosts(topology: dict[str, Any]) -> int:
    if topology["kind"] == "star":
        return topology["hosts"]
    if topology["kind"] in ("clos3", "ring"):
        return 4
    return 2 * topology.get("hosts_per_side", topology.get("hosts_per_leaf", 0))


def _many_ways(v: random.Random) -> dict[str, Any]:
    common = {
        "host_rate_gbps": v.choice([25, 100]),
        "link_delay_ns": v.choice([0, 150, 1_000]),
        "kind": v.choice(["leaf_spine", "leaf_spine", "clos3", "ring"]),
    }
    if common["kind"] == "ring":
        return common | {"switches": 4, "trunk_rate_gbps": 40}
    if common["kind"] == "clos3":
        sizes = {
            "pods": 2,
            "leaves_per_pod": 2,
            "hosts_per_leaf": 1,
            "spines_per_pod": 2,
            "cores": 4,
        }
        return common | sizes | {"spine_rate_gbps": 25, "core_rate_gbps": 40}
    return common | {
        "leaves": 2,
        "hosts_per_leaf": v.randint(1, 3),
        "spines": v.randint(2, 3),
        "spine_rate_gbps": v.choice([10, 25, 40, 100]),
    }


def _vary(v: random.Random, raw: dict[str, Any]) -> None:
    """Routing, receivers, recovery and link events."""
    policies = ["ecmp", "spray_random", "spray_round_robin", "adaptive", "flowlet"]
    raw["routing"] = {
        "policy": v.choice(policies),
        "flowlet_gap_us": v.choice([0.5, 2, 10]),
        "reroute_delay_us": v.choice([0, 0, 3, 30]),
    }
    repairs = [(False, "go_back_n"), (False, "go_back_0"), (True, "go_back_n")]
    repairs += [(True, "selective_repeat")] * 3
    raw["nic"]["out_of_order"], raw["nic"]["recovery"] = v.choice(repairs)
    raw["nic"]["reorder_window_packets"] = max(raw["nic"]["ack_every"], v.choice([2, 8, 128]))
    raw["nic"]["reorder_wait_us"] = v.choice([0, 0, 1.5, 20])
    network = build_network(validate_scenario(raw).topology)
    raw["link_events"] = [_link_event(v, network) for _ in range(v.choice([0, 1, 2, 4]))]


def _link_event(v: random.Random, network: Network) -> dict[str, Any]:
    link = v.choice([i for i in range(network.num_links) if v.random() < 0.5] or [0])
    start = v.choice([0, 0, 1, 5.5, 20, 100])
    stop = v.choice([None, start + 2, start + 30.25, start + 200])
    event = {
        "between": [int(network.link_src[link]), int(network.link_dst[link])],
        "start_us": start,
        "stop_us": stop,
    }
    one = {"direction": v.choice(["both", "forward"])}
    return event | v.choice(
        [
            {"kind": "down"},
            {"kind": "down"},
            {"kind": "slow", "rate_gbps": v.choice([1, 7.7, 24])} | one,
            {"kind": "lossy", "loss": v.choice([0.01, 0.1])} | one,
        ]
    )


def _classes(r: random.Random) -> list[dict[str, Any]]:
    priorities = r.sample(range(8), r.randint(1, 3))
    out = []
    for name, priority in zip("abc", priorities, strict=False):
        chosen: dict[str, Any] = {
            "name": name,
            "priority": priority,
            "lossless": r.random() < 0.6,
            "scheduling": r.choice(["strict", "round_robin"]),
        }
        xon_offset_bytes = r.choice([0, 500, 3_072])
        headroom = r.choice(["auto", "auto", "bytes", "delays"])
        given: dict[str, Any] = {}
        if headroom == "bytes":
            given["headroom_bytes"] = r.choice([0, 2_000, 30_000])
        elif headroom == "delays":
            given["headroom_rate_delays"] = r.choice([0.5, 2.0, 3.3])
        if chosen["lossless"]:
            chosen |= given | {"xon_offset_bytes": xon_offset_bytes}
        out.append(chosen)
    return out


def _nic(r: random.Random, names: list[str]) -> dict[str, Any]:
    nic = {
        "mtu_bytes": r.choice([256, 1_000, 1_024, 4_096]),
        "interframe_gap_bytes": r.choice([0, 20, 20]),
        "ack_every": r.choice([1, 2, 4, 16]),
        "ack_class": r.choice([None, *names]),
        "cnp_class": r.choice([None, *names]),
        "cnp_mode": r.choice(["packet", "ack_echo"]),
        "cnp_interval_us": r.choice([0, 4, 20]),
        "window_bytes": r.choice([0, 0, 0, 2_000, 10_000, 50_000]),
        "retransmit_timeout_us": r.choice([0, 15, 60, 250, 67_108.864]),
        "retry_limit": r.choice([0, 1, 7]),
        "nack_interval_us": r.choice([1, 20, 500]),
        "ack_ignores_pause": r.random() < 0.25,
    }
    if nic["window_bytes"]:  # a window that closes before an ACK is due is refused
        nic["window_bytes"] = max(nic["window_bytes"], nic["ack_every"] * nic["mtu_bytes"])
    return nic


def _tenants(r: random.Random, num_hosts: int, names: list[str]) -> list[dict[str, Any]]:
    out = []
    for number in range(r.randint(1, 3)):
        hosts = r.sample(range(num_hosts), r.randint(2, num_hosts))
        jobs = [_job(r, hosts) for _ in range(r.randint(1, 2))]
        out.append(
            {
                "name": f"t{number}",
                "hosts": hosts,
                "traffic_class": r.choice(names),
                "jobs": jobs,
            }
        )
    return out


def _job(r: random.Random, hosts: list[int]) -> dict[str, Any]:
    start = {"start_us": r.choice([0, 0, 3, 7.5])}
    stop = {"stop_us": r.choice([20, 150])} if r.random() < 0.3 else {}
    size = r.choice([1, 900, 5_000, 40_000, 150_000])
    kind = r.choice(["flows", "ring_all_reduce", "all_to_all", "incast"])
    if kind == "flows":
        return start | {
            "kind": kind,
            "flows": [_flow(r, hosts, size) for _ in range(r.randint(1, 6))],
        }
    if kind == "incast":
        return (
            start
            | stop
            | {
                "kind": kind,
                "bytes": size,
                "degree": r.randint(1, len(hosts) - 1),
                "period_us": r.choice([1, 30]),
                "rounds": r.randint(1, 4),
            }
        )
    rounds = {
        "kind": kind,
        "bytes": size,
        "compute_us": r.choice([0, 2, 10]),
        "jitter": r.choice([0, 0.4]),
        "rounds": r.randint(1, 4),
    }
    if kind == "ring_all_reduce":
        rounds |= {"channels": r.randint(1, 3), "chunks_per_step": r.randint(1, 3)}
    return start | stop | rounds


def _flow(r: random.Random, hosts: list[int], size: int) -> dict[str, Any]:
    src, dst = r.sample(hosts, 2)
    return {
        "src": src,
        "dst": dst,
        "bytes": size + r.randrange(10),
        "start_us": r.choice([0, 0, 9]),
    }


def _settings(r: random.Random, scenario: Scenario) -> Settings:
    return Settings.model_validate(
        {
            "classes": {c.name: {"ecn": _ecn(r), "buffer": _buffer(r)} for c in scenario.classes},
            "tenants": {tenant.name: _dcqcn(r) for tenant in scenario.tenants},
        }
    )


def _ecn(r: random.Random) -> dict[str, Any]:
    kmin = r.choice([0, 1_000, 8_000, 40_000])
    return {
        "enabled": r.random() < 0.8,
        "kmin_bytes": kmin,
        "kmax_bytes": kmin + r.choice([0, 10_000, 100_000]),
        "pmax": r.choice([0, 0.1, 0.7, 1]),
    }


def _buffer(r: random.Random) -> dict[str, Any]:
    static = r.choice([0, 3_000, 20_000]) if r.random() < 0.25 else None
    return {
        "alpha": r.choice([0.0625, 0.5, 1, 8]),
        "static_threshold_bytes": static,
        "reserved_bytes": r.choice([0, 1_500, MOST_RESERVED]),
    }


def _dcqcn(r: random.Random) -> dict[str, Any]:
    return {
        "enabled": r.random() < 0.8,
        "alpha_interval_us": r.choice([1, 1.3, 10, 55]),
        "decrease_interval_us": r.choice([1, 4, 4.001, 50]),
        "increase_timer_us": r.choice([2, 5, 55, 300]),
        "byte_counter_bytes": r.choice([0, 0, 100, 5_000, 60_000]),
        "fast_recovery_times": r.choice([0, 1, 2, 5]),
        "rate_ai_mbps": r.choice([5, 500, 3_000]),
        "rate_hai_mbps": r.choice([50, 2_000]),
        "min_rate_mbps": r.choice([300, 1_000, 7_000, 50_000]),
        "max_rate_mbps": r.choice([0, 0, 0, 900, 12_000, 90_000]),
        "g": r.choice([1 / 256, 0.06, 0.5, 1]),
        "initial_alpha": r.choice([0, 0.3, 1]),
        "alpha_cap": r.choice([0.2, 1, 1]),
        "cut_divisor": r.choice([1, 2]),
        "min_decrease_factor": r.choice([0, 0.5, 1]),
        "first_cnp_rate_mbps": r.choice([0, 0, 2_000, 50_000]),
        "clamp_target_rate": r.random() < 0.3,
        "clamp_target_rate_after_time_inc": r.random() < 0.5,
    }


def _add_senders(r: random.Random, raw: dict[str, Any], algorithms: tuple[str, ...]) -> None:
    """Algorithms and windows; a tenant may also keep the window of its NIC."""
    mtu, ack_every = raw["nic"]["mtu_bytes"], raw["nic"]["ack_every"]
    for tenant in raw["tenants"]:
        tenant["cc"] = r.choice(algorithms)
        follows = tenant["cc"] == "hpcc" or r.random() < 0.7
        size = r.choice(["bdp", mtu * r.choice([1, 3, 20]), ack_every * mtu * r.choice([1, 4])])
        window = {
            "bytes": size if follows or size == "bdp" else max(size, ack_every * mtu),
            "follows_rate": follows,
            "base_rtt_us": r.choice([None, 2.5, 40]),
        }
        if r.random() < 0.8 and tenant["cc"] not in OWN_WINDOWS:
            tenant["window"] = window
        if tenant["cc"] == "user":
            tenant["user"] = DRAWN["user"](r)
        for sized in (one for job in tenant["jobs"] for one in job.get("flows", [job])):
            sized["bytes"] *= r.choice([1, 3, 6])  # rates take a few round trips to rise again


def _senders(r: random.Random, scenario: Scenario) -> dict[str, Any]:
    return {
        tenant.name: SENDER_CONFIGS[tenant.cc].model_validate(DRAWN[tenant.cc](r))
        for tenant in scenario.tenants
        if tenant.cc in DRAWN
    }


def _given(settings: Settings, name: str) -> dict[str, Any]:
    """The settings of a class or tenant, as keys of a scenario."""
    if name in settings.classes:
        return settings.classes[name].model_dump()
    shaper = settings.shapers.get(name)
    return {
        "dcqcn": settings.tenants[name].model_dump(),
        "shaper": shaper.model_dump() if shaper else None,
    }


def _changed(r: random.Random, old: Settings, new: Settings) -> Settings:
    """Some of the old settings replaced by new ones."""

    def mixed(a: dict[str, Any], b: dict[str, Any]) -> dict[str, Any]:
        return {name: (b if r.random() < 0.6 else a)[name] for name in a}

    return Settings(
        classes=mixed(old.classes, new.classes), tenants=mixed(old.tenants, new.tenants)
    )


def _private_bytes(scenario: Scenario, network: Network) -> int:
    """Most headroom and reserve that the ports of one switch may need."""
    per_link = np.full(network.num_links, MOST_RESERVED * len(scenario.classes))
    for index in range(len(scenario.classes)):
        per_link += headroom_bytes(scenario, network, index)
    at_switch = network.link_dst >= network.num_hosts
    return int(np.bincount(network.link_dst[at_switch], weights=per_link[at_switch]).max())
