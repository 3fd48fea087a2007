"""Counters of ports: names, sums, and that they mean what the devices' documentation says."""

import numpy as np
import pytest

from roce_gym.assembly.link_events import corrupting_links
from roce_gym.config import validate_scenario
from roce_gym.counters import Sampler, columns_of, ports_of
from roce_gym.fabric import Fabric
from roce_gym.scenario_file import load_scenario
from roce_gym.topology import build_network


def sampled(name, seed=0, us=1000.0, steps=4, overrides=()):
    scenario = load_scenario(name, seed, overrides)
    fabric = Fabric(scenario, seed)
    sampler = Sampler(scenario, fabric.network, fabric.plan)
    intervals, samples = [], [sampler.sample()]
    for _ in range(steps):
        intervals.append(fabric.advance(us=us))
        sampler.add(intervals[-1])
        samples.append(sampler.sample())
    return sampler, fabric, intervals, samples


def test_ports_are_both_ends_of_each_cable():
    network = build_network(load_scenario("noisy_neighbor").topology)
    ports = ports_of(network)
    assert sorted(port.out for port in ports) == list(range(network.num_links))
    ends = {(p.device, p.name): (p.neighbor, p.neighbor_port) for p in ports}
    assert len(ends) == len(ports)
    assert all(ends[there] == here for here, there in ends.items())
    leaf = [port for port in ports if port.device == "switch 16"]
    assert [port.name for port in leaf] == [f"Ethernet{i}" for i in range(6)]
    assert [port.neighbor for port in leaf[:4]] == [f"host {i}" for i in range(4)]


def test_nvlink_has_no_ports():
    network = build_network(load_scenario("rail_ring").topology)
    ports = ports_of(network)
    assert not any("NV" in port.device + port.neighbor for port in ports)
    assert sum(not port.is_switch for port in ports) == network.num_places


def test_names():
    names = [column.name for column in columns_of([3], has_watchdog=True)]
    assert len(set(names)) == len(names)
    for name in (
        "SAI_QUEUE_STAT_BYTES:3",
        "SAI_PORT_STAT_PFC_3_RX_PKTS",
        "SAI_PORT_STAT_PFC_3_RX_PAUSE_DURATION_US",
        "SAI_QUEUE_STAT_WRED_ECN_MARKED_PACKETS:3",
        "PFC_WD_QUEUE_STATS_DEADLOCK_DETECTED:3",
        "rx_prio3_pause_duration",
        "tx_prio3_pause",
        "rp_cnp_handled",
    ):
        assert name in names
    assert not any("PFC_WD" in c.name for c in columns_of([3], has_watchdog=False))


def test_counters_add_up_and_gauges_do_not():
    sampler, _, intervals, samples = sampled("noisy_neighbor")
    out = np.array([port.out for port in sampler.ports])
    into = np.array([port.into for port in sampler.ports])
    is_switch = np.array([port.is_switch for port in sampler.ports])
    sums = {
        name: sum(getattr(interval, name) for interval in intervals)
        for name in ("tx_bytes", "pause_frames", "resume_frames", "paused_ps", "cnps")
    }
    last = samples[-1].values
    for column, p in ((0, 3), (1, 4)):
        sent = last[f"SAI_QUEUE_STAT_BYTES:{p}"] + last[f"tx_prio{p}_bytes"]
        assert np.array_equal(sent, sums["tx_bytes"][out, column])
        frames = (sums["pause_frames"] + sums["resume_frames"])[into, column]
        assert np.array_equal(last[f"SAI_PORT_STAT_PFC_{p}_TX_PKTS"][is_switch], frames[is_switch])
        paused = last[f"SAI_PORT_STAT_PFC_{p}_RX_PAUSE_DURATION_US"]
        assert paused[is_switch] == pytest.approx(sums["paused_ps"][out, column][is_switch] / 1e6)
        peak = last[f"SAI_QUEUE_STAT_SHARED_WATERMARK_BYTES:{p}"]
        assert np.array_equal(
            peak[is_switch], intervals[-1].queue_max_bytes[out, column][is_switch]
        )
    assert last["rp_cnp_handled"].sum() == sums["cnps"].sum() > 0
    sent_pfc = sum(last[f"SAI_PORT_STAT_PFC_{p}_TX_PKTS"].sum() for p in (3, 4))
    assert sent_pfc > 0


def test_counters_never_fall():
    sampler, _, _, samples = sampled("pfc_storm")
    for column in sampler.columns:
        values = np.stack([sample.values[column.name] for sample in samples])
        if column.kind == "counter":
            assert (np.diff(values, axis=0) >= 0).all(), column.name
        is_owner = [port.is_switch == (column.owner == "switch") for port in sampler.ports]
        assert not values[:, ~np.array(is_owner)].any()


def test_both_ends_of_a_cable_agree():
    """What one end sent the other received; frames, too."""
    sampler, _, _, samples = sampled("pfc_storm")
    last = samples[-1].values
    at = {port.out: i for i, port in enumerate(sampler.ports)}
    for i, port in enumerate(sampler.ports):
        other = at[port.into]
        sent = last["SAI_QUEUE_STAT_BYTES:3"][i] + last["tx_prio3_bytes"][i]
        came = last["SAI_PORT_STAT_IF_IN_OCTETS"][other] + last["rx_prio3_bytes"][other]
        assert sent == came
        if port.is_switch and sampler.ports[other].is_switch:
            told = last["SAI_PORT_STAT_PFC_3_TX_PKTS"][i]
            assert told == last["SAI_PORT_STAT_PFC_3_RX_PKTS"][other]


def test_a_storm_is_counted_at_both_ends():
    sampler, _, _, samples = sampled("pfc_storm")
    nic = next(i for i, port in enumerate(sampler.ports) if port.device == "host 0")
    leaf = next(i for i, port in enumerate(sampler.ports) if port.neighbor == "host 0")
    last = samples[-1].values
    assert last["tx_prio3_pause"][nic] > 0
    assert last["tx_prio3_pause"].sum() == last["tx_prio3_pause"][nic]
    assert last["SAI_PORT_STAT_PFC_3_RX_PKTS"][leaf] == last["tx_prio3_pause"][nic]
    assert last["SAI_PORT_STAT_PFC_3_RX_PAUSE_DURATION_US"][leaf] == pytest.approx(2000, abs=5)


def test_errors_are_where_the_fibre_ends():
    sampler, _, intervals, samples = sampled(
        "gray_failure", us=2000.0, overrides=["link_events.0.loss=0.001"]
    )
    errors = samples[-1].values["SAI_PORT_STAT_IF_IN_ERRORS"]
    (bad,) = np.flatnonzero(errors)
    assert (sampler.ports[bad].device, sampler.ports[bad].neighbor) == ("switch 9", "switch 11")
    assert errors[bad] == sum(interval.lost_packets.sum() for interval in intervals)


EVENTS = [
    {"kind": "lossy", "between": [11, 9], "direction": "forward", "loss": 0.1, "start_us": 100},
    {"kind": "down", "between": [11, 9], "start_us": 300, "stop_us": 400},
    {"kind": "slow", "between": [10, 9], "rate_gbps": 1},
]


@pytest.mark.parametrize(
    ("start_us", "stop_us", "count"), [(0, 100, 0), (0, 101, 1), (100, 300, 1), (200, 350, 0)]
)
def test_only_lossy_links_corrupt(start_us, stop_us, count):
    """A link that is down has nothing to check a sum of, and counts nothing."""
    raw = load_scenario("gray_failure").model_dump(mode="json") | {"link_events": EVENTS}
    scenario = validate_scenario(raw)
    network = build_network(scenario.topology)
    bad = np.flatnonzero(corrupting_links(scenario, network, start_us * 10**6, stop_us * 10**6))
    assert len(bad) == count
    assert [(network.link_src[i], network.link_dst[i]) for i in bad] == [(11, 9)] * count


def test_sizes_of_buffers():
    sampler, fabric, _, samples = sampled("checkpoint_shared_buffer", steps=1)
    for sample in samples:  # as configured, also before anything has happened
        size = sample.values["SAI_BUFFER_POOL_ATTR_SIZE"]
        shared = sample.values["SAI_BUFFER_POOL_ATTR_SHARED_SIZE"]
        is_switch = np.array([port.is_switch for port in sampler.ports])
        ports = fabric._state.ingress.reshape(fabric.network.num_links, -1)[:, 1:]
        private = (ports["headroom"] + ports["reserved"])[fabric.network.into_switch].sum()
        assert (size[is_switch] == fabric.scenario.switch.buffer_bytes).all()
        assert (shared[is_switch] == size[is_switch] - private).all()  # there is one switch
        assert not size[~is_switch].any()


def test_drops_count_where_the_limit_is():
    """Of an egress queue at its port; for want of buffer at the input. Best effort is lossy."""
    sampler, _, intervals, samples = sampled("dscp_mismatch")
    last, dropped = samples[-1].values, sum(interval.dropped_packets for interval in intervals)
    at_queue = last["SAI_QUEUE_STAT_DROPPED_PACKETS:0"]
    ports = {port.device for port, count in zip(sampler.ports, at_queue, strict=True) if count}
    assert ports == {"switch 16"} and at_queue.sum() == dropped[:, 2].sum()
    groups = "SAI_INGRESS_PRIORITY_GROUP_STAT_DROPPED_PACKETS"
    assert [last[f"{groups}:{p}"].sum() for p in (3, 4, 0)] == [*dropped[:, :2].sum(axis=0), 0]
