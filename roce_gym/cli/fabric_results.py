"""What the switches of a run saw."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from roce_gym.assembly.dscp import mismatches
from roce_gym.assembly.link_events import loss_causes
from roce_gym.cli.pfc_results import drops_by_cause, facing, leading, pfc_results
from roce_gym.cli.tally import Tally
from roce_gym.config import Scenario, Settings
from roce_gym.switch_settings import by_switch
from roce_gym.topology.graph import Network
from roce_gym.units import PS_PER_S, us_to_ps


def fabric_results(
    tally: Tally, scenario: Scenario, settings: Settings, network: Network
) -> dict[str, Any]:
    """What the switches saw.

    Precondition: one interval or more were added.
    """
    sums, seconds = tally.sums, tally.duration_ps / PS_PER_S
    out = network.from_switch
    into = network.into_switch
    names = [c.name for c in scenario.classes]
    frames = np.where(network.is_nvlink[:, None], 0, sums["pause_frames"])
    by_port = frames.sum(axis=1)
    worst = int(by_port.argmax())
    paused = sums["paused_ps"][into] / tally.duration_ps
    dropped, drops = drops_by_cause(tally, scenario, network)
    return {
        "pause_frames": int(frames.sum()),
        "pause_frames_per_s": float(frames.sum() / seconds),
        "pause_frames_per_s_and_port": float(frames[into].sum() / seconds / len(into)),
        "pause_frames_worst_port": facing(network, worst) if by_port[worst] else None,
        "pause_frames_of_worst_port": int(by_port[worst]),
        "paused_share_mean": float(paused.mean()),
        "paused_share_max": float(paused.max()),
        "ecn_marked_share": _share(sums["ecn_marked_packets"][out], sums["tx_packets"][out]),
        "dropped_packets": int(dropped.sum()),
        "drops": drops,
        "dscp_mismatches": mismatches(scenario, network),
        "lost_packets": int(sums["lost_packets"].sum()),
        "losses": _losses(tally, scenario, network),
        **_queue_results(tally, scenario, settings, network, out),
        "unreachable_queue_pairs": 0 if tally.last is None else tally.last.unreachable_qps,
        "cables_down": _cables_down(scenario, tally.duration_ps),
        "failed_queue_pairs": 0 if tally.last is None else tally.last.failed_qps,
        "events": tally.events,
        **pfc_results(tally, scenario, network),
        "classes": {
            name: {
                "pause_frames": int(frames[:, i].sum()),
                "paused_share_mean": float(paused[:, i].mean()),
                "paused_share_max": float(paused[:, i].max()),
                "ecn_marked_share": _share(
                    sums["ecn_marked_packets"][out, i], sums["tx_packets"][out, i]
                ),
                "dropped_packets": int(dropped[i]),
                "queue_max_bytes": int(tally.queue_max_bytes[out, i].max()),
            }
            for i, name in enumerate(names)
        },
    }


def _queue_results(
    tally: Tally, scenario: Scenario, settings: Settings, network: Network, out: NDArray[np.intp]
) -> dict[str, Any]:
    """The longest queue of any switch port, beside what it may be compared with."""
    queues = tally.queue_max_bytes[out]
    row, column = np.unravel_index(int(queues.argmax()), queues.shape)
    link, chosen = int(out[row]), scenario.classes[int(column)]
    ecn = by_switch(settings, network).at(int(network.link_src[link]))[chosen.name].ecn
    rate, host_rate = int(network.link_rate_bps[link]), network.host_rate_bps
    scale = rate / host_rate if scenario.switch.ecn_scales_with_rate else 1.0
    highest, buffer = int(queues[row, column]), scenario.switch.buffer_bytes
    return {
        "queue_max_bytes": highest,
        "queue_max_port": leading(network, link) if highest else None,
        "queue_max_class": chosen.name if highest else None,
        "queue_max_kmin_bytes": int(ecn.kmin_bytes * scale) if highest and ecn.enabled else None,
        "queue_max_kmax_bytes": int(ecn.kmax_bytes * scale) if highest and ecn.enabled else None,
        "queue_max_buffer_share": highest / buffer,
        "buffer_bytes": buffer,
    }


def _losses(tally: Tally, scenario: Scenario, network: Network) -> list[dict[str, Any]]:
    """Links that lost packets, and why, most first."""
    lost = tally.sums["lost_packets"]
    links = sorted(np.flatnonzero(lost).tolist(), key=lambda link: -int(lost[link]))
    causes = loss_causes(scenario, network, tally.duration_ps) if links else []
    return [
        {"port": leading(network, link), "packets": int(lost[link]), "cause": causes[link]}
        for link in links
    ]


def _cables_down(scenario: Scenario, now_ps: int) -> list[str]:
    """Fields of the scenario: link events by which a cable is down at the end."""
    return [
        f"link_events.{i}"
        for i, event in enumerate(scenario.link_events)
        if event.kind == "down"
        and us_to_ps(event.start_us) <= now_ps
        and (event.stop_us is None or now_ps < us_to_ps(event.stop_us))
    ]


def _share(part: NDArray[np.int64], whole: NDArray[np.int64]) -> float:
    return float(part.sum() / max(int(whole.sum()), 1))
