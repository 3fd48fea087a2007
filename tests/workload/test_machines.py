"""Step machines carry what textbooks say, no more, and nothing goes before it can."""

import math
from fractions import Fraction

import numpy as np
import pytest
from naive_textbook import expand, tree_parents

from roce_gym.config import ALGORITHMS
from roce_gym.workload.machines import Options, make_machine
from roce_gym.workload.machines.trees import parents

ALL = [(o, a) for o, names in ALGORITHMS.items() for a in names]
ONCE = Options(chunk_bytes=1 << 30)


def ranks_for(operation, algorithm):
    if algorithm == "hierarchical":
        return (4, 6, 12)
    if algorithm == "halving_doubling" and operation != "all_reduce":
        return (2, 4, 16)
    return (2, 3, 4, 5, 7, 8, 12)


CASES = [(o, a, n) for o, a in ALL for n in ranks_for(o, a)]


def servers(n):
    """Two ranks in each, not in order."""
    return np.arange(n, dtype=np.int32) % (n // 2) if n % 2 == 0 else np.arange(n, dtype=np.int32)


def sent_and_received(machine, sizes):
    """Bytes of each rank."""
    lane = sizes[machine.phase, 0] * sizes[machine.phase, 1]
    n = machine.num_ranks
    return np.bincount(machine.src, lane, n), np.bincount(machine.dst, lane, n)


@pytest.mark.parametrize(("operation", "algorithm", "n"), CASES)
@pytest.mark.parametrize("channels", [1, 2])
def test_bytes_of_each_rank_are_those_of_the_textbook(operation, algorithm, n, channels):
    total = 27_720 * 64 * channels
    options = Options(channels, chunk_bytes=total)
    machine = make_machine(operation, algorithm, n, servers(n), options)
    sent, received = sent_and_received(machine, machine.sizes(total, options))
    share = Fraction(n - 1, n) * total
    if operation == "broadcast":
        assert received.tolist() == [0] + [total] * (n - 1)
        if algorithm == "ring":
            assert sent.tolist() == [total] * (n - 1) + [0]
        assert sent.max() <= total
    elif operation == "all_reduce" and algorithm == "tree":
        assert sent.sum() == 2 * (n - 1) * total  # each of n - 1 edges, up and down, in two halves
        assert sent.max() <= 2 * total
        assert (sent == received).all()
    elif operation == "all_reduce" and algorithm == "halving_doubling" and n & (n - 1):
        power = 1 << (n.bit_length() - 1)
        core = Fraction(2 * (power - 1), power) * total
        folded = 2 * (n - power)
        expected = [total if r % 2 == 0 else core + total for r in range(folded)]
        assert sent.tolist() == received.tolist() == expected + [core] * (n - folded)
    elif algorithm == "hierarchical":
        inside, across = Fraction(1, 2) * total, Fraction(n // 2 - 1, n) * total
        twice = 2 if operation == "all_reduce" else 1
        assert sent.tolist() == received.tolist() == [twice * (inside + across)] * n
        if operation != "all_reduce":  # as little as without layers
            assert twice * (inside + across) == share
    else:
        twice = 2 if operation == "all_reduce" else 1
        assert sent.tolist() == received.tolist() == [twice * share] * n


def origins(transfers):
    """Of each message, the ranks whose data may be in it."""
    groups = {}
    for number, transfer in enumerate(transfers):
        groups.setdefault(transfer.group, []).append(number)
    known = {}

    def of(number):
        if number not in known:
            transfer = transfers[number]
            before = set(transfer.needs)
            before |= {m for group in transfer.whole for m in groups[group]}
            known[number] = {transfer.src}.union(*(of(m) for m in before))
        return known[number]

    return [of(number) for number in range(len(transfers))]


@pytest.mark.parametrize(("operation", "algorithm", "n"), CASES)
def test_a_rank_that_has_everything_can_have_the_data_of_all(operation, algorithm, n):
    transfers = expand(operation, algorithm, n, servers(n), 4_000, Options(chunk_bytes=300))
    sources = origins(transfers)
    everyone = set(range(n))
    for rank in range(n):
        own = [m for m, transfer in enumerate(transfers) if transfer.dst == rank]
        union = {rank}.union(*(sources[m] for m in own))
        if operation == "broadcast":
            assert rank == 0 or 0 in union
            assert all(0 in sources[m] for m in own)
            continue
        assert union == everyone
        last = [m for m in own if transfers[m].group[1] == transfers[own[-1]].group[1]]
        if operation == "all_reduce" or (operation == "reduce_scatter" and algorithm == "ring"):
            assert all(sources[m] | {rank} == everyone for m in last)
        if operation == "all_reduce":  # what is passed on at last was reduced completely
            assert all(len(sources[m]) >= n - 1 for m in last)


@pytest.mark.parametrize(("operation", "algorithm", "n"), CASES)
@pytest.mark.parametrize(
    "options",
    [
        Options(2, 1_000, 2),
        Options(1, 700, 1, 3, False),
        Options(2, 700, 1, 2, True),
    ],
)
def test_lanes_carry_the_messages_of_the_textbook(operation, algorithm, n, options):
    machine = make_machine(operation, algorithm, n, servers(n), options)
    sizes = machine.sizes(9_999, options)
    ours = {}
    for lane in range(len(machine.src)):
        key = tuple(int(x[lane]) for x in (machine.src, machine.dst, machine.connection))
        messages, size, _ = sizes[machine.phase[lane]].tolist()
        ours.setdefault(key, []).extend([size] * messages)
    theirs = {}
    for t in expand(operation, algorithm, n, servers(n), 9_999, options):
        theirs.setdefault((t.src, t.dst, t.connection), []).append(t.bytes)
    assert {k: sorted(v) for k, v in ours.items()} == {k: sorted(v) for k, v in theirs.items()}


@pytest.mark.parametrize("n", range(1, 40))
def test_two_trees(n):
    for tree in (0, 1):
        parent = parents(n, tree)
        assert dict(enumerate(parent.tolist())) == {
            r: -1 if p is None else p for r, p in tree_parents(n, tree).items()
        }
        depth = 0
        at = np.arange(n)
        while (at >= 0).any():
            at = np.where(at >= 0, parent[at], -1)
            depth += 1
        assert depth <= math.ceil(math.log2(n)) + 1 if n > 1 else depth == 1
        assert np.bincount(parent[parent >= 0], minlength=n).max() <= 2
    inner = [set(parents(n, tree)[parents(n, tree) >= 0].tolist()) for tree in (0, 1)]
    assert len(inner[0] & inner[1]) <= 1
    if n % 2 == 0:
        assert not inner[0] & inner[1]


@pytest.mark.parametrize(
    ("algorithm", "channels", "lanes", "needs"),
    [
        ("ring", 2, 2, 2),
        ("tree", 1, 4, 8),
        ("halving_doubling", 1, 2 * 14, 2 * 14),
    ],
)
def test_memory_grows_with_ranks_and_channels_alone(algorithm, channels, lanes, needs):
    n = 16_384
    options = Options(channels)
    machine = make_machine("all_reduce", algorithm, n, np.zeros(n, np.int32), options)
    assert len(machine.src) <= lanes * n
    assert len(machine.need_lane) <= needs * n
    assert machine.sizes(1 << 30, options).size == 3 * len(machine.phases)


def test_steps_of_a_ring_have_few_pieces_unless_their_size_is_given():
    """Else a step of each of many ranks, posted at once, would need memory by its bytes."""
    machine = make_machine("all_reduce", "ring", 8, np.arange(8, dtype=np.int32), Options())
    step = 100 * 2**20
    ((messages, size, ahead),) = machine.sizes(8 * step, Options())
    assert (messages, size, ahead) == (14 * 16, -(-step // 16), 16)
    ((messages, size, _),) = machine.sizes(8 * step, Options(chunk_bytes=2**20))
    assert (messages, size) == (14 * 100, 2**20)
    ((messages, size, _),) = machine.sizes(2**20 * 8, Options())
    assert (messages, size) == (14 * 2, 2**19)
