"""NCCL's variables: what they mean, and what is refused."""

import re

import pytest

from roce_gym.config import validate_scenario
from roce_gym.config.nccl import NcclSettings
from roce_gym.errors import ConfigError


def given(**variables):
    return NcclSettings.model_validate(variables)


def test_nothing_set_is_the_default_of_nccl():
    unset = NcclSettings()
    assert unset.given == ()
    assert [unset.algorithm(o) for o in ("all_reduce", "all_gather", "all_to_all")] == ["auto"] * 3
    assert (unset.protocol, unset.slice_bytes, unset.on_wire(1000)) == ("simple", 512 * 1024, 1000)
    assert (unset.channels(1), unset.channels(16)) == (1, 16)
    assert (unset.qps_per_connection, unset.splits_data) == (1, False)
    assert (unset.timeout_ps, unset.NCCL_IB_RETRY_CNT, unset.dscp) == (None, None, None)


@pytest.mark.parametrize(
    ("exponent", "seconds"),
    # NVIDIA's table; IBTA: 4.096 us x 2^t
    [(1, 8.192e-6), (14, 67.1e-3), (18, 1.1), (19, 2.1), (20, 4.3), (21, 8.6), (22, 17.2)],
)
def test_timeout(exponent, seconds):
    assert given(NCCL_IB_TIMEOUT=exponent).timeout_ps / 1e12 == pytest.approx(seconds, rel=0.03)
    assert given(NCCL_IB_TIMEOUT=str(exponent)) == given(NCCL_IB_TIMEOUT=exponent)


def test_timeout__exact_and_infinite():
    assert given(NCCL_IB_TIMEOUT=14).timeout_ps == 67_108_864_000
    assert given(NCCL_IB_TIMEOUT=0).timeout_ps == 0


@pytest.mark.parametrize(("tc", "dscp"), [(104, 26), (106, 26), (0, 0), (192, 48), (255, 63)])
def test_traffic_class_is_four_times_dscp(tc, dscp):
    assert given(NCCL_IB_TC=tc).dscp == dscp


@pytest.mark.parametrize(
    ("text", "operation", "algorithm"),
    [
        ("Ring", "all_reduce", "ring"),
        ("tree", "all_reduce", "tree"),
        ("Ring,Tree", "all_reduce", "auto"),
        ("^Tree", "all_reduce", "ring"),
        ("^Ring", "all_reduce", "tree"),
        ("ring", "all_gather", "ring"),
        ("allreduce:tree;broadcast:ring", "all_reduce", "tree"),
        ("allreduce:tree;broadcast:ring", "all_gather", "ring"),
        ("allreduce:tree;broadcast:ring", "broadcast", "ring"),
        ("ring;allreduce:tree", "all_reduce", "tree"),
        ("ring;allreduce:^tree", "all_reduce", "ring"),
        ("^nvls,nvlstree", "all_reduce", "auto"),
        ("tree", "all_to_all", "auto"),
    ],
)
def test_algorithm(text, operation, algorithm):
    assert given(NCCL_ALGO=text).algorithm(operation) == algorithm


def test_since_2_24_nothing_falls_back_to_a_ring():
    with pytest.raises(ValueError, match="leaves no algorithm for allgather; allowed for it: ring"):
        given(NCCL_ALGO="Tree").algorithm("all_gather")


@pytest.mark.parametrize(
    ("text", "protocol", "wire", "piece"),
    [
        ("Simple", "simple", 1000, 524_288),
        ("LL", "ll", 2000, 32_768),  # 512 KiB / 8, half of it flags
        ("LL128", "ll128", 1067, 576_000),  # 4,915,200 / 8 x 15 / 16
        ("LL,LL128", "ll128", 1067, 576_000),
        ("^Simple", "ll128", 1067, 576_000),
        ("^LL128", "simple", 1000, 524_288),
    ],
)
def test_protocol(text, protocol, wire, piece):
    settings = given(NCCL_PROTO=text)
    assert (settings.protocol, settings.on_wire(1000)) == (protocol, wire)
    assert settings.slice_bytes == piece


def test_buffer_is_handed_over_in_eighths():
    assert given(NCCL_BUFFSIZE=8 * 2**20).slice_bytes == 2**20


def test_channels__the_stricter_of_two_names_counts():
    assert given(NCCL_MIN_NCHANNELS=4).channels(1) == 4
    assert given(NCCL_MIN_NCHANNELS=4, NCCL_MIN_CTAS=8).channels(1) == 8
    assert given(NCCL_MAX_NCHANNELS=4, NCCL_MAX_CTAS=2).channels(16) == 2
    assert given(NCCL_MIN_CTAS=2, NCCL_MAX_CTAS=8).channels(4) == 4


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"NCCL_IB_RETRY_CNT": 13}, "= 13 is not allowed; allowed: whole numbers 0 … 7; .*3 bits"),
        ({"NCCL_IB_RETRY_CNT": "14"}, "0 … 7"),
        ({"NCCL_IB_TIMEOUT": "30s"}, "0 … 31; it is an exponent, 4.096 us x 2.t, not a time"),
        ({"NCCL_IB_TIMEOUT": 4.3}, "it is an exponent"),
        ({"NCCL_IB_TIMEOUT": 60}, "0 … 31"),
        ({"NCCL_IB_TIMEOUT": True}, "0 … 31"),
        ({"NCCL_IB_TC": 256}, "0 … 255; it is the whole traffic class byte"),
        ({"NCCL_BUFFSIZE": "4M"}, "= '4M' is .* 1024 … 1073741824; bytes, without a unit: 4194304"),
        ({"NCCL_BUFFSIZE": 4e6}, "= 4000000.0 is not allowed"),
        (
            {"NCCL_MIN_NCHANNELS": 8, "NCCL_MIN_CTAS": 2, "NCCL_MAX_CTAS": 4},
            "NCCL_MIN_NCHANNELS = 8 is more than NCCL_MAX_CTAS = 4; allowed: 1 … 4 with this "
            "NCCL_MAX_CTAS, or 8 … 64 for NCCL_MAX_CTAS",
        ),
        ({"NCCL_ALGO": "NVLS"}, "leaves nothing that is simulated; allowed: ring, tree"),
        ({"NCCL_ALGO": "butterfly"}, "'butterfly' is unknown"),
        ({"NCCL_ALGO": "allreduce:ring;everything:tree"}, "'everything' is not a function"),
        ({"NCCL_ALGO": "broadcast:tree"}, "leaves no algorithm for broadcast"),
        ({"NCCL_PROTO": "^LL,LL128,Simple"}, "leaves nothing"),
        ({"NCCL_PROTO": "fast"}, "'fast' is unknown; allowed: simple, ll128, ll"),
        ({"NCCL_IB_SL": 3}, "NCCL_IB_SL = 3 has no effect here: .* use NCCL_IB_TC"),
        ({"NCCL_NTHREADS": 512}, "has no effect here"),
        ({"NCCL_P2P_NET_CHUNKSIZE": 131072}, "has no effect here"),
        ({"NCCL_IB_TIMEOUTS": 20}, "Extra inputs"),
    ],
)
def test_what_is_refused(variables, message):
    with pytest.raises(ValueError, match=message):
        given(**variables)


@pytest.mark.parametrize(
    ("name", "low", "high"),
    [
        ("NCCL_BUFFSIZE", 1024, 2**30),
        ("NCCL_MIN_NCHANNELS", 1, 64),
        ("NCCL_MAX_NCHANNELS", 1, 64),
        ("NCCL_MIN_CTAS", 1, 64),
        ("NCCL_MAX_CTAS", 1, 64),
        ("NCCL_IB_QPS_PER_CONNECTION", 1, 128),
        ("NCCL_IB_SPLIT_DATA_ON_QPS", 0, 1),
        ("NCCL_IB_TIMEOUT", 0, 31),
        ("NCCL_IB_RETRY_CNT", 0, 7),
        ("NCCL_IB_TC", 0, 255),
    ],
)
def test_every_range_is_named_whole_and_with_its_source(name, low, high):
    for value in (low, high, str(low)):
        assert getattr(given(**{name: value}), name) == int(value)
    for value in (low - 1, high + 1, -1, "many", 1.5, True):
        message = f"{name} = {value!r} is not allowed; allowed: whole numbers {low} … {high}; "
        with pytest.raises(ValueError, match=re.escape(message) + r".*\((NCCL User|IBTA|RFC)"):
            given(**{name: value})


def scenario(nccl, kind="all_to_all", classes=None, **tenant):
    job = {"kind": kind, "bytes": 1000, "nccl": nccl}
    raw = {
        "name": "test",
        "topology": {"kind": "star", "hosts": 2},
        "tenants": [{"name": "llm", "hosts": [0, 1], "jobs": [job], **tenant}],
    }
    return validate_scenario(raw | ({"classes": classes} if classes else {}))


def test_the_message_names_the_field():
    with pytest.raises(ConfigError, match=r"^tenants.llm.jobs.0.nccl: NCCL_IB_RETRY_CNT = 13"):
        scenario({"NCCL_IB_RETRY_CNT": 13})
    with pytest.raises(
        ConfigError, match=r"unknown key \(got 20\); allowed: NCCL_ALGO, NCCL_PROTO"
    ):
        scenario({"NCCL_TIMEOUT": 20})


def test_what_is_about_collectives_does_not_act_on_other_jobs():
    with pytest.raises(ConfigError, match="NCCL_ALGO = 'ring' does not act on this kind of job"):
        scenario({"NCCL_ALGO": "ring"})


def test_a_traffic_class_that_no_class_has():
    message = r"NCCL_IB_TC = 4 is DSCP 1, which no class has; allowed, among others: 96 \(roce\)"
    with pytest.raises(ConfigError, match=message):
        scenario({"NCCL_IB_TC": 4})
