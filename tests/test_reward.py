import numpy as np
import pytest
from small import completions, make_interval, parts

from roce_gym.progress import Alone, Pace, Progress, round_bytes
from roce_gym.reward import TERMS, Reward, RewardTerms
from roce_gym.score import Score

SCENARIO, NETWORK, PLAN = parts()
ALONE = Alone(cct_ps=(50e6, 100e6), busy_fraction=(0.8, 0.5))  # 50 us, 100 us
PACE = Pace(1000e6, 60.0, (900e6, 400e6), (600e6, 400e6))  # of 1,000 us; slowdowns 1.5 and 1
RING_QPS, BURST_QPS = ([i for row in job.qps for i in row] for job in PLAN.jobs)
US = 1_000_000
SMOOTH = 10.0  # us, a tenth of the interval


def judge():
    progress = Progress(SCENARIO, PLAN)
    return progress, RewardTerms(SCENARIO, NETWORK, progress, ALONE, PACE)


def delivered(ring_rounds=0.0, burst_rounds=0.0):
    out = np.zeros(len(PLAN.qps), np.int64)
    out[RING_QPS] = round(ring_rounds * round_bytes(PLAN.jobs[0]) / len(RING_QPS))
    out[BURST_QPS] = round(burst_rounds * round_bytes(PLAN.jobs[1]) / len(BURST_QPS))
    return out


def interval(k=0, **fields):
    return make_interval(SCENARIO, NETWORK, PLAN, 100.0 * k, 100.0 * (k + 1), **fields)


def test_round_bytes():
    assert round_bytes(PLAN.jobs[0]) == 2 * 3 * 100_000  # 2 (n - 1) steps, n pieces, n hosts
    assert round_bytes(PLAN.jobs[1]) == 3 * 200_000
    scenario, _, plan = parts(
        {
            "name": "x",
            "topology": {"kind": "star", "hosts": 4},
            "tenants": [
                {
                    "name": "t",
                    "hosts": [0, 1, 2, 3],
                    "jobs": [
                        {"kind": "all_to_all", "bytes": 4000},
                        {
                            "kind": "ring_all_reduce",
                            "bytes": 24_000,
                            "channels": 2,
                            "chunks_per_step": 3,
                        },
                        {"kind": "flows", "flows": [{"src": 0, "dst": 1, "bytes": 10}]},
                    ],
                }
            ],
        }
    )
    assert [round_bytes(job) for job in plan.jobs] == [4 * 3 * 1000, 2 * 3 * 24_000, 0]
    assert Progress(scenario, plan).has_rounds.tolist() == [True]


# --------------------------------------------------------------------------- progress


def test_progress__busy_time_across_intervals():
    progress = Progress(SCENARIO, PLAN)
    # Ring: begins at 40 us, ends at 130 us, begins again at 150 us. Burst: never begins.
    begun = np.array([40 * US, -1])
    first = progress(interval(job_begun_ps=begun, delivered_bytes=delivered(0.5)))
    assert first.busy_ps.tolist() == [60 * US, 0]
    assert first.elapsed_ps.tolist() == [60 * US, 0]
    assert first.fraction.tolist() == [0.5, 0]
    second = progress(
        interval(
            1,
            job_begun_ps=np.array([150 * US, -1]),
            job_busy_ps=np.array([90 * US, 0]),
            delivered_bytes=delivered(0.75),
            completions=completions((0, 0, 40, 130)),
        )
    )
    assert second.busy_ps.tolist() == [30 * US + 50 * US, 0]
    assert second.rounds.tolist() == [0.75, 0]
    assert second.fraction.tolist() == [0.25, 0]
    assert second.ended.tolist() == [1, 0] and second.ended_ps.tolist() == [90 * US, 0]


# --------------------------------------------------------------------------- terms


def test_terms__by_hand():
    progress, terms = judge()
    # Ring: under way for all of 100 us, one round (50 us alone): s = (100 + 10) / (50 + 10).
    # Burst: 40 us under way, 0.4 rounds (100 us alone): s = 1.
    fields = {
        "job_begun_ps": np.array([0, 60 * US]),
        "delivered_bytes": delivered(1.0, 0.4),
        "pause_frames": np.full((NETWORK.num_links, 2), 1),
    }
    one = interval(**fields)
    raw = terms(one, progress(one))
    # So far, and the default settings' rest: T / 900 us + 0.9 + 0.05, W / 600 us + 0.9 + 0.05.
    ring = np.log(1.5) + 10 * np.log((100 / 900 + 0.95) / (50 / 600 + 0.95))
    burst = 10 * np.log((40 / 400 + 0.95) / (40 / 400 + 0.95))
    assert raw["completion"] == pytest.approx(-0.75 * ring - 0.25 * burst)  # weights 3 : 1
    assert raw["interference"] == pytest.approx(-0.75 * (110 / 60 - 1) * 100 / (100 * 0.8))
    # 12 frames at 6 ports (links into the switch) in 100 us.
    assert terms.pfc_frames_per_s(one) == pytest.approx(20_000)
    change = np.log10(1 + (2_000 + 0.95 * 60) / 30) - np.log10(1 + 1.05 * 60 / 30)
    assert raw["pfc"] == pytest.approx(-np.log10(1 + 60 / 30) - 10 * change)


def test_terms__idle_fabric():
    progress, terms = judge()
    one = interval()
    change = np.log10(1 + 0.95 * 60 / 30) - np.log10(1 + 1.05 * 60 / 30)
    pfc = -np.log10(1 + 60 / 30) - 10 * change  # but for pauses: there are none
    expected = {"completion": -0.75 * np.log(1.5), "pfc": pfc, "interference": 0.0}
    assert terms(one, progress(one)) == pytest.approx(expected)


def episode(busy, rounds):
    """Raw completion of ten intervals of 100 us of the ring, busy (shares) and progress given."""
    progress, terms = judge()
    out, total = [], 0.0
    for k, (share, done) in enumerate(zip(busy, rounds, strict=True)):
        total += share
        one = interval(
            k,
            job_busy_ps=np.array([round(100 * US * share), 0]),
            delivered_bytes=delivered(done, 0.4),
        )
        out.append(terms(one, progress(one))["completion"])
    return np.array(out)


def test_terms__mean_of_an_episode_is_the_log_of_its_slowdown():
    burst = 0.25 * np.log((0.0 + 0.05) / (1.0 + 0.05))  # delivered, but never under way
    for busy, rounds in (
        (np.full(10, 0.9), np.full(10, 1.2)),  # as under the default settings
        (np.full(10, 0.9), np.full(10, 0.6)),
        (np.linspace(0, 1, 10), np.linspace(2, 0, 10)),
        (np.tile([0.2, 1.0], 5), np.tile([0.0, 1.8], 5)),
    ):
        t, w = busy.sum() / 9.0, 50 * rounds.sum() / 600  # over those of the default settings
        expected = -0.75 * (np.log(1.5) + np.log((t + 0.05) / (w + 0.05))) - burst
        assert episode(busy, rounds).mean() == pytest.approx(expected, rel=1e-4)
    first = episode(np.full(10, 0.9), np.full(10, 1.2))
    assert -0.75 * np.log(1.5) - burst == pytest.approx(first.mean(), rel=1e-4)


def test_terms__faster_than_alone_is_a_gain_without_interference():
    progress, terms = judge()
    one = interval(job_begun_ps=np.array([0, -1]), delivered_bytes=delivered(4.0))
    raw = terms(one, progress(one))
    assert raw["completion"] > 0
    assert raw["interference"] == 0


def test_terms__stuck_round_counts_in_every_interval_and_is_bounded():
    progress, terms = judge()
    for k in range(10):
        one = interval(k, job_begun_ps=np.array([0, -1]))
        raw = terms(one, progress(one))
        assert -10 < raw["completion"] < -1.5 * 0.75 * np.log(1.5)
        assert raw["interference"] == pytest.approx(-0.75 * 3 / 0.8)


def test_terms__time_average_grows_with_the_slowdown():
    """A ring with 50 us of compute before rounds of 50 us alone: slower is always worse."""
    costs = []
    for slowdown in np.linspace(1.0, 12.0, 23):
        busy = slowdown / (slowdown + 1.0)
        costs.append(-episode(np.full(10, busy), np.full(10, 2.0 * busy / slowdown)).mean())
    assert (np.diff(costs) > 0).all()


def test_terms__jobs_of_a_tenant_are_summed():
    raw = SCENARIO.model_dump(mode="json")
    raw["tenants"][0]["jobs"] *= 2
    scenario, network, plan = parts(raw)
    progress = Progress(scenario, plan)
    alone = Alone((50e6, 20e6, 100e6), (0.8, 0.5))
    pace = Pace(1000e6, 60.0, (900e6, 0.0, 400e6), (600e6, 0.0, 400e6))  # the second never began
    terms = RewardTerms(scenario, network, progress, alone, pace)
    out = np.zeros(len(plan.qps), np.int64)
    out[[i for row in plan.jobs[1].qps for i in row]] = round_bytes(plan.jobs[1]) / 4
    one = make_interval(
        scenario,
        network,
        plan,
        delivered_bytes=out,
        job_begun_ps=np.array([90 * US, 50 * US, -1]),
    )
    slowdown, busyness = terms.slowdowns(one, progress(one))
    assert slowdown[0] == pytest.approx((10 + 50 + SMOOTH) / (0 + 20 + SMOOTH))
    assert busyness[0] == pytest.approx(60 / 80)
    logs = [  # the least share of time is 50 us; jobs share the weight of their tenant
        np.log(1.5) + 10 * np.log((10 / 900 + 0.95) / 0.95),
        10 * np.log((50 / 50 + 0.95) / (20 / 50 + 0.95)),
    ]
    progress = Progress(scenario, plan)
    got = RewardTerms(scenario, network, progress, alone, pace)(one, progress(one))
    assert got["completion"] == pytest.approx(-0.75 * np.mean(logs), rel=1e-4)


def test_terms__tenants_without_rounds_have_no_weight():
    raw = SCENARIO.model_dump(mode="json")
    raw["tenants"][1]["jobs"] = [{"kind": "flows", "flows": [{"src": 4, "dst": 5, "bytes": 99}]}]
    scenario, network, plan = parts(raw)
    progress = Progress(scenario, plan)
    pace = Pace(1000e6, 60.0, (900e6, 0.0), (600e6, 0.0))
    terms = RewardTerms(scenario, network, progress, Alone((50e6, 0.0), (0.8, 0.0)), pace)
    one = make_interval(
        scenario,
        network,
        plan,
        job_begun_ps=np.array([0, -1]),
        completions=completions((1, 0, 0, 10)),
    )
    raw_terms = terms(one, progress(one))
    expected = np.log(1.5) + 10 * np.log((100 / 900 + 0.95) / 0.95)
    assert raw_terms["completion"] == pytest.approx(-expected)


def test_reward__weighted_sum_less_baseline():
    progress, terms = judge()
    baseline = {"completion": -0.5, "pfc": -2.0, "interference": -0.25}
    reward = Reward(terms, baseline, {"completion": 2.0, "pfc": 0.5})
    one = interval(
        job_begun_ps=np.array([0, -1]), pause_frames=np.ones((NETWORK.num_links, 2), int)
    )
    total, entries = reward(one, progress(one))
    assert isinstance(total, float)
    for name in TERMS:
        assert entries[name] == pytest.approx(entries[f"raw/{name}"] - baseline[name])
        assert entries[f"baseline/{name}"] == baseline[name]
    assert total == pytest.approx(2.0 * entries["completion"] + 0.5 * entries["pfc"])
    assert reward.at_start().keys() == entries.keys()


# --------------------------------------------------------------------------- score


def test_score__by_hand():
    progress = Progress(SCENARIO, PLAN)
    score = Score(SCENARIO, progress, ALONE)
    assert score.entries()["score"] == 0
    # Ring: rounds of 60 and 90 us, then one that is 80 us old and half delivered (alone: 50 us).
    # Burst: one under way on time: 20 us old, 0.3 delivered (alone: 100 us): not counted.
    one = interval(
        job_begun_ps=np.array([20 * US, 80 * US]),
        delivered_bytes=delivered(2.5, 0.3),
        completions=completions((0, 0, 0, 60), (0, 1, 0, 90)),
    )
    work = progress(one)
    score.add(work, 100 * US, 300.0)
    score.add(Progress(SCENARIO, PLAN)(interval(1)), 100 * US, 0.0)
    got = score.entries(work)
    slowdown = (60 / 50 + 90 / 50 + (80 / 50 + 0.5)) / 3
    assert got["slowdown/ring"] == pytest.approx(slowdown)
    assert got["interference_of/ring"] == pytest.approx(slowdown - 1)
    assert got["cct_us/ring"] == pytest.approx(75)
    assert got["rounds/ring"] == 2
    assert got["slowdown/burst"] == got["interference_of/burst"] == got["cct_us/burst"] == 0
    assert got["episode_pfc_frames_per_s"] == pytest.approx(150)
    assert got["score"] == pytest.approx(0.75 * np.log(slowdown) + 0.1 * np.log10(1 + 5))


def test_score__starving_after_good_rounds_is_not_hidden():
    progress = Progress(SCENARIO, PLAN)
    score = Score(SCENARIO, progress, ALONE)
    rows = [(0, k, 50 * k, 50 * k + 50) for k in range(10)]
    one = make_interval(
        SCENARIO,
        NETWORK,
        PLAN,
        end_us=1000,
        job_begun_ps=np.array([500 * US, -1]),
        delivered_bytes=delivered(10.0),
        completions=completions(*rows),
    )
    work = progress(one)
    score.add(work, 1000 * US, 0.0)
    assert score.entries(work)["slowdown/ring"] == pytest.approx((10 + 11) / 11)


def test_score__geometric_mean_over_jobs():
    raw = SCENARIO.model_dump(mode="json")
    raw["tenants"][0]["jobs"] *= 3
    scenario, network, plan = parts(raw)
    progress = Progress(scenario, plan)
    score = Score(scenario, progress, Alone((10e6, 20e6, 30e6, 100e6), (0.8, 0.5)))
    one = make_interval(
        scenario,
        network,
        plan,
        completions=completions((0, 0, 0, 10), (0, 1, 10, 40), (1, 0, 0, 90)),
    )
    score.add(progress(one), 100 * US, 0.0)
    got = score.entries(progress(one))
    assert got["slowdown/ring"] == pytest.approx((2.0 * 4.5) ** 0.5)  # the third has not begun
    assert got["score"] == pytest.approx(0.75 * np.log(9) / 2)
    assert got["rounds/ring"] == 3
