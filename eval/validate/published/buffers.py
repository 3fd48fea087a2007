"""How much of a switch's buffer one port may take before it pauses.

Zhu et al., "Congestion Control for Large-Scale RDMA Deployments", SIGCOMM 2015, section 4 (buffer
settings): Trident II, 32 ports of 40 Gb/s, 12 MB, 8 PFC classes, MTU 1,500.

Guo et al., "RDMA over Commodity Ethernet at Scale", SIGCOMM 2016, section 6: switches that came
with alpha 1/64 instead of 1/16 paused, as 1,000 servers answered one that had asked them, and the
pauses made others wait. Here a leaf-spine fabric with those switches: 1,024 answers of 1.5 KB.
"""

from __future__ import annotations

import numpy as np

from eval.validate.published.claim import Claim, Verdict, scenario_of
from roce_gym.assembly.devices import headroom_bytes
from roce_gym.config import Scenario, validate_scenario
from roce_gym.fabric import Fabric
from roce_gym.headroom import sonic_headroom_bytes
from roce_gym.topology import build_network

_PORTS, _CLASSES, _BUFFER_BYTES, _RATE_GBPS, _MTU_BYTES = 32, 8, 12_000_000, 40.0, 1_500
_HEADROOM_BYTES = 22_400
_BETA = 8
_CABLE_M = 220


def _trident2() -> Scenario:
    """The paper's switch: its threshold is beta times what is free, over the number of classes."""
    return scenario_of(
        _PORTS,
        [(0, 1)],
        "dcqcn_paper",
        topology={"kind": "star", "hosts": _PORTS, "host_rate_gbps": _RATE_GBPS},
        switch={"buffer_bytes": _BUFFER_BYTES},
        nic={"mtu_bytes": _MTU_BYTES},
        classes=[
            {
                "name": "roce" if i == 0 else f"class{i}",
                "priority": i,
                "headroom_bytes": _HEADROOM_BYTES,
                "buffer": {"reserved_bytes": 0, "alpha": _BETA / _CLASSES},
            }
            for i in range(_CLASSES)
        ],
    )


def _shared_bytes(scenario: Scenario) -> int:
    """The buffer of the only switch less the headroom of all its ports and classes."""
    network = build_network(scenario.topology)
    headroom = [headroom_bytes(scenario, network, i) for i in range(len(scenario.classes))]
    into = network.into_switch
    return scenario.switch.buffer_bytes - sum(int(values[into].sum()) for values in headroom)


def dcqcn_arithmetic() -> list[Verdict]:
    """The paper's four figures, from the buffer that the simulator shares out."""
    ports = _PORTS
    shared = _shared_bytes(_trident2())
    flight = sonic_headroom_bytes(
        int(_RATE_GBPS * 1e9),
        _CABLE_M,
        _MTU_BYTES,
        cell_bytes=64,  # so that packets of 64 bytes waste nothing
        has_tiles=False,
        port_mtu_bytes=_MTU_BYTES,
    )
    static = shared / (_CLASSES * ports)
    static_ecn = static / ports
    dynamic_ecn = _BETA * shared / (_CLASSES * ports * (_BETA + 1))
    return [
        Verdict(
            "t_flight 22.4 KB (given: the cable it is for is not)",
            f"{flight / 1000:.2f} KB at {_CABLE_M} m (fitted)",
            "+- 1 %, cable <= 300 m",
            abs(flight / _HEADROOM_BYTES - 1) < 0.01,
        ),
        Verdict(
            "static t_PFC at most 24.47 KB", _kb(static), "exact, cut off", _cut(static) == 24.47
        ),
        Verdict(
            "then t_ECN less than 0.85 KB: less than a packet",
            _kb(static_ecn),
            "exact, cut off",
            _cut(static_ecn) == 0.85,
            binding=False,
            note="24.475 KB / 32 ports; no whole number of ports gives 0.85. It comes out with "
            "2 MTU more, or with headroom for 7 of 8 classes; its formula has neither",
        ),
        Verdict(
            "t_ECN is infeasible with a static threshold",
            f"{static_ecn:.0f} B",
            f"< {_MTU_BYTES:,} B",
            static_ecn < _MTU_BYTES,
        ),
        Verdict(
            "dynamic threshold, beta 8: t_ECN less than 21.75 KB",
            _kb(dynamic_ecn),
            "exact, cut off",
            _cut(dynamic_ecn) == 21.75,
        ),
    ]


def _cut(size_bytes: float) -> float:
    """KB with two digits, as the paper cuts them off."""
    return int(size_bytes / 10) / 100


def _kb(size_bytes: float) -> str:
    return f"{size_bytes / 1000:.3f} KB"


def _answers(alpha: float) -> tuple[int, float]:
    """Pause frames, and the 99th percentile in us of others' messages of 1 KB."""
    queries, per_host = 5, 32
    answers = [
        {"src": src, "dst": 0, "bytes": 1_500, "start_us": 1_000 * query + 100}
        for query in range(queries)
        for src in range(8, 40)
        for _ in range(per_host)
    ]
    others = {"kind": "incast", "bytes": 1_024, "degree": 4, "period_us": 10}
    topology = {
        "kind": "leaf_spine",
        "leaves": 5,
        "hosts_per_leaf": 8,
        "spines": 4,
        "host_rate_gbps": _RATE_GBPS,
        "spine_rate_gbps": _RATE_GBPS,
    }
    scenario = {
        "name": "answers",
        "topology": topology,
        "switch": {"buffer_bytes": _BUFFER_BYTES},
        "nic": {"mtu_bytes": 1024},
        "classes": [{"headroom_bytes": _HEADROOM_BYTES, "buffer": {"alpha": alpha}}],
        "preset": "dcqcn_paper",
        "tenants": [
            {
                "name": "chatty",
                "hosts": list(range(40)),
                "jobs": [{"kind": "flows", "flows": answers}],
            },
            {"name": "others", "hosts": [4, 12, 20, 28, 36], "jobs": [others]},
        ],
    }
    interval = Fabric(validate_scenario(scenario), 1).advance(us=1_000 * queries)
    log = interval.completions
    times = (log["end_ps"] - log["start_ps"])[log["job"] == 1] / 1e6
    return int(interval.pause_frames.sum()), float(np.percentile(times, 99))


def dynamic_threshold() -> list[Verdict]:
    """Pauses with either alpha, and what others feel of it."""
    (small_pauses, small_us), (large_pauses, large_us) = _answers(1 / 64), _answers(1 / 16)
    return [
        Verdict(
            "alpha 1/64 pauses in a large incast, 1/16 does not",
            f"{small_pauses} and {large_pauses} pauses",
            "> 100 and 0",
            small_pauses > 100 and large_pauses == 0,
        ),
        Verdict(
            "1/16 makes others' slowest messages faster",
            f"p99 {small_us:.0f} -> {large_us:.0f} us",
            "to half at most",
            large_us < small_us / 2,
        ),
    ]


CLAIMS = [
    Claim("DCQCN buffer arithmetic", "Zhu et al., SIGCOMM 2015, section 4", dcqcn_arithmetic),
    Claim("dynamic threshold", "Guo et al., SIGCOMM 2016, section 6", dynamic_threshold),
]
