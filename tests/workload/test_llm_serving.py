"""Inference jobs: arrivals, messages and times, by hand."""

import numpy as np
import pytest
from graph_runs import run, volumes

from roce_gym.config.training_jobs import Inference
from roce_gym.errors import ConfigError
from roce_gym.workload.llm.serving import inference_graph
from roce_gym.workload.op_graph import OpKind

TINY = {
    "layers": 3,
    "hidden": 8,
    "ffn_hidden": 16,
    "heads": 4,
    "kv_heads": 2,
    "vocabulary": 10,
}
SEED = (5, 0, 0)


def graph(num_hosts, **fields):
    raw = {"model": TINY, "requests_per_s": 1e6, "requests": 4, "prompt_tokens": 7}
    return inference_graph("j", Inference.model_validate(raw | fields), num_hosts, SEED)


def test_tensor_parallel__two_all_reduces_a_layer_and_pass():
    made = graph(2, tensor=2, output_tokens=3, batch=2)
    prompt, token = 2 * 7 * 8 * 2, 2 * 8 * 2  # requests x tokens x hidden x BF16
    assert volumes(made, 0) == {"all_reduce 2": ([prompt] * 6 + [token] * 12) * 2}
    assert min(run(made)) >= 0


def test_disaggregated__keys_and_values_of_the_prompt():
    made = graph(4, tensor=2, disaggregated=True, output_tokens=3)
    # 2 (keys, values) x 3 layers x 1 head a rank x 2 wide x BF16 x 7 tokens
    assert volumes(made, 0) == {"all_reduce 2": [7 * 16] * 24, "send": [2 * 3 * 2 * 2 * 7] * 4}
    assert volumes(made, 2) == {"all_reduce 2": [16] * (6 * 2 * 4)}
    sends = made.kind == OpKind.SEND
    pairs = set(zip(made.rank[sends].tolist(), made.peer[sends].tolist(), strict=True))
    assert pairs == {(0, 2), (1, 3)}
    assert min(run(made)) >= 0


def test_llama3_70b__keys_and_values_take_320_kib_a_token():
    job = Inference(
        model="llama3_70b", disaggregated=True, requests_per_s=1, requests=1, prompt_tokens=1
    )
    assert volumes(inference_graph("j", job, 2, SEED), 0)["send"] == [320 * 1024]


def test_time_of_a_prompt_and_of_a_token():
    # 2 x parameters x tokens / reached FLOP/s; a token reads all weights: 140 GB / (8 x 3.35 TB/s).
    job = Inference(
        model="llama3_70b",
        tensor=8,
        requests_per_s=1e-3,
        requests=1,
        prompt_tokens=1000,
        output_tokens=2,
        memory_efficiency=1.0,
    )
    made = inference_graph("j", job, 8, SEED)
    times = made.duration_ps[(made.rank == 0) & (made.kind == OpKind.COMPUTE)][1:]
    prompt, token = times[:161].sum() / 1e12, times[161:].sum() / 1e12
    assert prompt == pytest.approx(2 * 70.6e9 * 1000 / (8 * 0.4 * 989.4e12), rel=0.05)
    assert token == pytest.approx(2 * 70.6e9 / (8 * 3.35e12), rel=0.05)


def test_arrivals_are_a_poisson_process_of_each_replica():
    made = graph(4, tensor=2, requests=2000, requests_per_s=1e3, scale={"layers": 1})
    gaps = []
    for rank in (0, 2):
        first = made.duration_ps[(made.rank == rank) & (made.kind == OpKind.COMPUTE)]
        gaps.append(first[first > 10**6] / 1e12)
        assert gaps[-1].mean() == pytest.approx(1e-3, rel=0.1)
        assert gaps[-1].std() == pytest.approx(1e-3, rel=0.15)
    assert not np.array_equal(gaps[0][:100], gaps[1][:100])


def test_a_request_waits_for_the_one_before():
    fast = graph(2, tensor=2, requests_per_s=1e12)
    done = max(run(fast, call_ps=lambda call: 10**6))
    assert done >= 4 * 6 * 16 * 10**6  # passes of four requests, one after the other
    slow = graph(2, tensor=2, requests_per_s=1.0)
    arrivals = slow.duration_ps[(slow.rank == 0) & (slow.duration_ps > 10**9)].sum()
    assert max(run(slow)) == pytest.approx(arrivals, rel=1e-3)


def test_stragglers_do_not_delay_arrivals():
    even, slow = (
        graph(2, tensor=2, requests_per_s=1.0, stragglers=stragglers)
        for stragglers in (None, {"count": 2, "slowdown": 3})
    )
    assert (slow.duration_ps.max(), slow.duration_ps.min()) == (
        even.duration_ps.max(),
        even.duration_ps.min(),
    )
    work = (even.duration_ps > 0) & (even.duration_ps < 10**9)
    assert slow.duration_ps[work] == pytest.approx(3 * even.duration_ps[work], abs=2)


def test_refusals():
    with pytest.raises(ConfigError, match="a replica has 4 ranks, of which the tenant's 6 hosts"):
        graph(6, tensor=2, disaggregated=True)
    with pytest.raises(ValueError, match="tensor = 1 without disaggregated"):
        graph(6)
    with pytest.raises(ValueError, match="tensor = 3 does not divide heads = 4"):
        graph(6, tensor=3)
