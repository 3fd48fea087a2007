import dataclasses

import numpy as np
import pytest
from small import TWO, make_interval, parts

from roce_gym.observation import (
    DROP_TOP_PER_S,
    DROP_UNIT_PER_S,
    PAUSE_TOP_PER_S,
    PAUSE_UNIT_PER_S,
    QUEUE_UNIT,
    Observation,
)
from roce_gym.switch_observation import (
    POLLED_SIGNALS,
    SIGNALS,
    EyesOnSwitches,
    PolledSwitchObservation,
    SwitchObservation,
)

SCENARIO, NETWORK, PLAN = parts(TWO)
LINKS, CLASSES = NETWORK.num_links, 2
OF_LINK = ("queue_max_bytes", "tx_bytes", "tx_packets", "ecn_marked_packets", "paused_ps")
TRUNK = 12
"""From switch 6 to switch 7; hosts 0, 1, 2 send to switch 6 on links 0, 2, 4."""


def table(*changes):
    """Shape (L, C), zeros but for (link, class, value)."""
    out = np.zeros((LINKS, CLASSES), np.int64)
    for link, cls, value in changes:
        out[link, cls] = value
    return out


def interval(start_us=0.0, end_us=100.0, **fields):
    return make_interval(SCENARIO, NETWORK, PLAN, start_us, end_us, **fields)


def seen(eyes, **fields):
    return dict(zip(eyes.names, eyes(interval(**fields)).tolist(), strict=True))


def log_share(value, unit, top):
    return pytest.approx(np.log1p(value / unit) / np.log1p(top / unit), rel=1e-5)


def test_names():
    eyes = SwitchObservation(SCENARIO, NETWORK)
    own = [f"{cls}/{signal}" for cls in ("gold", "lead") for signal in SIGNALS] + ["buffer"]
    assert eyes.names == tuple(f"switch {n}/{name}" for n in (6, 7) for name in own)
    assert eyes.num_measured == 42
    polled = PolledSwitchObservation(SCENARIO, NETWORK)
    assert polled.num_measured == 2 * 2 * len(POLLED_SIGNALS) == 36


BY_PORT = [
    field.name
    for field in dataclasses.fields(interval())
    if np.shape(getattr(interval(), field.name)) == (LINKS, CLASSES)
]
AT_THE_FAR_END = ("dropped_packets", "ingress_bytes")
AT_BOTH_ENDS = ("pause_frames",)
BESIDE = {"tx_packets": "ecn_marked_packets", "ecn_marked_packets": "tx_packets"}
"""Of a fraction, both parts are needed."""


def ends_of(link, field):
    """Switches that see what a counter of a link says."""
    src, dst = int(NETWORK.link_src[link]), int(NETWORK.link_dst[link])
    if field in AT_BOTH_ENDS:
        return {src, dst} & {6, 7}
    if field in AT_THE_FAR_END:
        return {dst} & {6, 7}
    return {src} & {6, 7} if field in (*OF_LINK, "queue_mean_bytes") else set()


@pytest.mark.parametrize("field", BY_PORT)
def test_a_switch_sees_nothing_but_its_own_ports(field):
    eyes = SwitchObservation(SCENARIO, NETWORK)
    quiet, as_it_is = eyes(interval()), getattr(interval(), field)
    for link in range(LINKS):
        for cls, name in enumerate(("gold", "lead")):
            fields = {BESIDE[field]: table((link, cls, 9))} if field in BESIDE else {}
            fields[field] = as_it_is.copy()
            fields[field][link, cls] = 5_000
            found = np.flatnonzero(eyes(interval(**fields)) != quiet)
            entries = [eyes.names[i].split("/") for i in found]
            assert {entry[0] for entry in entries} == {
                f"switch {node}" for node in ends_of(link, field)
            }
            assert {entry[1] for entry in entries} <= {name, "buffer"}


def test_values():
    # 100 us at 100 Gb/s are 1,250,000 bytes; a switch has four ports, and 1,000,000 bytes.
    eyes = SwitchObservation(SCENARIO, NETWORK)
    found = seen(
        eyes,
        tx_bytes=table((TRUNK, 0, 1_000_000), (1, 0, 250_000), (1, 1, 9)),
        tx_packets=table((TRUNK, 0, 240), (1, 0, 60)),
        ecn_marked_packets=table((TRUNK, 0, 75)),
        queue_max_bytes=table((TRUNK, 0, 40_000), (1, 0, 90_000), (TRUNK + 1, 0, 7)),
        queue_mean_bytes=table((TRUNK, 0, 20_000)).astype(float),
        pause_frames=table((0, 0, 3), (TRUNK, 0, 4), (TRUNK + 1, 0, 1)),
        paused_ps=table((TRUNK, 0, 60_000_000), (0, 0, 99_000_000)),
        dropped_packets=table((2, 0, 2), (TRUNK, 0, 5)),
        ingress_bytes=table((0, 0, 100_000), (4, 1, 50_000), (TRUNK, 0, 7_000)),
    )
    at_6 = {k.removeprefix("switch 6/gold/"): v for k, v in found.items() if "6/gold" in k}
    assert at_6 == {
        "queue_max": log_share(0.09, QUEUE_UNIT, 1.0),
        "queue_mean": log_share(0.02, QUEUE_UNIT, 1.0),
        "marked_fraction": pytest.approx(0.25),
        "utilisation": pytest.approx(1.0 / 4),
        "utilisation_max": pytest.approx(0.8),
        # Sent to host 0 and to switch 7: 4 frames; received from switch 7: 4.
        "pause_frames": log_share(4 / 4 / 1e-4, PAUSE_UNIT_PER_S, PAUSE_TOP_PER_S),
        "pauses_received": log_share(4 / 4 / 1e-4, PAUSE_UNIT_PER_S, PAUSE_TOP_PER_S),
        "paused": pytest.approx(0.15),
        "paused_max": pytest.approx(0.6),
        "drops": log_share(2 / 1e-4, DROP_UNIT_PER_S, DROP_TOP_PER_S),
    }
    assert found["switch 6/buffer"] == pytest.approx(0.15)
    assert found["switch 7/buffer"] == pytest.approx(0.007)
    assert found["switch 7/gold/pauses_received"] == log_share(
        1 / 4 / 1e-4, PAUSE_UNIT_PER_S, PAUSE_TOP_PER_S
    )


def busy(rng, start_us, end_us):
    return interval(
        start_us,
        end_us,
        tx_bytes=rng.integers(0, 10**6, (LINKS, CLASSES)),
        tx_packets=rng.integers(100, 200, (LINKS, CLASSES)),
        ecn_marked_packets=rng.integers(0, 100, (LINKS, CLASSES)),
        queue_max_bytes=rng.integers(0, 10**5, (LINKS, CLASSES)),
        pause_frames=rng.integers(0, 9, (LINKS, CLASSES)),
        paused_ps=rng.integers(0, 5 * 10**7, (LINKS, CLASSES)),
        dropped_packets=rng.integers(0, 9, (LINKS, CLASSES)),
    )


def polled_every(us):
    polling = SCENARIO.control.polling.model_copy(update={"switch_us": us})
    control = SCENARIO.control.model_copy(update={"polling": polling})
    scenario = SCENARIO.model_copy(update={"control": control})
    return PolledSwitchObservation(scenario, NETWORK)


def test_polled_in_every_interval_is_what_was_measured():
    full, polled = SwitchObservation(SCENARIO, NETWORK), polled_every(100.0)
    kept = [full.names.index(name) for name in polled.names]
    rng = np.random.default_rng(0)
    for i in range(3):
        one = busy(rng, 100 * i, 100 * (i + 1))
        assert polled(one) == pytest.approx(full(one)[kept], abs=1e-6)


def test_polled_counters_are_added_up__and_shown_until_the_next_poll():
    full, polled = SwitchObservation(SCENARIO, NETWORK), polled_every(200.0)
    kept = [full.names.index(name) for name in polled.names]
    rng = np.random.default_rng(1)
    first, second, third = (busy(rng, 100 * i, 100 * (i + 1)) for i in range(3))
    assert (polled(first) == 0).all()
    sums = {
        name: getattr(first, name) + getattr(second, name)
        for name in (*OF_LINK[1:], "pause_frames", "dropped_packets")
    }
    peak = {"queue_max_bytes": np.maximum(first.queue_max_bytes, second.queue_max_bytes)}
    both = interval(0, 200, **sums, **peak)
    shown = polled(second)
    assert shown == pytest.approx(full(both)[kept], abs=1e-6) and shown.any()
    assert (polled(third) == shown).all()
    assert (polled.at_start() == 0).all()
    assert (polled(first) == 0).all()


@pytest.mark.parametrize("kind", [SwitchObservation, PolledSwitchObservation])
def test_beside_the_fabric_as_a_whole(kind):
    whole = Observation(SCENARIO, NETWORK, PLAN)
    eyes = EyesOnSwitches(whole, kind(SCENARIO, NETWORK), ("a", "b"))
    split, one = len(whole.names), busy(np.random.default_rng(2), 0, 100)
    shown = eyes(one, [0.0, 1.0])
    assert shown.dtype == np.float32 and shown in eyes.space
    assert (shown[:split] == whole(one)).all()
    assert (shown[split:-2] == kind(SCENARIO, NETWORK)(one)).all()
    assert shown[-2:].tolist() == [0.5, 1.0] and eyes.names[-2:] == ("knob/a", "knob/b")
    assert eyes.num_measured == len(eyes.names) - 2
    off = eyes(one, [0.0, 1.0], np.full(eyes.num_measured, 0.5))
    assert (off[:split] == whole(one, (), 0.5)).all() and (off[-2:] == shown[-2:]).all()
    assert (off[split:-2] == kind(SCENARIO, NETWORK)(one, 0.5)).all()
    assert (eyes.at_start([0.0, 1.0])[:-2] == 0).all()
