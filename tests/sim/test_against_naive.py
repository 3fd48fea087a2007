"""The compiled core agrees with the oracle, `tests/naive.py`, to the picosecond and the bit."""

from __future__ import annotations

import random
from collections import Counter

import numba
import numpy as np
import pytest
from side_by_side import SideBySide
from tiny_cases import make_case

from roce_gym import assembly
from roce_gym.fabric import Fabric
from roce_gym.sim import engine
from roce_gym.sim import types as t
from roce_gym.sim.cc.dcqcn import DCQCN
from roce_gym.sim.cc.records import qp_records
from roce_gym.sim.cc.registry import CODES
from roce_gym.sim.types import IDLE, RATE_WINDOW

LONG_WHEEL = 2**17
"""Buckets of a wheel that no wake-up of the tiny cases is beyond."""

CASES = range(60)
SHORT_CASES = (2, 9, 12, 21, 25, 28, 29, 33, 36, 50, 53, 57)
"""Cases of at most some 1,500 events, for the slow ways to compare."""

PFC_CASES = range(60)
SHORT_PFC_CASES = (2, 5, 7, 17, 18, 23, 27, 41, 56)
SENDER_ALGORITHMS = ("dcqcn", "timely", "hpcc")
SENDER_CASES = range(200, 220)

KINDS = ("ARRIVAL", "TX_DONE", "WAKE", "TIMER")


@pytest.fixture
def long_wheel(monkeypatch):
    monkeypatch.setattr(assembly.events, "MIN_BUCKETS", LONG_WHEEL)


def checkpoints(case, count):
    """Random times, dense in the beginning, and those at which settings change."""
    r = random.Random(case.seed)
    times = {r.randrange(1, case.end_ps) for _ in range(count)}
    times |= {int(10 ** r.uniform(4.5, 8.5)) for _ in range(count)}
    times |= {time for time, _ in case.settings[1:]} | {case.end_ps}
    return sorted(time for time in times if time <= case.end_ps)


def kind_and_id(state, slot):
    """What `docs/rules.md` calls an event slot."""
    links, hosts = int(state.params[0]["num_links"]), int(state.params[0]["num_hosts"])
    starts = (0, links, 2 * links, 2 * links + hosts)
    kind = int(np.searchsorted(starts, slot, side="right")) - 1
    return KINDS[kind], int(slot) - starts[kind]


@pytest.mark.parametrize("number", CASES)
def test_agrees_at_many_moments(number, long_wheel):
    both = SideBySide(make_case(number))
    for time in checkpoints(both.case, 15):
        assert both.advance(time) == [], time


@pytest.mark.parametrize("number", SENDER_CASES)
@pytest.mark.parametrize("algorithm", SENDER_ALGORITHMS)
def test_agrees_with_windows_and_other_algorithms(algorithm, number, long_wheel):
    both = SideBySide(make_case(number, (algorithm,)))
    for time in checkpoints(both.case, 12):
        assert both.advance(time) == [], time


@pytest.mark.parametrize("number", range(220, 235))
def test_agrees_where_tenants_have_different_algorithms(number, long_wheel):
    both = SideBySide(make_case(number, SENDER_ALGORITHMS))
    for time in checkpoints(both.case, 12):
        assert both.advance(time) == [], time


@pytest.mark.parametrize("number", range(100, 115))
def test_agrees_where_wake_ups_are_beyond_the_wheel(number, monkeypatch):
    monkeypatch.setattr(assembly.events, "MIN_BUCKETS", 1024)
    both = SideBySide(make_case(number), counts_events=False)
    for time in checkpoints(both.case, 5):
        assert both.advance(time) == [], time


@pytest.mark.parametrize("number", PFC_CASES)
def test_agrees_on_pauses_watchdogs_and_storms(number, long_wheel):
    both = SideBySide(make_case(number, pfc=True))
    for time in checkpoints(both.case, 15):
        assert both.advance(time) == [], time


@pytest.mark.nojit
@pytest.mark.parametrize("number", SHORT_CASES)
def test_agrees_after_every_event_time(number, long_wheel):
    """Both stop at each time at which either has an event; what is due then is the same."""
    both = SideBySide(make_case(number))
    state, naive = both.fabric._state, both.naive
    bounds = sorted(both.later | {both.case.end_ps: None})
    while both.fabric.now_ps < both.case.end_ps:
        due_ps = min(int(state.event_ps.min()), naive.heap[0][0] if naive.heap else 2**62)
        time = min(due_ps, next(bound for bound in bounds if bound > both.fabric.now_ps))
        pending = [kind_and_id(state, slot) for slot in np.flatnonzero(state.event_ps == time)]
        before = len(naive.events)
        assert both.advance(max(time, 1)) == [], time
        handled = [event[1:] for event in naive.events[before:] if event[0] == time]
        assert [event for event in handled if event in pending] == pending, time


@pytest.mark.nojit
@pytest.mark.parametrize("number", SHORT_PFC_CASES)
def test_agrees_on_pauses__without_compiling(number, long_wheel):
    both = SideBySide(make_case(number, pfc=True))
    for time in checkpoints(both.case, 5):
        assert both.advance(time) == [], time


@pytest.mark.nojit
@pytest.mark.skipif(not numba.config.DISABLE_JIT, reason="looks into uncompiled code")
@pytest.mark.parametrize("number", SHORT_CASES)
def test_the_same_events_in_the_same_order(number, long_wheel, monkeypatch):
    both = SideBySide(make_case(number))
    trace = []
    handle = engine._handle

    def traced(state, slot, now):
        trace.append((int(now), *kind_and_id(state, slot)))
        return handle(state, slot, now)

    monkeypatch.setattr(engine, "_handle", traced)
    for time in checkpoints(both.case, 1):
        both.advance(time)
    assert trace == both.naive.events
    assert len(trace) > 20


@pytest.mark.parametrize("algorithm", SENDER_ALGORITHMS)
def test_the_cases_reach_the_rules_of_every_algorithm(algorithm):
    """Rates fall and rise, and windows that follow them keep bytes back."""
    seen = dict.fromkeys(("falls", "rises", "waits"), 0)
    for number in SENDER_CASES:
        case = make_case(number, (algorithm,))
        fabric = Fabric(case.scenario, case.seed, network=case.network, plan=case.plan)
        before = fabric._state.sender["rate_bps"].copy()
        for _ in range(200):
            rates = fabric.advance(us=1.5).rate_bps
            sender, qp = fabric._state.sender, fabric._state.qp
            own = sender["cc"] == CODES[algorithm]
            seen["falls"] += int((rates < before)[own].sum())
            seen["rises"] += int((rates > before)[own].sum())
            has_bytes = (0 < sender["snd_nxt"]) & (sender["snd_nxt"] < qp["posted"])
            follows = own & (sender["traits"] & RATE_WINDOW != 0)
            seen["waits"] += int((follows & has_bytes & (sender["state"] == IDLE)).sum())
            before = rates
    assert min(seen.values()) > 10, seen


def test_the_cases_reach_every_rule():
    """Drops, losses, pauses, marks, cuts, failures, changes of settings: none is left out."""
    seen = Counter()
    for case in map(make_case, CASES):
        fabric = Fabric(case.scenario, case.seed, network=case.network, plan=case.plan)
        for _, changed in (*case.settings[1:], (0, None)):
            interval = fabric.advance(ps=case.end_ps // len(case.settings))
            for name in ("dropped_packets", "lost_packets", "resume_frames", "ecn_marked_packets"):
                seen[name] += int(getattr(interval, name).sum())
            if changed:
                fabric.apply(changed)
                seen["changes"] += 1
        seen["cuts"] += int(qp_records(fabric._state, DCQCN)["was_cut"].sum())
        seen["failed"] += interval.failed_qps
        seen["completed"] += len(interval.completions)
    assert len(seen) == 8
    assert min(seen.values()) > 10, seen


def test_the_cases_reach_every_rule_of_pfc():
    """Refreshes, expiries, storms found and over by each action, and packets dropped for them."""
    seen = Counter()
    for case in (make_case(number, pfc=True) for number in PFC_CASES):
        fabric = Fabric(case.scenario, case.seed, network=case.network, plan=case.plan)
        interval = fabric.advance(ps=case.end_ps)
        pfc = case.scenario.pfc
        action = pfc.watchdog.action
        seen[f"found, {action}"] += int(interval.watchdog_storms.sum())
        seen[f"restored, {action}"] += int(interval.watchdog_restored.sum())
        seen["dropped"] += int(interval.watchdog_dropped_packets.sum())
        told = fabric._state.ingress["flags"] >= t.TOLD_TO_PAUSE
        unanswered = int(interval.pause_frames.sum() - interval.resume_frames.sum() - told.sum())
        seen["refreshed or expired"] += unanswered if pfc.quanta else 0
    assert len(seen) == 8
    assert min(seen.values()) > 5, seen
