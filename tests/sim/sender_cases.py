"""Random parameters of sender algorithms other than DCQCN."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from numba import njit

from roce_gym.user_sender import ACK, CNP, NACK, TIMER, TX


def timely(r: random.Random) -> dict[str, Any]:
    low = r.choice([1, 2, 5, 20])
    return {
        "enabled": r.random() < 0.9,
        "t_low_us": low,
        "t_high_us": low * r.choice([1, 3, 30]),
        "min_rtt_us": r.choice([0.5, 3, 20]),
        "ewma_weight": r.choice([0.2, 0.875, 1]),
        "beta": r.choice([0, 0.3, 0.8, 1]),
        "rate_ai_mbps": r.choice([10, 700, 5_000]),
        "rate_hai_mbps": r.choice([50, 9_000]),
        "hai_after": r.choice([0, 2, 5]),
        "min_rate_mbps": r.choice([300, 1_000, 7_000, 50_000]),
        "max_rate_mbps": r.choice([0, 0, 0, 900, 12_000, 90_000]),
    }


def hpcc(r: random.Random) -> dict[str, Any]:
    return {
        "enabled": r.random() < 0.9,
        "target_utilisation": r.choice([0.3, 0.95, 1]),
        "max_stage": r.choice([0, 1, 5]),
        "rate_ai_mbps": r.choice([10, 700, 5_000]),
        "min_rate_mbps": r.choice([300, 1_000, 7_000, 50_000]),
        "max_rate_mbps": r.choice([0, 0, 0, 900, 12_000, 90_000]),
        "tx_unit_bytes": r.choice([1, 128, 512]),
        "queue_unit_bytes": r.choice([1, 80, 1_280]),
    }


def swift(r: random.Random) -> dict:
    return {
        "enabled": r.random() < 0.9,
        "base_target_us": r.choice([2, 6, 20]),
        "hop_target_us": r.choice([0, 0.7, 3]),
        "endpoint_target_us": r.choice([0.2, 2, 20]),
        "fs_range_us": r.choice([0, 4, 40]),
        "fs_min_cwnd": r.choice([0.1, 0.5]),
        "fs_max_cwnd": r.choice([4, 100]),
        "ai": r.choice([0.3, 1, 5]),
        "beta": r.choice([0.2, 0.8, 1]),
        "max_mdf": r.choice([0.1, 0.5, 0.9]),
        "retransmit_reset": r.choice([1, 2, 5]),
        "initial_cwnd": r.choice([0.5, 1, 10]),
        "min_cwnd": r.choice([0.01, 0.2]),
        "max_cwnd": r.choice([10, 40, 1000]),
        "max_rate_mbps": r.choice([0, 0, 7_000]),
    }


def rtt(r: random.Random) -> dict:
    return {
        "enabled": r.random() < 0.9,
        "target_us": r.choice([1, 6, 20]),
        "gain": r.choice([0.1, 0.8, 1]),
        "rate_ai_mbps": r.choice([10, 500, 20_000]),
        "min_rate_mbps": r.choice([100, 3_000]),
        "max_rate_mbps": r.choice([0, 0, 7_000]),
    }


def reno(r: random.Random) -> dict:
    return {
        "enabled": r.random() < 0.9,
        "initial_window_bytes": r.choice([1, 3_000, 14_600]),
        "initial_ssthresh_bytes": r.choice([0, 0, 9_000]),
        "max_window_bytes": r.choice([20_000, 200_000, 4_194_304]),
        "additive_packets": r.choice([0.2, 1, 4]),
        "loss_factor": r.choice([0.1, 0.5, 0.9]),
        "max_rate_mbps": r.choice([0, 0, 7_000]),
    }


def dctcp(r: random.Random) -> dict:
    return reno(r) | {"g": r.choice([1 / 16, 0.5, 1]), "initial_alpha": r.choice([0, 0.4, 1])}


@njit
def of_ones_own(event, state, params):
    """Uses every kind of event and every field, in no sensible way."""
    kind, rate = event["kind"], event["rate"]
    state[kind] += 1.0
    if kind == TIMER:
        event["timer_ps"] = int(params[0]) if state[TIMER] % 7 != 0 else -1
        return rate * 1.1 + params[1]
    if kind == CNP:
        event["timer_ps"] = int(params[0])
        return rate * params[2]
    if kind == NACK:
        return 0.01 * rate
    if kind == TX and state[TX] % 16 == 0:
        return rate + 1e-6 * event["bytes"]
    if kind == ACK:
        if state[ACK] == 1:
            event["timer_ps"] = 2 * int(params[0])
        if event["rtt_ps"] > params[3]:
            return rate * (0.8 + (event["acked_bytes"] % 7) / 100)
    return rate


def user(r: random.Random) -> dict:
    times = [r.choice([90_000, 900_000, 7_000_000]), r.choice([0.001, 0.1]), r.choice([0.2, 0.9])]
    return {
        "enabled": r.random() < 0.9,
        "function": of_ones_own,
        "params": [*times, r.choice([5e6, 2e7])],
        "min_rate_mbps": r.choice([100, 3_000]),
        "max_rate_mbps": r.choice([0, 0, 7_000]),
    }


def credit(r: random.Random) -> dict:
    return {
        "enabled": r.random() < 0.9,
        "initial_window_bytes": r.choice([1, 5_000, 100_000]),
        "credit_bytes": r.choice([500, 4_096, 10_000]),
        "host_window_bytes": r.choice([1_000, 20_000, 150_000]),
        "pace": r.choice([0.3, 0.99, 1]),
        "max_rate_mbps": r.choice([0, 0, 7_000]),
    }


def int_throttle(r: random.Random) -> dict:
    start = r.choice([0, 0.05, 0.3, 0.6])
    return {
        "enabled": r.random() < 0.9,
        "start_fraction": start,
        "full_fraction": r.choice([start + 0.01, 0.8, 1]),
        "gain": r.choice([0.2, 0.8, 1]),
        "rate_ai_mbps": r.choice([10, 500, 20_000]),
        "min_rate_mbps": r.choice([100, 3_000, 50_000]),
        "max_rate_mbps": r.choice([0, 0, 7_000]),
        "update_interval_us": r.choice([0.5, 3, 10]),
    }


def none(r: random.Random) -> dict:
    return {"enabled": r.random() < 0.9, "max_rate_mbps": r.choice([0, 0, 7_000])}


DRAWN: dict[str, Callable[[random.Random], dict[str, Any]]] = {
    "timely": timely,
    "hpcc": hpcc,
    "swift": swift,
    "rtt": rtt,
    "dctcp": dctcp,
    "reno": reno,
    "user": user,
    "credit": credit,
    "int_throttle": int_throttle,
    "none": none,
}
