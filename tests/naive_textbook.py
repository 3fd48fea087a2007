"""Collectives as textbooks give them: every message by itself, with the messages it waits for.

Section 9.2 of `docs/rules.md`. Shares no code with `roce_gym/workload/machines`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil, log2


@dataclass
class Step:
    """What one rank sends another at a time; waits for other steps, by number.

    `same`: its k-th piece waits for their k-th piece; `whole`: everything waits for all of them;
    `back`: its k-th piece waits for the piece of this step that is `window` before.
    """

    src: int
    dst: int
    share: Fraction
    part: int = 0
    same: list[int] = field(default_factory=list)
    whole: list[int] = field(default_factory=list)
    back: int | None = None
    window: int = 0


@dataclass
class Transfer:
    """One message.

    `needs`: numbers of messages that its sender must have received; `whole`: (channel, step) of
    which it must have received all; `group`: its own channel and step.
    """

    src: int
    dst: int
    connection: int
    bytes: int
    group: tuple[int, int]
    needs: set[int]
    whole: list[tuple[int, int]]


def expand(operation, algorithm, n, server, total, options) -> list[Transfer]:
    """All messages of a collective of `total` bytes, those of one sender in order."""
    steps = STEPS[algorithm](operation, n, server)
    qps, split = options.qps_per_connection, options.split_data_on_qps
    copies = options.channels * qps
    chunk = options.chunk_bytes
    if chunk is None:
        chunk = max(4096, 32_768 // copies) if algorithm == "tree" else 524_288
    sizes, counts, number = [], [], {}
    for step in steps:
        own = ceil(step.share * total / copies)
        pieces = ceil(Fraction(own * (qps if split else 1), chunk))
        if algorithm == "ring" and operation != "broadcast" and options.chunk_bytes is None:
            pieces = min(pieces, 16)
        counts.append(pieces * options.slices)
        sizes.append(ceil(Fraction(own, counts[-1])))
    for channel in range(options.channels):
        for i in range(len(steps)):
            for qp in range(qps):
                for piece in range(counts[i]):
                    number[channel, i, qp, piece] = len(number)
    out = []
    for channel, i, qp, piece in number:
        step = steps[i]
        needs = {
            number[channel, other, q, piece]
            for other in step.same
            for q in range(qps)
            if split or q == qp
        }
        earlier = piece - step.window * options.slices
        if step.back is not None and earlier >= 0:
            needs |= {
                number[channel, step.back, q, earlier] for q in range(qps) if split or q == qp
            }
        connection = (step.part * options.channels + channel) * qps + qp
        whole = [(channel, other) for other in step.whole]
        ends = (step.src, step.dst, connection)
        out.append(Transfer(*ends, sizes[i], (channel, i), needs, whole))
    return out


def ring_steps(operation, n, _server):
    if operation == "broadcast":
        return [Step(r, r + 1, Fraction(1), same=[r - 1] if r else []) for r in range(n - 1)]
    steps = []
    count = 2 * (n - 1) if operation == "all_reduce" else n - 1
    _circle(steps, list(range(n)), count, Fraction(1, n))
    return steps


def _circle(steps, ranks, count, share, after=None):
    """A ring; `after`: the steps that a rank must have had whole before. Returns those it gets."""
    got = {rank: [] for rank in ranks}
    for k in range(count):
        for i, rank in enumerate(ranks):
            same = [got[rank][k - 1]] if k else []
            whole = list(after[rank]) if after else []
            steps.append(Step(rank, ranks[(i + 1) % len(ranks)], share, same=same, whole=whole))
        for i in range(len(ranks)):
            got[ranks[(i + 1) % len(ranks)]].append(len(steps) - len(ranks) + i)
    return got


def layered_steps(operation, n, server):
    servers = {}
    for rank, where in enumerate(server):
        servers.setdefault(int(where), []).append(rank)
    inside = [servers[where] for where in sorted(servers)]
    across = [list(rail) for rail in zip(*inside, strict=True)]
    g, m = len(inside[0]), len(inside)
    steps = []

    def circles(groups, count, share, after=None):
        got = {}
        for group in groups:
            got |= _circle(steps, group, count, share, after)
        return got

    if operation == "all_gather":
        got = circles(across, m - 1, Fraction(1, n))
        circles(inside, g - 1, Fraction(1, g), got)
        return steps
    got = circles(inside, g - 1, Fraction(1, g))
    rounds = 2 * (m - 1) if operation == "all_reduce" else m - 1
    got = circles(across, rounds, Fraction(1, n), got)
    if operation == "all_reduce":
        circles(inside, g - 1, Fraction(1, g), got)
    return steps


def tree_parent(place, n):
    """Of a place in tree 0; None for the root."""
    if place == 0:
        return None
    bit = 1
    while not place & bit:
        bit *= 2
    up = (place - bit) | (2 * bit)
    return up if up < n else place - bit


def tree_parents(n, tree):
    """By rank."""

    def rank_at(place):
        if tree == 0:
            return place
        return n - 1 - place if n % 2 == 0 else (place + 1) % n

    out = {}
    for place in range(n):
        parent = tree_parent(place, n)
        out[rank_at(place)] = None if parent is None else rank_at(parent)
    return out


def tree_steps(operation, n, _server):
    steps = []
    half = Fraction(1, 2)
    for tree in (0, 1):
        if operation == "broadcast":
            parent = tree_parents(n - 1, tree)
            into = {}
            for child in sorted(parent, key=lambda c: (parent[c] is not None, c)):
                src = 0 if parent[child] is None else parent[child] + 1
                into[child] = len(steps)
                steps.append(Step(src, child + 1, half, tree))
            for child, over in parent.items():
                if over is not None:
                    steps[into[child]].same.append(into[over])
            continue
        parent = tree_parents(n, tree)
        children = sorted(c for c, over in parent.items() if over is not None)
        up = {c: len(steps) + i for i, c in enumerate(children)}
        down = {c: len(steps) + len(children) + i for i, c in enumerate(children)}
        steps += [
            Step(c, parent[c], half, tree, same=[up[d] for d in children if parent[d] == c])
            for c in children
        ]
        for c in children:
            over = parent[c]
            if parent[over] is None:
                same = [up[d] for d in children if parent[d] == over]
            else:
                same = [down[over]]
            steps.append(Step(over, c, half, tree, same=same))
            if c not in parent.values():
                steps[up[c]].back, steps[up[c]].window = down[c], 4 * ceil(log2(n))
    return steps


def halving_steps(operation, n, _server):
    levels = 0
    while 2 << levels <= n:
        levels += 1
    power = 1 << levels
    extra = n - power
    core = [2 * i + 1 for i in range(extra)] + list(range(2 * extra, n))
    steps = []
    got = {rank: [] for rank in range(n)}
    late = {2 * i + 1 for i in range(extra)}  # an early one follows what a late one sends it

    def send(pairs, share):
        first = len(steps)
        number = {pair: first + i for i, pair in enumerate(pairs)}
        for src, dst in pairs:
            is_early = dst in late and src not in late and (dst, src) in number
            follows = [number[dst, src]] if is_early else []
            steps.append(Step(src, dst, share, whole=list(got[src]), same=follows))
        late.update([src for src, dst in pairs if dst in late])
        for i, (_, dst) in enumerate(pairs):
            got[dst].append(first + i)

    if extra:
        send([(2 * i, 2 * i + 1) for i in range(extra)], Fraction(1))
    halve = [(k, Fraction(1, 2 << k)) for k in range(levels)]
    if operation == "all_gather":
        plan = [(k, Fraction(1 << k, n)) for k in range(levels)]
    elif operation == "reduce_scatter":
        plan = [(levels - 1 - k, share) for k, share in halve]
    else:
        plan = halve + halve[::-1]
    for distance, share in plan:
        send([(core[i], core[i ^ (1 << distance)]) for i in range(power)], share)
    if extra:
        send([(2 * i + 1, 2 * i) for i in range(extra)], Fraction(1))
    return steps


def direct_steps(_operation, n, _server):
    return [Step(r, (r + k) % n, Fraction(1, n)) for r in range(n) for k in range(1, n)]


def pairwise_steps(_operation, n, _server):
    steps = []
    got = {rank: [] for rank in range(n)}
    for k in range(1, n):
        first = len(steps)
        steps += [Step(r, (r + k) % n, Fraction(1, n), whole=list(got[r])) for r in range(n)]
        for r in range(n):
            got[(r + k) % n].append(first + r)
    return steps


STEPS = {
    "ring": ring_steps,
    "hierarchical": layered_steps,
    "tree": tree_steps,
    "halving_doubling": halving_steps,
    "direct": direct_steps,
    "pairwise": pairwise_steps,
}
