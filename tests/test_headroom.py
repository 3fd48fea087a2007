"""Headroom: both rules by hand, SONiC's against stock tables, and as settings of a class."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roce_gym.asics import ASICS
from roce_gym.assembly import build_state
from roce_gym.assembly.devices import headroom_bytes
from roce_gym.config import class_order, validate_scenario
from roce_gym.errors import ConfigError
from roce_gym.headroom import RESPONSE_QUANTA, simulator_headroom_bytes, sonic_headroom_bytes
from roce_gym.topology import build_network
from roce_gym.workload.planner import make_plan

SONIC = Path(__file__).resolve().parents[2] / "shared" / "samples" / "sonic"
SPECTRUM4 = {"cell_bytes": 192, "has_tiles": True}


def test_simulator_rule__by_hand():
    # 2 x 1 us x 100 Gb/s = 25,000 B on the cable, three frames, one pause.
    assert simulator_headroom_bytes(100 * 10**9, 10**6, 4_178, 84) == 25_000 + 3 * 4_178 + 84


def test_sonic_rule__by_hand():
    # peer 394 x 64 = 25,216; cable 2 x 5 m x 100G / 1.98e8 / 8 = 631.3; MAC and PHY 819.2; tiles
    # 1,500; with a port's 9,216 that is 37,382.5, three cells for each 64 B: 112,147.5; + 1,024 =
    # 113,171.5, in whole KiB 111.
    assert sonic_headroom_bytes(100 * 10**9, 5, 1024, **SPECTRUM4) == 111 * 1024
    # No small packets: 37,382.5 + 1,024 = 38,406.5, that is 38 KiB.
    large = sonic_headroom_bytes(100 * 10**9, 5, 1024, small_packet_share=0, **SPECTRUM4)
    assert large == 38 * 1024


def rows(file):
    """(bits per second, metres, xoff) of a table."""
    for line in file.read_text(encoding="utf-8").splitlines():
        fields = line.split()
        if fields and not fields[0].startswith("#"):
            speed_mbps, cable, _size, _xon, xoff = fields[:5]
            yield int(speed_mbps) * 10**6, int(cable.removesuffix("m")), int(xoff)


@pytest.mark.parametrize(
    ("file", "asic", "num_rows", "num_exact"),
    [
        ("sn5600_spectrum4_pg_profile_lookup.ini", "spectrum4", 24, 24),
        # These tables are older than the rule.
        ("sn3700_spectrum2_pg_profile_lookup.ini", "spectrum2", 18, 0),
        ("sn4600c_spectrum3_shp_pg_profile_lookup.ini", "spectrum3", 20, 0),
    ],
)
def test_sonic_rule__against_stock_tables(file, asic, num_rows, num_exact):
    if not (SONIC / file).exists():
        pytest.skip(f"{file} is not there")
    known = ASICS[asic]
    rule = {"cell_bytes": known.cell_bytes, "has_tiles": known.has_tiles}
    found = list(rows(SONIC / file))
    exact = sum(sonic_headroom_bytes(rate, m, 1024, **rule) == xoff for rate, m, xoff in found)
    assert (len(found), exact) == (num_rows, num_exact)


@given(
    rate=st.sampled_from(sorted(RESPONSE_QUANTA)),
    cable=st.floats(0, 2000),
    more=st.floats(0, 2000),
    mtu=st.integers(256, 9216),
    share=st.floats(0, 1),
)
def test_sonic_rule__grows_with_cable_and_mtu(rate, cable, more, mtu, share):
    def rule(metres, bytes_):
        return sonic_headroom_bytes(
            rate * 10**9, metres, bytes_, small_packet_share=share, **SPECTRUM4
        )

    assert rule(cable, mtu) <= rule(cable + more, mtu)
    assert rule(cable, mtu) <= rule(cable, mtu + 100)
    assert rule(cable, mtu) % 1024 == 0


@given(
    rate=st.sampled_from(sorted(RESPONSE_QUANTA)),
    cable=st.floats(0, 2000),
    mtu=st.integers(256, 9000),
)
def test_sonic_rule__covers_what_the_simulator_needs(rate, cable, mtu):
    needed = simulator_headroom_bytes(rate * 10**9, int(cable * 5000), mtu + 82, 84)
    assert sonic_headroom_bytes(rate * 10**9, cable, mtu, **SPECTRUM4) >= needed


def test_sonic_rule__unknown_rate():
    with pytest.raises(ConfigError, match=r"no ports of 56 Gb/s; allowed: 10, 25, 40, 50, 100"):
        sonic_headroom_bytes(56 * 10**9, 5, 1024, **SPECTRUM4)


# --------------------------------------------------------------------------- in a scenario


def scenario_with(asic="spectrum4", **changes):
    raw = {
        "name": "headroom",
        "topology": {
            "kind": "leaf_spine",
            "leaves": 2,
            "hosts_per_leaf": 1,
            "spines": 1,
            "host_rate_gbps": 100,
            "spine_rate_gbps": 400,
            "host_cable_m": 5,
            "fabric_cable_m": 300,
        },
        "switch": {} if asic is None else {"asic": asic},
        "nic": {"mtu_bytes": 1024},
        "classes": [{"name": "roce", "headroom_bytes": "sonic"}],
        "tenants": [
            {"name": "a", "hosts": [0, 1], "jobs": [{"kind": "ring_all_reduce", "bytes": 9000}]}
        ],
    }
    return validate_scenario(raw | changes)


def test_class__sonic_rule_by_port():
    scenario = scenario_with()
    network = build_network(scenario.topology)
    headroom = headroom_bytes(scenario, network, 0)
    assert headroom.tolist() == [113_664] * 4 + [677_888] * 4  # rows of the SN5600's table
    plan = make_plan(scenario, network, 0)
    ingress = build_state(scenario, network, plan, 0).ingress.reshape(-1, 2)[:, 1]
    assert class_order(scenario) == (0,)
    at_switch = network.link_dst >= network.num_hosts
    assert ingress["headroom"].tolist() == np.where(at_switch, headroom, 0).tolist()


@pytest.mark.parametrize("asic", [None, "tomahawk5", "trident3"])
def test_class__sonic_rule_needs_a_switch_it_is_for(asic):
    message = f"switch.asic = {asic!r}; allowed: spectrum2, spectrum3, spectrum4"
    with pytest.raises(ConfigError, match=message):
        scenario_with(asic)


def test_class__sonic_rule_does_not_know_every_rate():
    topology = {"kind": "star", "hosts": 2, "host_rate_gbps": 56}
    scenario = scenario_with(topology=topology)
    with pytest.raises(ConfigError, match=r"classes.roce.headroom_bytes: .* no ports of 56 Gb/s"):
        headroom_bytes(scenario, build_network(scenario.topology), 0)


def test_class__lossy_has_none():
    scenario = scenario_with(classes=[{"lossless": False, "headroom_bytes": "sonic"}])
    assert not headroom_bytes(scenario, build_network(scenario.topology), 0).any()


def test_headroom_larger_than_the_buffer():
    scenario = scenario_with(switch={"asic": "spectrum4", "buffer_bytes": 700_000})
    network = build_network(scenario.topology)
    message = "1355776 bytes of headroom at switch 4 exceed switch.buffer_bytes = 700000"
    with pytest.raises(ConfigError, match=message):
        build_state(scenario, network, make_plan(scenario, network, 0), 0)


def test_headroom_beyond_32_bits_is_not_mistaken_for_little():
    topology = {"kind": "star", "hosts": 2, "link_delay_ns": 1_000_000_000}
    scenario = scenario_with(topology=topology, classes=[{"name": "roce"}])
    network = build_network(scenario.topology)
    with pytest.raises(ConfigError, match="50000006804 bytes of headroom at switch 2 exceed"):
        build_state(scenario, network, make_plan(scenario, network, 0), 0)
