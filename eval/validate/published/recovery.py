"""Go-back-0 never finishes a long message on a cable that loses packets.

Guo et al., "RDMA over Commodity Ethernet at Scale", SIGCOMM 2016, section 4.1: messages of 4 MB, a
switch that drops one packet in 256, links of 40 Gb/s: the link is full, goodput is zero; go-back-N
cures it. Selective repeat: Mittal et al., "Revisiting Network Support for RDMA", SIGCOMM 2018.
"""

from __future__ import annotations

from typing import NamedTuple

from eval.validate.published.claim import Claim, Verdict
from roce_gym.config import validate_scenario
from roce_gym.fabric import Fabric

_MESSAGE_BYTES = 4 * 2**20
_RATE_GBPS = 40.0
_LOSS = 1 / 256


class Goodput(NamedTuple):
    """Gb/s of payload in complete messages, and of frames sent."""

    complete_gbps: float
    sent_gbps: float


def messages(recovery: str, loss: float, us: float = 20_000) -> Goodput:
    """One message of 4 MiB after another over a cable that loses packets at random."""
    selective = recovery == "selective_repeat"
    scenario = {
        "name": "livelock",
        "topology": {"kind": "star", "hosts": 2, "host_rate_gbps": _RATE_GBPS},
        "nic": {
            "mtu_bytes": 1024,
            "recovery": recovery,
            "out_of_order": selective,
            "reorder_wait_us": 0,
            "retransmit_timeout_us": 1048.576,
            "nack_interval_us": 20,
        },
        "preset": "pfc_only",
        "link_events": [{"kind": "lossy", "between": [2, 0], "direction": "forward", "loss": loss}],
        "tenants": [
            {
                "name": "only",
                "hosts": [0, 1],
                "jobs": [{"kind": "incast", "bytes": _MESSAGE_BYTES, "degree": 1, "period_us": 1}],
            }
        ],
    }
    fabric = Fabric(validate_scenario(scenario))
    interval = fabric.advance(us=us)
    sent = interval.tx_bytes[fabric.network.host_link[1], 0]
    gbps = 8 / (us * 1000)
    return Goodput(len(interval.completions) * _MESSAGE_BYTES * gbps, float(sent) * gbps)


def livelock() -> list[Verdict]:
    """Goodput with each way of repeating what was lost."""
    go_back_0, go_back_n, selective = (
        messages(recovery, _LOSS) for recovery in ("go_back_0", "go_back_n", "selective_repeat")
    )
    healthy = messages("go_back_0", 0.0)
    return [
        Verdict(
            "go-back-0: the link is full, goodput is 0",
            f"{go_back_0.complete_gbps:.1f} of {go_back_0.sent_gbps:.1f} Gb/s",
            "0, 75 % of the rate",
            go_back_0.complete_gbps == 0 and go_back_0.sent_gbps > 0.75 * _RATE_GBPS,
        ),
        Verdict(
            "go-back-0 without loss: as any other",
            f"{healthy.complete_gbps:.1f} Gb/s",
            "75 % of the rate",
            healthy.complete_gbps > 0.75 * _RATE_GBPS,
        ),
        Verdict(
            "go-back-N: no livelock",
            f"{go_back_n.complete_gbps:.1f} Gb/s",
            "half of the rate",
            go_back_n.complete_gbps > 0.5 * _RATE_GBPS,
        ),
        Verdict(
            "selective repeat: better than go-back-N",
            f"{selective.complete_gbps:.1f} Gb/s",
            "more, 80 % of the rate",
            selective.complete_gbps > max(go_back_n.complete_gbps, 0.8 * _RATE_GBPS),
        ),
    ]


CLAIMS = [Claim("go-back-0 livelock", "Guo et al., SIGCOMM 2016, section 4.1", livelock)]
