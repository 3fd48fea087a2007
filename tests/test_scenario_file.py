import copy
import pickle
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roce_gym.config import TopologyFile, validate_scenario
from roce_gym.errors import ConfigError
from roce_gym.scenario_file import (
    Drawer,
    apply_overrides,
    available_scenarios,
    draw,
    load_raw,
    load_scenario,
    read,
)

GOOD = """\
name: test
topology: {kind: star, hosts: 8}
tenants:
  - name: alpha
    hosts: [0, 1, 2]
    jobs:
      - {kind: ring_all_reduce, bytes: 1e6, compute_us: {uniform: [10.0, 20.0]}}
  - name: beta
    hosts: {kind: packed, count: 3}
    jobs:
      - {kind: incast, bytes: {log_uniform: [1000, 1000000]}, degree: 2, period_us: 100}
      - {kind: flows, file: flow.txt}
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "test.yaml"
    path.write_text(GOOD, encoding="utf-8")
    return path


def test_load(file):
    scenario = load_scenario(file, seed=3)
    assert scenario == load_scenario(str(file), seed=3) != load_scenario(file, seed=4)
    ring, incast, flows = (job for tenant in scenario.tenants for job in tenant.jobs)
    assert ring.bytes == 1_000_000
    assert 10 <= ring.compute_us <= 20 and ring.compute_us != int(ring.compute_us)
    assert isinstance(incast.bytes, int) and 1000 <= incast.bytes <= 1_000_000
    assert flows.file == str(file.parent / "flow.txt")


def test_load__files_are_relative_to_the_scenario(tmp_path, monkeypatch):
    (tmp_path / "deep").mkdir()
    path = tmp_path / "deep" / "test.yml"
    path.write_text(
        GOOD.replace("{kind: star, hosts: 8}", "{kind: hpcc_file, path: ../t.txt}").replace(
            "flow.txt", "{choice: [a.txt, /b.txt]}"
        )
    )
    monkeypatch.chdir(tmp_path / "deep")
    scenarios = [load_scenario("./test.yml", seed=seed) for seed in range(8)]
    assert isinstance(scenarios[0].topology, TopologyFile)
    assert scenarios[0].topology.path == str(tmp_path / "deep" / ".." / "t.txt")
    files = {scenario.tenants[1].jobs[1].file for scenario in scenarios}
    assert files == {str(tmp_path / "deep" / "a.txt"), "/b.txt"}
    override = "tenants.beta.jobs.1.file=here.txt"
    assert load_scenario("test.yml", overrides=[override]).tenants[1].jobs[1].file == "here.txt"


def test_packaged_scenarios(tmp_path, monkeypatch):
    package, checkout = tmp_path / "package", tmp_path / "checkout"
    for folder, name in ((package, "one"), (checkout, "one"), (checkout, "two")):
        folder.mkdir(exist_ok=True)
        text = GOOD.replace("name: test", f"name: {folder.name}")
        (folder / f"{name}.yaml").write_text(text)
    monkeypatch.setattr(read, "_FOLDERS", (package, tmp_path / "absent", checkout))
    assert available_scenarios() == ["one", "two"]
    assert load_scenario("one").name == "package"
    assert load_scenario("two").name == "checkout"
    with pytest.raises(ConfigError, match=r"scenario 'three' is unknown; packaged .*: one, two"):
        load_scenario("three")
    with pytest.raises(ConfigError, match=r"three.yaml: cannot be read: .*; packaged .*: one, two"):
        load_scenario("three.yaml")


@pytest.mark.parametrize("name", available_scenarios())
def test_packaged_scenarios__are_valid(name):
    for seed in range(3):
        load_scenario(name, seed=seed)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\nb: [1, 2\n", r"bad.yaml, line 3: "),
        ("a: 1\nb: 2\na: 3\n", r"bad.yaml, line 3: key 'a' is given twice"),
        ("a: 1\n\tb: 2\n", r"bad.yaml, line 2: "),
        ("a: 1\nb: \x00\n", r"bad.yaml, line 2: "),
        ("a: 1\n---\nb: 2\n", r"bad.yaml, line 2: "),
        ("a: !!python/object:os.system x\n", r"bad.yaml, line 1: could not determine"),
        ("a: 2026-13-45\n", r"bad.yaml: "),
        ("a: &x [*x]\n", "refers to itself"),
        ("[" * 900, "nested too deeply"),
        ("- 1\n", "a mapping is expected, found list"),
        ("", "a mapping is expected, found NoneType"),
    ],
)
def test_load__bad_yaml(tmp_path, text, message):
    path = tmp_path / "bad.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=message):
        load_raw(path)


def test_load__not_text_and_not_there(tmp_path):
    path = tmp_path / "bad.yaml"
    path.write_bytes(b"name: \xff")
    with pytest.raises(ConfigError, match=r"not UTF-8 text \(byte 6\)"):
        load_raw(path)
    for absent in (tmp_path, tmp_path / "absent", "a\0b.yaml"):
        with pytest.raises(ConfigError, match="cannot be read"):
            load_raw(absent)


def test_load__faults_name_the_file_in_each_line(file):
    with pytest.raises(ConfigError) as caught:
        load_scenario(file, overrides=["topology.hosts=1", "tenants.0.weight=-1"])
    lines = str(caught.value).splitlines()
    assert len(lines) == 2
    assert all(line.startswith(f"{file}: t") for line in lines)


def test_yaml__aliases_are_not_shared(tmp_path):
    path = tmp_path / "alias.yaml"
    path.write_text("a: &a {x: 1}\nb: *a\nc: {<<: *a, x: 3}\nd: [1e3, 2E-1, 1.5e+2, .5e1, e1]\n")
    raw = load_raw(path)
    assert raw["c"] == {"x": 3}
    assert raw["d"] == [1000.0, 0.2, 150.0, 5.0, "e1"]
    assert apply_overrides(raw, ["a.x=2"])["b"] == {"x": 1}


# --------------------------------------------------------------------------- distributions


def test_draw__kinds_and_bounds():
    raw = {
        "whole": {"uniform": [1, 3]},
        "real": {"uniform": [1.0, 3]},
        "log_whole": {"log_uniform": [1, 1000]},
        "log_real": {"log_uniform": [1.0, 1000.0]},
        "integers": {"integers": [-1, 1]},
        "choice": {"choice": ["a", {"b": 1}]},
        "none": {"uniform": 1, "other": 2},
        "fixed": {"uniform": [5, 5]},
    }
    before = copy.deepcopy(raw)
    draws = [draw(raw, seed) for seed in range(300)]
    assert raw == before
    assert {d["whole"] for d in draws} == {1, 2, 3}
    assert all(isinstance(d["whole"], int) and isinstance(d["log_whole"], int) for d in draws)
    assert all(isinstance(d["real"], float) and 1 <= d["real"] <= 3 for d in draws)
    assert {d["integers"] for d in draws} == {-1, 0, 1}
    assert {str(d["choice"]) for d in draws} == {"a", "{'b': 1}"}
    assert all(d["none"] == before["none"] and d["fixed"] == 5 for d in draws)
    # Half of the draws lie below the geometric mean, 31.6; standard deviation 8.7.
    for key in ("log_whole", "log_real"):
        assert 110 < sum(d[key] < 31.6 for d in draws) < 190
        assert all(1 <= d[key] <= 1000 for d in draws)


def test_draw__one_distribution_does_not_change_others():
    dist = {"uniform": [0.0, 1.0]}
    raw = {"a": dist, "b": {"c": dist}, "jobs": [dist, dist]}
    drawn = draw(raw, 7)
    values = [drawn["a"], drawn["b"]["c"], *drawn["jobs"]]
    assert len(set(values)) == 4
    more = draw({"new": dist} | raw | {"a": 5}, 7)
    assert more["b"] == drawn["b"] and more["jobs"] == drawn["jobs"] and more["a"] == 5
    assert draw(raw, 8)["a"] != drawn["a"]


def test_draw__named_elements_keep_their_draws_when_others_come_first():
    one = {"name": "one", "x": {"uniform": [0.0, 1.0]}}
    two = {"name": "two", "x": {"uniform": [0.0, 1.0]}}
    assert draw({"t": [two]}, 1)["t"][0] == draw({"t": [one, two]}, 1)["t"][1]


def test_draw__choice_of_distributions():
    raw = {"x": {"choice": [{"uniform": [0.0, 1.0]}, {"kind": "k", "y": {"integers": [5, 6]}}]}}
    draws = [draw(raw, seed)["x"] for seed in range(50)]
    assert {d["y"] for d in draws if isinstance(d, dict)} == {5, 6}
    assert len({d for d in draws if isinstance(d, float)}) > 10


@pytest.mark.parametrize(
    ("dist", "message"),
    [
        ({"uniform": [1]}, r"a.b.uniform = \[1\]: two numbers"),
        ({"uniform": 1}, "two numbers"),
        ({"uniform": [True, 2]}, "two numbers"),
        ({"uniform": ["1", "2"]}, "two numbers"),
        ({"uniform": [float("nan"), 2]}, "two numbers"),
        ({"uniform": [0, float("inf")]}, "two numbers"),
        ({"integers": [0, 10**400]}, "two numbers"),
        ({"uniform": [2, 1]}, "the lower bound must come first"),
        ({"log_uniform": [0, 1]}, "bounds above 0"),
        ({"integers": [0, 1.5]}, "whole bounds"),
        ({"choice": []}, "a list of at least one value"),
        ({"choice": "abc"}, "a list of at least one value"),
    ],
)
def test_draw__faults_name_the_place(dist, message):
    with pytest.raises(ConfigError, match=message) as caught:
        draw({"a": {"b": dist}}, 0)
    assert str(caught.value).startswith("a.b.")


def test_drawer__draws_what_draw_does_also_as_a_copy():
    raw = load_raw("regime_shift")
    before = copy.deepcopy(raw)
    drawer = Drawer(raw)
    seeds = [0, 5, 10**12 + 5, 2 * 10**12, 5]
    expected = [draw(raw, seed) for seed in seeds]
    assert [drawer(seed) for seed in seeds] == expected
    for twin in (copy.deepcopy(drawer), pickle.loads(pickle.dumps(drawer))):
        assert [twin(seed) for seed in seeds] == expected
    assert raw == before


def test_draw__negative_seed():
    with pytest.raises(ConfigError, match="seed = -1 is not allowed"):
        draw({}, -1)


@settings(deadline=None)
@given(
    bounds=st.tuples(st.integers(1, 2**53), st.integers(1, 2**53)).map(sorted),
    kind=st.sampled_from(["uniform", "log_uniform", "integers"]),
    is_real=st.booleans(),
    seed=st.integers(0, 2**63),
)
def test_draw__stays_within_bounds(bounds, kind, is_real, seed):
    low, high = map(float, bounds) if is_real and kind != "integers" else bounds
    value = draw({"x": {kind: [low, high]}}, seed)["x"]
    assert low <= value <= high
    assert type(value) is type(low)


# --------------------------------------------------------------------------- overrides


@pytest.mark.parametrize(
    ("override", "place", "value"),
    [
        ("topology.hosts=16", ("topology", "hosts"), 16),
        ("tenants.beta.hosts.count=4", ("tenants", 1, "hosts", "count"), 4),
        ("tenants.0.hosts=[4, 5]", ("tenants", 0, "hosts"), [4, 5]),
        ("tenants.0.hosts.1=7", ("tenants", 0, "hosts", 1), 7),
        ("tenants.alpha.jobs.0.compute_us=5", ("tenants", 0, "jobs", 0, "compute_us"), 5),
        ("tenants.alpha.jobs.0.channels=2", ("tenants", 0, "jobs", 0, "channels"), 2),
        ("nic.mtu_bytes=1024", ("nic", "mtu_bytes"), 1024),
        ("classes.roce.lossless=false", ("classes", 0, "lossless"), False),
        ("classes.0.buffer.alpha=1", ("classes", 0, "buffer", "alpha"), 1),
        ("tenants.beta.dcqcn.g=1e-2", ("tenants", 1, "dcqcn", "g"), 0.01),
        ("preset=pfc_only", ("preset",), "pfc_only"),
        ("summary=a=b", ("summary",), "a=b"),
    ],
)
def test_override(file, override, place, value):
    raw = load_raw(file)
    before = copy.deepcopy(raw)
    changed = apply_overrides(raw, [override])
    assert raw == before
    node = changed
    for key in place:
        node = node[key]
    assert node == value
    validate_scenario(draw(changed, 0))


def test_override__keeps_other_defaults_of_a_table(file):
    weights = load_scenario(file, overrides=["control.reward_weights.pfc=0"]).control.reward_weights
    assert weights == {"completion": 1.0, "pfc": 0.0, "interference": 0.1}


def test_override__value_may_be_a_distribution_and_order_counts(file):
    overrides = ["topology.hosts=9", "topology.hosts={integers: [20, 30]}"]
    hosts = {load_scenario(file, seed, overrides).topology.hosts for seed in range(20)}
    assert hosts <= set(range(20, 31)) and len(hosts) > 3


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("topology.hosts", "not of the form dotted.path=value"),
        ("=5", "not of the form dotted.path=value"),
        ("topology.hosts=[1", "override 'topology.hosts=.1', line 1"),
        ("topology.host=1", "topology has no 'host'; there is: kind, hosts, host_rate_gbps"),
        ("topologie.hosts=1", "scenario has no 'topologie'; there is: name, topology, tenants,"),
        ("tenants.gamma.weight=1", "tenants has no 'gamma'; there is: alpha, beta"),
        ("tenants.2.weight=1", "tenants has no '2'; there is: alpha, beta"),
        ("tenants.-1.weight=1", "tenants has no '-1'"),
        ("tenants.alpha.jobs.1.bytes=1", "tenants.alpha.jobs has no '1'; there is: 0"),
        ("tenants.alpha.jobs.0.degree=1", "has no 'degree'; there is: kind, bytes, compute_us"),
        ("topology.hosts.x=1", "topology.hosts = 8 has no part 'x'"),
        ("topology..hosts=1", "topology has no ''"),
        ("tenants.beta.jobs.0.bytes.log_uniform=1", "is drawn at random; replace all of it"),
        ("control.reward_weights.latency=1", "there is: completion, pfc, interference"),
        ("nic.mtu=1", "nic has no 'mtu'; there is: mtu_bytes"),
    ],
)
def test_override__faults(file, override, message):
    with pytest.raises(ConfigError, match=message):
        apply_overrides(load_raw(file), [override])


def test_folders__cover_package_and_checkout():
    package = Path(read.__file__).parents[1]
    assert package.name == "roce_gym"
    assert read._FOLDERS == (package / "envs_config", package.parent / "envs_config")
