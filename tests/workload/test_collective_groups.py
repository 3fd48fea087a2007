"""Collectives of groups of a tenant's hosts."""

import pytest

from roce_gym.config import validate_scenario
from roce_gym.errors import ConfigError
from roce_gym.fabric import Fabric
from roce_gym.topology import build_network
from roce_gym.workload.planner import make_plan


def scenario(hosts, **job):
    given = {"kind": "collective", "operation": "all_reduce", "bytes": 120_000, "rounds": 1} | job
    return validate_scenario(
        {
            "name": "groups",
            "topology": {"kind": "star", "hosts": hosts},
            "tenants": [{"name": "one", "hosts": list(range(hosts)), "jobs": [given]}],
        }
    )


def groups(hosts, **job):
    one = scenario(hosts, **job)
    plan = make_plan(one, build_network(one.topology), 0)
    return [call.ranks for call in plan.jobs[0].graph.graph.collectives]


def test_groups():
    assert groups(6, group_ranks=3) == [(0, 1, 2), (3, 4, 5)]
    assert groups(6, group_ranks=3, groups="spread") == [(0, 2, 4), (1, 3, 5)]
    assert groups(6, group_ranks=4) == [(0, 1, 2), (3, 4, 5)]  # as few equal ones as can be
    assert groups(6, group_ranks=8) == groups(6) == [(0, 1, 2, 3, 4, 5)]
    assert groups(4, group_ranks=2, in_flight=2) == [(0, 1), (0, 1), (2, 3), (2, 3)]


@pytest.mark.parametrize(("hosts", "ranks"), [(7, 4), (3, 2)])
def test_unequal_groups(hosts, ranks):
    with pytest.raises(ConfigError, match=rf"jobs.0.group_ranks = {ranks} does not cut {hosts} h"):
        groups(hosts, group_ranks=ranks)


@pytest.mark.parametrize("operation", ["all_reduce", "all_to_all"])
@pytest.mark.parametrize("kind", ["neighbours", "spread"])
def test_bytes_stay_in_their_group(operation, kind):
    one = scenario(6, operation=operation, group_ranks=3, groups=kind)
    fabric = Fabric(one)
    interval = fabric.advance(us=1_000)
    assert len(interval.completions) == 1 and len(interval.collectives) == 2
    share = {"all_reduce": 2 * 2 / 3, "all_to_all": 2 / 3}[operation]
    sent = dict.fromkeys(range(6), 0)
    for pair, delivered in zip(fabric.plan.qps, interval.delivered_bytes, strict=True):
        group = {"neighbours": 3, "spread": 1}[kind]
        same = pair.src // 3 == pair.dst // 3 if group == 3 else pair.src % 2 == pair.dst % 2
        assert same or delivered == 0
        sent[pair.src] += int(delivered)
    assert set(sent.values()) == {int(share * 120_000)}


def test_groups_on_ports_of_their_own_are_as_fast_as_one_alone():
    both = Fabric(scenario(8, group_ranks=4)).advance(us=1_000).completions[0]
    alone = Fabric(scenario(4)).advance(us=1_000).completions[0]
    assert both["end_ps"] == alone["end_ps"]
