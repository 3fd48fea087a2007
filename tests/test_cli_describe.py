"""What `describe` prints, and what `--set` changes."""

import json
from pathlib import Path

import pytest

from roce_gym.cli.case import load_case
from roce_gym.cli.parser import make_parser
from roce_gym.fabric import Fabric
from roce_gym.scenario_file import available_scenarios, load_scenario
from roce_gym.workload.placement import place_tenants

EXAMPLE = Path(__file__).parents[1] / "docs" / "examples" / "my_sender.py"


@pytest.mark.parametrize("name", available_scenarios())
def test_describe(command, name):
    text, found = command("describe", name), json.loads(command("describe", name, "--json"))
    scenario = load_scenario(name)
    assert found["scenario"] == scenario.model_dump(mode="json")
    fabric = Fabric(scenario)
    assert found["settings"] == fabric.settings.model_dump(mode="json")
    pool = int(fabric._state.switch["pool"][fabric.network.num_servers :].min())
    buffer = found["buffer"]
    assert buffer["shared_bytes"] == pool
    parts = ("headroom", "reserved", "shared")
    assert sum(buffer[f"{part}_bytes"] for part in parts) == buffer["buffer_bytes"]
    assert f"{pool:,} B" in text
    for knob in found["knobs"]:
        assert knob["name"] in text
    placed = place_tenants(scenario.tenants, fabric.network, 0)
    for index, tenant in enumerate(scenario.tenants):
        shown = found["tenants"][tenant.name]["hosts"]
        hosts = list(placed[index])
        if isinstance(tenant.hosts, tuple):
            assert shown == hosts
        else:  # those of them that talk
            assert len(shown) > 1 and shown == sorted(set(shown) & set(hosts))
        assert " ".join(map(str, shown[:32])) in text


def test_describe__routing_and_link_events(command):
    text = command("describe", "gray_failure", "--set", "routing.policy=adaptive")
    for words in ("load balancing    adaptive", "11->9: loss 1e-05 from 0 us on", "go_back_n"):
        assert words in text
    change = "link_events=[{kind: slow, between: [8, 10], rate_gbps: 10, start_us: 5, stop_us: 7}]"
    (row,) = [
        row
        for row in command("describe", "gray_failure", "--set", change).splitlines()
        if "link event" in row
    ]
    assert row.endswith("8-10: 10 Gb/s from 5 us to 7 us")


def test_describe__seed_and_preset(command):
    one, two = (command("describe", "noisy_neighbor", "--seed", seed) for seed in (1, 2))
    assert one != two
    found = json.loads(command("describe", "noisy_neighbor", "--preset", "pfc_only", "--json"))
    assert not any(c["ecn"]["enabled"] for c in found["settings"]["classes"].values())
    assert not any(t["enabled"] for t in found["settings"]["tenants"].values())


def test_describe__senders_and_windows(command):
    text = command(
        "describe",
        "noisy_neighbor",
        "--set",
        "tenants.0.cc=timely",
        "--set",
        "tenants.0.timely.beta=0.25",
        "--set",
        "tenants.1.window.bytes=123456",
    )
    assert "senders: timely, t_low_us 50" in text
    assert "beta 0.25" in text
    assert "window: 123,456 B, in proportion to the rate" in text
    table = text.split("DCQCN\n")[1].split("\n\n")[0]
    assert "checkpoint" in table
    assert "training" not in table


@pytest.mark.parametrize(
    ("job", "text"),
    [
        (
            {"kind": "pipeline", "bytes": 1000, "forward_us": 1, "backward_us": 2, "rounds": 3},
            "pipeline: 1,000 B, forward_us 1, backward_us 2, 3 rounds",
        ),
        (
            {"kind": "collective", "operation": "broadcast", "bytes": 1000, "compute_us": 7.5},
            "collective: 1,000 B, compute 7.5 us, operation broadcast",
        ),
        (
            {"kind": "all_to_all", "bytes": 1000, "nccl": {"NCCL_IB_TIMEOUT": 20}},
            "all_to_all: 1,000 B, NCCL_IB_TIMEOUT 20",
        ),
        (
            {"kind": "training", "model": "llama3_8b", "scale": {"layers": 2, "bytes": 0.01}},
            "scale.layers 2, scale.bytes 0.01",
        ),
        (
            {"kind": "inference", "model": "llama3_8b", "tensor": 4, "requests_per_s": 50},
            "tensor 4, requests_per_s 50",
        ),
    ],
    ids=lambda part: part["kind"] if isinstance(part, dict) else "",
)
def test_describe__every_kind_of_job(command, tmp_path, job, text):
    path = tmp_path / "jobs.yaml"
    tenant = {"name": "a", "hosts": [0, 1, 2, 3], "jobs": [job]}
    topology = {"kind": "star", "hosts": 4}
    path.write_text(json.dumps({"name": "jobs", "topology": topology, "tenants": [tenant]}))
    assert text in command("describe", path)


def test_describe__a_users_sender(command):
    user = f"{{file: {EXAMPLE}, function: delay_and_cnp, params: [25, 0.8, 0.001]}}"
    changes = ("--set", "tenants.training.cc=user", "--set", f"tenants.training.user={user}")
    text = command("describe", "noisy_neighbor", *changes)
    wanted = f"senders: user, file {EXAMPLE}, function delay_and_cnp, params [25, 0.8, 0.001]"
    assert wanted in text


# --------------------------------------------------------------------------- --set


def case_of(*arguments):
    return load_case(make_parser().parse_args(["describe", *arguments]))


@pytest.mark.parametrize(
    ("changes", "kind", "owner", "expected"),
    [
        (["checkpoint.kmin_bytes=200000"], "classes", "checkpoint", {"kmin_bytes": 200_000}),
        (["classes.checkpoint.ecn.kmin_bytes=2e5"], "classes", "checkpoint", {"kmin_bytes": 2e5}),
        (["classes.1.buffer.alpha=0.5"], "classes", "checkpoint", {"alpha": 0.5}),
        (["classes.checkpoint.ecn={pmax: 0.5}"], "classes", "checkpoint", {"pmax": 0.5}),
        (
            ["class/checkpoint/kmax_ratio=3", "class/checkpoint/kmin=1000"],
            "classes",
            "checkpoint",
            {"kmin_bytes": 1000, "kmax_bytes": 3000},
        ),
        (["training.g=0.01"], "tenants", "training", {"g": 0.01}),
        (["tenants.training.dcqcn.g=0.01"], "tenants", "training", {"g": 0.01}),
        (["tenant/training/rate_ai=70"], "tenants", "training", {"rate_ai_mbps": 70}),
        (["training.g={uniform: [0.25, 0.25]}"], "tenants", "training", {"g": 0.25}),
        (["training.g=0.1", "training.g=0.2"], "tenants", "training", {"g": 0.2}),
    ],
)
@pytest.mark.parametrize("preset", ["default", "dcqcn_paper"])
def test_set__changes_one_setting_and_nothing_else(changes, kind, owner, expected, preset):
    before = case_of("noisy_neighbor", "--preset", preset).settings.model_dump()
    options = [word for change in changes for word in ("--set", change)]
    case = case_of("noisy_neighbor", "--preset", preset, *options)
    after = case.settings.model_dump()
    for field, value in expected.items():
        parts = [before[kind][owner], after[kind][owner]]
        if kind == "classes":
            section = "ecn" if field in parts[0]["ecn"] else "buffer"
            parts = [part[section] for part in parts]
        assert parts[1][field] == value
        parts[0][field] = value
    assert before == after
    assert case.base == load_scenario("noisy_neighbor")
    assert Fabric(case.scenario).settings == case.settings


def test_set__scenario_fields():
    case = case_of("noisy_neighbor", "--set", "nic.mtu_bytes=1024", "--set", "topology.spines=2")
    assert case.base.nic.mtu_bytes == 1024
    assert case.network.num_switches == 6


def test_describe__switches_that_differ(command):
    overrides = (
        "switch.overrides=[{tier: spine, classes: {training: {ecn: {kmin_bytes: 100000, "
        "kmax_bytes: 400000, pmax: 0.5}}}}, {switches: [17], classes: {training: {alpha: 0.03125, "
        "reserved_bytes: 9096}, checkpoint: {static_threshold_bytes: 60000}}}]"
    )
    text = command("describe", "noisy_neighbor", "--set", overrides)
    rows = text.split("switch overrides\n")[1].split("\n\n")[0].splitlines()
    assert [row.strip() for row in rows] == [
        "all of tier spine  training: ECN 100,000 … 400,000 B, pmax 0.5",
        "switch 17          training: alpha 0.03125, reserve 9,096 B/port",
        "switch 17          checkpoint: threshold 60,000 B",
    ]
    # 6 ports with 9,096 and 4,096 bytes; the other leaves have 2 x 4,096.
    assert "reserved             79,152 B" in text and "at                   switch 17" in text
    plain = command("describe", "noisy_neighbor")
    assert "switch overrides" not in plain and "reserved             49,152 B" in plain
