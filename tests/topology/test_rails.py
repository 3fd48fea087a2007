"""Rails: a GPU is one host with a NIC on its rail and an end on its server's NVLink."""

import csv
import dataclasses
import json
from types import SimpleNamespace

import numpy as np
import pytest

from roce_gym.cli import main
from roce_gym.config import RailOptimised, validate_scenario
from roce_gym.env import RoceEnv
from roce_gym.errors import ConfigError, TopologyError
from roce_gym.fabric import Fabric
from roce_gym.measures import Measures
from roce_gym.observation import Observation
from roce_gym.routing import Router
from roce_gym.topology import build_network
from roce_gym.topology.graph import NVLINK_CREDIT_BYTES
from roce_gym.units import ps_per_kib
from roce_gym.workload.planner import make_plan

NVLINK_BPS, NIC_BPS = 3_600 * 10**9, 400 * 10**9
SPINES = 2


def parts(hosts, jobs, *, spines=SPINES, seed=0, tenant=None, **changes):
    """Two servers of four GPUs."""
    raw = {
        "name": "rails",
        "topology": {
            "kind": "rail_optimised",
            "nodes": 2,
            "gpus_per_node": 4,
            "spines": spines,
            "host_cable_m": 20,
            "fabric_cable_m": 40,
        },
        "tenants": [{"name": "a", "hosts": hosts, "jobs": jobs, **(tenant or {})}],
        "control": {"interval_us": 50, "horizon_us": 200},
    }
    scenario = validate_scenario(raw | changes)
    network = build_network(scenario.topology)
    return SimpleNamespace(
        scenario=scenario, network=network, plan=make_plan(scenario, network, seed)
    )


def flow(src, dst, size=100_000, **more):
    return {"src": src, "dst": dst, "bytes": size, **more}


def flows(*given):
    return [{"kind": "flows", "flows": list(given)}]


# --------------------------------------------------------------------------- the network


def test_network__by_hand():
    # NICs 0…7, NVLink ends 8…15, NVSwitches 16 17, rails 18…21, spines 22 23.
    network = parts([0, 1], flows(flow(0, 1))).network
    assert (network.num_places, network.num_hosts, network.num_switches) == (8, 16, 8)
    ends = list(zip(network.link_src[::2].tolist(), network.link_dst[::2].tolist(), strict=True))
    assert ends[:8] == [(gpu, 18 + gpu % 4) for gpu in range(8)]
    assert ends[8:16] == [(8 + gpu, 16 + gpu // 4) for gpu in range(8)]
    assert ends[16:] == [(rail, spine) for rail in range(18, 22) for spine in (22, 23)]
    rates = network.link_rate_bps[::2]
    assert rates[:8].tolist() == [NIC_BPS] * 8 and rates[8:16].tolist() == [NVLINK_BPS] * 8
    assert (network.link_delay_ps[[0, 16, 32]] / 1000).tolist() == [100, 300, 200]
    assert network.host_rate_bps == NIC_BPS


def test_network__users_see_gpus_only():
    network = parts([0, 1], flows(flow(0, 1))).network
    assert network.node_label.tolist() == [*range(8), *range(8), *range(8, 16)]
    assert [network.host_of_label(gpu) for gpu in range(8)] == list(range(8))
    assert [network.describe(node) for node in (3, 11, 17, 18, 23)] == [
        "host 3",
        "NVLink of host 3",
        "NVSwitch 9",
        "switch 10",
        "switch 15",
    ]
    with pytest.raises(TopologyError, match="node 8 is a switch, not a host"):
        network.host_of_label(8)
    with pytest.raises(TopologyError, match="does not exist; the 8 hosts are within 0 … 7"):
        network.host_of_label(16)


def test_network__ports_of_switches_are_ethernet():
    network = parts([0, 1], flows(flow(0, 1))).network
    assert network.is_nvlink.sum() == 16
    for links, near in (
        (network.from_switch, network.link_src),
        (network.into_switch, network.link_dst),
    ):
        assert len(links) == 8 + 2 * 4 * SPINES
        assert (near[links] >= 18).all()
    assert network.nic_link.tolist() == list(range(0, 16, 2))


def test_paths_between_rails():
    network = parts([0, 1], flows(flow(0, 1))).network
    router = Router(network)
    assert [router.num_paths(0, dst) for dst in (4, 5, 7)] == [1, SPINES, SPINES]
    assert len(router.ecmp_path(0, 4, 0)) == 2 and len(router.ecmp_path(0, 5, 0)) == 4


# --------------------------------------------------------------------------- planning


def test_plan__nvlink_inside_a_server_nics_between():
    jobs = [{"kind": "all_to_all", "bytes": 8000, "rounds": 1}]
    case = parts({"kind": "packed", "count": 8}, jobs)
    assert len(case.plan.qps) == 56
    for pair in case.plan.qps:
        src, dst = pair.src % 8, pair.dst % 8
        assert pair.is_local == (src // 4 == dst // 4)
        assert (pair.src, pair.dst) == ((src + 8, dst + 8) if pair.is_local else (src, dst))
        inside = case.network.is_nvlink[[*pair.data_links, *pair.ack_links]]
        assert inside.all() if pair.is_local else not inside.any()


def test_plan__a_given_path_leads_over_nics():
    # Switches are labelled 8…15: NVSwitches 8 9, rails 10…13, spines 14 15.
    given = {"data_path": [0, 10, 14, 11, 1]}
    case = parts([0, 1], flows(flow(0, 1, **given)))
    (pair,) = case.plan.qps
    assert (pair.src, pair.dst, pair.is_local) == (0, 1, False)
    assert not case.network.is_nvlink[[*pair.data_links, *pair.ack_links]].any()


def test_plan__placement_counts_gpus():
    with pytest.raises(ConfigError, match="reach position 8; the last host is at 7"):
        parts({"kind": "packed", "count": 9}, [{"kind": "ring_all_reduce", "bytes": 9}])
    case = parts({"kind": "random", "count": 8}, [{"kind": "ring_all_reduce", "bytes": 9}])
    assert sorted(case.plan.jobs[0].hosts) == list(range(8))


def test_plan__without_spines_rails_are_apart():
    along = [{"kind": "ring_all_reduce", "bytes": 9000, "rounds": 1}]
    case = parts([0, 4], along, spines=0)
    assert Fabric(case.scenario).advance(us=100).completions.size == 1
    message = (
        "tenants.a.jobs.0: there is no path from host 0 to host 5: they are on different rails, "
        r"and no spines join the rails \(topology.spines\)"
    )
    with pytest.raises(TopologyError, match=message):
        parts([0, 5], along, spines=0)


# --------------------------------------------------------------------------- simulation


def test_one_packet_over_nvlink__by_hand():
    case = parts([0, 1], flows(flow(0, 1, 4096)))
    (done,) = Fabric(case.scenario).advance(us=20).completions
    hop = ps_per_kib(NVLINK_BPS)
    data, ack = (4096 + 62 + 20) * hop >> 10, (66 + 20) * hop >> 10
    assert done["end_ps"] - done["start_ps"] == 2 * (data + ack) + 4 * 300_000


def test_nvlink_and_nics_have_their_own_bandwidth():
    size = 2_000_000
    case = parts([0, 1, 4], flows(flow(0, 1, size), flow(0, 4, size), flow(0, 5, size)))
    took = {
        int(done["index"]): int(done["end_ps"] - done["start_ps"])
        for done in Fabric(case.scenario, preset="pfc_only").advance(us=500).completions
    }
    wire_bits = 8 * size * 4178 / 4096
    # Flow 0 has the NVLink for itself, the other two share a NIC.
    assert took[0] == pytest.approx(wire_bits / NVLINK_BPS * 1e12, rel=0.35)
    assert max(took[1], took[2]) == pytest.approx(2 * wire_bits / NIC_BPS * 1e12, rel=0.05)


def test_max_rate_of_dcqcn_is_for_nics():
    slow = {"dcqcn": {"max_rate_mbps": 10_000}}
    case = parts([0, 1, 4], flows(flow(0, 1), flow(0, 4)), tenant=slow)
    fabric = Fabric(case.scenario)
    rates = {pair.is_local: rate for pair, rate in zip(case.plan.qps, _rates(fabric), strict=True)}
    assert rates == {True: NVLINK_BPS, False: 10 * 10**9}
    # Also when settings change during the run.
    tenant = fabric.settings.tenants["a"].model_copy(update={"max_rate_mbps": 5_000.0})
    fabric.apply(fabric.settings.model_copy(update={"tenants": {"a": tenant}}))
    assert sorted(_rates(fabric)) == [5 * 10**9, NVLINK_BPS]


def _rates(fabric):
    return fabric._state.sender["rate_bps"].tolist()


@pytest.mark.parametrize("lossless", [True, False])
def test_incast_inside_a_server__no_loss_no_marks_and_nothing_that_ethernet_sees(lossless):
    # The switches' buffer is tiny, the class has reserve, ECN from the first byte on.
    classes = [
        {
            "name": "roce",
            "lossless": lossless,
            "ecn": {"kmin_bytes": 0, "kmax_bytes": 1, "pmax": 1.0},
            "buffer": {"reserved_bytes": 5_000},
        }
    ]
    jobs = [{"kind": "incast", "bytes": 4_000_000, "degree": 3, "period_us": 1000, "rounds": 1}]
    case = parts([0, 1, 2, 3], jobs, classes=classes, switch={"buffer_bytes": 200_000})
    fabric = Fabric(case.scenario)
    interval = fabric.advance(us=100)
    assert interval.completions.size == 1
    assert interval.delivered_bytes.sum() == 12_000_000
    assert interval.dropped_packets.sum() == interval.ecn_marked_packets.sum() == 0
    assert interval.cnps.sum() == 0
    # Credits ran out: three GPUs send at once, one receives.
    inside = case.network.is_nvlink
    assert interval.pause_frames[inside].sum() > 0
    assert interval.ingress_bytes.max() <= 2 * NVLINK_CREDIT_BYTES
    done = interval.completions[0]
    least = 8 * 12_000_000 * 4178 / 4096 / NVLINK_BPS * 1e12
    assert least < done["end_ps"] - done["start_ps"] < 1.1 * least
    measures = Measures(case.scenario, case.network, case.plan)(interval)
    for name in ("pfc_frames_per_s", "queue_max_bytes/roce", "paused_fraction/roce"):
        assert measures[name] == 0
    assert measures["goodput_gbps/a"] == 0
    eyes = Observation(case.scenario, case.network, case.plan)
    assert not eyes(interval).any()


def test_observation__is_that_of_the_nics():
    jobs = flows(flow(0, 1, 10**6), flow(0, 4, 10**5), flow(2, 3, 10**6))
    case = parts([0, 1], jobs)
    interval = Fabric(case.scenario, preset="pfc_only").advance(us=20)
    own = [i for i, pair in enumerate(case.plan.qps) if not pair.is_local]
    alone = dataclasses.replace(case.plan, qps=tuple(case.plan.qps[i] for i in own))
    only = dataclasses.replace(
        interval,
        **{
            name: getattr(interval, name)[own]
            for name in ("delivered_bytes", "outstanding_bytes", "cnps", "rate_bps")
        },
    )
    both = Observation(case.scenario, case.network, case.plan)(interval)
    nics = Observation(case.scenario, case.network, alone)(only)
    assert both.tolist() == nics.tolist() and both.any()
    goodput = Measures(case.scenario, case.network, case.plan)(interval)["goodput_gbps/a"]
    assert goodput == pytest.approx(8 * 10**5 / 20e-6 / 1e9)


def test_env__an_episode():
    jobs = [{"kind": "all_to_all", "bytes": 100_000}]
    case = parts({"kind": "packed", "count": 8}, jobs, switch={"asic": "tomahawk5"})
    env = RoceEnv(case.scenario)
    observation, _ = env.reset(seed=1)
    assert env.observation_space.contains(observation)
    truncated = False
    while not truncated:
        observation, reward, _, truncated, info = env.step(np.zeros(env.action_space.shape, "f4"))
        assert env.observation_space.contains(observation) and np.isfinite(reward)
    assert 0 < info["goodput_gbps/a"] <= 8 * 400


def test_cli__nvlink_is_told_apart(tmp_path, capsys):
    jobs = [{"kind": "incast", "bytes": 4_000_000, "degree": 3, "period_us": 1000, "rounds": 1}]
    case = parts([0, 1, 2, 3], jobs)
    path = tmp_path / "rails.yaml"
    path.write_text(case.scenario.model_dump_json())  # JSON is YAML
    assert main(["run", str(path), "--duration-us", "100", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["fabric"]["pause_frames"] == found["fabric"]["queue_max_bytes"] == 0
    assert found["tenants"]["a"]["goodput_gbps"] == 0
    assert found["tenants"]["a"]["nvlink_goodput_gbps"] == pytest.approx(960)
    assert main(["describe", str(path), "--json"]) == 0
    network = json.loads(capsys.readouterr().out)["network"]
    assert (network["hosts"], network["servers"]) == (8, 2)
    assert network["tiers"] == {"NVSwitch": 2, "rail": 4, "spine": 2}
    assert [cable["between"] for cable in network["cables"]] == [
        "hosts and NVSwitches",
        "hosts and rails",
        "rails and spines",
    ]
    assert main(["describe", str(path)]) == 0
    text = capsys.readouterr().out
    assert "8 (GPUs of 2 servers)" in text and "3 queue pairs (3 on NVLink), 4 hosts: 0 1" in text


def test_cli__trace_counts_nics_only(tmp_path, capsys):
    case = parts([0, 1], flows(flow(0, 1, 10**6), flow(0, 4, 10**5)))
    path, trace = tmp_path / "rails.yaml", tmp_path / "trace.csv"
    path.write_text(case.scenario.model_dump_json())
    assert main(["run", str(path), "--duration-us", "100", "--trace", str(trace)]) == 0
    with trace.open() as file:
        rows = list(csv.DictReader(file))
    assert sum(int(row["tenant/a/delivered_bytes"]) for row in rows) == 10**5


def test_defaults():
    config = RailOptimised(nodes=2)
    assert (config.gpus_per_node, config.host_rate_gbps, config.nvlink_gbps) == (8, 400, 3600)


def test_cli__goodput_over_nvlink_has_a_column(tmp_path, capsys):
    path = tmp_path / "rails.yaml"
    for dst, expected in ((1, True), (4, False)):
        path.write_text(parts([0, dst], flows(flow(0, dst))).scenario.model_dump_json())
        assert main(["run", str(path), "--duration-us", "100"]) == 0
        assert ("NVLink Gb/s" in capsys.readouterr().out) == expected
