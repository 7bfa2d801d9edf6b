"""Ops that launch something, and ops that launch nothing though they do what others launch for.

On the CPU a matrix product calls other ops inside of itself than on a device. So one that calls the same as those that
launch was not computed on the CPU: its launch is not in the trace, or its tensors were empty.
"""

from __future__ import annotations

import numpy as np

from syncscope.patterns import compile_later
from syncscope.timeline.calls import last_before
from syncscope.timeline.intervals import Bools, Ints
from syncscope.timeline.row_groups import group_rows, number_groups, number_in_group, number_texts, rank
from syncscope.timeline.tables import Calls, Ops

DEVICE_COMMANDS = ("launch", "graph-launch", "copy", "copy-sync")
"""Roles of calls that each make a device row. A memset or a copy of nothing makes none."""

PRODUCTS = compile_later(
    r"aten::(?:mm|bmm|addmm|baddbmm|mv|addmv|_scaled_mm|(?:cudnn|miopen)_\w+|_(?:flash|efficient)_attention_\w+)$"
)
"""Ops that multiply matrices, convolve or attend: each gives a device something to do, wherever it runs on one."""

SEEN = 3
"""Ops alike that launch something, at least, to say that such an op does."""

NEARLY_ALWAYS = 0.95
"""Share of its occurrences in which an op that launches does so: now and then its tensors are empty, or on the host."""

MOST_ON_HOST = 25
"""Ops in a row that launch nothing but do so nearly always elsewhere, at most. Ten is the most that whole traces were
seen to have."""

LEAST_KINDS = 8
"""Kinds of such ops, at least: a program computes something on the host too, but not a whole step of it. To print a
tensor takes six."""

LEAST_PRODUCTS = 4
"""Products without a launch between two commands of their thread, at least. An expert that no token was sent to has
three."""


def find_launching_ops(ops: Ops, calls: Calls) -> Bools:
    """Which ops (n,) launch or copy something, themselves or inside of them."""
    launching = np.zeros(len(ops), dtype=bool)
    row = ops.around(calls)[calls.do(DEVICE_COMMANDS)]
    while len(row := row[row >= 0]):
        row = row[~launching[row]]
        launching[row] = True
        row = ops.nesting.parent[row]
    return launching


def number_trees(ops: Ops) -> Ints:
    """For each op (n,) a number, the same for ops with the same name and the same ops inside, in the same order."""
    number, _ = number_texts(ops.name)
    parent = ops.nesting.parent
    order = number_in_group(parent + 1).astype(np.uint64)
    tree = _mix(number.astype(np.uint64))
    for level in reversed(_by_depth(parent)):
        tree[level] = _mix(tree[level])
        inner = level[parent[level] >= 0]
        np.add.at(tree, parent[inner], _mix(tree[inner] + order[inner]))
    return rank(tree.view(np.int64))[0]


def _by_depth(parent: Ints) -> list[Ints]:
    """The rows of each depth, the outermost first."""
    depth, row = np.zeros(len(parent), dtype=np.int64), np.arange(len(parent))
    above = parent
    while len(row := row[above >= 0]):
        above = above[above >= 0]
        depth[row] += 1
        above = parent[above]
    return group_rows(depth)


def _mix(values: np.ndarray[tuple[int], np.dtype[np.uint64]]) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    """Numbers that have nothing more in common (splitmix64)."""
    mixed = values + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


def launch_elsewhere(rows: Ints, trees: Ints, launching: Bools) -> Bools:
    """Which ops (n,), ``rows`` that launch nothing, are like others that launch something."""
    often = np.bincount(trees[launching], minlength=int(trees.max(initial=-1)) + 1) >= SEEN
    alike: Bools = often[trees[rows]]
    return alike


def count_silent_stretches(ops: Ops, calls: Calls, launching: Bools, left_out: Bools) -> tuple[int, int]:
    """How many ops, and how many products, launch nothing in stretches between two commands of their thread in which
    several do so, though others like them, in an op of the same name, launch something themselves, and nearly always.
    A stretch counts for its products where it has enough of these, and else for its ops where they are many of several
    kinds. Those that are ``left_out`` (n,), as in warm-up, count for nothing."""
    commands = np.flatnonzero(calls.do(DEVICE_COMMANDS))
    itself = np.zeros(len(ops), dtype=bool)
    around = ops.around(calls)[commands]
    itself[around[around >= 0]] = True
    number, known = number_texts(ops.name)
    seen = np.bincount(number[itself], minlength=len(known)) >= SEEN
    silent = np.flatnonzero(seen[number] & ~launching & ~left_out)
    group = number_groups(ops.tid[silent], last_before(ops.ts[silent], ops.tid[silent], commands, calls.ts, calls.tid))
    several = np.bincount(group)[group] >= LEAST_PRODUCTS
    silent, group = silent[several], group[several]
    if not len(silent):
        return 0, 0
    trees = number_groups(number_trees(ops), np.append(number, -1)[ops.nesting.parent])
    tree, many = trees[silent], int(trees.max()) + 1
    launched, there, times = (np.bincount(trees[rows], minlength=many) for rows in (itself, launching, slice(None)))
    pair = number_groups(group, tree)
    elsewhere = times[tree] - np.bincount(pair)[pair]
    surely = (launched[tree] >= SEEN) & (there[tree] >= NEARLY_ALWAYS * elsewhere)
    product = surely & np.isin(silent, np.flatnonzero(ops.named(PRODUCTS.match)))
    _, first = np.unique(np.where(surely, pair, -1), return_index=True)
    kind = surely & np.isin(np.arange(len(silent)), first)
    groups = int(group.max()) + 1
    all_, products, kinds = (np.bincount(group[rows], minlength=groups) for rows in (surely, product, kind))
    of_products = products >= LEAST_PRODUCTS
    of_ops = ~of_products & (all_ > MOST_ON_HOST) & (kinds >= LEAST_KINDS)
    return int(all_[of_ops].sum()), int(products[of_products].sum())
