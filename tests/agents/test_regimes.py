import yaml
from small import SMALL

from agents.regimes import Regime, find_regimes, regime_at
from roce_gym.config import validate_scenario
from roce_gym.scenario_file import draw, load_raw


def scenario(jobs=None, **more):
    raw = yaml.safe_load(yaml.safe_dump(SMALL | more))
    raw["tenants"][0]["jobs"] = [{"kind": "ring_all_reduce", "bytes": 100_000}]
    if jobs is not None:
        raw["tenants"][1]["jobs"] = jobs
    return raw


def burst(start_us, stop_us, degree=3):
    window = {"start_us": start_us, "stop_us": stop_us}
    return {"kind": "incast", "bytes": 9_000, "degree": degree, "period_us": 50} | window


def found(raw):
    return find_regimes(validate_scenario(raw))


def test_what_is_always_there_is_no_regime():
    assert found(scenario()) == (Regime(0.0, "usual"),)


def test_windows_begin_end_and_overlap():
    jobs = [
        burst(100, 300),
        {"kind": "all_to_all", "bytes": 9_000, "start_us": 200, "stop_us": 900},
    ]
    assert found(scenario(jobs)) == (
        Regime(0.0, "usual"),
        Regime(100.0, "burst incast of 3"),
        Regime(200.0, "burst all_to_all + burst incast of 3"),
        Regime(300.0, "burst all_to_all"),  # ends after the horizon of 500
    )


def test_a_window_that_goes_on_as_another_one_is_one_regime():
    assert found(scenario([burst(0, 200), burst(200, 400)])) == (
        Regime(0.0, "burst incast of 3"),
        Regime(400.0, "usual"),
    )
    names = [r.name for r in found(scenario([burst(0, 200), burst(200, 500, degree=2)]))]
    assert names == ["burst incast of 3", "burst incast of 2"]


def test_tenants_come_and_go():
    raw = scenario([burst(50, 150)])
    raw["tenants"][1] |= {"arrive_us": 100, "leave_us": 200}
    assert found(raw) == (
        Regime(0.0, "usual"),
        Regime(150.0, "burst incast of 3"),
        Regime(200.0, "usual"),
    )


def test_links_change():
    event = {"kind": "slow", "between": [0, 6], "rate_gbps": 25, "start_us": 120, "stop_us": 330}
    raw = scenario(link_events=[event])
    assert found(raw) == (Regime(0.0, "usual"), Regime(120.0, "link slow"), Regime(330.0, "usual"))


def test_the_regime_at_a_time():
    regimes = (Regime(0.0, "a"), Regime(10.0, "b"), Regime(20.0, "c"))
    assert [regime_at(regimes, time).name for time in (0, 9.9, 10, 15, 20, 1e9)] == list("aabbcc")


def test_packaged_regimes_have_the_same_names_for_every_seed():
    for name, count in (("regime_shift", 3), ("latency_tenant", 3), ("incast_waves", 3)):
        starts = [0.0, 6000.0, 12_000.0]
        for seed in range(6):
            one = found(draw(load_raw(name), seed))
            assert [regime.start_us for regime in one] == starts
            names = {regime.name for regime in one}
            assert len(names) == count
            assert names == {r.name for r in found(draw(load_raw(name), 0))}
