"""The recorded steps: which one a moment belongs to, and figures of every single one."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from syncscope.timeline.bubbles import LONGEST_HOLD as LEFT_BEHIND
from syncscope.timeline.copies import blocks_alone
from syncscope.timeline.intervals import Bools, Ints, Union
from syncscope.timeline.tables import Activities, Collectives, Copies, Steps, Waits
from syncscope.timeline.waits import is_wait

AHEAD = 0.25
"""Share of the recorded steps by which a host gets ahead of a device that is slower than it."""

BEHIND = 0.1
"""Share of a step by which a device is behind its host all the time."""

DRAINED_NS = 1_000_000
"""From when the device has done all to when the host knows it, at most: a device sync takes some 0.05 ms to return."""


def step_of(steps: Steps, ts: Ints) -> Ints:
    """For each time (n,), the row of ``steps`` that holds it, −1 outside all of them."""
    if not len(steps):
        return np.full(len(ts), -1, dtype=np.int64)
    slot = np.searchsorted(steps.ts, ts, side="right") - 1
    inside = (slot >= 0) & (ts < steps.end[np.maximum(slot, 0)])
    return np.where(inside, slot, -1)


def find_span(
    steps: Steps, activities: Activities, drained: int | None, seen_from: int | None = None
) -> tuple[int, int] | None:
    """From the first step's begin to the last step's end, or to when the device had ``drained`` where that is known;
    without steps, from the devices' first to their last activity; ``None`` when there is neither.

    ``seen_from`` is when the host's rows begin, ns, ``None`` without any. Without steps, activities of before that the
    trace holds no launch of, and that the device had left behind by then, are those of an earlier recording: what the
    host did between the two was not recorded."""
    table = steps if len(steps) else activities
    if not len(table):
        return None
    end = int(table.end.max())
    if len(steps):
        return int(steps.ts.min()), end if drained is None else max(end, drained)
    return int(activities.ts[~_is_left_over(activities, seen_from)].min()), end


def _is_left_over(activities: Activities, seen_from: int | None) -> Bools:
    """Which activities (n,) were left over from an earlier recording: all that comes before the host's rows, where the
    device had nothing to do in between. None where that would be all."""
    none = np.zeros(len(activities), dtype=bool)
    if seen_from is None:
        return none
    before: Bools = activities.ts < seen_from
    if before.all() or not before.any() or (activities.launch[before] >= 0).any():
        return none
    return before if seen_from - int(activities.end[before].max()) > LEFT_BEHIND else none


def find_drained(steps: Steps, activities: Activities, launch_ts: Ints, seen: int) -> int:
    """When the device had finished what was launched until the last step ended, in a recording of ours: when the host
    had ``seen`` it, unless the window ended in the midst of a further step, and all of that was ``seen`` to end.
    ``launch_ts`` (m,) is when each of ``activities`` was launched, −1 unknown."""
    end = int(steps.end.max())
    done = int(activities.end[(launch_ts >= 0) & (launch_ts < end)].max(initial=end))
    return seen if seen - done <= DRAINED_NS else done


def find_outlasting(steps: Steps, activities: Activities, launch_ts: Ints) -> int | None:
    """When the device had finished the work that the steps launched, where that alone takes it longer than all of them
    take on the host, or where the host gets ahead of it by ``AHEAD`` of several; else ``None``. Of a single step a
    collective, which may wait for others, is none. ``launch_ts`` (m,) is when each of ``activities`` was launched."""
    mine = step_of(steps, launch_ts) >= 0
    if not mine.any():
        return None
    begin, end = int(steps.ts.min()), int(steps.end.max())
    done = int(activities.end[mine].max())
    if len(steps) < 2:
        work = mine & (activities.collective == "")
        return done if Union(activities.ts[work], activities.end[work]).length > end - begin else None
    own, before = Union(activities.ts[mine], activities.end[mine]), activities.end[launch_ts < begin]
    gets_ahead = (done - end) - max(int(before.max(initial=begin)) - begin, 0)
    return done if own.length > end - begin or gets_ahead > AHEAD * (end - begin) else None


def find_lag(steps: Steps, activities: Activities, launch_ts: Ints) -> tuple[int, int] | None:
    """From when the device had finished what came before the steps to when it had finished what they launched, where it
    is behind by ``BEHIND`` of a step or more at both ends: what it does in the first of them on the host is then of the
    step before. Else ``None``. ``launch_ts`` (m,) is when each of ``activities`` was launched."""
    mine = step_of(steps, launch_ts) >= 0
    if not mine.any() or len(steps) < 2:
        return None
    begin, end = int(steps.ts.min()), int(steps.end.max())
    began = int(activities.end[_launched_before(begin, activities, launch_ts, mine)].max(initial=begin))
    done = int(activities.end[mine].max())
    least = BEHIND * (end - begin) / len(steps)
    return (began, done) if min(began - begin, done - end) >= least and began < done else None


def _launched_before(begin: int, activities: Activities, launch_ts: Ints, mine: Bools) -> Bools:
    """Which of ``activities`` (m,) were launched before ``begin``. One whose call is not in the trace was where one of
    ``mine``, of the steps, comes after it on its stream, and none before it."""
    _, stream = np.unique(activities.stream, return_inverse=True)
    first = np.full(len(activities), np.iinfo(np.int64).max)
    np.minimum.at(first, stream[mine], activities.ts[mine])
    first[first == np.iinfo(np.int64).max] = begin
    return (launch_ts < begin) & ((launch_ts >= 0) | (activities.ts < first[stream]))


def find_blocked(waits: Waits, copies: Copies) -> Union:
    """When the host is blocked: some thread is in a wait, or in a copy that blocks with no wait after it. Threads that
    are blocked at the same time count once."""
    waits, alone = waits.take(is_wait(waits.kind)), copies.take(blocks_alone(copies))
    begin, end = np.append(waits.begin, alone.launch_ts), np.append(waits.end, alone.launch_end)
    return Union(begin, end)


def exposed_copies(steps: Steps, copies: Copies, compute: Union) -> Ints:
    """For each step (n,) the ns of the copies that it launched, whenever they run, that ``compute`` does not hide.

    ``copies`` are those of one device; copies inside it do not count.
    """
    return exposed_in_steps(steps, copies.take(copies.direction != "DtoD"), compute)


def exposed_in_steps(steps: Steps, launched: Copies | Collectives, compute: Union) -> Ints:
    """For each step (n,) the ns of what it launched, whenever that runs, that ``compute`` does not hide."""
    rows = np.flatnonzero(launched.step >= 0)
    rows = rows[np.argsort(launched.step[rows], kind="stable")]
    ts, end, step = launched.ts[rows], launched.end[rows], launched.step[rows]
    # In order of steps, those of one step lie between two cuts.
    cuts = np.searchsorted(step, np.arange(len(steps) + 1)).tolist()
    exposed = [Union(ts[a:b], end[a:b]).minus(compute) for a, b in pairwise(cuts)]
    return np.array(exposed, dtype=np.int64)


def device_steps(steps: Steps, activities: Activities, launch_ts: Ints, span: tuple[int, int]) -> tuple[Ints, Ints]:
    """Length of each step (n,) on a device, and how much of it the device is idle, in ns. They add up to the span.

    A step ends there when the device has finished all that it and earlier steps launched, the last at the end of
    ``span``. ``launch_ts`` (m,) is when each of ``activities``, all of one device, was launched.
    """
    step = step_of(steps, launch_ts)
    last = np.full(len(steps), span[0], dtype=np.int64)
    inside = step >= 0
    np.maximum.at(last, step[inside], activities.end[inside])
    ends = np.clip(np.maximum.accumulate(last), *span)
    ends[-1] = span[1]
    begins = np.append(span[0], ends[:-1])
    return ends - begins, ends - begins - Union(activities.ts, activities.end).within(begins, ends)
