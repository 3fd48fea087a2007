"""NCCL's variables in jobs that are given by a model."""

import pytest

from roce_gym.config.training_jobs import Training
from roce_gym.errors import ConfigError
from roce_gym.workload.llm.jobs import model_work

TINY = {"layers": 2, "hidden": 8, "ffn_hidden": 16, "heads": 4, "kv_heads": 2, "vocabulary": 10}


def work(nccl=None, **fields):
    job = Training.model_validate({"model": TINY, "sequence": 4, "nccl": nccl} | fields)
    return model_work("tenants.llm.jobs.0", job, 4, (0, 0, 0))


def test_nothing_set():
    """Pieces are those of the algorithm."""
    plain = work()
    assert plain[1:] == (1, None, 1, False, -1, 0.0)
    assert {call.algorithm for call in plain.graph.collectives} == {"auto"}
    assert work({})[1:] == plain[1:]
    assert work({}).graph.collectives == plain.graph.collectives


def test_what_the_variables_do():
    made = work(
        {
            "NCCL_ALGO": "Tree",
            "NCCL_PROTO": "LL",
            "NCCL_MIN_NCHANNELS": 2,
            "NCCL_IB_QPS_PER_CONNECTION": 4,
            "NCCL_IB_SPLIT_DATA_ON_QPS": 1,
        },
        rounds=3,
        jitter=0.1,
    )
    assert made[1:] == (2, 32_768, 4, True, 3, 0.1)
    plain = work().graph.collectives
    assert made.graph.collectives == tuple(
        call._replace(algorithm="tree", bytes=2 * call.bytes) for call in plain
    )


def test_an_algorithm_that_a_collective_of_the_job_does_not_have():
    with pytest.raises(ConfigError, match=r"^tenants.llm.jobs.0.nccl: .* for allgather; allowed"):
        work({"NCCL_ALGO": "Tree"}, parallel={"zero": 1})
