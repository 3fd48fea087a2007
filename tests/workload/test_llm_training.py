"""Training jobs: bytes of each kind of parallelism, order and overlap, by hand."""

from collections import Counter

import numpy as np
import pytest
from graph_runs import run, volumes
from pydantic import TypeAdapter

from roce_gym.config.llm import MODELS
from roce_gym.config.training_jobs import FineTuning, Training
from roce_gym.errors import ConfigError
from roce_gym.workload.llm.copies import MAX_OPERATIONS
from roce_gym.workload.llm.shape import num_parameters
from roce_gym.workload.llm.step import one_forward_one_backward
from roce_gym.workload.llm.training import training_graph
from roce_gym.workload.op_graph import OpKind

TINY = {  # h = 8, so that sizes can be counted: a layer has 2 norms x 8, 192 and 3 x 8 x 16
    "layers": 4,
    "hidden": 8,
    "ffn_hidden": 16,
    "heads": 4,
    "kv_heads": 2,
    "vocabulary": 10,
}
LAYER = 16 + 192 + 384
ENDS = 80 + 8 + 80  # input, last norm, output
SEED = (5, 0, 0)


def job(**fields):
    raw = {"model": TINY, "sequence": 4, "bucket_bytes": 2**40, "first_bucket_bytes": 2**40}
    return Training.model_validate(raw | fields)


def graph(num_hosts, **fields):
    return training_graph("jobs.0", job(**fields), num_hosts, SEED)


# --------------------------------------------------------------------------- bytes


def test_data_parallel__one_all_reduce_of_all_gradients():
    made = graph(3, micro_batches=2)
    for rank in range(3):
        assert volumes(made, rank) == {"all_reduce 3": [2 * (4 * LAYER + ENDS)]}


def test_llama3_8b__all_reduces_are_twice_its_parameters():
    made = training_graph("j", Training(model="llama3_8b"), 2, SEED)
    (sizes,) = volumes(made, 0).values()
    assert sum(sizes) == 2 * 8_030_261_248
    # every bucket but the last is full: 1 MiB, then 25 MiB, and by no more than the last tensor
    assert all(size >= 25 * 2**20 for size in sizes[1:-1])
    assert sizes[0] == 2 * 4096 * 128_256  # the output matrix is ready first and fills it


def test_buckets__tensors_in_reverse_order_the_first_has_a_size_of_its_own():
    made = graph(2, first_bucket_bytes=100, bucket_bytes=600)
    sizes = volumes(made, 0)["all_reduce 2"]
    # Backward: output 160 closes the first. Then norm 16; ffn 256 x 3 = 16 + 768 > 600 after the
    # third; ffn's norm 16, o 128, v 64, k 64, q 128, norm 16 and two matrices of the next layer.
    assert sizes[:3] == [160, 16 + 3 * 256, 16 + 128 + 64 + 64 + 128 + 16 + 256]
    assert sum(sizes) == 2 * (4 * LAYER + ENDS)


def test_tensor_parallel__four_all_reduces_of_activations_a_layer():
    made = graph(2, parallel={"tensor": 2}, micro_batches=3, micro_batch_size=2)
    activations = 2 * 4 * 8 * 2  # sequences x tokens x hidden x BF16
    assert volumes(made, 1) == {"all_reduce 2": [activations] * (4 * 4 * 3)}


def test_sequence_parallel__all_gather_and_reduce_scatter_in_their_place():
    made = graph(2, parallel={"tensor": 2, "sequence_parallel": True})
    assert volumes(made, 0) == {"all_gather 2": [64] * 16, "reduce_scatter 2": [64] * 16}


def test_recompute__the_forward_pass_again():
    made = graph(2, parallel={"tensor": 2}, recompute=True)
    assert volumes(made, 0) == {"all_reduce 2": [64] * (6 * 4)}
    again, plain = (
        graph(2, parallel={"tensor": 2}, sequence=2**20, recompute=recompute)
        for recompute in (True, False)
    )
    assert again.duration_ps.sum() == pytest.approx(plain.duration_ps.sum() * 4 / 3, rel=1e-4)


def test_pipeline__activations_forward_and_their_gradients_back():
    made = graph(4, parallel={"pipeline": 4}, micro_batches=5)
    assert [len(volumes(made, rank)["send"]) for rank in range(4)] == [5, 10, 10, 5]
    assert all(set(volumes(made, rank)["send"]) == {64} for rank in range(4))
    split = graph(
        8, parallel={"pipeline": 4, "tensor": 2, "sequence_parallel": True}, micro_batches=5
    )
    assert set(volumes(split, 0)["send"]) == {32}


def test_tied_embeddings__first_and_last_stage_add_theirs_up():
    made = graph(4, model=TINY | {"tied_embeddings": True}, parallel={"pipeline": 2})
    assert volumes(made, 0)["all_reduce 2"].count(160) == 1
    pairs = {call.ranks for call in made.collectives if call.bytes == 160}
    assert pairs == {(0, 2), (1, 3)}
    assert min(run(made)) >= 0


def test_experts__four_all_to_alls_a_layer_and_gradients_among_fewer_ranks():
    model = TINY | {"experts": 4, "experts_per_token": 2}
    made = graph(4, model=model, parallel={"expert": 2})
    expert = 3 * 8 * 16
    assert volumes(made, 0) == {
        "all_to_all 2": [2 * 64] * 16,  # each token goes to two experts
        "all_reduce 4": [2 * (4 * (16 + 192 + 8 * 4) + ENDS)],
        "all_reduce 2": [2 * 4 * 2 * expert],  # a rank holds two of four
    }
    groups = {call.ranks for call in made.collectives if call.operation == "all_to_all"}
    assert groups == {(0, 1), (2, 3)}
    shared = {call.ranks for call in made.collectives if call.bytes == 16 * expert}
    assert shared == {(0, 2), (1, 3)}


def test_experts_with_tensor_parallel__each_rank_sends_its_part():
    model = TINY | {"experts": 4, "experts_per_token": 2}
    layout = {"expert": 2, "tensor": 2, "sequence_parallel": True}
    got = volumes(graph(4, model=model, parallel=layout), 3)
    assert got["all_to_all 2"] == [64] * 16
    assert Counter(got["all_gather 2"]) == {64: 8, 128: 8}


def test_zero_1__gradients_scattered_and_weights_gathered_once():
    made = graph(4, parallel={"zero": 1}, micro_batches=3)
    whole = 2 * (4 * LAYER + ENDS)
    assert volumes(made, 0) == {"reduce_scatter 4": [whole], "all_gather 4": [whole]}


def test_zero_2__gradients_scattered_after_each_micro_batch():
    whole = 2 * (4 * LAYER + ENDS)
    got = volumes(graph(4, parallel={"zero": 2}, micro_batches=3), 0)
    assert got == {"reduce_scatter 4": [whole] * 3, "all_gather 4": [whole]}


def test_zero_3__three_times_the_parameters():
    # Rajbhandari et al. 2020, section 7.2.2: 3 x parameters; the embeddings' unit is gathered once.
    got = volumes(graph(4, parallel={"zero": 3}), 0)
    assert got["all_gather 4"] == [2 * ENDS] + [2 * LAYER] * 8
    assert sum(got["reduce_scatter 4"]) == 2 * (4 * LAYER + ENDS)
    assert len(got["reduce_scatter 4"]) == 5


def test_fp32_gradients_and_scaled_bytes():
    assert volumes(graph(2, gradient_bytes=4), 0) == {"all_reduce 2": [4 * (4 * LAYER + ENDS)]}
    assert volumes(graph(2, scale={"bytes": 0.25}), 0) == {
        "all_reduce 2": [(4 * LAYER + ENDS) // 2]
    }


def test_a_slice_has_its_share_of_the_bytes():
    whole = sum(
        volumes(training_graph("j", Training(model="llama3_8b"), 2, SEED), 0)["all_reduce 2"]
    )
    job = Training(model="llama3_8b", scale={"layers": 4})
    part = sum(volumes(training_graph("j", job, 2, SEED), 0)["all_reduce 2"])
    assert part * 8 == pytest.approx(whole, rel=1e-4)


# --------------------------------------------------------------------------- order and time


def test_1f1b():
    # Narayanan et al., SC 2021, figure 4, of the first of four stages: F1 F2 F3 F4 B1 F5 B2 …
    order = list(one_forward_one_backward(0, 4, 8))
    text = " ".join("BF"[not back] + str(i + 1) for back, i in order)
    assert text == "F1 F2 F3 F4 B1 F5 B2 F6 B3 F7 B4 F8 B5 B6 B7 B8"
    last = " ".join("BF"[not back] + str(i + 1) for back, i in one_forward_one_backward(3, 4, 3))
    assert last == "F1 B1 F2 B2 F3 B3"
    assert [back for back, _ in one_forward_one_backward(0, 4, 2)] == [False, False, True, True]


EVEN = TINY | {"vocabulary": 1}  # the output matrix costs next to nothing


def test_pipeline__bubble_is_stages_less_one():
    # Narayanan et al., SC 2021, section 2.2.1: (p - 1) / m of the ideal time.
    made = graph(4, model=EVEN, parallel={"pipeline": 4}, micro_batches=8, sequence=4096)
    end = max(run(made))
    busy = int(made.duration_ps[made.rank == 1].sum())
    assert end == pytest.approx(busy * (1 + 3 / 8), rel=0.01)


def test_compute_time():
    # Llama-3 405B: 400 TFLOP/s a GPU (table 4 of the paper); 16 million tokens on 16,384 GPUs.
    fields = {"parallel": {"tensor": 8, "pipeline": 16}, "micro_batches": 16, "sequence": 8192}
    job = Training.model_validate(
        {"model": "llama3_405b", "mfu": 400 / 989.4, "scale": {"layers": 126}} | fields
    )
    made = training_graph("j", job, 128, SEED)
    busy_ps = max(int(made.duration_ps[made.rank == r].sum()) for r in (0, 8, 120))
    tokens = 16 * 8192
    flops = 6 * 405.85e9 * tokens / 128  # of each of the 128 ranks of a replica
    assert busy_ps / 1e12 == pytest.approx(flops / 400e12, rel=0.12)  # attention; uneven stages


def test_data_parallel__buckets_overlap_the_backward_pass():
    # One bucket a tensor, each takes T on the wire, one after the other. T is long, so the step
    # ends when the last is through: the first begins once the output matrix's backward is done.
    made = graph(2, first_bucket_bytes=1, bucket_bytes=1, micro_batches=2)
    calls = len(made.collectives)
    ops = np.flatnonzero(made.rank == 0)
    reduces = ops[made.kind[ops] == OpKind.COLLECTIVE]
    done = run(made, call_ps=lambda call: 10**9)
    computes = ops[made.kind[ops] == OpKind.COMPUTE]
    first = made.dependency[made.first_dependency[reduces[0]]]
    optimizer = made.duration_ps[computes[-1]]
    assert max(done) == done[first] + calls * 10**9 + optimizer
    # With an idle network only the last bucket is not hidden.
    alone = run(made)
    assert max(alone) == int(made.duration_ps[ops].sum())


def test_zero_3__the_next_layer_is_gathered_while_one_computes():
    made = graph(2, parallel={"zero": 3}, sequence=65_536)
    busy = int(made.duration_ps[made.rank == 0].sum())
    layer_ps = busy // 12
    exposed = max(run(made, call_ps=lambda call: layer_ps // 4)) - busy
    # Not hidden: the embeddings' unit, the first of each pass, and what is reduced last, twice.
    assert exposed == pytest.approx(5 * (layer_ps // 4), abs=layer_ps // 4)


def test_every_layout_runs_to_its_end():
    moe = TINY | {"experts": 4, "experts_per_token": 2}
    for fields in (
        {"parallel": {"tensor": 2, "pipeline": 2, "order": "tensor_pipeline_data"}},
        {"parallel": {"tensor": 2, "pipeline": 4, "zero": 1}, "micro_batches": 3},
        {"parallel": {"pipeline": 2, "expert": 4}, "model": moe, "recompute": True},
        {"parallel": {"zero": 3, "expert": 2}, "model": moe, "micro_batches": 2},
        {"parallel": {"tensor": 2, "expert": 2, "sequence_parallel": True}, "model": moe},
    ):
        made = graph(16, **fields)
        assert min(run(made, call_ps=lambda call: 7, message_ps=lambda size: size)) >= 0
        assert (np.diff(made.rank) >= 0).all()


def test_orders_of_ranks():
    layout = {"tensor": 2, "pipeline": 2}
    a = graph(8, parallel=layout)
    b = graph(8, parallel=layout | {"order": "tensor_pipeline_data"})
    data = [{c.ranks for c in made.collectives if c.bytes > 64} for made in (a, b)]
    assert data[0] == {(0, 2), (1, 3), (4, 6), (5, 7)}
    assert data[1] == {(0, 4), (1, 5), (2, 6), (3, 7)}


# --------------------------------------------------------------------------- checkpoints


def test_checkpoint__fourteen_bytes_a_parameter_over_all_ranks():
    made = graph(5, checkpoint={"every": 3, "servers": 1})
    share = -(-14 * (4 * LAYER + ENDS) // 4)
    assert made.num_ranks == 5
    for rank in range(4):
        assert volumes(made, rank)["send"] == [share]
        assert len(volumes(made, rank)["all_reduce 4"]) == 3
    assert volumes(made, 4)["send"] == [64] * 4
    assert set(made.channel[made.kind == OpKind.SEND].tolist()) == {1}


@pytest.mark.parametrize("blocking", [True, False])
def test_checkpoint__the_next_step_waits_or_does_not(blocking):
    made = graph(6, checkpoint={"every": 1, "servers": 2, "bytes": 4000, "blocking": blocking})
    done = run(made, message_ps=lambda size: 10**9 if size == 1000 else 0)
    trainers = [done[i] for i in range(len(done)) if made.rank[i] < 4]
    assert (max(trainers) >= 10**9) == blocking
    receives = (made.rank == 5) & (made.kind == OpKind.RECV)
    assert sorted(made.peer[receives].tolist()) == [1, 3]


# --------------------------------------------------------------------------- fine-tuning


def test_lora__only_adapters_have_gradients():
    raw = {"model": TINY, "sequence": 4, "lora_rank": 2, "burst": 1, "bursts": 1, "pause_us": 5}
    made = training_graph("j", FineTuning.model_validate(raw), 2, SEED)
    # q, o: 8 x 8; k, v: 8 x 4; three of 8 x 16
    adapters = 2 * (2 * 16 + 2 * 12 + 3 * 24)
    assert volumes(made, 0) == {"all_reduce 2": [2 * 4 * adapters]}


def test_bursts_and_pauses():
    raw = {"model": TINY, "sequence": 4, "burst": 3, "bursts": 50, "pause_us": 1e6}
    job = FineTuning.model_validate(raw)
    made = training_graph("j", job, 2, SEED)
    pauses = made.duration_ps[(made.rank == 0) & (made.duration_ps > 10**8)]
    assert len(pauses) <= 50
    assert pauses.sum() == pytest.approx(50 * 1e12, rel=0.4)
    assert len(set(pauses.tolist())) == len(pauses)
    again = training_graph("j", job, 2, SEED)
    other = training_graph("j", job, 2, (6, 0, 0))
    assert (again.duration_ps == made.duration_ps).all()
    assert (other.duration_ps != made.duration_ps).any()


def test_stragglers():
    slow = graph(8, stragglers={"count": 2, "slowdown": 3})
    even = graph(8)
    factor = slow.duration_ps.reshape(8, -1).sum(1) / even.duration_ps.reshape(8, -1).sum(1)
    assert sorted(factor.round(3).tolist()) == [1] * 6 + [3] * 2


# --------------------------------------------------------------------------- size


def test_16384_ranks():
    layout = {"tensor": 8, "pipeline": 16, "zero": 1}
    job = Training(model="llama3_405b", parallel=layout, micro_batches=8, scale={"layers": 32})
    made = training_graph("j", job, 16_384, SEED)
    n, m = len(made.kind), len(made.dependency)
    # 8 micro-batches x 2 layers x (4 times compute and all-reduce) and messages, a little more
    assert 16_384 * 128 < n < 16_384 * 220
    arrays = [value for value in made if isinstance(value, np.ndarray)]
    assert sum(value.nbytes for value in arrays) == 43 * n + 8 + 8 * m
    assert (made.first_dependency[:-1] <= made.first_dependency[1:]).all()
    owner = np.repeat(made.rank, np.diff(made.first_dependency))
    assert (made.rank[made.dependency] == owner).all()
    assert len(made.collectives) == 2048 * (8 * 2 * 4) + _calls_of_data_groups(made)


def _calls_of_data_groups(made):
    groups = Counter(call.ranks for call in made.collectives if len(call.ranks) == 128)
    assert len(groups) == 128
    assert len(set(groups.values())) <= 3  # stages with and without embeddings
    return sum(groups.values())


def test_too_many_operations_are_refused_before_they_are_made():
    job = Training(model="llama3_405b", parallel={"tensor": 8}, micro_batches=64)
    with pytest.raises(ConfigError, match=f"allowed: {MAX_OPERATIONS:,}. Lower scale.layers"):
        training_graph("tenants.a.jobs.0", job, 16_384, SEED)


# --------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("fields", "hosts", "message"),
    [
        (
            {"parallel": {"tensor": 2}},
            3,
            "tensor x pipeline x data = 2 x 1 x 1 = 2, but the tenant",
        ),
        ({"parallel": {"data": 4}}, 8, "= 4, but the tenant has 8 ranks"),
        ({"checkpoint": {"every": 1, "servers": 2}}, 2, "servers = 2 leaves no rank"),
        ({"stragglers": {"count": 5, "slowdown": 2}}, 4, "count = 5 is more than the job's ranks"),
        ({}, 1, "needs at least 2 ranks"),
    ],
)
def test_hosts_that_do_not_fit(fields, hosts, message):
    with pytest.raises(ConfigError, match=message):
        graph(hosts, **fields)


def test_experts_that_do_not_divide_the_data_parallel_ranks():
    model = TINY | {"experts": 4, "experts_per_token": 2}
    with pytest.raises(ConfigError, match="expert = 4 does not divide data = 6"):
        graph(6, model=model, parallel={"expert": 4})


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"model": "llama4"}, "'llama4' is unknown; allowed: gpt3_175b, llama3_405b"),
        ({"model": TINY | {"heads": 3}}, "heads = 3 does not divide hidden = 8"),
        ({"model": TINY | {"experts_per_token": 2}}, "experts_per_token = 2 is more than"),
        ({"gpu": "a100", "precision": "fp8"}, "precision = 'fp8' is not one of gpu = 'a100'"),
        ({"scale": {"layers": 5}}, "scale.layers = 5 is more than the model has; allowed: 1 … 4"),
        ({"parallel": {"pipeline": 5}}, "pipeline = 5 is more than there are layers"),
        ({"parallel": {"tensor": 3}}, "tensor = 3 does not divide heads = 4"),
        ({"parallel": {"zero": 3, "pipeline": 2}}, "zero = 3 with pipeline = 2"),
        ({"parallel": {"expert": 2}}, "expert = 2 does not divide the model's"),
        ({"parallel": {"expert": 2, "tensor": 2}}, "needs sequence_parallel"),
        ({"micro_batchs": 2}, "micro_batchs"),
    ],
)
def test_what_makes_no_sense(fields, message):
    with pytest.raises(ValueError, match=message):
        job(**fields)


def test_names_and_dimensions_are_the_same_model():
    by_name = TypeAdapter(Training).validate_python({"model": "mixtral_8x7b"})
    assert by_name.model == MODELS["mixtral_8x7b"]
    assert Training.model_validate(by_name.model_dump()) == by_name
    assert num_parameters(by_name.model) == 46_702_792_704
