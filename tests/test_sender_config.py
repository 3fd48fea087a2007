"""Senders in scenarios: what is refused, and with what message."""

import pytest
from small import SMALL

from roce_gym.config import Settings, SwiftConfig, validate_scenario
from roce_gym.errors import ConfigError
from roce_gym.fabric import Fabric


def with_sender(**fields):
    jobs = [{"kind": "ring_all_reduce", "bytes": 100_000}]
    ring = SMALL["tenants"][0] | {"jobs": jobs} | fields
    return SMALL | {"tenants": [ring, SMALL["tenants"][1]]}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"cc": "cubic"}, "tenants.ring.cc"),
        ({"cc": "swift", "swift": {"beta": 2}}, "tenants.ring.swift.beta"),
        ({"cc": "swift", "swift": {"gain": 2}}, "tenants.ring.swift.gain"),
        (
            {"cc": "swift", "swift": {"fs_min_cwnd": 5, "fs_max_cwnd": 5}},
            "fs_max_cwnd = 5.0 must be above fs_min_cwnd = 5.0",
        ),
        (
            {"cc": "swift", "swift": {"initial_cwnd": 5, "max_cwnd": 4}},
            "initial_cwnd = 5.0 must be from min_cwnd = 0.001 to max_cwnd = 4.0",
        ),
        ({"cc": "swift", "window": {}}, "is not allowed with cc = 'swift'"),
    ],
)
def test_refused(fields, message):
    with pytest.raises(ConfigError, match=message):
        validate_scenario(with_sender(**fields))


@pytest.mark.parametrize("cc", ["swift", "dctcp", "reno", "credit"])
@pytest.mark.parametrize(
    ("nic", "message"),
    [
        ({"out_of_order": True}, "nic.out_of_order = True is not allowed with it; allowed: False"),
        ({"recovery": "go_back_0"}, "nic.recovery = 'go_back_0' is not allowed with it"),
    ],
)
def test_own_windows_need_receivers_that_keep_order(cc, nic, message):
    with pytest.raises(ConfigError, match=f"tenants.ring.cc = '{cc}' .*{message}"):
        validate_scenario(with_sender(cc=cc) | {"nic": nic})


def test_settings_of_senders_change_during_a_run():
    fabric = Fabric(validate_scenario(with_sender(cc="swift")), seed=0)
    fabric.advance(us=50)
    settings = Settings.model_validate(
        fabric.settings.model_dump() | {"senders": {"ring": SwiftConfig(max_rate_mbps=9_000)}}
    )
    fabric.apply(settings)
    own = fabric._state.qp["tenant"] == 0
    assert (fabric.advance(us=50).rate_bps[own] == 9_000_000_000).all()
    assert Settings.model_validate_json(settings.model_dump_json()) == settings
