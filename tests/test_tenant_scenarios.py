"""The shipped scenarios in which tenants share a fabric show what they say."""

from __future__ import annotations

import math

import pytest
from scenario_runs import SEEDS, cct, ecn, mean, pauses, run

# --------------------------------------------------------------------------- paths, places


def interference(tenant, *changes, seed):
    shared = run("two_tenants_ecmp", *changes, seed=seed)
    alone = run("two_tenants_ecmp", *changes, seed=seed, only=tenant)
    assert set(shared.hosts["left"]).isdisjoint(shared.hosts["right"])
    return shared.cct_us[tenant] / alone.cct_us[tenant] - 1


@pytest.mark.shows("two_tenants_ecmp")
def test_two_tenants_ecmp__who_loses_depends_on_the_seed():
    harm = {seed: [interference(t, seed=seed) for t in ("left", "right")] for seed in range(6)}
    worst = {seed: max(both) for seed, both in harm.items()}
    assert sum(one > 0.5 for one in worst.values()) >= 2
    assert worst[2] < 0.05
    assert {both.index(max(both)) for both in harm.values()} == {0, 1}


@pytest.mark.shows("two_tenants_ecmp")
@pytest.mark.parametrize("seed", SEEDS)
def test_two_tenants_ecmp__nobody_loses_with_adaptive_routing(seed):
    for tenant in ("left", "right"):
        assert abs(interference(tenant, "routing.policy=adaptive", seed=seed)) < 0.02
        adaptive = run("two_tenants_ecmp", "routing.policy=adaptive", seed=seed).cct_us[tenant]
        assert adaptive < 0.7 * run("two_tenants_ecmp", seed=seed).cct_us[tenant]


CLOS = (
    "topology={kind: leaf_spine, leaves: 4, hosts_per_leaf: 8, spines: 4, host_rate_gbps: 400, "
    "spine_rate_gbps: 400, host_cable_m: 5, fabric_cable_m: 30}"
)
IDEAL_US = 16e6 * 8 * (2 * 7 / 8) / 400e3
NEIGHBOURS = "tenants.training.jobs.0.groups=neighbours"


@pytest.mark.shows("rail_vs_clos")
@pytest.mark.parametrize("seed", SEEDS)
def test_rail_vs_clos(seed):
    rails = run("rail_vs_clos", seed=seed)
    clos = run("rail_vs_clos", CLOS, seed=seed)
    assert rails.spine_bytes == 0 < clos.spine_bytes
    assert IDEAL_US < rails.cct_us["training"] < 1.05 * IDEAL_US
    assert clos.cct_us["training"] > 1.7 * rails.cct_us["training"]
    adaptive = run("rail_vs_clos", CLOS, "routing.policy=adaptive", seed=seed)
    assert adaptive.cct_us["training"] < 1.05 * rails.cct_us["training"]


@pytest.mark.shows("rail_vs_clos")
def test_rail_vs_clos__groups_that_leave_their_rail():
    assert run("rail_vs_clos", NEIGHBOURS).spine_bytes > 0
    clos = run("rail_vs_clos", CLOS, NEIGHBOURS)
    assert clos.spine_bytes == 0
    assert run("rail_vs_clos", NEIGHBOURS).cct_us["training"] > 2 * clos.cct_us["training"]


SCATTERED = tuple(
    f"tenants.{name}.hosts={{kind: strided, count: {count}, first: {first}, stride: {stride}}}"
    for name, count, first, stride in (
        ("large", 16, 0, 2),
        ("middle", 8, 1, 4),
        ("small_a", 4, 3, 8),
        ("small_b", 4, 7, 8),
    )
)


@pytest.mark.shows("placement_islands")
def test_placement_islands__each_has_as_few_leaves_as_can_be():
    leaves = {
        name: {host // 8 for host in hosts}
        for name, hosts in run("placement_islands").hosts.items()
    }
    assert {name: len(of) for name, of in leaves.items()} == {
        "large": 2,
        "middle": 1,
        "small_a": 1,
        "small_b": 1,
    }
    assert leaves["small_a"] == leaves["small_b"]
    spread = run("placement_islands", *SCATTERED).hosts
    assert len({host for hosts in spread.values() for host in hosts}) == 32


@pytest.mark.shows("placement_islands")
@pytest.mark.parametrize("seed", SEEDS)
def test_placement_islands__nobody_meets_anybody(seed):
    islands, scattered = (run("placement_islands", *c, seed=seed) for c in ((), SCATTERED))
    for tenant, cct_us in islands.cct_us.items():
        alone = run("placement_islands", seed=seed, only=tenant)
        assert cct_us == pytest.approx(alone.cct_us[tenant], rel=0.001)
        assert (alone.spine_bytes > 0) == (tenant == "large")
    assert islands.pauses == 0 < scattered.pauses
    slower = [scattered.cct_us[t] / us for t, us in islands.cct_us.items()]
    assert min(slower) > 1.03 and sum(one > 1.5 for one in slower) >= 3


# --------------------------------------------------------------------------- shared classes


@pytest.mark.shows("noisy_neighbor")
def test_noisy_neighbor__presets():
    """Without marks pauses do all, and all is faster; with the paper's, both are slowest."""
    found = {
        preset: [
            mean(q, "noisy_neighbor", preset=preset)
            for q in (cct("training"), cct("checkpoint"), pauses)
        ]
        for preset in ("pfc_only", "connectx_default", "dcqcn_paper")
    }
    training, checkpoint, paused = zip(*found.values(), strict=True)
    assert training[0] < training[1] < training[2] and checkpoint[0] < checkpoint[1] < checkpoint[2]
    assert paused[0] > 50 * paused[1] and paused[2] < paused[1]


CONNECTX = {"byte_counter_bytes": 32767 * 64}
GENTLE = CONNECTX | {"alpha_cap": 0.05, "increase_timer_us": 20, "rate_ai_mbps": 1000}
BETTER = (
    "classes.checkpoint.ecn={kmin_bytes: 20000, kmax_bytes: 40000, pmax: 0.2}",
    f"tenants.training.dcqcn={GENTLE}",
    f"tenants.checkpoint.dcqcn={CONNECTX | {'increase_timer_us': 50, 'rate_ai_mbps': 500}}",
)


@pytest.mark.shows("noisy_neighbor")
def test_noisy_neighbor__better_settings_exist():
    """Better for the ring than any preset, and by the score: weights 5 to 1, and pauses."""

    def j(*changes, preset=None):
        ring, burst, paused = (
            mean(q, "noisy_neighbor", *changes, preset=preset)
            for q in (cct("training"), cct("checkpoint"), pauses)
        )
        return ring, (5 * math.log(ring) + math.log(burst)) / 6 + 0.1 * math.log10(1 + paused / 30)

    ring, score = j(*BETTER)
    for preset in ("pfc_only", "connectx_default", "dcqcn_paper"):
        other_ring, other_score = j(preset=preset)
        assert ring < other_ring and score < other_score - 0.05
    assert mean(pauses, "noisy_neighbor", *BETTER) < 30


@pytest.mark.shows("moe_all_to_all")
@pytest.mark.parametrize("seed", SEEDS)
def test_moe_all_to_all__colliding_hashes_are_what_the_ring_waits_for(seed):
    ecmp = run("moe_all_to_all", seed=seed)
    spread = ("routing.policy=adaptive", "nic.out_of_order=true")
    adaptive = run("moe_all_to_all", *spread, seed=seed)
    alone = run("moe_all_to_all", *spread, seed=seed, only="dense").cct_us["dense"]
    assert not set(ecmp.hosts["experts"]) & set(ecmp.hosts["dense"])
    assert adaptive.cct_us["dense"] < 1.1 * alone
    assert ecmp.cct_us["dense"] > 1.8 * adaptive.cct_us["dense"]
    assert ecmp.pauses > 50 and adaptive.pauses == 0


OWN_CLASS = (
    "classes=[{name: shared, priority: 3}, {name: own, priority: 4}]",
    "tenants.dense.traffic_class=own",
)


@pytest.mark.shows("moe_all_to_all")
def test_moe_all_to_all__pauses_reach_who_has_nothing_to_do_with_them():
    """In a class of its own the ring meets the same queues' links, but not their pauses."""
    shared = mean(cct("dense"), "moe_all_to_all", preset="pfc_only")
    assert mean(cct("dense"), "moe_all_to_all", *OWN_CLASS, preset="pfc_only") < 0.9 * shared


def waves(degree):
    job = f"{{kind: incast, degree: {degree}, bytes: {12_000_000 // degree}, period_us: 2000}}"
    return f"tenants.waves.jobs=[{job}]"


@pytest.mark.shows("incast_waves")
@pytest.mark.parametrize("preset", ["connectx_default", "dcqcn_paper"])
def test_incast_waves__marks_help_against_few_and_not_against_many(preset):
    few, many = (mean(pauses, "incast_waves", waves(n), preset=preset) for n in (4, 32))
    assert many > 3 * few
    alike = [mean(pauses, "incast_waves", waves(n), preset="pfc_only") for n in (4, 32)]
    assert max(alike) < 1.5 * min(alike)
    assert many > 0.7 * alike[1]  # as if there were no marks


@pytest.mark.shows("latency_vs_bulk")
def test_latency_vs_bulk__one_pays_for_the_other():
    """Marking early: short queues for one, less than it could have for the other."""
    early, late = ecn(20_000, 80_000), ecn(1_600_000, 3_200_000)
    latency, bulk = (
        [mean(cct(tenant), "latency_vs_bulk", change) for change in (early, late)]
        for tenant in ("latency", "bulk")
    )
    assert latency[0] < 0.75 * latency[1]
    assert bulk[0] > 1.25 * bulk[1]
    assert mean(pauses, "latency_vs_bulk", early) < 1 < mean(pauses, "latency_vs_bulk", late)
