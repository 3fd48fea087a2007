"""HPCC keeps queues near zero where DCQCN fills buffers.

Li et al., "HPCC: High Precision Congestion Control", SIGCOMM 2019, section 5: incasts at 100 Gb/s,
switches of 32 MB, eta 0.95: hardly any queue, no pauses; DCQCN with the settings the authors used
in production has long queues and pauses. There a fabric of 320 hosts, here one switch.
"""

from __future__ import annotations

from typing import NamedTuple

from eval.validate.published.claim import Claim, Verdict, bulk
from roce_gym.config import validate_scenario
from roce_gym.fabric import Fabric

_HPCC_HEADER_BYTES, _HPCC_ACK_BYTES = 62 + 42, 66 + 42  # telemetry included


class Incast(NamedTuple):
    """Of the queue to the receiver, after 1 ms; pause frames of all 5 ms; payload received."""

    mean_queue_bytes: float
    pauses: int
    goodput_gbps: float


def incast(cc: str, senders: int) -> Incast:
    """Flows without end from `senders` hosts to one, all begun at once."""
    frames = {"header_bytes": _HPCC_HEADER_BYTES, "ack_bytes": _HPCC_ACK_BYTES}
    scenario = {
        "name": "incast",
        "topology": {"kind": "star", "hosts": senders + 1, "host_rate_gbps": 100},
        "switch": {"buffer_bytes": 32 * 2**20},
        "nic": {"mtu_bytes": 1000, "ack_every": 1} | (frames if cc == "hpcc" else {}),
        "preset": "hpcc_production",
        "tenants": [
            {
                "name": "all",
                "hosts": list(range(senders + 1)),
                "cc": cc,
                "jobs": bulk([(src, 0) for src in range(1, senders + 1)]),
            }
        ],
    }
    fabric = Fabric(validate_scenario(scenario), 1)
    early, late = fabric.advance(us=1_000), fabric.advance(us=4_000)
    return Incast(
        float(late.queue_mean_bytes.max()),
        int(early.pause_frames.sum() + late.pause_frames.sum()),
        float(late.delivered_bytes.sum()) * 8 / 4e6,
    )


def near_zero_queue() -> list[Verdict]:
    """Queues, pauses and goodput of both on the same load."""
    verdicts = []
    for senders in (16, 64):
        hpcc, dcqcn = incast("hpcc", senders), incast("dcqcn", senders)
        verdicts.append(
            Verdict(
                f"{senders} to 1: HPCC has next to no queue, DCQCN a long one",
                f"{hpcc.mean_queue_bytes / 1e3:.1f}, {dcqcn.mean_queue_bytes / 1e3:,.0f} KB",
                "< 10 KB, 1 % of DCQCN's",
                hpcc.mean_queue_bytes < min(10_000, 0.01 * dcqcn.mean_queue_bytes),
            )
        )
    verdicts += [
        Verdict(
            "64 to 1: HPCC does without pauses, DCQCN does not",
            f"{hpcc.pauses} and {dcqcn.pauses}",
            "0, > 0",
            hpcc.pauses == 0 and dcqcn.pauses > 0,
        ),
        Verdict(
            "64 to 1: and loses little throughput",
            f"{hpcc.goodput_gbps:.1f}, {dcqcn.goodput_gbps:.1f} Gb/s",
            "> 90 % of DCQCN's",
            hpcc.goodput_gbps > 0.9 * dcqcn.goodput_gbps,
        ),
    ]
    return verdicts


CLAIMS = [Claim("HPCC near-zero queue", "Li et al., SIGCOMM 2019, section 5", near_zero_queue)]
