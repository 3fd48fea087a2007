"""Maps of DSCPs and priorities by hand: where packets are counted, and who is paused."""

from __future__ import annotations

import pytest
from test_hand_computed import FRAME, NO_ECN, PAYLOAD, build, ends, flow, flows, tenant

from roce_gym.sim import kernels

pytestmark = pytest.mark.nojit

ROCE, STORAGE, BULK = range(3)
CLASSES = [
    {"name": "roce", "priority": 3, "dscp": 26},
    {"name": "storage", "priority": 4},
    {"name": "bulk", "priority": 0, "lossless": False},
]
DUMBBELL = {"kind": "dumbbell", "hosts_per_side": 2, "trunk_rate_gbps": 100}
"""Hosts 0, 1 at switch 4; 2, 3 at switch 5. Host i sends on link 2i; link 8 is 4 -> 5."""


def fabric_of(maps, *given, classes=CLASSES, dumbbell=True, **fields):
    jobs = [flows(*(given or [flow(0, 2, 3 * PAYLOAD)]))]
    tenants = [tenant("a", jobs, (0, 1, 2)) | fields]
    topology = {"topology": DUMBBELL} if dumbbell else {}
    return build(tenants=tenants, classes=classes, switch={"dscp": maps}, **topology)


def by_class(fabric, *links, us=100):
    return fabric.advance(us=us).tx_packets[list(links)].tolist()


def test_an_entry_moves_packets_from_the_switch_on_that_has_it():
    # Data on links 0, 8, 5 and the ACK, which has the DSCP of the data, on 4, 9, 1.
    fabric = fabric_of({"map": {26: "roce"}, "overrides": [{"switches": [5], "map": {26: "bulk"}}]})
    assert by_class(fabric, 0, 8, 5, 4, 9, 1) == [
        [3, 0, 0],
        [3, 0, 0],
        [0, 0, 3],
        [1, 0, 0],
        [0, 0, 1],
        [1, 0, 0],
    ]


@pytest.mark.parametrize(
    ("maps", "expected"),
    [
        ({}, BULK),  # 26 // 8 is priority 3, but the tenant's 7 is priority 0
        ({"default": "storage"}, STORAGE),
        ({"map": {7: "roce"}, "default": "storage"}, ROCE),
        ({"overrides": [{"tier": "switch", "default": "storage"}]}, STORAGE),
        (
            {
                "map": {7: "bulk"},
                "default": "bulk",
                "overrides": [
                    {"switches": [4], "map": {7: "roce"}},
                    {"switches": [4], "inherit": False, "map": {8: "roce"}, "default": "storage"},
                ],
            },
            STORAGE,
        ),
    ],
)
def test_a_tenants_own_dscp_goes_through_map_then_default_then_its_eighth(maps, expected):
    fabric = fabric_of(maps, dscp=7)
    row = [0, 0, 0]
    row[expected] = 3
    assert by_class(fabric, 0, 8) == [[3, 0, 0], row]


def test_acks_and_cnps_have_the_dscp_of_their_class():
    jobs = [flows(flow(0, 2, 3 * PAYLOAD))]
    fabric = build(
        tenants=[tenant("a", jobs, (0, 1, 2)) | {"dscp": 7}],
        classes=CLASSES,
        topology=DUMBBELL,
        nic={"ack_class": "storage"},
        switch={"dscp": {"map": {7: "bulk", 32: "roce"}}},  # 32: 8 x storage's priority
    )
    assert by_class(fabric, 0, 8, 4, 9) == [[3, 0, 0], [0, 0, 3], [0, 1, 0], [1, 0, 0]]


def test_a_map_that_agrees_with_the_senders_costs_nothing():
    fabric = fabric_of({"map": {26: "roce"}, "overrides": [{"tier": "switch"}]})
    plain = build(flows(flow(0, 2, 3 * PAYLOAD)), hosts=4, topology=DUMBBELL)
    assert len(fabric._state.class_at) == 0
    assert ends(fabric.advance(us=100)) == ends(plain.advance(us=100))
    assert kernels.is_plain(fabric_of({}, classes=CLASSES[:2])._state)
    assert not kernels.is_plain(fabric_of({"map": {26: "storage"}}, classes=CLASSES[:2])._state)


SMALL = {"static_threshold_bytes": 2 * FRAME, "reserved_bytes": 0}
PAUSING = [c | {"buffer": SMALL} for c in CLASSES]
TWO_TO_ONE = (flow(0, 2, 40 * PAYLOAD), flow(1, 2, 40 * PAYLOAD))


def test_lossless_packets_are_dropped_where_they_fall_into_a_lossy_class():
    usual = fabric_of({}, *TWO_TO_ONE, classes=PAUSING, dumbbell=False).advance(us=60)
    assert usual.dropped_packets.sum() == 0 and usual.pause_frames[:, ROCE].sum() > 0
    lossy = fabric_of({"map": {26: "bulk"}}, *TWO_TO_ONE, classes=PAUSING, dumbbell=False)
    found = lossy.advance(us=60)
    assert found.pause_frames.sum() == 0
    assert found.dropped_packets[[0, 2], BULK].sum() == found.dropped_packets.sum() > 0


@pytest.mark.parametrize("dscp", [{"map": {26: "storage"}}, {"overrides": [{"tier": "switch"}]}])
def test_another_priority_is_paused_which_does_not_help(dscp):
    # Once because packets are taken as storage, once because frames for roce carry its priority.
    if "overrides" in dscp:
        dscp["overrides"][0]["priorities"] = {"roce": 4, "storage": 3}
    found = fabric_of(dscp, *TWO_TO_ONE, classes=PAUSING, dumbbell=False).advance(us=60)
    assert found.paused_ps[[0, 2], STORAGE].min() > 0
    assert found.paused_ps[:, ROCE].sum() == 0
    assert found.dropped_packets.sum() > 0  # headroom is for those who heed a pause


def test_a_priority_that_the_other_end_has_not_is_not_heard():
    dscp = {"overrides": [{"tier": "switch", "priorities": {"roce": 6}}]}
    found = fabric_of(dscp, *TWO_TO_ONE, classes=PAUSING, dumbbell=False).advance(us=60)
    assert found.pause_frames[:, ROCE].sum() > 0
    assert found.paused_ps.sum() == 0 and found.dropped_packets.sum() > 0


def test_a_priority_of_a_lossy_class_is_not_heard_either():
    dscp = {"overrides": [{"tier": "switch", "priorities": {"roce": 0, "bulk": 7}}]}
    found = fabric_of(dscp, *TWO_TO_ONE, classes=PAUSING, dumbbell=False).advance(us=60)
    assert found.pause_frames[:, ROCE].sum() > 0 and found.paused_ps.sum() == 0


def test_marking_follows_the_class_in_which_a_switch_takes_a_packet():
    classes = [c | {"ecn": NO_ECN} for c in CLASSES]
    classes[BULK] = CLASSES[BULK] | {"ecn": {"kmin_bytes": 0, "kmax_bytes": 0, "pmax": 1}}
    found = fabric_of({"map": {26: "bulk"}}, *TWO_TO_ONE, classes=classes, dumbbell=False)
    marks = found.advance(us=60).ecn_marked_packets
    assert marks[5, BULK] > 0 and marks.sum() == marks[5, BULK]
