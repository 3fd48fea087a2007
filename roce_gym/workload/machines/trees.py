"""Two binary trees, each of which carries half: all-reduce and broadcast.

Sanders, Speck and Träff, "Two-tree algorithms for full bandwidth broadcast, reduction and scan",
Parallel Computing 35, 2009. A rank that is inside one tree is a leaf of the other, so no link
carries more than another.

Two children send to one parent. Their all-reduce goes in rounds in which a parent hears one of them
at a time; nothing here keeps such rounds. Leaves without a bound would send at line rate at once
what they may send at a quarter of it: their parents' queues would grow until ECN or PFC stops
NICs that have other things to send. So a leaf is at most a *window* of pieces ahead of what has
come back from the root: as many as fill the tree, up and down, and no more.
"""

from __future__ import annotations

import numpy as np

from roce_gym.workload.machines.lanes import LaneBuilder, Lanes, Phase


def parents(n: int, tree: int) -> np.ndarray:
    """Shape (n,): the parent of each rank in tree 0 or 1 of `n` ranks; -1 for the root.

    In tree 0 every odd rank is a leaf: the parent of a rank differs from it in its lowest set bit
    and the one above. Tree 1 is its mirror image if n is even, else tree 0 of ranks shifted by one.
    """
    place = np.arange(n)
    low = place & -place
    up = (place ^ low) | (low << 1)
    parent = np.where(up < n, up, place ^ low)
    parent[0] = -1
    if tree == 0:
        return parent
    rank = n - 1 - place if n % 2 == 0 else (place + 1) % n  # at each place
    out = np.full(n, -1)
    out[rank] = np.where(parent >= 0, rank[parent], -1)
    return out


WINDOW = 4
"""Pieces a level. Of them a NIC sends one up as a leaf, and in the other tree one up and two down
while one goes a level further: two levels, up and down, and as much again for latency."""


def tree_all_reduce(n: int) -> Lanes:
    """Up each tree, piece by piece as the children's arrive, and down again."""
    build = LaneBuilder()
    from_leaf, from_inner, downwards = 0, 1, 2
    for tree in (0, 1):
        parent = parents(n, tree)
        child = np.flatnonzero(parent >= 0)
        leaf = np.setdiff1d(child, parent)
        up, down = np.full(n, -1, np.int32), np.full(n, -1, np.int32)
        kind = np.where(np.isin(child, leaf), from_leaf, from_inner)
        up[child] = build.add(child, parent[child], phase=kind, part=tree)
        down[child] = build.add(parent[child], child, phase=downwards, part=tree)
        build.need(up[leaf], down[leaf])
        inner = child[parent[parent[child]] >= 0]
        build.need(up[parent[inner]], up[inner])
        build.need(down[inner], down[parent[inner]])
        top = child[parent[parent[child]] < 0]  # each way down from the root needs all ways up
        build.need(np.repeat(down[top], len(top)), np.tile(up[top], len(top)))
    levels = (n - 1).bit_length()
    half = Phase(1, 2)
    return build.build(half._replace(window=WINDOW * levels), half, half)


def tree_broadcast(n: int) -> Lanes:
    """Rank 0 sends half to the root of either tree of the others."""
    build = LaneBuilder()
    for tree in (0, 1):
        parent = parents(n - 1, tree)
        into = np.zeros(n - 1, np.int32)
        root = int(np.flatnonzero(parent < 0)[0])
        into[root] = build.add(0, root + 1, phase=0, part=tree)[0]
        child = np.flatnonzero(parent >= 0)
        into[child] = build.add(parent[child] + 1, child + 1, phase=0, part=tree)
        build.need(into[child], into[parent[child]])
    return build.build(Phase(1, 2))
