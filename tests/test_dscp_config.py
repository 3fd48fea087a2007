"""Maps of DSCPs in scenarios: what is refused and with what message, overrides, what is printed."""

import json

import pytest
import yaml
from small import SMALL

from roce_gym.cli import main
from roce_gym.config import validate_scenario
from roce_gym.errors import ConfigError
from roce_gym.fabric import Fabric
from roce_gym.scenario_file import apply_overrides

CLASSES = [{"name": "roce", "priority": 3}, {"name": "bulk", "priority": 0, "lossless": False}]


def scenario(maps, classes=CLASSES, **fields):
    """On one switch, node 6."""
    jobs = [{"kind": "ring_all_reduce", "bytes": 100_000}]
    tenant = SMALL["tenants"][0] | {"traffic_class": "roce", "jobs": jobs} | fields
    return SMALL | {"classes": classes, "tenants": [tenant], "switch": {"dscp": maps}}


@pytest.mark.parametrize(
    ("dscp", "message"),
    [
        ({"map": {26: "gold"}}, r"switch.dscp.map.26 = 'gold' is not a class; allowed: \['bulk', "),
        ({"default": "gold"}, "switch.dscp.default = 'gold' is not a class"),
        ({"map": {64: "roce"}}, r"switch.dscp.map.64: must be less than .* 63 \(got 64\)"),
        ({"map": {-1: "roce"}}, r"switch.dscp.map.-1: must be greater than .* 0 \(got -1\)"),
        ({"map": {"af31": "roce"}}, r"switch.dscp.map.af31: must be a whole number \(got 'af31'\)"),
        ({"mapp": {}}, "switch.dscp.mapp: unknown key; allowed: map, default, overrides"),
        (
            {"overrides": [{"tier": "leaf", "map": {0: "gold"}}]},
            "switch.dscp.overrides.0.map.0 = 'gold' is not a class",
        ),
        ({"overrides": [{"map": {0: "roce"}}]}, "exactly one of them"),
        ({"overrides": [{"tier": "leaf", "switches": [6]}]}, "exactly one of them"),
        (
            {"overrides": [{"tier": "leaf", "priorities": {"gold": 1}}]},
            r"switch.dscp.overrides.0.priorities.gold = 1: 'gold' is not a class",
        ),
        (
            {"overrides": [{"tier": "leaf", "priorities": {"roce": 8}}]},
            "switch.dscp.overrides.0.priorities.roce: must be less than",
        ),
    ],
)
def test_refused(dscp, message):
    with pytest.raises(ConfigError, match=message):
        validate_scenario(scenario(dscp))


@pytest.mark.parametrize(
    ("dscp", "message"),
    [
        ({"overrides": [{"tier": "core"}]}, r"overrides.0.tier = 'core' .* allowed: \['switch'\]"),
        ({"overrides": [{"switches": [0]}]}, "overrides.0.switches: node 0 is no switch; allowed"),
        (
            {"overrides": [{"tier": "switch", "priorities": {"roce": 0}}]},
            "classes 'roce' and 'bulk' both have priority 0",
        ),
    ],
)
def test_refused_when_the_network_is_known(dscp, message):
    with pytest.raises(ConfigError, match=message):
        Fabric(validate_scenario(scenario(dscp)), seed=0)


@pytest.mark.parametrize("dscp", [{"map": {26: "roce"}}, {"overrides": [{"tier": "switch"}]}])
def test_a_map_that_leads_nowhere(dscp):
    raw = scenario(dscp, dscp=40)  # 40 // 8 is priority 5
    with pytest.raises(ConfigError, match=r"DSCP 40 leads to no class at switch 6: .* priority 5"):
        Fabric(validate_scenario(raw), seed=0)


@pytest.mark.parametrize("place", ["classes.roce", "tenants.ring"])
def test_a_dscp_without_maps_has_no_meaning(place):
    classes = [CLASSES[0] | ({"dscp": 26} if place == "classes.roce" else {}), CLASSES[1]]
    raw = scenario({}, classes, **({"dscp": 26} if place == "tenants.ring" else {}))
    with pytest.raises(ConfigError, match=f"{place}.dscp = 26 has no meaning without switch.dscp"):
        validate_scenario(raw | {"switch": {}})


def test_a_dump_means_the_same():
    one = validate_scenario(scenario({"map": {26: "roce"}, "overrides": [{"switches": [6]}]}))
    assert validate_scenario(one.model_dump(mode="json")) == one
    assert validate_scenario(json.loads(one.model_dump_json())) == one


@pytest.mark.parametrize(
    ("change", "path", "value"),
    [
        ("map.26=bulk", ("map", 26), "bulk"),
        ("map.27=bulk", ("map", 27), "bulk"),
        ("overrides.0.map.26=bulk", ("overrides", 0, "map", 26), "bulk"),
        ("overrides.0.priorities.roce=5", ("overrides", 0, "priorities", "roce"), 5),
        ("overrides=[]", ("overrides",), []),
    ],
)
def test_set(change, path, value):
    raw = scenario({"map": {26: "roce"}, "overrides": [{"switches": [6]}]})
    node = apply_overrides(raw, [f"switch.dscp.{change}"])["switch"]["dscp"]
    for key in path:
        node = node[key]
    assert node == value


def test_set_wants_numbers():
    raw = scenario({"map": {26: "roce"}})
    with pytest.raises(ConfigError, match=r"switch.dscp.map has whole numbers as keys, not 'ef'"):
        apply_overrides(raw, ["switch.dscp.map.ef=roce"])


@pytest.fixture
def written(tmp_path):
    path = tmp_path / "one.yaml"
    dscp = {"map": {26: "roce"}, "default": "bulk", "overrides": [{"tier": "switch"}]}
    path.write_text(yaml.safe_dump(json.loads(json.dumps(scenario(dscp, dscp=26)))))
    return str(path)


def test_describe_prints_the_resolved_map(written, capsys):
    assert main(["describe", written]) == 0
    text = capsys.readouterr().out
    assert "data 26 (roce), ack 26 (roce), cnp 26 (roce)" in text
    assert "switch 6  26 -> roce (priority 3)" in text and "MISMATCH" not in text
    changed = "switch.dscp.overrides.0.map.26=bulk"
    assert main(["describe", written, "--set", changed]) == 0
    text = capsys.readouterr().out
    assert "switch 6  26 -> bulk (priority 0)" in text
    assert "MISMATCH  switch 6 takes DSCP 26 (roce) as bulk" in text
    priorities = "switch.dscp.overrides.0.priorities.roce=5"
    assert main(["describe", written, "--set", priorities]) == 0
    text = capsys.readouterr().out
    assert "switch 6  26 -> roce (priority 5)" in text
    assert "PFC of switch 6 has priority 5 for roce, not 3" in text
    assert main(["describe", written, "--json", "--set", changed]) == 0
    found = json.loads(capsys.readouterr().out)["dscp"]
    assert found["switches"]["switch 6"]["classes"] == {"26": "bulk"}
    assert found["mismatches"] == [
        {"switch": "switch 6", "dscp": 26, "class": "roce", "taken_as": "bulk"}
    ]
