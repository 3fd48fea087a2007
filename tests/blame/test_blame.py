"""Who slows whom: the matrix, its runs, and what is remembered of them."""

import json
import math
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from small import SMALL, parts

from roce_gym import blame as package
from roce_gym.blame import NOISE, Effect, Task, blame, run_task, run_tasks
from roce_gym.blame.matrix import Blame
from roce_gym.blame.runs import JobTimes, Times, load_times, save_times
from roce_gym.cache import cache_folder
from roce_gym.config import validate_scenario
from roce_gym.errors import ConfigError
from roce_gym.fabric import Fabric
from roce_gym.reference import compute_references
from roce_gym.scenario_file import load_scenario

SCENARIO = parts()[0]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("ROCE_GYM_CACHE", str(tmp_path))
    return tmp_path / "runs"


@pytest.fixture
def done(monkeypatch):
    """Tasks that were really run."""
    tasks = []

    def run(task, is_stopped=lambda: False):
        tasks.append(task)
        return run_task(task, is_stopped)

    monkeypatch.setattr("roce_gym.blame.workers.run_task", run)
    return tasks


# --------------------------------------------------------------------------- one run


def test_a_run_without_a_tenant():
    """It is the run of the others: same hosts, paths and draws."""
    fabric = Fabric(SCENARIO, 3, without_tenant="burst")
    log = fabric.advance(us=500).completions
    times = run_task(Task(SCENARIO, 3, without="burst"))
    assert sorted(times.jobs) == [0]
    (ring,) = times.jobs[0]
    assert list(ring.index) == log["index"].tolist()
    assert list(ring.time_ps) == (log["end_ps"] - log["start_ps"]).tolist()
    alone = Fabric(SCENARIO, 3, only_tenant="ring")
    assert np.array_equal(alone.advance(us=500).completions, log)


def test_alone_is_that_of_the_references():
    alone = compute_references(SCENARIO, 3).alone
    for index, tenant in enumerate(SCENARIO.tenants):
        (job,) = run_task(Task(SCENARIO, 3, only=tenant.name, preset="pfc_only")).jobs[index]
        assert np.mean(job.time_ps) == pytest.approx(alone.cct_ps[index], rel=1e-12)


def test_what_has_not_ended_is_kept():
    fabric = Fabric(SCENARIO, 3)
    last = fabric.advance(us=500)
    times = run_task(Task(SCENARIO, 3))
    for index in (0, 1):
        (job,) = times.jobs[index]
        begun = last.job_begun_ps[index]
        expected = ((int(last.job_round[index]), int(last.end_ps - begun)),) if begun >= 0 else ()
        assert job.open == expected


def test_flows_that_have_not_ended():
    flows = [
        {"src": 0, "dst": 1, "bytes": 1000},
        {"src": 0, "dst": 1, "bytes": 10**9, "start_us": 2},
        {"src": 0, "dst": 1, "bytes": 10, "start_us": 400},
    ]
    tenant = {"name": "a", "hosts": [0, 1], "jobs": [{"kind": "flows", "flows": flows}]}
    raw = {"name": "flows", "topology": {"kind": "star", "hosts": 2}, "tenants": [tenant]}
    raw |= {"control": {"interval_us": 50, "horizon_us": 100}}
    (job,) = run_task(Task(validate_scenario(raw), 0)).jobs[0]
    assert job.index == (0,)
    assert job.open == ((1, 98_000_000),)


def job(times, waiting=(), guess=0.0, has_flows=False):
    return JobTimes(has_flows, tuple(times), tuple(times.values()), tuple(waiting), guess)


def test_means_are_of_what_ended_in_both():
    assert job({0: 10, 1: 30}).means_with(job({1: 10, 2: 99})) == (30, 10)
    assert job({0: 10, 2: 30}).means_with(job({0: 20, 1: 5, 2: 40})) == (20, 30)


def test_what_hangs_counts_as_far_as_it_is_known():
    stuck = job({0: 10}, [(1, 500)])
    assert stuck.means_with(job({0: 10, 1: 20})) == (255, 15)
    assert job({0: 10, 1: 20}).means_with(stuck) == (15, 255)
    assert job({0: 10}, [(1, 5)]).means_with(job({0: 10, 1: 20})) == (10, 10)  # too early to tell


def test_both_hang():
    """In a round each; of flows it is not known which would have ended first."""
    for other in (1, 7):
        stuck = job({0: 10}, [(1, 500)]), job({0: 30}, [(other, 900)])
        assert stuck[0].means_with(stuck[1]) == (255, 465)
    flows = [
        job(times, waiting, has_flows=True)
        for times, waiting in (({0: 10}, [(1, 500)]), ({0: 30}, [(1, 900)]))
    ]
    assert flows[0].means_with(flows[1]) == (10, 30)


def test_guesses_where_nothing_ended_in_both():
    assert job({}, guess=40.0).means_with(job({0: 10, 1: 30})) == (40, 20)
    assert job({}).means_with(job({0: 10})) is None
    assert job({}).means_with(job({})) is None


# --------------------------------------------------------------------------- the matrix


def test_noisy_neighbor_blames_the_checkpoint():
    seeds = range(2)
    scenarios = [
        (s, load_scenario("noisy_neighbor", s), load_scenario("noisy_neighbor", s)) for s in seeds
    ]
    found = blame(scenarios)
    assert found.worst("training") == "checkpoint"
    one = found.effect["training", "checkpoint"]
    assert one.longer > 0.5 and all(value > 0.3 for value in one.by_seed)
    assert found.sentence("training").startswith("training is slowed most by checkpoint: ")
    assert f"({100 * one.longer:+.0f} %)" in found.sentence("training")
    assert found.interference["training"].longer == pytest.approx(one.longer, rel=0.1)


def test_storm_is_blamed_on_who_talks_to_it():
    """Nobody would wait for the broken host if nobody sent to it."""
    scenario = load_scenario("pfc_storm")
    found = blame([(0, scenario, scenario)])
    assert found.worst("neighbours") == "with_broken_host"
    assert found.effect["neighbours", "with_broken_host"].longer > 3
    assert found.effect["with_broken_host", "neighbours"].longer < 0.5  # hangs in any case
    assert found.worst("elsewhere") is None


def bystander():
    """Two tenants that share a port, and one that meets nobody."""

    def ring(name, hosts):
        job = {"kind": "ring_all_reduce", "bytes": 100_000}
        return {"name": name, "hosts": hosts, "traffic_class": "gold", "jobs": [job]}

    tenants = [ring("a", [0, 1]), ring("b", [0, 2]), ring("c", [3, 4])]
    return validate_scenario(SMALL | {"tenants": tenants, "preset": "pfc_only"})


def test_a_bystander_neither_blames_nor_is_blamed():
    found = blame([(0, bystander(), bystander())])
    assert [found.worst(name) for name in "abc"] == ["b", "a", None]
    assert found.effect["c", "a"].longer == found.effect["c", "b"].longer == 0.0
    assert found.effect["a", "c"].longer == 0.0
    assert found.effect["a", "b"].longer > 0.2
    assert found.sentence("c") == "c is slowed by nobody beyond what chance does."


def made_up(*by_seed):
    known = [value for value in by_seed if not math.isnan(value)]
    mean = sum(known) / len(known) if known else math.nan
    return Effect(mean, by_seed, 2.0, 1.0)


def test_more_seeds_tell_less_from_chance():
    assert not made_up(NOISE * 0.99).is_clear
    assert made_up(NOISE * 1.01).is_clear
    assert made_up(*[NOISE / 2 * 1.01] * 4).is_clear
    assert not made_up(*[NOISE / 2 * 1.01] * 3, math.nan).is_clear
    assert not made_up(math.nan).is_clear


def test_sentences():
    def matrix(ab, ac):
        effect = {("a", "b"): ab, ("a", "c"): ac}
        return Blame(("a", "b", "c"), (0,), effect, {}, {}, {})

    assert matrix(made_up(0.2), made_up(0.3)).worst("a") == "c"
    assert "nobody" in matrix(made_up(-0.5), made_up(0.01)).sentence("a")
    assert "nothing can be told" in matrix(made_up(math.nan), made_up(math.nan)).sentence("a")
    assert matrix(made_up(math.nan), made_up(0.2)).sentence("a").startswith("a is slowed most by c")


def test_blame_needs_two():
    alone = SCENARIO.model_copy(update={"tenants": SCENARIO.tenants[:1]})
    with pytest.raises(ConfigError, match="only 'ring'; blame needs at least 2"):
        blame([(0, alone, alone)])
    with pytest.raises(ConfigError, match="seeds"):
        blame([])


# --------------------------------------------------------------------------- on disk


def test_a_run_is_remembered(folder, done):
    first = run_tasks([Task(SCENARIO, 1)])
    again = run_tasks([Task(SCENARIO, 1)])
    assert first == again and len(done) == 1
    assert len(list(folder.glob("*.json"))) == 1


def test_keys_tell_runs_apart():
    other = SCENARIO.model_copy(update={"preset": "pfc_only"})
    tasks = [
        Task(SCENARIO, 1),
        Task(SCENARIO, 2),
        Task(other, 1),
        Task(SCENARIO, 1, only="ring"),
        Task(SCENARIO, 1, without="ring"),
        Task(SCENARIO, 1, without="burst"),
        Task(SCENARIO, 1, preset="pfc_only"),
    ]
    assert len({task.key for task in tasks}) == len(tasks)
    assert Task(parts()[0], 1).key == tasks[0].key


def test_key_follows_the_code(monkeypatch):
    before = Task(SCENARIO, 1).key
    monkeypatch.setattr("roce_gym.reference._code_hash", lambda: "other")
    assert Task(SCENARIO, 1).key != before


@pytest.mark.parametrize(
    "spoil",
    [
        lambda text: "",
        lambda text: text[: len(text) // 2],
        lambda text: "[]",
        lambda text: text.replace('"time_ps"', '"time"'),
        lambda text: text.replace('"key": "', '"key": "0'),
        lambda text: text.replace('"1": [', '"7": ['),
        lambda text: text.replace('"guess_ps": ', '"guess_ps": NaN, "x": '),
        lambda text: json.dumps(
            json.loads(text) | {"tenants": {"0": [], "1": json.loads(text)["tenants"]["1"]}}
        ),
    ],
)
def test_a_spoilt_file_is_made_anew(folder, done, spoil):
    task = Task(SCENARIO, 1)
    first = run_tasks([task])
    (path,) = folder.glob("*.json")
    whole = path.read_text()
    spoilt = spoil(whole)
    assert spoilt != whole
    path.write_text(spoilt)
    assert run_tasks([task]) == first
    assert len(done) == 2
    assert json.loads(path.read_text()) == json.loads(whole)


def test_no_folder(monkeypatch, done):
    monkeypatch.setenv("ROCE_GYM_CACHE", "")
    assert cache_folder() is None
    task = Task(SCENARIO, 1)
    assert run_tasks([task]) == run_tasks([task])
    assert len(done) == 2 and load_times(task) is None


def test_functions_in_memory_are_not_remembered(folder):
    user = SCENARIO.tenants[0].model_copy(update={"cc": "user", "user": _User()})
    scenario = SCENARIO.model_copy(update={"tenants": (user, SCENARIO.tenants[1])})
    task = Task(scenario, 1)
    save_times(task, Times({}, 0))
    assert not task.can_be_named and not folder.exists()


class _User:
    file = None


# --------------------------------------------------------------------------- processes


@pytest.mark.slow
def test_processes_do_not_matter(tmp_path, monkeypatch):
    tasks = [Task(SCENARIO, seed, without=name) for seed in (1, 2) for name in (None, "burst")]
    results, reports = [], []
    for processes in (1, 3):
        monkeypatch.setenv("ROCE_GYM_CACHE", str(tmp_path / str(processes)))
        results.append(run_tasks(tasks, processes, lambda *told: reports.append(told)))
    assert results[0] == results[1]
    assert reports[0] == (0, 4) and reports[-1] == (4, 4)
    assert {done for done, _ in reports} == {0, 1, 2, 3, 4}


def test_a_stopped_run_has_no_result():
    assert run_task(Task(SCENARIO, 1), lambda: True) is None


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "killpg"), reason="needs POSIX signals")
def test_interrupted_processes_leave_what_was_done(tmp_path):
    """Ctrl-C ends the command and its processes; the same command goes on where it was."""
    folder = tmp_path / "runs"
    environment = os.environ | {"ROCE_GYM_CACHE": str(tmp_path)}
    command = [sys.executable, "-m", "roce_gym", "blame", "noisy_neighbor", "--seeds", "40"]
    command += ["--processes", "2", "--duration-us", "3000"]
    process = subprocess.Popen(
        command,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    deadline = time.monotonic() + 300
    while len(list(folder.glob("*.json"))) < 2 and time.monotonic() < deadline:
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 130
    assert out == "" and err.endswith("interrupted\n") and "Traceback" not in err
    kept = list(folder.glob("*.json"))
    assert 2 <= len(kept) < 200
    assert ends_soon(process.pid)


def ends_soon(group):
    """Whether nobody of a group of processes is left after a while."""
    for _ in range(100):
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.1)
    return False


def test_package_exports():
    assert all(hasattr(package, name) for name in package.__all__)
