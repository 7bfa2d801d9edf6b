"""Measure the launches: whether the host keeps ahead of the device, and what a CUDA graph could replay."""

from __future__ import annotations

from collections import Counter
from functools import reduce
from operator import and_

import msgspec
import numpy as np

from syncscope.timeline.intervals import Ints, Union
from syncscope.timeline.row_groups import group_rows, number_groups
from syncscope.timeline.tables import Activities, Calls
from syncscope.trace.names import MEMORY_ROLES, SYNC_ROLES
from syncscope.trace.quantiles import median
from syncscope.trace.sets import different

LAUNCHES = ("launch", "graph-launch")
"""Roles of calls that launch kernels."""

HOST_SIDES = ("HtoD", "DtoH", "HtoH")
"""Directions of copies that have a side on the host."""

MAIN_SHARE = 0.1
"""A thread with this share of the launches or more is one that launches."""

WAITING_SHARE = 0.9
"""Where this share of the launches returns after their kernel has ended, every launch counts as waiting."""

NO_CALLS = np.zeros(0, dtype=np.int64)

LEAST_LAUNCHES = 20
"""At least this many launches show it where no recording says it."""


class Launching(msgspec.Struct, frozen=True):
    """The launches of the steps (of the whole trace where it has no steps)."""

    launches: int
    """Calls that launch a kernel or a graph."""
    own_ns: int
    """Time of the launching threads inside the steps that no wait and no copy from pageable memory took."""
    delay_ns: int
    """Median time from the begin of such a call to the begin of its first kernel: a few µs where the queue is empty."""
    busy_ns: int
    """Time that the kernels run, one by one."""
    graphs: tuple[Ints, ...] | None
    """The stretches that could be a CUDA graph each: the launches (rows of ``calls``) of every stretch that all steps
    repeat and that has no wait, host copy, allocation, send or receive in it. ``None`` with fewer than two steps to
    compare; none where the launches are ``sharded``."""
    sharded: bool = False
    """Whether FSDP's hooks come between the launches: they fetch the weights of a block to where there is room each
    time, so that no graph can hold it."""

    @property
    def replayable(self) -> int | None:
        """How many launches are saved if every such stretch is one graph."""
        return None if self.graphs is None else sum(len(stretch) - 1 for stretch in self.graphs)

    @property
    def repeats(self) -> bool:
        """Whether graphs would take away half of the launches or more."""
        return 2 * (self.replayable or 0) >= self.launches


def find_launching(
    calls: Calls,
    warm: Ints,
    activities: Activities,
    step: Ints,
    away: tuple[Ints, Ints, Ints],
    span: tuple[int, int],
    exchanges: Ints = NO_CALLS,
    sharded: bool = False,
) -> Launching | None:
    """Measure the launches of the steps; ``None`` when nothing is launched there.

    ``warm`` are the rows of the calls that are no warm-up. ``activities`` are those of one device, ``step`` (n,) is the
    step of each call, −1 outside. ``away`` holds begins, ends and threads (m,) of the waits, copies and warm-ups that
    kept threads from launching, ``span`` is where to look. ``exchanges`` (k,) are the calls that launch sends and
    receives, ``sharded`` is ``Launching.sharded``.
    """
    stepped = bool((step >= 0).any())
    launches = calls.do(LAUNCHES) & ((step >= 0) | (not stepped)) & np.isin(calls.row, warm)
    if not launches.any():
        return None
    kernels = np.flatnonzero((activities.kind == "kernel") & np.append(launches, False)[activities.launch])
    launch, first = np.unique(activities.launch[kernels], return_index=True)
    delay = activities.ts[kernels[first]] - calls.ts[launch]
    threads, counts = np.unique(calls.tid[launches], return_counts=True)
    begin, end, tid = away
    on_these = np.isin(tid, threads[counts >= MAIN_SHARE * counts.sum()])
    return Launching(
        launches=int(launches.sum()),
        own_ns=span[1] - span[0] - Union(begin[on_these], end[on_these]).clipped(*span).length,
        delay_ns=int(median(delay)) if len(delay) else 0,
        busy_ns=int(activities.dur[kernels].sum()),
        graphs=() if sharded else _find_graphs(calls, activities, step, exchanges),
        sharded=sharded,
    )


def _find_graphs(calls: Calls, activities: Activities, step: Ints, exchanges: Ints) -> tuple[Ints, ...] | None:
    """Find ``Launching.graphs``. Stretches are equal that launch the same names in the same order."""
    steps = different(step[step >= 0]).tolist()
    if len(steps) < 2:
        return None
    known = np.flatnonzero(activities.launch >= 0)[::-1]
    launch = activities.launch[known]
    names = np.full(len(calls), -1, dtype=np.int64)
    names[launch] = activities.name_places[known]
    crosses = np.zeros(len(calls), dtype=bool)
    crosses[launch] = np.isin(activities.direction[known], HOST_SIDES)
    breaks = calls.do(["graph-launch", *SYNC_ROLES, *MEMORY_ROLES]) | crosses
    breaks[exchanges] = True
    replayed = calls.do(["launch"]) & (step >= 0)
    replayed[exchanges] = False
    inside = np.flatnonzero(replayed)
    stretches = []
    of_step: dict[int, Counter[tuple[int, ...]]] = {number: Counter() for number in steps}
    for rows in group_rows(number_groups(step[inside], np.cumsum(breaks, dtype=np.int64)[inside])):
        stretch = inside[rows]
        number, launched = int(step[stretch[0]]), tuple(names[stretch].tolist())
        of_step[number][launched] += 1
        stretches.append((number, launched, stretch))
    # A stretch counts as often as in the step that has the fewest of it.
    common = reduce(and_, of_step.values())
    left = {number: Counter(common) for number in steps}
    graphs = []
    for number, launched, stretch in stretches:
        if left[number][launched]:
            left[number][launched] -= 1
            graphs.append(stretch)
    return tuple(graphs)


def count_queued(calls: Calls, activities: Activities) -> Ints:
    """For each call (n,), how many calls before it had given a device work that was not done when it began."""
    done = _last_ends(calls, activities)
    gave = done >= 0
    before = np.searchsorted(np.sort(calls.ts[gave]), calls.ts, side="left")
    ended = np.searchsorted(np.sort(done[gave]), calls.ts, side="right")
    queued: Ints = np.maximum(before - ended, 0)
    return queued


def _last_ends(calls: Calls, activities: Activities) -> Ints:
    """For each call (n,), when the last of the work that it gave a device ended, −1 where it gave none."""
    done = np.full(len(calls), -1, dtype=np.int64)
    known = activities.launch >= 0
    np.maximum.at(done, activities.launch[known], activities.end[known])
    return done


def _first_begins(calls: Calls, activities: Activities) -> Ints:
    """For each call (n,), when the first of the work that it gave a device began; the largest number where it gave
    none."""
    begins = np.full(len(calls), np.iinfo(np.int64).max, dtype=np.int64)
    known = activities.launch >= 0
    np.minimum.at(begins, activities.launch[known], activities.ts[known])
    return begins


def every_launch_waits(calls: Calls, activities: Activities, recorded: bool) -> bool:
    """Whether kernel launches return only when their kernel has ended, as with ``CUDA_LAUNCH_BLOCKING=1``; ``recorded``
    is whether a recording says that it was set. It is without effect when it is set too late. A kernel that began
    before its launch shows nothing: the device's clock is early, so it may have ended after the call as well."""
    done = _last_ends(calls, activities)
    kernels = calls.do(["launch"]) & (done >= 0)
    waited = (calls.end[kernels] >= done[kernels]) & (_first_begins(calls, activities)[kernels] >= calls.ts[kernels])
    enough = len(waited) >= (1 if recorded else LEAST_LAUNCHES)
    return bool(enough and waited.mean() >= WAITING_SHARE)
