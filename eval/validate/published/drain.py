"""Beyond some number of flows DCQCN cannot drain an incast: additive increases fill the queue.

Gao et al., "DCQCN+: Taming Large-Scale Incast Congestion in RDMA over Ethernet Networks", ICNP
2018: 8 senders in ns-3, at about 80 flows with 10 Gb/s and 160 flows with 40 Gb/s, with the
parameters of the DCQCN paper.
"""

from __future__ import annotations

from eval.validate.published.claim import Claim, Verdict, scenario_of, steady

_SENDERS = 8
_KMIN_BYTES, _KMAX_BYTES, _PMAX = 5_000, 200_000, 0.01  # the DCQCN paper's, at either rate
_STEP = 10
_MOST_FLOWS = 400
_TOLERANCE = 0.25


def _standing_queue_bytes(rate_gbps: float, flows: int) -> float:
    scenario = scenario_of(
        _SENDERS + 1,
        [(i % _SENDERS, _SENDERS) for i in range(flows)],
        "dcqcn_paper",
        topology={"kind": "star", "hosts": _SENDERS + 1, "host_rate_gbps": rate_gbps},
        switch={"buffer_bytes": 32 * 2**20},
        nic={"mtu_bytes": 1024, "cnp_interval_us": 50},
        classes=[
            {
                "name": "roce",
                "ecn": {"kmin_bytes": _KMIN_BYTES, "kmax_bytes": _KMAX_BYTES, "pmax": _PMAX},
            }
        ],
    )
    _, interval = steady(scenario, 1, warm_us=100_000, us=100_000)
    return float(interval.queue_mean_bytes.max())


def _fewest_not_drained(rate_gbps: float) -> int:
    """Fewest flows whose standing queue is beyond kmax, where every packet is marked already."""
    for flows in range(_STEP, _MOST_FLOWS, _STEP):
        if _standing_queue_bytes(rate_gbps, flows) > _KMAX_BYTES:
            return flows
    return _MOST_FLOWS


def drain_failure() -> list[Verdict]:
    """Flows at which the standing queue passes kmax."""
    verdicts = []
    for rate_gbps, claimed, binding, note in (
        (40.0, 160, True, ""),
        (10.0, 80, False, "ours grows with the line rate; their increase at 10 Gb/s is not known"),
    ):
        flows = _fewest_not_drained(rate_gbps)
        error = flows / claimed - 1
        verdicts.append(
            Verdict(
                f"{rate_gbps:g} Gb/s: fails at about {claimed} flows",
                f"{flows} flows ({error:+.0%})",
                f"+- {_TOLERANCE:.0%}",
                abs(error) <= _TOLERANCE,
                binding,
                note,
            )
        )
    return verdicts


CLAIMS = [Claim("DCQCN drain failure", "Gao et al. (DCQCN+), ICNP 2018", drain_failure)]
