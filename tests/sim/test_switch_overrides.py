"""Switches with settings of their own, by hand."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from test_hand_computed import FRAME, NO_ECN, PAYLOAD, build, flow, flows, tenant

from roce_gym.config import ClassOverride, ClassSettings, EcnConfig, SwitchOverride
from roce_gym.errors import ConfigError, TuningError
from roce_gym.fabric import Fabric

DUMBBELL = {"kind": "dumbbell", "hosts_per_side": 3, "trunk_rate_gbps": 100}
"""Hosts 0, 1, 2 at switch 6; 3, 4, 5 at switch 7. Host i sends on link 2i; link 12 is 6 -> 7."""

TO_HOST_2, TO_HOST_5, TRUNK = 5, 11, 12
TWICE = [flow(src, 2, 4 * PAYLOAD) for src in (0, 1)] + [
    flow(src, 5, 4 * PAYLOAD) for src in (3, 4)
]
"""The same at both switches: two hosts send four packets each to a third one.

When the k-th of the eight packets leaves for it, 2k - k are left in the queue as long as some
arrive, but for the first, which leaves before the other one of its time is there; then one less
each time: 0, 2, 3, 4, 3, 2, 1, 0.
"""


def above(frames):
    """Marks all packets that leave more than so many behind."""
    threshold = round(frames * FRAME)
    return {"kmin_bytes": threshold, "kmax_bytes": threshold, "pmax": 1.0}


def fabric_of(*overrides, given=TWICE, classes=None, **switch):
    return build(
        tenants=[tenant("a", [flows(*given)], range(6))],
        topology=DUMBBELL,
        classes=classes or [{"ecn": above(2.5)}],
        switch={"overrides": list(overrides)} | switch,
    )


def marks(fabric):
    return fabric.advance(us=100).ecn_marked_packets[:, 0]


@pytest.mark.nojit
def test_the_switch_with_the_lower_kmin_marks_first():
    at_7 = {"switches": [7], "classes": {"roce": {"ecn": above(1.5)}}}
    found = marks(fabric_of(at_7))
    assert found[[TO_HOST_2, TO_HOST_5]].tolist() == [3, 5] and found.sum() == 8


@pytest.mark.nojit
def test_settings_by_switch_change_while_the_fabric_runs():
    fabric = fabric_of({"tier": "switch", "classes": {"roce": {"ecn": NO_ECN}}})
    first = fabric.settings
    at_6 = SwitchOverride(switches=(6,), classes={"roce": ClassOverride(ecn=above(3.5))})
    before = fabric.snapshot()
    fabric.apply(first.model_copy(update={"switch_overrides": (at_6,)}))
    assert marks(fabric)[[TO_HOST_2, TO_HOST_5]].tolist() == [1, 3]
    fabric.restore(before)
    assert fabric.settings == first
    assert marks(fabric).sum() == 0
    fabric.restore(before)
    fabric.apply(first.model_copy(update={"switch_overrides": ()}))
    assert marks(fabric)[[TO_HOST_2, TO_HOST_5]].tolist() == [3, 3]


@pytest.mark.nojit
def test_the_last_override_of_a_switch_holds_part_by_part():
    found = marks(
        fabric_of(
            {"tier": "switch", "classes": {"roce": {"ecn": above(0.5)}}},
            {"switches": [6, 7], "classes": {"roce": {"alpha": 0.5}}},
            {"switches": [6], "classes": {"roce": {"ecn": above(3.5)}}},
        )
    )
    assert found[[TO_HOST_2, TO_HOST_5]].tolist() == [1, 6]


@pytest.mark.nojit
def test_a_switch_with_a_lower_threshold_pauses_its_senders():
    # Two frames of one sender, of which half of the four come to wait, pass 4,096 bytes of reserve
    # and one frame; elsewhere they do not pass an eighth of the buffer.
    at_7 = {"switches": [7], "classes": {"roce": {"static_threshold_bytes": FRAME}}}
    interval = fabric_of(at_7).advance(us=100)
    paused = np.flatnonzero(interval.pause_frames[:, 0]).tolist()
    assert paused == [6, 8]  # hosts 3 and 4
    assert (interval.paused_ps[paused, 0] > 0).all()


def test_thresholds_grow_with_the_rates_of_ports_as_those_of_classes():
    trunk = {"kind": "dumbbell", "hosts_per_side": 3, "trunk_rate_gbps": 400}
    own = {"ecn": above(3.0), "alpha": 0.2, "reserved_bytes": 7_000}
    fabric = build(
        tenants=[tenant("a", [flows(*TWICE)], range(6))],
        topology=trunk,
        switch={
            "overrides": [{"switches": [7], "classes": {"roce": own}}],
            "alpha_scales_with_rate": True,
        },
    )
    state = fabric._state
    kmin = state.queue["kmin"].reshape(-1, 2)[:, 1]
    never = np.iinfo(np.int32).max
    assert kmin[[TO_HOST_2, TRUNK]].tolist() == [never, never]
    assert kmin[[TO_HOST_5, TRUNK + 1]].tolist() == [3 * FRAME, 12 * FRAME]
    ingress = state.ingress.reshape(-1, 2)[:, 1]
    into = [0, TRUNK + 1, 6, TRUNK]  # from host 0 and the trunk into 6, from host 3 and it into 7
    assert ingress["alpha"][into] == pytest.approx([0.125, 0.5, 0.2, 0.8])
    assert ingress["reserved"][into].tolist() == [4_096, 4_096, 7_000, 7_000]
    # The shared buffer is what headroom and reserve leave.
    headroom = ingress["headroom"].astype(np.int64)
    buffer = fabric.scenario.switch.buffer_bytes
    assert state.switch["pool"].tolist() == [
        buffer - headroom[[0, 2, 4, TRUNK + 1]].sum() - 4 * 4_096,
        buffer - headroom[[6, 8, 10, TRUNK]].sum() - 4 * 7_000,
    ]


def same(ours, theirs):
    """Whether two intervals are equal, bit for bit."""
    return all(
        np.asarray(getattr(ours, field.name)).tobytes()
        == np.asarray(getattr(theirs, field.name)).tobytes()
        for field in dataclasses.fields(ours)
        if field.name not in ("deadlock", "latency")
    )


@pytest.mark.parametrize("by", ["tier", "switches"])
def test_the_same_for_all_switches_is_the_same_as_for_the_class(by):
    given = [flow(src, 5, 60 * PAYLOAD) for src in (0, 1, 2, 3)]
    chosen = ClassSettings(
        ecn=EcnConfig(kmin_bytes=9_000, kmax_bytes=60_000, pmax=0.4),
        buffer={"alpha": 0.01, "reserved_bytes": 5_000},
    )
    which = [{"tier": "switch"}] if by == "tier" else [{"switches": [7]}, {"switches": [6]}]
    everywhere = tuple(
        SwitchOverride(**one, classes={"roce": ClassOverride.with_all_of(chosen)}) for one in which
    )
    ours, theirs, default = (fabric_of(given=given, buffer_bytes=400_000) for _ in range(3))
    ours.apply(ours.settings.model_copy(update={"switch_overrides": everywhere}))
    theirs.apply(theirs.settings.model_copy(update={"classes": {"roce": chosen}}))
    for _ in range(5):
        one, other, plain = (fabric.advance(us=20) for fabric in (ours, theirs, default))
        assert same(one, other) and not same(one, plain)
    assert one.pause_frames.sum() + one.ecn_marked_packets.sum() > 0


def test_a_reserve_must_fit_at_its_switch():
    fabric = fabric_of()
    too_much = SwitchOverride(
        switches=(7,), classes={"roce": ClassOverride(reserved_bytes=5_000_000)}
    )
    with pytest.raises(TuningError, match=r"reserve \(5000000 bytes a port\) and headroom exceed"):
        fabric.apply(fabric.settings.model_copy(update={"switch_overrides": (too_much,)}))
    assert fabric.settings.switch_overrides == ()
    assert marks(fabric)[[TO_HOST_2, TO_HOST_5]].tolist() == [3, 3]


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ({"classes": {}}, r"switch\.overrides\.0: .*exactly one of them"),
        (
            {"switches": [6], "tier": "switch", "classes": {}},
            r"switch\.overrides\.0: .*exactly one of them",
        ),
        (
            {"switches": [6], "classes": {"bulk": {}}},
            r"switch\.overrides\.0\.classes = 'bulk' is not a class; allowed: \['roce'\]",
        ),
        (
            {"switches": [3], "classes": {}},
            r"switch\.overrides\.0\.switches: node 3 is no switch; allowed: within 6 … 7",
        ),
        (
            {"tier": "leaf", "classes": {}},
            r"switch\.overrides\.0\.tier = 'leaf' does not exist; allowed: \['switch'\]",
        ),
        (
            {"switches": [6], "classes": {"roce": {"alpha": 1, "static_threshold_bytes": 5}}},
            r"alpha = 1.0 and static_threshold_bytes = 5 take each other's place",
        ),
        ({"switches": [6], "classes": {"roce": {"weight": 2}}}, "weight"),
    ],
)
def test_faults(override, message):
    with pytest.raises(ConfigError, match=message):
        fabric_of(override)


def test_a_preset_replaces_the_ecn_of_switches__not_their_buffers():
    own = {"roce": {"ecn": above(1.5), "alpha": 0.5}}
    fabric = fabric_of({"switches": [7], "classes": own})
    there = Fabric(fabric.scenario, preset="dcqcn_paper").settings.switch_overrides[0]
    assert there.classes == {"roce": ClassOverride(alpha=0.5)}


def test_an_unknown_class_in_settings():
    fabric = fabric_of()
    wrong = SwitchOverride(switches=(7,), classes={"bulk": ClassOverride()})
    with pytest.raises(TuningError, match=r"overrides\.0\.classes: 'bulk' is not a class"):
        fabric.apply(fabric.settings.model_copy(update={"switch_overrides": (wrong,)}))
