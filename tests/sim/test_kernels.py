"""The parts of the core one by one, and the rules its source has to obey."""

from __future__ import annotations

import ast
import heapq
import sys
from pathlib import Path

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive import uniform
from small import parts

import roce_gym.sim
from roce_gym.fabric import Fabric
from roce_gym.sim import bucket_width, jit, kernels, rng, sorting, wheel
from roce_gym.sim import types as t
from roce_gym.sim.cc.dcqcn import DCQCN

SOURCES = sorted(Path(roce_gym.sim.__file__).parent.rglob("*.py"))


# --------------------------------------------------------------------------- event queue

# Helpers have no entry from Python of their own.
sort = numba.njit(lambda keys, start, end: sorting.sort(keys, start, end))
lowest_bit = numba.njit(lambda word: wheel.lowest_bit(word))
draw = numba.njit(lambda seed, stream, ident, n: rng.uniform(seed, stream, ident, n))

LINKS, TIMERS, BUCKETS, SHIFT = 20, 12, 1024, 4
REACH = (BUCKETS - 2) << SHIFT


def empty_wheel():
    """A state of which only what the event queue uses has its real size."""
    slots = 2 * LINKS + TIMERS
    sizes = {
        "event_ps": np.full(slots, t.FOREVER, np.int64),
        "event_next": np.full(slots, t.NONE, np.int32),
        "event_order": np.zeros(slots, np.int64),
        "bucket_head": np.full(BUCKETS, t.NONE, np.int32),
        "bucket_bits": np.zeros(BUCKETS // 32, np.int64),
        "bucket_words": np.zeros(BUCKETS // 1024, np.int64),
        "current": np.zeros(sorting.places(slots), np.int64),
        "far": np.zeros(TIMERS, t.TIMER),
    }
    state = Fabric(*parts()[:1])._state._replace(**sizes)
    state.core[:] = np.zeros(1, t.CORE)
    state.core[0]["cursor"] = sorting.places(slots)
    state.core[0]["bucket_shift"] = SHIFT
    state.core[0]["horizon_ps"] = REACH
    return state


def _pop(s):
    """Takes the next event as `kernels.run` does: (time, slot), or (-1, -1)."""
    core = s.core[0]
    while True:
        if core["cursor"] == s.current.size:
            start_ps = wheel.next_bucket_ps(s, core)
            if start_ps == t.FOREVER:
                return -1, -1
            wheel.open_bucket(s, core, start_ps)
            continue
        key = s.current[core["cursor"]]
        core["cursor"] += 1
        now = core["bucket_ps"] + (key >> sorting.KEY_SHIFT)
        slot = key & sorting.SLOT_MASK
        if s.event_ps[slot] == now:
            s.event_ps[slot] = t.FOREVER
            return now, slot


def _add(s, slot, due_ps, is_timer):
    if is_timer:
        wheel.push_far(s, slot, due_ps)
    else:
        wheel.schedule(s, slot, due_ps)


def _cancel(s, slot):
    wheel.cancel(s, slot)


ADD = st.tuples(
    st.just("add"),
    st.integers(0, 2 * LINKS + TIMERS - 1),
    st.one_of(st.integers(0, 40), st.integers(0, REACH), st.integers(0, 50 * REACH)),
)
OPERATIONS = st.lists(
    st.one_of(
        ADD,
        ADD,
        st.tuples(st.just("pop"), st.just(0), st.just(0)),
        st.tuples(st.just("cancel"), st.integers(0, 2 * LINKS - 1), st.just(0)),
        st.tuples(st.just("width"), st.integers(SHIFT, SHIFT + 12), st.just(0)),
    ),
    max_size=150,
)
EMPTY = empty_wheel()


@pytest.mark.parametrize("count", [*range(18), 40, 400])
def test_a_bucket_of_any_length_is_sorted_and_nothing_beside_it_moves(count):
    rng = np.random.default_rng(count)
    for _ in range(60):
        end = sorting.places(count)
        start = end - count
        keys = np.full(end + 8, 7, np.int64)
        keys[start:end] = rng.integers(0, 1 + rng.integers(1, 1 << 50), count)
        wanted = np.sort(keys[start:end])
        sort(keys, start, end)
        assert (keys[start:end] == wanted).all()
        assert (keys[end:] == 7).all()


@pytest.mark.nojit
@pytest.mark.skipif(not numba.config.DISABLE_JIT, reason="to compile the driver takes too long")
@settings(max_examples=300, deadline=None, derandomize=True)
@given(OPERATIONS)
def test_events_come_in_order_of_time_and_slot(operations):
    state = type(EMPTY)(*(array.copy() for array in EMPTY))
    now, pending, heap = 0, {}, []

    def expected():
        while heap:
            time, slot = heapq.heappop(heap)
            if pending.get(slot) == time:
                del pending[slot]
                return time, slot
        return -1, -1

    for operation, slot, delay in [*operations, *[("pop", 0, 0)] * len(operations)]:
        if operation == "add" and slot not in pending:
            is_timer = slot >= 2 * LINKS
            pending[slot] = now + (delay if is_timer else min(delay, REACH))
            heapq.heappush(heap, (pending[slot], slot))
            _add(state, slot, pending[slot], is_timer)
        elif operation == "cancel" and slot in pending:
            del pending[slot]
            _cancel(state, slot)
        elif operation == "width" and state.core[0]["cursor"] == state.current.size:
            bucket_width.file_anew(state, state.core[0], slot)
        elif operation == "pop":
            event = expected()
            assert _pop(state) == event
            now = max(now, event[0])
    assert not pending


@pytest.mark.nojit
@pytest.mark.skipif(not numba.config.DISABLE_JIT, reason="to compile the driver takes too long")
def test_an_event_may_be_moved_any_number_of_times_within_a_bucket():
    state = type(EMPTY)(*(array.copy() for array in EMPTY))
    bucket_width.file_anew(state, state.core[0], 12)
    for slot, due_ps in ((0, 1), (1, 4000), (2, 4001)):
        _add(state, slot, due_ps, False)
    assert _pop(state) == (1, 0)
    for due_ps in range(3999, 3999 - 3 * len(state.current), -1):
        _cancel(state, 1)
        _add(state, 1, due_ps, False)
    assert [_pop(state) for _ in range(3)] == [(due_ps, 1), (4001, 2), (-1, -1)]


@pytest.mark.nojit
@pytest.mark.skipif(not numba.config.DISABLE_JIT, reason="to compile the driver takes too long")
def test_a_wake_up_beyond_a_shorter_wheel_comes_sooner():
    state = type(EMPTY)(*(array.copy() for array in EMPTY))
    bucket_width.file_anew(state, state.core[0], SHIFT + 3)
    _add(state, 5, 8 * REACH, False)
    _add(state, 6, 100, False)
    bucket_width.file_anew(state, state.core[0], SHIFT)
    assert [_pop(state) for _ in range(3)] == [(100, 6), (REACH, 5), (-1, -1)]


@pytest.mark.nojit
def test_lowest_bit():
    for low in range(32):
        for others in (0, 0xFFFFFFFF, 0xA5A5A5A5):
            word = (1 << low) | (others >> low << low & 0xFFFFFFFF)
            assert lowest_bit(np.int64(word)) == low


# --------------------------------------------------------------------------- random numbers


@pytest.mark.nojit
@settings(max_examples=200, deadline=None, derandomize=True)
@given(
    st.integers(0, 2**63 - 1),
    st.integers(0, 2),
    st.integers(0, 2**31 - 1),
    st.integers(0, 2**62),
)
def test_uniform_is_what_the_oracle_draws(seed, stream, ident, counter):
    with np.errstate(over="ignore"):
        drawn = draw(np.uint64(seed), stream, ident, counter)
    assert drawn == uniform(seed, stream, ident, counter)
    assert 0 <= drawn < 1


def test_uniform_is_uniform_and_independent():
    draws = np.array([[draw(np.uint64(7), 0, i, n) for n in range(200)] for i in range(50)])
    # 10,000 draws: the mean has a standard deviation of 0.0029, a correlation one of 0.01.
    assert abs(draws.mean() - 0.5) < 0.012
    assert np.abs(np.histogram(draws, 10, (0, 1))[0] - 1000).max() < 150
    for shifted in (np.roll(draws, 1, axis=0), np.roll(draws, 1, axis=1)):
        assert abs(np.corrcoef(draws.ravel(), shifted.ravel())[0, 1]) < 0.04


# --------------------------------------------------------------------------- compilation


def test_entry_kernels_are_compiled_once():
    scenario, network, plan = parts()
    other = parts({**scenario.model_dump(), "classes": [{}], "tenants": [_TENANT]}, seed=3)
    for built, seed in (((scenario, network, plan), 0), (other, 2**62)):
        fabric = Fabric(built[0], seed, network=built[1], plan=built[2])
        fabric.advance(us=3)
        fabric.restore(fabric.snapshot())
        fabric.advance(ps=1)
    assert len(kernels.run_plain.signatures) == len(kernels.start.signatures) == 1


_TENANT = {"name": "a", "hosts": [0, 1], "jobs": [{"kind": "all_to_all", "bytes": 1000}]}


def test_every_source_file_is_in_the_key(tmp_path, monkeypatch):
    for path in SOURCES:
        copy = tmp_path / path.relative_to(SOURCES[0].parent)
        copy.parent.mkdir(exist_ok=True)
        copy.write_bytes(path.read_bytes())
    monkeypatch.setattr(jit, "__file__", str(tmp_path / "jit.py"))
    keys = {jit.source_hash()}
    for path in sorted(tmp_path.rglob("*.py")):
        path.write_text(path.read_text() + "#\n")
        keys.add(jit.source_hash())
    assert len(keys) == len(SOURCES) + 1


# --------------------------------------------------------------------------- house rules


def _name(node):
    if isinstance(node, ast.Attribute):
        return f"{_name(node.value)}.{node.attr}"
    return getattr(node, "id", "")


def _kernels(tree):
    decorators = {"helper", "rare"}
    return [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
        and (decorators & {_name(d) for d in node.decorator_list} or node.name in ("run", "start"))
    ]


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_imports(path):
    standard = sys.stdlib_module_names - {"random", "secrets", "time"}
    for node in ast.walk(ast.parse(path.read_text())):
        modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        modules += [node.module] if isinstance(node, ast.ImportFrom) else []
        for module in modules:
            top = module.split(".")[0]
            assert module.startswith("roce_gym.sim") or top in standard | {
                "numpy",
                "numba",
                "llvmlite",
            }


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_kernels_do_nothing_that_is_slow_or_random(path):
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        name = _name(node).removeprefix("numba.")
        assert not name.startswith(("np.random", "random.")), name
        assert name not in ("prange", "jitclass", "objmode", "typed", "List", "Dict"), name
        assert path.name == "jit.py" or name not in ("njit", "jit", "vectorize"), name
    for kernel in _kernels(tree):
        for node in ast.walk(kernel):
            assert not isinstance(node, ast.Raise | ast.Try | ast.ListComp | ast.Dict | ast.List)
            assert not isinstance(node, ast.JoinedStr | ast.With | ast.Lambda), kernel.name
            assert not _name(node).startswith(("np.zeros", "np.empty", "np.array")), kernel.name


def test_kernels_are_found():
    assert sum(len(_kernels(ast.parse(path.read_text()))) for path in SOURCES) > 80


@pytest.mark.parametrize(
    "dtype", [t.PACKET, t.LINK, t.QUEUE, t.INGRESS, t.SENDER, t.QP, t.RECEIVER, DCQCN]
)
def test_records_are_a_cache_line_or_half_of_one(dtype):
    assert dtype.itemsize in (32, 64)
