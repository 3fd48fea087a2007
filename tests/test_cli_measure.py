"""What the command line says about latencies, bandwidth, counters, blame and suspects."""

import csv
import json
import math
import re

import numpy as np
import pytest

from roce_gym.cli import main
from roce_gym.fabric import Fabric
from roce_gym.scenario_file import load_scenario


def refused(capsys, *arguments):
    assert main([str(argument) for argument in arguments]) == 2
    return capsys.readouterr().err


RUN = ("run", "noisy_neighbor", "--duration-us", 3000)

# --------------------------------------------------------------------------- latency, bandwidth


def test_latency(command):
    run = ("run", "noisy_neighbor", "--duration-us", 9000)
    plain = json.loads(command(*run, "--json"))
    found = json.loads(command(*run, "--json", "--latency"))
    text = command(*run, "--latency")
    assert plain["fabric"]["latency"] is None
    scenario = load_scenario("noisy_neighbor", 0, ["simulator.latency_histograms=true"])
    latency = Fabric(scenario, 0).advance(us=9000).latency
    for index, (tenant, numbers) in enumerate(found["tenants"].items()):
        assert plain["tenants"][tenant]["latency"] is None
        assert plain["tenants"][tenant]["cct_mean_us"] == numbers["cct_mean_us"]
        for what in ("message", "packet"):
            times, shown = latency.of(what, [index]), numbers["latency"][what]
            assert shown["count"] == times.count > 0
            assert shown["mean_us"] == pytest.approx(times.mean_ps / 1e6)
            quantiles = [shown[f"{name}_us"] for name in ("p50", "p99", "p99_9", "p99_99", "max")]
            shares = (0.5, 0.99, 0.999, 0.9999)
            expected = [times.quantile_ps(share) / 1e6 for share in shares]
            assert quantiles == [*expected, times.max_ps / 1e6] == sorted(quantiles)
            row = re.search(rf"^  {tenant} +{what} +(.*)$", text, re.M)[1].split()
            assert row[0] == f"{times.count:,}"
            assert row[2:] == [f"{value:,.1f}" for value in quantiles]
    counts = [t["latency"]["packet"]["count"] for t in found["tenants"].values()]
    assert found["fabric"]["latency"]["packet"]["count"] == sum(counts)


def test_latency_of_nothing(command):
    found = json.loads(
        command("run", "noisy_neighbor", "--duration-us", 100, "--json", "--latency")
    )
    message = found["tenants"]["checkpoint"]["latency"]["message"]
    assert message == {"count": 0, **dict.fromkeys(message.keys() - {"count"})}


def test_latency_in_info():
    import gymnasium

    import roce_gym  # noqa: F401

    scenario = load_scenario("noisy_neighbor", 0, ["simulator.latency_histograms=true"])
    off = gymnasium.make("RoCE/NoisyNeighbor-v0").unwrapped
    on = gymnasium.make("RoCE/NoisyNeighbor-v0", scenario=scenario).unwrapped
    (_, none), (_, first) = off.reset(seed=1), on.reset(seed=1)
    _, _, _, _, info = on.step(on.action_space.sample() * 0)
    keys = {
        f"{what}_latency_p99_us/{t}"
        for what in ("message", "packet")
        for t in ("training", "checkpoint")
    }
    assert keys == first.keys() - none.keys() == {k for k in info if "latency" in k}
    assert info["packet_latency_p99_us/training"] > 2
    assert info["message_latency_p99_us/checkpoint"] == 0.0


def test_effective_bandwidth(command):
    found = json.loads(command("run", "noisy_neighbor", "--json"))
    scenario = load_scenario("noisy_neighbor")
    taken = needed = 0.0
    for tenant, config in zip(found["tenants"].values(), scenario.tenants, strict=True):
        (job,) = config.jobs
        n = len(config.hosts)
        total = 2 * (n - 1) * math.ceil(job.bytes / n) * n if n > 6 else job.degree * job.bytes
        expected = 8 * total / tenant["cct_mean_us"] / 1e3
        assert tenant["effective_bandwidth_gbps"] == pytest.approx(expected)
        assert tenant["effective_bandwidth_share"] == pytest.approx(1 / tenant["slowdown"])
        taken += tenant["rounds_completed"] * tenant["cct_mean_us"]
        needed += tenant["rounds_completed"] * tenant["cct_alone_us"]
    fabric = found["fabric"]
    assert fabric["effective_bandwidth_share"] == pytest.approx(needed / taken)
    goodput = sum(tenant["goodput_gbps"] for tenant in found["tenants"].values())
    assert fabric["goodput_gbps"] == pytest.approx(goodput)


# --------------------------------------------------------------------------- counters


def test_timeline(command, tmp_path):
    path = tmp_path / "timeline.csv"
    found = json.loads(command(*RUN, "--json", "--timeline", path))
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    times = sorted({float(row["time_us"]) for row in rows})
    assert times == [200.0 * i for i in range(16)]
    assert len(rows) == len(times) * 48
    last = [row for row in rows if float(row["time_us"]) == times[-1]]
    frames = sum(
        int(row[f"SAI_PORT_STAT_PFC_{p}_TX_PKTS"])
        for row in last
        for p in (3, 4)
        if row["device"].startswith("switch")
    )
    assert found["fabric"]["pause_frames"] <= frames <= 2 * found["fabric"]["pause_frames"]
    nic = next(row for row in last if row["device"] == "host 0")
    assert nic["SAI_QUEUE_STAT_BYTES:3"] == "" and int(nic["tx_prio3_bytes"]) > 0
    assert "tenant" not in path.read_text()


@pytest.mark.parametrize("option", ["--timeline", "--prometheus"])
def test_files_are_replaced_only_if_told_to(command, capsys, tmp_path, option):
    path = tmp_path / "file.csv"
    path.write_text("mine")
    arguments = ("run", "rail_ring", "--duration-us", 300, option, path)
    assert f"{option}: '{path}' exists; --force replaces it" in refused(capsys, *arguments)
    assert path.read_text() == "mine"
    command(*arguments, "--force")
    assert path.read_text() != "mine" and list(tmp_path.iterdir()) == [path]


def test_files_are_different(capsys, tmp_path):
    path = tmp_path / "file.csv"
    error = refused(capsys, "run", "rail_ring", "--trace", path, "--timeline", path)
    assert f"--trace, --timeline: name the same file {str(path)!r}" in error
    assert not list(tmp_path.iterdir())


def test_a_full_disk(capsys, tmp_path, monkeypatch):
    def fail(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pathlib.Path.write_text", fail)
    path = tmp_path / "metrics.prom"
    error = refused(capsys, "run", "rail_ring", "--duration-us", 300, "--prometheus", path)
    assert f"--prometheus: '{path}' cannot be written: No space left on device" in error
    assert not list(tmp_path.iterdir())


def test_timeline_needs_a_format(capsys, tmp_path):
    error = refused(capsys, "run", "rail_ring", "--timeline", tmp_path / "timeline.xlsx")
    assert "--timeline: 'timeline.xlsx' is not allowed; allowed: *.csv or .parquet" in error


METRIC = re.compile(
    r'^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{([a-z_]+="[^"\\]*"(?:,[a-z_]+="[^"\\]*")*)\})? (\S+)$'
)


def test_prometheus(command, tmp_path):
    path, timeline = tmp_path / "metrics.prom", tmp_path / "timeline.csv"
    command(*RUN, "--prometheus", path, "--timeline", timeline)
    text = path.read_text()
    assert text.endswith("\n") and "\n\n" not in text
    kinds, helps, values, order = {}, set(), {}, []
    for line in text.splitlines():
        if line.startswith("# HELP "):
            helps.add(line.split()[2])
            assert len(line.split()) > 3
        elif line.startswith("# TYPE "):
            name, kind = line.split()[2:]
            assert name not in kinds and name in helps and kind in ("counter", "gauge")
            kinds[name] = kind
        else:
            name, labels, value = METRIC.match(line).groups()
            assert name in kinds
            if not order or order[-1] != name:
                order.append(name)
            assert (name, labels) not in values
            values[name, labels] = float(value)
    assert len(order) == len(set(order)) == len(kinds)  # each metric's samples stand together
    assert values["roce_gym_simulated_seconds", None] == 0.003
    with timeline.open(newline="") as file:
        last = list(csv.DictReader(file))[-48:]
    compared = 0
    for row in last:
        for name in ("SAI_QUEUE_STAT_BYTES:3", "SAI_PORT_STAT_PFC_4_RX_PKTS", "tx_prio3_packets"):
            metric, _, queue = name.partition(":")
            labels = f'device="{row["device"]}",port="{row["port"]}",neighbor="{row["neighbor"]}"'
            labels += f',queue="{queue}"' if queue else ""
            assert ((metric, labels) in values) == (row[name] != "")
            if row[name]:
                assert values[metric, labels] == float(row[name])
                compared += 1
    assert compared == 2 * 32 + 16


# --------------------------------------------------------------------------- blame, diagnose


def test_blame(command):
    arguments = ("blame", "noisy_neighbor", "--duration-us", 8000, "--processes", 1)
    found = json.loads(command(*arguments, "--json"))
    text = command(*arguments)
    training = found["tenants"]["training"]
    assert training["worst"] == "checkpoint"
    assert training["sentence"] in text
    mean = training["slowed_by"]["checkpoint"]["mean"]
    assert f"{100 * mean:,.1f} %" in text
    assert training["slowed_by"].keys() == {"checkpoint"}


def test_blame_takes_settings_and_seeds(command):
    arguments = ("blame", "noisy_neighbor", "--duration-us", 4000, "--seeds", 2, "--seed", 5)
    found = json.loads(command(*arguments, "--preset", "pfc_only", "--json", "--processes", 1))
    assert found["seeds"] == [5, 6] and found["preset"] == "pfc_only"
    by_seed = found["tenants"]["training"]["interference"]["by_seed"]
    assert len(by_seed) == 2 and by_seed[0] != by_seed[1]
    run = ("run", "noisy_neighbor", "--duration-us", 4000, "--preset", "pfc_only", "--json")
    shared = [json.loads(command(*run, "--seed", s))["tenants"]["training"] for s in (5, 6)]
    assert by_seed == pytest.approx([one["interference"] for one in shared], abs=0.15)


def test_blame_needs_tenants(capsys):
    assert "blame needs at least 2" in refused(capsys, "blame", "gray_failure")


@pytest.mark.parametrize("bad", ["0", "-1", "x", "1001"])
def test_blame_counts(capsys, bad):
    for option in ("--seeds", "--processes"):
        error = refused(capsys, "blame", "noisy_neighbor", option, bad)
        assert f"{option}: {bad!r} is not allowed; allowed: whole numbers, 1 … 1000" in error


def test_diagnose_a_scenario_and_its_timeline(command, tmp_path):
    path = tmp_path / "timeline.csv"
    command("run", "pfc_storm", "--timeline", path)
    direct = json.loads(command("diagnose", "pfc_storm", "--json"))
    read = json.loads(command("diagnose", path, "--json"))
    assert direct.pop("source") == "pfc_storm" and read.pop("source") == str(path)
    assert direct == read
    (suspect,) = read["suspects"]
    assert (suspect["rule"], suspect["device"]) == ("storming_nic", "host 0")
    text = command("diagnose", path)
    assert all(sentence in text for sentence in (suspect["verdict"], *suspect["evidence"]))


def test_diagnose_the_bent_fibre(command):
    text = command("diagnose", "gray_failure")
    assert "the link from switch 11 to switch 9 corrupts packets" in text


def test_diagnose_nothing(command):
    arguments = ("diagnose", "gray_failure", "--set", "link_events=[]")
    assert command(*arguments).splitlines()[-1] == "nothing suspicious"
    assert json.loads(command(*arguments, "--json"))["suspects"] == []


def test_diagnose_refuses(capsys, tmp_path):
    path = tmp_path / "timeline.csv"
    assert "cannot be read" in refused(capsys, "diagnose", path)
    path.write_text("a,b\n1,2\n")
    assert "column time_us" in refused(capsys, "diagnose", path)
    error = refused(capsys, "diagnose", path, "--seed", 1, "--set", "a.b=1")
    assert "--set, --seed: only for scenarios" in error


def test_attributes_do_not_change(command, tmp_path):
    path = tmp_path / "timeline.csv"
    command("run", "rail_ring", "--duration-us", 500, "--timeline", path)
    with path.open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["device"].startswith("switch")]
    for name in ("SAI_BUFFER_POOL_ATTR_SIZE", "SAI_BUFFER_PROFILE_ATTR_XOFF_TH:3"):
        by_port = {}
        for row in rows:
            by_port.setdefault((row["device"], row["port"]), set()).add(row[name])
        assert all(len(values) == 1 for values in by_port.values())
        assert np.all([float(next(iter(values))) > 0 for values in by_port.values()])
