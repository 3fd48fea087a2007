"""Times of requests, by hand: a star of two hosts or four, 100 Gb/s, 1 us of delay a cable."""

import numpy as np
import pytest

from roce_gym.config import validate_scenario
from roce_gym.fabric import Fabric
from roce_gym.telemetry import MARK
from roce_gym.workload.graph_builder import OpGraphBuilder
from roce_gym.workload.llm.requests import Moment, request_times, tag_of
from roce_gym.workload.op_graph import OpKind

TINY = {
    "layers": 3,
    "hidden": 8,
    "ffn_hidden": 16,
    "heads": 4,
    "kv_heads": 2,
    "vocabulary": 10,
}
US = 1_000_000
FLOPS = 989.4e12 * 1e-5  # reached by a GPU with mfu = 1e-5
PROMPT_FLOPS = 7 * 3 * (2 * (2 * 64 + 2 * 32) + 4 * 7 * 8 + 2 * 3 * 8 * 16) + 2 * 80
ACK_PS = (66 + 20) * 80


def token_ps(context):
    """Computing of the layers, and reading of the output matrix and its norm."""
    flops = 3 * (2 * (2 * 64 + 2 * 32) + 4 * context * 8 + 2 * 3 * 8 * 16)
    return flops / FLOPS * 1e12 + (80 + 8) * 2 / (0.7 * 3.35e12) * 1e12


def message_ps(size):
    """Through the switch."""
    return 2 * (US + (size + 62 + 20) * 80)


def fabric(hosts=2, seed=4, **fields):
    job = {"kind": "inference", "model": TINY, "mfu": 1e-5, "prompt_tokens": 7, "rounds": 1}
    raw = {
        "name": "serving",
        "topology": {"kind": "star", "hosts": hosts, "link_delay_ns": 1000},
        "preset": "pfc_only",
        "tenants": [{"name": "t", "hosts": list(range(hosts)), "jobs": [job | fields]}],
    }
    return Fabric(validate_scenario(raw), seed)


def times_of(made, *durations_us):
    marks = np.concatenate([made.advance(us=us).marks for us in durations_us])
    return request_times(made.plan.jobs[0].graph.graph, marks), marks


def arrivals_ps(count, rate, seed=4, replica=0):
    gaps_s = np.random.default_rng([seed, 0, 0, 3, replica]).exponential(1 / rate, count)
    return np.cumsum(gaps_s) * 1e12


def test_a_request_alone__computing_and_the_transfer_of_keys_and_values():
    made = fabric(disaggregated=True, requests_per_s=1e3, requests=1, output_tokens=3)
    times, _ = times_of(made, 10_000)
    prompt = PROMPT_FLOPS / FLOPS * 1e12
    transfer = message_ps(7 * 2 * 3 * 2 * 2 * 2)  # tokens x (K, V) x layers x heads x size x BF16
    assert times.arrived == 1
    assert times.ttft_ps == pytest.approx([prompt], abs=9)
    assert times.e2e_ps == pytest.approx([prompt + transfer + token_ps(8) + token_ps(9)], abs=9)


def test_a_request_alone__all_reduces_of_tensor_parallelism():
    """Of two ranks: two messages of a half, the second one behind an ACK; two in each layer."""
    made = fabric(tensor=2, requests_per_s=1e3, requests=1, output_tokens=1)
    times, _ = times_of(made, 10_000)
    all_reduce = 2 * message_ps(7 * 8 * 2 / 2) + ACK_PS
    expected = PROMPT_FLOPS / 2 / FLOPS * 1e12 + 6 * all_reduce
    assert times.ttft_ps == pytest.approx([expected], abs=9)
    assert (times.e2e_ps == times.ttft_ps).all()  # the first token is the last one


def test_requests_that_overlap__the_later_ones_wait():
    made = fabric(tensor=2, requests_per_s=1e5, requests=4, output_tokens=1)
    alone, _ = times_of(fabric(tensor=2, requests_per_s=1e3, requests=1, output_tokens=1), 10_000)
    times, _ = times_of(made, 10_000)
    arrival, free, expected = arrivals_ps(4, 1e5), 0.0, []
    for at in arrival:
        free = max(free, at) + alone.e2e_ps[0]
        expected.append(free - at)
    assert times.e2e_ps == pytest.approx(expected, abs=20)
    assert max(expected) > 2 * alone.e2e_ps[0]


def test_requests_that_overlap__prompts_and_tokens_on_different_ranks():
    made = fabric(disaggregated=True, requests_per_s=1e6, requests=3, output_tokens=3)
    times, _ = times_of(made, 10_000)
    prompt, transfer = PROMPT_FLOPS / FLOPS * 1e12, message_ps(336)
    tokens = token_ps(8) + token_ps(9)
    arrival, computed, done, first, last = arrivals_ps(3, 1e6), 0.0, 0.0, [], []
    for at in arrival:
        computed = max(computed, at) + prompt
        done = max(done, computed + transfer) + tokens
        first.append(computed - at)
        last.append(done - at)
    assert times.ttft_ps == pytest.approx(first, abs=20)
    assert times.e2e_ps == pytest.approx(last, abs=20)
    assert first[1] > prompt + US  # it waited


def test_a_batch__the_first_request_waits_for_the_second_one():
    fields = {"requests_per_s": 1e4, "requests": 3, "batch": 2, "output_tokens": 1}
    times, _ = times_of(fabric(disaggregated=True, **fields), 10_000)
    arrival, prompts = arrivals_ps(3, 1e4), 2 * PROMPT_FLOPS / FLOPS * 1e12
    first = [arrival[1] - arrival[0] + prompts, prompts, prompts]
    assert times.ttft_ps == pytest.approx(first, abs=20)
    assert times.e2e_ps - times.ttft_ps == pytest.approx([message_ps(2 * 336)] * 3, abs=20)


def test_replicas_and_rounds_have_requests_of_their_own():
    fields = {"tensor": 2, "requests_per_s": 1e4, "requests": 2, "output_tokens": 1}
    times, marks = times_of(fabric(hosts=4, rounds=3, **fields), 10_000)
    assert times.arrived == len(times.e2e_ps) == len(times.ttft_ps) == 2 * 2 * 3
    first_round = marks["time_ps"][(marks["round"] == 0) & np.isin(marks["mark"], [0, 12])]
    by_replica = [arrivals_ps(1, 1e4, replica=r)[0] for r in (0, 1)]
    assert sorted(first_round) == pytest.approx(sorted(by_replica), abs=2)


def test_requests_under_way_have_arrived_and_have_no_times():
    made = fabric(tensor=2, requests_per_s=1e9, requests=5, output_tokens=2)
    times, _ = times_of(made, 80)  # a prompt takes 26 us, a token 24
    assert (times.arrived, len(times.ttft_ps), len(times.e2e_ps)) == (5, 2, 1)


def test_the_same_seed_gives_the_same_times_however_it_is_cut_into_intervals():
    fields = {"tensor": 2, "requests_per_s": 3e4, "requests": 8, "jitter": 0.3}
    one, whole = times_of(fabric(**fields), 5000)
    other, cut = times_of(fabric(**fields), *[100] * 50)
    assert len(one.e2e_ps) == 8 and whole.tobytes() == cut.tobytes()
    assert (one.e2e_ps == other.e2e_ps).all() and (one.ttft_ps == other.ttft_ps).all()
    another, _ = times_of(fabric(seed=5, **fields), 5000)
    assert (another.e2e_ps != one.e2e_ps).any()


# --------------------------------------------------------------------------- from marks


def marks_of(*rows):
    """(mark, round, time_ps)"""
    out = np.zeros(len(rows), MARK)
    for entry, (mark, turn, time_ps) in zip(out, rows, strict=True):
        entry["mark"], entry["round"], entry["time_ps"] = mark, turn, time_ps
    return out


def test_arrival_at_the_first_rank_and_the_end_at_the_last():
    build = OpGraphBuilder(2)
    for rank in (0, 1):
        for moment in Moment:
            build.add(rank, OpKind.MARK, tag=tag_of(moment, 0))
    graph = build.graph()
    rows = [(0, 0, 13), (3, 0, 10), (1, 0, 20), (4, 0, 27), (5, 0, 40), (2, 0, 31)]
    times = request_times(graph, marks_of(*rows))
    assert [part if i == 0 else part.tolist() for i, part in enumerate(times)] == [1, [17], [30]]
    times = request_times(graph, marks_of(*rows[:3], rows[4], (0, 1, 50)))
    assert [part if i == 0 else part.tolist() for i, part in enumerate(times)] == [2, [], []]


def test_a_graph_without_requests():
    build = OpGraphBuilder(1)
    build.add(0, OpKind.COMPUTE, duration_ps=5)
    assert request_times(build.graph(), marks_of()) is None
