"""Whatever a user gets wrong is answered with one line: the field, the value, what is allowed."""

import re

import gymnasium
import numpy as np
import pytest
import yaml

from roce_gym.cli import main
from roce_gym.errors import ActionError

GOOD = {
    "name": "test",
    "topology": {"kind": "star", "hosts": 4, "host_rate_gbps": 100},
    "classes": [{"name": "roce", "priority": 3}],
    "tenants": [
        {
            "name": "one",
            "hosts": [0, 1, 2],
            "jobs": [{"kind": "ring_all_reduce", "bytes": 1000, "compute_us": 5}],
        },
        {
            "name": "two",
            "hosts": [3, 2],
            "jobs": [{"kind": "flows", "flows": [{"src": 3, "dst": 2, "bytes": 1000}]}],
        },
    ],
    "control": {"horizon_us": 100},
}


def changed(**places):
    """A copy of `GOOD`; `a__0__b=value` sets a.0.b."""
    tree = yaml.safe_load(yaml.safe_dump(GOOD))
    for place, value in places.items():
        *path, last = [int(key) if key.isdigit() else key for key in place.split("__")]
        node = tree
        for key in path:
            node = node[key]
        node[last] = value
    return tree


@pytest.fixture
def complain(capsys):
    """Runs a command that must fail; its complaint, without `error: `."""

    def call(*arguments):
        assert main([str(argument) for argument in arguments]) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert re.fullmatch(r"error: [^\n]+\n", err), err
        return err.removeprefix("error: ").rstrip("\n")

    return call


def test_the_good_scenario_is_good(tmp_path, capsys):
    path = tmp_path / "good.yaml"
    path.write_text(yaml.safe_dump(GOOD))
    assert main(["describe", str(path)]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("change", "parts"),
    [
        ({"colour": "red"}, ["colour: unknown key", "'red'", "topology, switch, nic"]),
        ({"nic": {"mtu": 9000}}, ["nic.mtu: unknown key", "9000", "mtu_bytes"]),
        (
            {"tenants__0__jobs__0__degree": 3},
            ["tenants.one.jobs.0.degree: unknown key", "3", "channels"],
        ),
        ({"topology__host_rate_gbps": -100}, ["topology.host_rate_gbps", "-100", "0.001"]),
        ({"topology__host_rate_gbps": float("nan")}, ["topology.host_rate_gbps", "nan", "finite"]),
        ({"topology__host_rate_gbps": float("inf")}, ["topology.host_rate_gbps", "inf", "finite"]),
        ({"topology__host_rate_gbps": "fast"}, ["topology.host_rate_gbps", "'fast'", "a number"]),
        ({"topology__kind": "torus"}, ["topology.kind", "'torus'", "'star', 'dumbbell'"]),
        ({"topology": {"hosts": 4}}, ["topology.kind", "is missing", "'star', 'dumbbell'"]),
        (
            {"classes__0__headroom_bytes": 5_000_000},
            ["headroom_bytes", "20000000 bytes", "switch.buffer_bytes = 16777216"],
        ),
        ({"classes__0__headroom_bytes": -5}, ["classes.roce.headroom_bytes", "-5", "or 'auto'"]),
        ({"nic": {"window_bytes": 5_000}}, ["nic", "window_bytes = 5000", "at least 61441 with"]),
        ({"classes__0__priority": 8}, ["classes.roce.priority", "8", "less than 8"]),
        (
            {"classes__0__buffer": {"reserved_bytes": 5_000_000}},
            ["reserved_bytes", "5000000", "switch.buffer_bytes = 16777216"],
        ),
        (
            {"classes__0__ecn": {"kmin_bytes": 9, "kmax_bytes": 5, "pmax": 0.1}},
            ["classes.roce.ecn", "kmax_bytes = 5", "at least kmin_bytes = 9"],
        ),
        ({"tenants__0__hosts": [0, 9]}, ["tenants.one.hosts", "node 9 does not exist", "0 … 3"]),
        ({"tenants__0__hosts": [0, 4]}, ["tenants.one.hosts", "node 4 is a switch", "0 … 3"]),
        ({"tenants__0__hosts": [0, -1]}, ["tenants.one.hosts.1", "-1", "equal to 0"]),
        (
            {"tenants__1__jobs__0__flows__0__src": 4},
            ["tenants.two.jobs.0.flows.0", "src = 4", "is a switch, not a host", "0 … 3"],
        ),
        (
            {"tenants__1__jobs__0__flows__0__bytes": 0},
            ["tenants.two.jobs.0.flows.0.bytes", "0", "greater than 0"],
        ),
        ({"tenants__0__traffic_class": "gold"}, ["tenants.one.traffic_class", "'gold'", "roce"]),
        ({"tenants__0__weight": float("nan")}, ["tenants.one.weight", "nan", "finite"]),
        ({"tenants__0__jobs": []}, ["tenants.one.jobs", "at least 1"]),
        ({"tenants": None}, ["tenants", "a list", "None"]),
        ({"preset": "fast"}, ["preset", "'fast'", "connectx_default, dcqcn_paper"]),
        ({"control": {"reward_weights": {"speed": 1}}}, ["reward_weights.speed", "completion"]),
        ({"pfc": {"quanta": 65_536}}, ["pfc.quanta", "65536", "65535"]),
        ({"pfc": {"quanta": 2}}, ["pfc.quanta = 2", "refresh_fraction = 0.5", "at least 1.3125"]),
        ({"pfc": {"refresh_fraction": 1}}, ["pfc.refresh_fraction", "1", "less than 1"]),
        (
            {"pfc": {"watchdog": {"poll_us": 300, "detection_us": 200}}},
            ["pfc.watchdog", "detection_us = 200", "at least poll_us"],
        ),
        (
            {"pfc": {"watchdog": {"action": "reboot"}}},
            ["pfc.watchdog.action", "'reboot'", "'drop', 'forward' or 'alert'"],
        ),
        (
            {"faults": {"storms": [{"host": 9, "traffic_class": "roce"}]}},
            ["faults.storms.0.host", "node 9 does not exist", "0 … 3"],
        ),
        (
            {"faults": {"storms": [{"host": 0, "traffic_class": "gold"}]}},
            ["faults.storms.0.traffic_class", "'gold'", "lossless", "['roce']"],
        ),
        (
            {"faults": {"storms": [{"host": 0, "traffic_class": "roce", "stop_us": 0}]}},
            ["faults.storms.0", "stop_us = 0", "greater than start_us = 0"],
        ),
        (
            {"classes__0__weight": 3},
            ["classes.roce", "weight = 3", "scheduling = 'round_robin'", "'dwrr'"],
        ),
        (
            {"classes__0__weight": 3, "classes__0__scheduling": "strict"},
            ["classes.roce", "weight = 3", "scheduling = 'strict'"],
        ),
        (
            {"classes__0__weight": 101, "classes__0__scheduling": "dwrr"},
            ["classes.roce.weight", "101", "100"],
        ),
        (
            {"classes": [{"name": "a", "scheduling": "dwrr"}, {"name": "roce", "priority": 1}]},
            ["classes.a.scheduling = 'dwrr'", "classes.roce.scheduling = 'round_robin'"],
        ),
        (
            {"classes__0__lossless": False, "classes__0__headroom_bytes": 9_000},
            ["classes.roce", "headroom_bytes = 9000", "lossless = false"],
        ),
        (
            {"classes__0__lossless": False, "classes__0__xon_offset_bytes": 9_000},
            ["classes.roce", "xon_offset_bytes = 9000", "lossless = false"],
        ),
        (
            {"classes__0__buffer": {"egress_alpha": 2}},
            ["classes.roce", "egress_alpha = 2", "lossless class", "lossless = false"],
        ),
        ({"classes__0__buffer": {"pool_share": 1.2}}, ["buffer.pool_share", "1.2", "equal to 1"]),
        (
            {"classes__0__buffer": {"pool_share": 0}},
            ["classes.roce.buffer.pool_share", "0", "greater than 0"],
        ),
        (
            {
                "classes": [
                    {"name": "a", "buffer": {"pool_share": 0.7}},
                    {"name": "roce", "priority": 1, "buffer": {"pool_share": 0.4}},
                ]
            },
            ["classes.buffer.pool_share", "1.1", "at most 1"],
        ),
        (
            {
                "classes": [
                    {"name": "a", "buffer": {"pool_share": 1}},
                    {"name": "roce", "priority": 1},
                ]
            },
            ["classes.buffer.pool_share", "nothing for class 'roce'"],
        ),
        ({"classes__0__pool": "p"}, ["classes.roce.buffer.pool_share", "missing", "needs one"]),
        (
            {"switch": {"headroom_pool_bytes": 20_000_000}},
            ["switch", "headroom_pool_bytes = 20000000", "buffer_bytes = 16777216"],
        ),
        (
            {"switch": {"headroom_pool_bytes": 30_000}},
            ["switch.headroom_pool_bytes = 30000", "37618 bytes", "headroom_bytes"],
        ),
        (
            {"classes__0__shaper": {"rate_gbps": 50, "burst_bytes": 4_000}},
            ["classes.roce.shaper.burst_bytes = 4000", "at least 4158"],
        ),
        (
            {"tenants__0__shaper": {"rate_gbps": 50, "burst_bytes": 4_000}},
            ["tenants.one.shaper.burst_bytes = 4000", "at least 4158"],
        ),
        (
            {"tenants__0__shaper": {"rate_gbps": 0.05, "burst_bytes": 5_000}},
            ["tenants.one.shaper", "rate_gbps = 0.05", "0.1"],
        ),
        (
            {"tenants__0__shaper": {"rate_gbps": 101, "burst_bytes": 5_000}},
            ["tenants.one.shaper.rate_gbps = 101", "at most 100"],
        ),
        (
            {"classes__0__shaper": {"rate_gbps": 101, "burst_bytes": 5_000}},
            ["classes.roce.shaper.rate_gbps = 101", "at most 100"],
        ),
        ({"nic__mtu_bytes": {"uniform": [5]}, "nic": {}}, ["nic.mtu_bytes.uniform", "[5]"]),
    ],
)
def test_scenario(complain, tmp_path, change, parts):
    path = tmp_path / "bad.yaml"
    path.write_text(yaml.safe_dump(changed(**dict(sorted(change.items())))))
    message = complain("run", path)
    for part in parts:
        assert part in message, message
    assert "Placement" not in message and "constrained" not in message


def test_host_that_cannot_be_reached(complain, tmp_path):
    (tmp_path / "islands.txt").write_text(
        "6 2 4\n4 5\n0 4 100Gbps 1us 0\n1 4 100Gbps 1us 0\n2 4 100Gbps 1us 0\n3 5 100Gbps 1us 0\n"
    )
    path = tmp_path / "bad.yaml"
    path.write_text(yaml.safe_dump(changed(topology={"kind": "hpcc_file", "path": "islands.txt"})))
    message = complain("run", path)
    assert "islands.txt: host 0 cannot reach host 3; all hosts must be connected" in message


def test_flow_file_with_a_flow_from_a_switch(complain, tmp_path):
    (tmp_path / "flow.txt").write_text("1\n4 2 3 100 1000 0\n")
    path = tmp_path / "bad.yaml"
    path.write_text(
        yaml.safe_dump(changed(tenants__1__jobs=[{"kind": "flows", "file": "flow.txt"}]))
    )
    message = complain("run", path)
    assert "flow.txt, line 2: src: node 4 is a switch, not a host" in message


@pytest.mark.parametrize(
    ("content", "parts"),
    [
        (b"name: [1, 2\n", ["bad.yaml, line 2"]),
        (b"just words", ["a mapping is expected, found str"]),
        (b"", ["a mapping is expected"]),
        (b"\xff\xfe\x00\x01", ["bad.yaml"]),
        (b"a: 1\na: 2\n", ["line 2: key 'a' is given twice"]),
    ],
)
def test_file_that_is_no_scenario(complain, tmp_path, content, parts):
    path = tmp_path / "bad.yaml"
    path.write_bytes(content)
    message = complain("run", path)
    for part in parts:
        assert part in message


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        ([], ["COMMAND"]),
        (["fly"], ["'fly'", "list"]),
        (["run"], ["SCENARIO"]),
        (["run", "absent"], ["scenario 'absent' is unknown", "noisy_neighbor"]),
        (["run", "absent.yaml"], ["absent.yaml: cannot be read", "noisy_neighbor"]),
        (["run", "regime_shift", "--wat"], ["--wat"]),
        (["run", "regime_shift", "--preset", "best"], ["--preset", "'best'", "pfc_only"]),
        (["run", "regime_shift", "--seed", "-1"], ["--seed", "'-1'", "0 … 2^63 - 1"]),
        (["run", "regime_shift", "--seed", "1.5"], ["--seed", "'1.5'", "whole"]),
        (["run", "regime_shift", "--seed", "9" * 19], ["--seed", "0 … 2^63 - 1"]),
        (["run", "regime_shift", "--seed"], ["--seed"]),
        (["run", "regime_shift", "--duration-us", "nan"], ["--duration-us", "'nan'", "100"]),
        (["run", "regime_shift", "--duration-us", "inf"], ["--duration-us", "'inf'", "1e+08"]),
        (["run", "regime_shift", "--duration-us", "-5"], ["--duration-us", "'-5'", "100"]),
        (
            ["run", "regime_shift", "--trace", "absent/x.csv"],
            ["--trace", "absent/x.csv", "No such"],
        ),
        (["run", "regime_shift", "--trace", "."], ["--trace", "'.'", "folder"]),
    ],
)
def test_arguments(complain, arguments, parts):
    message = complain(*arguments)
    for part in parts:
        assert part in message, message


@pytest.mark.parametrize(
    ("change", "parts"),
    [
        ("kmin", ["'kmin'", "NAME=VALUE"]),
        ("colour=red", ["'colour'", "classes training, checkpoint", "topology"]),
        ("gold.kmin_bytes=1", ["'gold'", "classes training, checkpoint"]),
        ("training.speed=1", ["'speed'", "kmin_bytes", "initial_alpha"]),
        ("training.enabled=false", ["classes.training.ecn.enabled or tenants.training.dcqcn"]),
        ("classes.gold.ecn.pmax=1", ["'gold'", "training, checkpoint"]),
        ("classes.training.ecn.slope=1", ["'slope'", "kmin_bytes, kmax_bytes, pmax"]),
        ("classes.training.ecn=5", ["classes.training.ecn = 5", "a mapping"]),
        ("class/training/speed=1", ["'speed'", "kmax_ratio"]),
        ("tenant/training/kmin=1", ["'kmin'", "increase_timer"]),
        ("class/training/kmax_ratio=0.5", ["kmax_ratio = 0.5", "1 and above"]),
        ("topology.host=1", ["topology has no 'host'", "hosts_per_leaf"]),
        ("training.g=.nan", ["training.g", "nan", "finite"]),
        ("training.g=nan", ["training.g", "nan"]),
        ("training.g=2", ["training.g", "2", "equal to 1"]),
        ("training.pmax=.inf", ["training.ecn.pmax", "inf"]),
        ("training.kmin_bytes=-1", ["classes.training.ecn.kmin_bytes", "-1", "equal to 0"]),
        ("training.kmin_bytes=[1", ["--set 'training.kmin_bytes=[1'"]),
        ("training.reserved_bytes=9e6", ["reserved_bytes", "switch.buffer_bytes"]),
        ("nic.mtu_bytes=1", ["nic.mtu_bytes", "1", "equal to 64"]),
    ],
)
def test_set(complain, change, parts):
    message = complain("describe", "noisy_neighbor", "--set", change)
    for part in parts:
        assert part in message, message


def test_several_faults_are_listed_under_one_error(tmp_path, capsys):
    path = tmp_path / "bad.yaml"
    path.write_text(yaml.safe_dump(changed(topology__hosts=1, tenants__0__weight=-1)))
    assert main(["run", str(path)]) == 2
    first, second = capsys.readouterr().err.splitlines()
    assert first.startswith("error: ") and "topology.hosts" in first
    assert second.startswith("       ") and "tenants.one.weight" in second


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_action_that_is_not_finite(value):
    env = gymnasium.make(
        "RoCE/RegimeShift-v0", overrides=["control.horizon_us=200"], disable_env_checker=True
    )
    env.reset(seed=0)
    action = np.zeros(env.action_space.shape, np.float32)
    action[3] = value
    with pytest.raises(ActionError, match=rf"action\[3\] .* = {value} is not allowed; allowed: "):
        env.step(action)
    env.close()
