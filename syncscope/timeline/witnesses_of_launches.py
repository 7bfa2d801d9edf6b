"""Witnesses of launches: device rows of the calls that launched them, calls of device rows, and ops and steps of what
they elsewhere always launch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from syncscope.timeline.disagreement import Disagreement, disagree, find_correlations
from syncscope.timeline.intervals import Bools, Ints, are_among
from syncscope.timeline.row_groups import group_rows, number_groups, rank
from syncscope.timeline.silent_ops import (
    DEVICE_COMMANDS,
    LEAST_KINDS,
    MOST_ON_HOST,
    NEARLY_ALWAYS,
    count_silent_stretches,
)
from syncscope.timeline.tables import Activities, Calls
from syncscope.timeline.warm_up import are_warming_up, in_capture
from syncscope.trace.quantiles import median
from syncscope.trace.sets import different

if TYPE_CHECKING:
    from syncscope.timeline.timeline import Timeline

COPIES = ("copy", "copy-sync")
"""Those of them that copy."""

COPIES_NOTHING = 1_000
"""Nanoseconds below which the call of a copy has nothing to copy. Of 17,000 copies that ran, in the traces of others,
none took less than 1,960; one of nothing takes some hundred."""

OFTEN = 20
"""An op that occurs as often shows whether it launches something."""

LEAST_SILENT = 0.2
"""Share of them among the ops without a launch, at least: 0.28 to 0.58 where calls were lost, 0.1 where a large tensor
is printed."""

EARLY = 50_000
"""Nanoseconds by which the clocks of host and device may be apart."""

BUSY_STEP = 10
"""Runtime calls that every step but one has, at least, where the one has lost its own."""

CUT_SHORT = 0.5
"""Share of the length of the other steps, and theirs of its own, from which on the last step is a whole one."""

SILENT = "{} ops in a row launch nothing that do so everywhere else"
SILENT_PRODUCTS = "{} matrix products in a row launch nothing that do so everywhere else"

OWN = "at::native::"
"""In the names of PyTorch's own kernels."""


def about_launches(timeline: Timeline) -> tuple[Disagreement, ...]:
    """Device rows without the call that launched them. What was launched before the trace began has none. Neither has
    a kernel that a call of the driver launched, where the profiler records none of those: then no row of it has one.
    PyTorch's own kernels are launched by calls of the runtime."""
    rows = timeline.activities
    inside = _after_first_launch(rows)
    if timeline.drained is not None and len(timeline.steps):  # the steps began with an idle device
        inside |= rows.ts >= timeline.steps.ts.min()
    unlaunched = (rows.launch < 0) & ~are_among(rows.correlation, find_correlations(timeline)) & inside
    launched = set(rows.name[rows.launch >= 0].tolist())
    suspects = rows.take(unlaunched)
    surely = [
        kind != "kernel" or name in launched or OWN in name
        for kind, name in zip(suspects.kind, suspects.name, strict=True)
    ]
    return disagree(
        "runtime", sum(surely),
        "the device ran something whose launch is not in the trace",
        "the device ran {} things whose launches are not in the trace",
    )  # fmt: skip


def _after_first_launch(rows: Activities) -> Bools:
    """Which rows (n,) come after one of their stream whose launch is known: a stream runs its work in order."""
    after = np.zeros(len(rows), dtype=bool)
    for own in group_rows(number_groups(rows.device, rows.stream)):
        after[own] = np.logical_or.accumulate(rows.launch[own] >= 0)
    return after


def about_devices(timeline: Timeline) -> tuple[Disagreement, ...]:
    """Devices that ran something while the process made calls, and of which not one launch is there."""
    rows, calls = timeline.activities, timeline.calls
    during = (rows.ts >= calls.ts.min()) & (rows.ts <= calls.end.max())
    joined = (rows.launch >= 0) | are_among(rows.correlation, find_correlations(timeline))
    ran = different(rows.device[during & (rows.device >= 0)])
    missing = ran[~are_among(ran, rows.device[joined])]
    return disagree(
        "runtime", len(missing),
        f"the trace holds no launch of what device {missing[0] if len(missing) else -1} ran",
        "the trace holds no launch of what {} of its devices ran",
    )  # fmt: skip


def about_clocks(timeline: Timeline) -> tuple[Disagreement, ...]:
    """Rows that begin before they were launched: the profiler took their times from another clock, or from nowhere
    (CUPTI 12.6 to 13.0, github.com/pytorch/pytorch/issues/192021)."""
    rows, calls = timeline.activities, timeline.calls
    known = rows.take(rows.launch >= 0)
    return disagree(
        "device", int((known.ts < calls.ts[known.launch] - EARLY).sum()),
        "the device began something before it was launched, so its times are wrong",
        "the device began {} things before they were launched, so its times are wrong",
    )  # fmt: skip


def about_launching_ops(timeline: Timeline) -> tuple[Disagreement, ...]:
    """Many ops in a row, of several kinds, that launch nothing and do so nearly always elsewhere: the profiler lost its
    buffer of calls there."""
    calls, ops, launching = timeline.calls, timeline.ops, timeline.launching_ops
    commanded = np.sort(calls.ts[calls.do(DEVICE_COMMANDS)])
    _, silent = _rows_between(commanded, ops.ts, np.flatnonzero(~launching))
    silent = silent[~are_warming_up(timeline.warm_ups, ops.ts[silent], ops.end[silent], ops.tid[silent])]
    texts = timeline.trace.rows["ops"].texts["name"]
    name, names = texts.codes.astype(np.int64), texts.names
    launched, times = (np.bincount(name[rows], minlength=len(names)) for rows in (launching, slice(None)))
    group, rows = _rows_between(commanded, ops.ts, silent)
    # A pair is a group and a name that is in it.
    pair, pairs = rank(group * len(names) + name[rows])
    here, kind, of_group = np.bincount(pair, minlength=pairs), np.empty(pairs, np.int64), np.empty(pairs, np.int64)
    kind[pair], of_group[pair] = name[rows], group
    surely = (launched[kind] >= OFTEN) & (launched[kind] >= NEARLY_ALWAYS * (times[kind] - here))
    kinds, many = (np.bincount(of_group[surely], weights=weights) for weights in (None, here[surely]))
    size = np.bincount(group, minlength=len(kinds))[: len(kinds)]
    lost = (many > MOST_ON_HOST) & (kinds >= LEAST_KINDS) & (many >= LEAST_SILENT * size)
    missing = int(many[lost].sum())
    return disagree("runtime", missing, "", SILENT) or _about_alike(timeline)


def _about_alike(timeline: Timeline) -> tuple[Disagreement, ...]:
    """The same of ops that are seldom: those count that call inside of them what others of the same name do that launch
    something, and are called by an op of the same name. Four matrix products are enough, since on the CPU one calls
    something else. Whole traces of others, 511 of them, were seen to have three kinds of such ops in a row at most."""
    ops, warm = timeline.ops, timeline.warm_ups
    if not len(ops):
        return ()
    left_out = are_warming_up(warm, ops.ts, ops.end, ops.tid)
    missing, products = count_silent_stretches(ops, timeline.calls, timeline.launching_ops, left_out)
    return disagree("runtime", missing, "", SILENT) or disagree("runtime", products, "", SILENT_PRODUCTS)


def _rows_between(commands: Ints, ts: Ints, rows: Ints) -> tuple[Ints, Ints]:
    """Those of some rows, in order of ``ts``, of which more than ``MOST_ON_HOST`` begin between the same two
    ``commands``: the number of their group, and the rows."""
    begins = np.searchsorted(ts[rows], commands, side="right")
    sizes = np.diff(begins, prepend=0, append=len(rows))
    many = sizes[sizes > MOST_ON_HOST]
    return np.repeat(np.arange(len(many)), many), rows[np.repeat(sizes > MOST_ON_HOST, sizes)]


def about_empty_steps(timeline: Timeline) -> tuple[Disagreement, ...]:
    """Steps without a runtime call between steps that all have many; the last may be cut short, or what came behind the
    loop."""
    steps, calls = timeline.steps, timeline.calls
    if len(steps) < 3:
        return ()
    made = np.searchsorted(calls.ts, steps.end) - np.searchsorted(calls.ts, steps.ts)
    last, others = steps.dur[-1], median(steps.dur[:-1])
    whole = CUT_SHORT * others <= last <= others / CUT_SHORT
    made = made if whole else made[:-1]
    empty = made == 0
    regular = empty.any() and made[~empty].min(initial=BUSY_STEP) >= BUSY_STEP and empty.mean() < 0.5
    return disagree(
        "runtime", int(empty.sum()) if regular else 0,
        "a step has no runtime call, and all others have many",
        "{} steps have no runtime call, and all others have many",
    )  # fmt: skip


def about_commands(timeline: Timeline) -> tuple[Disagreement, ...]:
    """Launches and copies without a device row, but for those that may still have been queued at the end, those that a
    CUDA graph captured, and copies of nothing."""
    calls, made, unmade = timeline.calls, timeline.activities.launch, timeline.unmade
    known = calls.ts[made[made >= 0]]
    at_start = len(unmade) > 0 and len(known) > 0 and bool(calls.ts[unmade].max() < known.min())
    where = " at the start of the trace" if at_start else ""
    return disagree(
        "device", len(unmade),
        f"a launch or copy{where} has no device row",
        f"{{}} launches and copies{where} have no device row",
        at_start=at_start,
    )  # fmt: skip


def find_unmade(calls: Calls, rows: Activities) -> Ints:
    """The rows of the launches and copies that made no device row, as ``about_commands``."""
    known = rows.launch[rows.launch >= 0]
    if len(rows) and not len(known):
        return np.empty(0, dtype=np.int64)
    # What was launched before something that ran, or before the host waited for the whole device, ran too.
    waited = calls.ts[calls.do(["device-sync"])].max(initial=0)
    commands = calls.do(DEVICE_COMMANDS) & (calls.correlation >= 0)
    commands &= (calls.ts < max(calls.ts[known].max(initial=0), waited)) & ~in_capture(calls)
    commands &= ~(calls.do(COPIES) & (calls.dur < COPIES_NOTHING))
    return np.flatnonzero(commands & ~are_among(calls.correlation, rows.correlation))
