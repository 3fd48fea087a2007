"""Jobs that are given by a model, on the fabric."""

import numpy as np
import pytest

from roce_gym.config import validate_scenario
from roce_gym.errors import ConfigError
from roce_gym.fabric import Fabric
from roce_gym.topology import build_network
from roce_gym.workload.planner import make_plan

TINY = {
    "layers": 2,
    "hidden": 256,
    "ffn_hidden": 512,
    "heads": 4,
    "kv_heads": 4,
    "vocabulary": 100,
}
TRAINING = {"kind": "training", "model": TINY, "sequence": 128}
PARAMETERS = 2 * (2 * 256 + 4 * 256**2 + 3 * 256 * 512) + 2 * 256 * 100 + 256
CLASSES = [{"name": "roce", "priority": 3}, {"name": "tcp", "priority": 1, "lossless": False}]


def scenario(*tenants, hosts=6, **rest):
    raw = {"name": "test", "topology": {"kind": "star", "hosts": hosts}, "tenants": list(tenants)}
    return validate_scenario(raw | rest)


def tenant(name, hosts, *jobs, **rest):
    return {"name": name, "hosts": hosts, "jobs": list(jobs), **rest}


def run(made, us=20_000):
    fabric = Fabric(made, 0)
    return fabric, fabric.advance(us=us)


def test_data_parallel_training():
    made = scenario(tenant("llm", [0, 1, 2, 3], TRAINING | {"rounds": 3}))
    _, interval = run(made)
    assert len(interval.completions) >= 3
    # ring all-reduce: each rank sends 2 (n - 1) / n of the gradients, in BF16, plus rounding
    expected = 3 * 2 * 3 * 2 * PARAMETERS
    assert interval.delivered_bytes.sum() == pytest.approx(expected, rel=1e-3)
    assert interval.delivered_bytes.sum() >= expected


def test_jitter_and_stragglers():
    job = TRAINING | {"rounds": 4, "sequence": 16_384}
    steps = []
    for more in ({}, {"stragglers": {"count": 1, "slowdown": 2}}, {"jitter": 0.3}):
        _, interval = run(scenario(tenant("llm", [0, 1], job | more)), 100_000)
        steps.append(np.diff(interval.completions["end_ps"]))
    plain, slow, varied = steps
    assert len(set(plain.tolist())) == 1
    assert slow == pytest.approx(2 * plain, rel=0.05)
    assert len(set(varied.tolist())) == 3
    assert (abs(varied / plain - 1) < 0.3).all()


def test_checkpoints_travel_as_another_tenant():
    checkpoint = {"every": 2, "servers": 1, "carried_by": "storage"}
    llm = tenant("llm", [0, 1, 2], TRAINING | {"checkpoint": checkpoint, "rounds": 1})
    flows = {"kind": "flows", "flows": [{"src": 4, "dst": 5, "bytes": 10}]}
    storage = tenant("storage", [2, 5], flows, cc="dctcp", traffic_class="tcp")
    made = scenario(llm, storage, classes=CLASSES)
    _, interval = run(made, 50_000)
    plan = make_plan(made, build_network(made.topology), 0)
    writes = [i for i, qp in enumerate(plan.qps) if (qp.src, qp.dst) in ((0, 2), (1, 2))]
    assert {(plan.qps[i].tenant, plan.qps[i].class_index) for i in writes} == {(1, 1)}
    share = -(-14 * PARAMETERS // 2)
    assert [int(interval.delivered_bytes[i]) for i in writes] == [share, share]
    others = [qp for qp in plan.qps if qp.tenant == 0]
    assert {(qp.src, qp.dst) for qp in others} == {(0, 1), (1, 0)}
    with pytest.raises(ConfigError, match="carried_by = 'disk' is not a tenant; allowed: llm"):
        job = TRAINING | {"checkpoint": checkpoint | {"carried_by": "disk"}}
        scenario(tenant("llm", [0, 1, 2], job))


def test_nccl_queue_pairs_and_channels():
    nccl = {
        "NCCL_ALGO": "Ring",
        "NCCL_MIN_NCHANNELS": 2,
        "NCCL_IB_QPS_PER_CONNECTION": 4,
        "NCCL_IB_TIMEOUT": 14,
        "NCCL_IB_RETRY_CNT": 3,
        "NCCL_IB_TC": 96,
    }
    made = scenario(tenant("llm", [0, 1, 2], TRAINING | {"nccl": nccl, "rounds": 1}))
    plan = make_plan(made, build_network(made.topology), 0)
    pairs = [(qp.src, qp.dst) for qp in plan.qps]
    assert {pair: pairs.count(pair) for pair in pairs} == {(0, 1): 8, (1, 2): 8, (2, 0): 8}
    assert {(qp.timeout_ps, qp.retry_limit) for qp in plan.qps} == {(67_108_864_000, 3)}
    assert run(made)[1].delivered_bytes.min() > 0


def test_nccl_of_a_collective():
    job = {"kind": "collective", "operation": "all_reduce", "bytes": 100_000, "rounds": 1}
    plain = run(scenario(tenant("a", [0, 1, 2], job)))[1].delivered_bytes.sum()
    changed = job | {"nccl": {"NCCL_PROTO": "LL", "NCCL_ALGO": "tree", "NCCL_MIN_CTAS": 2}}
    _, interval = run(scenario(tenant("a", [0, 1, 2], changed)))
    assert interval.delivered_bytes.sum() == pytest.approx(2 * plain, rel=0.01)


def test_tensor_parallelism_stays_in_the_servers():
    rails = {"kind": "rail_optimised", "nodes": 2, "gpus_per_node": 2}
    job = TRAINING | {"parallel": {"tensor": 2}, "rounds": 1, "micro_batches": 2}
    made = validate_scenario(
        {"name": "t", "topology": rails, "tenants": [tenant("llm", [0, 1, 2, 3], job)]}
    )
    plan = make_plan(made, build_network(made.topology), 0)
    local = [qp for qp in plan.qps if qp.is_local]
    assert {(qp.src, qp.dst) for qp in local} == {(4, 5), (5, 4), (6, 7), (7, 6)}
    assert {(qp.src, qp.dst) for qp in plan.qps if not qp.is_local} == {
        (0, 2),
        (2, 0),
        (1, 3),
        (3, 1),
    }
    _, interval = run(made)
    sent = interval.delivered_bytes
    inside = sum(int(sent[i]) for i, qp in enumerate(plan.qps) if qp.is_local)
    # 2 servers x 2 ranks x 2 layers x 4 x 2 micro-batches, each 2 (n - 1) / n x 128 x 256 x BF16
    assert inside == 2 * 2 * 2 * 4 * 2 * 128 * 256 * 2


def test_pipeline_inference_and_fine_tuning_come_to_their_ends():
    pipeline = TRAINING | {"parallel": {"pipeline": 2}, "micro_batches": 4, "rounds": 2}
    tuning = {
        "kind": "fine_tuning",
        "model": TINY,
        "sequence": 64,
        "lora_rank": 8,
        "pause_us": 50,
        "burst": 2,
        "bursts": 3,
        "rounds": 1,
    }
    serving = {
        "kind": "inference",
        "model": TINY,
        "tensor": 2,
        "requests_per_s": 20_000,
        "requests": 8,
        "output_tokens": 4,
        "rounds": 1,
    }
    made = scenario(
        tenant("a", [0, 1], pipeline), tenant("b", [2, 3], tuning), tenant("c", [4, 5], serving)
    )
    fabric, interval = run(made, 100_000)
    assert (interval.delivered_bytes > 0).all()
    assert fabric.advance(us=1000).tx_packets.sum() == 0  # all rounds are over
