"""What is wrong with a topology in a scenario file is said in one line: field, value, allowed."""

import pytest
import yaml

from roce_gym.cli import main

CLOS = {"kind": "clos3", "pods": 2, "leaves_per_pod": 2, "hosts_per_leaf": 1}
RING = {"kind": "ring", "switches": 4}
RAILS = {"kind": "rail_optimised", "nodes": 2, "gpus_per_node": 4}
LEAVES = {"kind": "leaf_spine", "leaves": 2, "hosts_per_leaf": 4}


@pytest.mark.parametrize(
    ("topology", "parts"),
    [
        ({"kind": "torus"}, ["topology.kind", "'torus' is unknown", "'fat_tree'", "'triangle'"]),
        ({"kind": "fat_tree", "k": 5}, ["topology", "k = 5 is odd", "even numbers, 2 … 64"]),
        ({"kind": "fat_tree", "k": 66}, ["topology.k", "66", "64"]),
        ({"kind": "fat_tree", "k": 4, "pods": 2}, ["topology.pods: unknown key", "allowed: kind"]),
        (LEAVES, ["topology", "spines and oversubscription are both missing"]),
        (
            LEAVES | {"oversubscription": 5},
            ["topology", "oversubscription = 5 gives no uplinks", "0.003906 … 4"],
        ),
        (
            CLOS | {"spines_per_pod": 2, "core_oversubscription": 3},
            ["topology", "core_oversubscription = 3 gives no uplinks"],
        ),
        (
            CLOS | {"spines_per_pod": 2, "cores": 3},
            ["cores = 3", "a multiple of spines_per_pod = 2"],
        ),
        (RING | {"switches": 2}, ["topology.switches", "2", "3"]),
        (RING | {"routing": "both"}, ["topology.routing", "'both'", "'shortest' or 'clockwise'"]),
        (
            RING | {"fabric_cable_m": 5, "fabric_delay_ns": 5},
            ["topology", "fabric_cable_m = 5 and fabric_delay_ns = 5 are both given"],
        ),
        (
            RAILS | {"host_cable_m": 5, "link_delay_ns": 5},
            ["topology", "host_cable_m = 5 and link_delay_ns = 5 are both given"],
        ),
        (RAILS | {"nvlink_gbps": -1}, ["topology.nvlink_gbps", "-1"]),
        (RAILS, ["tenants.a.jobs.0", "no path from host 1 to host 6", "topology.spines"]),
    ],
)
def test_faults(tmp_path, capsys, topology, parts):
    jobs = [{"kind": "ring_all_reduce", "bytes": 1000}]
    hosts = [0, 1, 6] if topology is RAILS else [0, 1]
    raw = {"name": "x", "topology": topology, "tenants": [{"name": "a", "hosts": hosts}]}
    raw["tenants"][0]["jobs"] = jobs
    path = tmp_path / "x.yaml"
    path.write_text(yaml.safe_dump(raw))
    assert main(["describe", str(path)]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1
    for part in parts:
        assert part in err
