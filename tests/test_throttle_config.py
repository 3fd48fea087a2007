"""`int_throttle` and `none` in scenarios: what is refused, what is printed, what they go with."""

import pytest
from small import SMALL

from roce_gym.config import IntThrottleConfig, NoneConfig, Settings, validate_scenario
from roce_gym.errors import ConfigError
from roce_gym.fabric import Fabric


def with_sender(**fields):
    jobs = [{"kind": "ring_all_reduce", "bytes": 100_000}]
    return SMALL | {"tenants": [SMALL["tenants"][0] | {"jobs": jobs} | fields, SMALL["tenants"][1]]}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            {"cc": "int_throttle", "int_throttle": {"start_fraction": 0.8}},
            "full_fraction = 0.8 must be above start_fraction = 0.8",
        ),
        (
            {"cc": "int_throttle", "int_throttle": {"full_fraction": 1.2}},
            "tenants.ring.int_throttle.full_fraction",
        ),
        ({"cc": "int_throttle", "int_throttle": {"gain": 0}}, "tenants.ring.int_throttle.gain"),
        ({"cc": "int_throttle", "none": {}}, "none is given, but cc = 'int_throttle'"),
        ({"cc": "none", "none": {"gain": 1}}, "tenants.ring.none.gain: unknown key"),
    ],
)
def test_refused(fields, message):
    with pytest.raises(ConfigError, match=message):
        validate_scenario(with_sender(**fields))


@pytest.mark.parametrize("nic", [{}, {"out_of_order": True, "recovery": "selective_repeat"}])
@pytest.mark.parametrize("policy", ["spray_random", "adaptive", "flowlet"])
def test_it_goes_with_any_routing_and_receiver(policy, nic):
    more = {"routing": {"policy": policy}, "nic": nic}
    validate_scenario(with_sender(cc="int_throttle") | more)
    with pytest.raises(ConfigError, match=r"routing\.policy"):
        validate_scenario(with_sender(cc="hpcc") | more)


def test_settings_survive_a_dump():
    # NoneConfig has only fields that others have, too.
    fabric = Fabric(validate_scenario(with_sender(cc="none", none={"max_rate_mbps": 9})), seed=0)
    settings = fabric.settings.model_copy(update={"senders": {"ring": NoneConfig()}})
    again = Settings.model_validate_json(settings.model_dump_json())
    assert type(again.senders["ring"]) is NoneConfig
    fabric.apply(again)
    other = {"senders": {"ring": IntThrottleConfig(gain=0.3).model_dump()}}
    settings = Settings.model_validate(settings.model_dump() | other)
    assert settings.senders["ring"] == IntThrottleConfig(gain=0.3)
