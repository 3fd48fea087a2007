"""Senders written by users: loading, errors, and what their functions see."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path

import numba
import pytest
import yaml
from numba import njit
from small import SMALL

from roce_gym.config import UserConfig, validate_scenario
from roce_gym.errors import ConfigError, TuningError
from roce_gym.fabric import Fabric
from roce_gym.scenario_file import load_scenario
from roce_gym.user_sender import ACK, CNP, NACK, TIMER, TX

EXAMPLE = Path(__file__).parents[1] / "docs" / "examples" / "my_sender.py"
compiled_only = pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")


def raw_with(sender, **more):
    jobs = [{"kind": "ring_all_reduce", "bytes": 400_000}]
    ring = SMALL["tenants"][0] | {"jobs": jobs, "cc": "user", "user": sender}
    return SMALL | {"tenants": [ring, SMALL["tenants"][1]]} | more


def run(function, us=100, **fields):
    """The ring's rates, bit/s, and the fabric."""
    fabric = Fabric(validate_scenario(raw_with({"function": function, **fields})), seed=0)
    interval = fabric.advance(us=us)
    return interval.rate_bps[fabric._state.qp["tenant"] == 0], fabric


@njit
def counts(event, state, params):
    """Keeps what it sees; a timer each 10 us."""
    if state[0] + state[1] == 0:
        event["timer_ps"] = 10_000_000
    if event["kind"] == TX:
        state[0] += event["bytes"]
    if event["kind"] == ACK:
        state[1] = event["acked_bytes"]
        state[2] = event["rtt_ps"]
    if event["kind"] == TIMER:
        state[3] += 1
        state[4] = event["now_ps"]
        event["timer_ps"] = 10_000_000
    return params[0]


@njit
def half(event, state, params):
    return 0.5


@njit
def not_a_number(event, state, params):
    return params[0] / params[1]


def test_what_a_function_sees():
    rates, fabric = run(counts, params=[0.4])
    words = fabric._state.cc_state.reshape(len(fabric._state.qp), -1)[:, 2:8].view("float64")
    own = fabric._state.qp["tenant"] == 0
    sent = words[own, 0]
    assert (rates == 40_000_000_000).all()
    assert (sent > 400_000).all()  # 0.4 of 1.25 MB
    assert (words[own, 1] == fabric._state.sender["snd_una"][own]).all()
    assert ((4e6 < words[own, 2]) & (words[own, 2] < 2e7)).all()
    assert ((words[own, 3] >= 8) & (words[own, 3] <= 10)).all()
    assert (words[own, 4] > 80e6).all()


def test_rates_are_bounded():
    assert (run(half, max_rate_mbps=9_000)[0] == 9_000_000_000).all()
    assert (run(half, min_rate_mbps=80_000)[0] == 80_000_000_000).all()
    assert (run(half, enabled=False)[0] == 100_000_000_000).all()


@compiled_only
def test_no_number_is_the_lowest_rate():
    assert (run(not_a_number, us=20, min_rate_mbps=7_000)[0] == 7_000_000_000).all()


@compiled_only
def test_a_function_without_njit_is_compiled():
    assert (run(half.py_func)[0] == 50_000_000_000).all()


def test_params_change_during_a_run_but_the_function_does_not():
    _, fabric = run(counts, params=[0.4])
    config = UserConfig(function=counts, params=(0.2,))
    fabric.apply(fabric.settings.model_copy(update={"senders": {"ring": config}}))
    own = fabric._state.qp["tenant"] == 0
    assert (fabric.advance(us=50).rate_bps[own] == 20_000_000_000).all()
    other = UserConfig(function=half)
    with pytest.raises(TuningError, match=r"settings\.senders\.ring: file and function"):
        fabric.apply(fabric.settings.model_copy(update={"senders": {"ring": other}}))


def example(folder, **user):
    """A scenario file beside a copy of the example."""
    sender = {"file": "my_sender.py", "function": "delay_and_cnp", "params": [12.0, 0.8, 0.01]}
    (folder / "my_sender.py").write_text(EXAMPLE.read_text())
    (folder / "mine.yaml").write_text(yaml.safe_dump(raw_with(sender | user)))
    return folder / "mine.yaml"


def test_the_example_runs_from_a_scenario_file(tmp_path):
    scenario = load_scenario(str(example(tmp_path)))
    fabric = Fabric(scenario, seed=0)
    interval = fabric.advance(us=500)
    own = fabric._state.qp["tenant"] == 0
    assert interval.delivered_bytes[own].min() > 500_000
    assert interval.rate_bps[own].min() < 100_000_000_000  # it has cut
    again = validate_scenario(scenario.model_dump(mode="json"))
    assert Fabric(again, seed=0).advance(us=500).events == interval.events


def test_the_examples_target_bites(tmp_path):
    def mean_queue(target_us):
        path = example(tmp_path, params=[target_us, 0.8, 0.01])
        return Fabric(load_scenario(str(path)), seed=0).advance(us=1_000).queue_mean_bytes.sum()

    assert mean_queue(6.0) < 0.9 * mean_queue(60.0)


def test_copies_have_their_own_address(tmp_path):
    fabric = Fabric(load_scenario(str(example(tmp_path))), seed=0)
    fabric.advance(us=100)
    copies = [copy.deepcopy(fabric), pickle.loads(pickle.dumps(fabric))]
    copies[1]._state.user_code[:] = 0  # as in another process
    copies[1].__setstate__(copies[1].__getstate__())
    wanted = fabric.advance(us=300).rate_bps.tolist()
    assert [other.advance(us=300).rate_bps.tolist() for other in copies] == [wanted] * 2


@njit
def two_arguments(event, state):
    return 1.0


@njit
def no_result(event, state, params):
    state[0] = 1.0


@njit
def no_such_field(event, state, params):
    return event["queue"]


@compiled_only
def test_functions_with_other_arguments_are_refused():
    wanted = (
        r"user\.function = 'two_arguments' takes \(event, state\); needed: f\(event, state, params"
    )
    with pytest.raises(ConfigError, match=wanted):
        run(two_arguments)


@compiled_only
@pytest.mark.parametrize("function", [no_result, no_such_field])
def test_functions_of_another_form_are_refused(function):
    wanted = (
        rf"tenants\.ring\.user\.function = '{function.__name__}' does not compile: .*; needed: f\("
    )
    with pytest.raises(ConfigError, match=wanted) as error:
        run(function)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("user", "message"),
    [
        ({"file": "nowhere.py"}, r"user\.file = .*nowhere\.py' cannot be read: No such file"),
        ({"file": "broken.py"}, r"user\.file = .*broken\.py' cannot be loaded: .*division by zero"),
        ({"file": "mine.txt"}, r"user\.file = .*mine\.txt' is not allowed; allowed: a \.py file"),
        ({"function": "delay"}, r"user\.function = 'delay' is not a function of .*delay_and_cnp"),
        ({"function": 3}, r"tenants\.ring\.user\.function"),
        ({"file": None}, r"tenants\.ring\.user.*function = 'delay_and_cnp' needs file"),
        ({"params": [1.0] * 9}, r"tenants\.ring\.user\.params"),
    ],
)
def test_what_cannot_be_loaded_is_named(tmp_path, user, message):
    (tmp_path / "broken.py").write_text("1 / 0\n")
    (tmp_path / "mine.txt").write_text("f = 1\n")
    with pytest.raises(ConfigError, match=message) as error:
        Fabric(load_scenario(str(example(tmp_path, **user))), seed=0)
    assert "\n" not in str(error.value)


def test_a_user_sender_needs_its_section():
    raw = raw_with(None)
    with pytest.raises(ConfigError, match="cc = 'user' needs user, with file and function"):
        validate_scenario(raw)


def test_kinds_are_those_of_doca():
    assert (TIMER, CNP, TX, ACK, NACK) == (0, 2, 3, 4, 5)
