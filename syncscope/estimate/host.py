"""The host's part of a program: which threads act as one, how much work there is before and inside each call, and how
much of it is waiting for the next batch.

Worker processes make batches at a pace. A step that saves time elsewhere then only waits longer for the next batch,
which comes a period after the last. Without workers the thread loads the batch itself, which is ordinary work of the
host."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

import msgspec
import numpy as np

from syncscope.estimate.items import HostPart
from syncscope.schema.recording import Bare
from syncscope.timeline import Timeline
from syncscope.timeline.bare import bare_step_ns
from syncscope.timeline.intervals import Bools, Floats, Ints
from syncscope.timeline.tables import Steps
from syncscope.trace.quantiles import median
from syncscope.trace.sets import different

LONG_CALL = 20_000
"""A call of at least this many nanoseconds shows whether another thread worked at the same time."""

ASKING = ("", "event-query")
"""Roles of calls that neither give the device something to do nor wait for it."""

RECORDED_LOAD = "DataLoader"
"""The entry point that the collector records when the program gets its next batch."""

WITH_WORKERS, WITHOUT_WORKERS = "_MultiProcessingDataLoaderIter", "_SingleProcessDataLoaderIter"
"""What the profiler's annotations call a loader with workers and one without."""

LEAST_LOADING = 0.02
"""Share of the step below which waiting for a batch is ignored."""


def recorded_steps(timeline: Timeline) -> Steps:
    """The steps to replay. A trace without steps counts as one, from the device's first work to its last, as all shares
    of its time do. What an earlier recording left over is before the span, and does not count."""
    span = timeline.span
    if len(timeline.steps) or span is None:
        return timeline.steps
    thread = Counter(timeline.calls.take(_meanwhile(timeline)).tid.tolist()).most_common(1)
    tid = thread[0][0] if thread else -1
    columns = {"row": 0, "ts": span[0], "end": span[1] + 1, "number": 0, "tid": tid}
    return Steps(**{name: np.array([value], dtype=np.int64) for name, value in columns.items()})


def _meanwhile(timeline: Timeline) -> Bools:
    """Which calls belong to the steps to replay: those that begin inside of them, and in a trace without steps those
    from the launch of its first activity on."""
    calls, activities, span = timeline.calls, timeline.activities, timeline.span
    if len(timeline.steps) or span is None:
        first, end = int(timeline.steps.ts.min()), int(timeline.steps.end.max())
        return (calls.ts >= first) & (calls.ts < end)
    inside = activities.take(activities.ts >= span[0])
    launch = int(inside.launch[np.argmin(inside.ts)])
    begin = min(span[0], int(calls.ts[launch])) if launch >= 0 else span[0]
    return (calls.ts >= begin) & (calls.ts < span[1])


def do_items(timeline: Timeline, host: HostPart, roles: Collection[str]) -> Bools:
    """Which items (n,) are calls of one of these roles."""
    found: Bools = np.append(timeline.calls.do(roles), False)[host.call]
    return found


def find_host_part(timeline: Timeline) -> HostPart:
    """Calls inside the steps, the steps' ends and activities without a launch, in order of time. Of calls in a trace
    without steps only what is between the device's first work and its last takes time: before it the host may have
    waited for work that the trace lacks, or loaded kernels."""
    steps, calls, device = recorded_steps(timeline), timeline.calls, timeline.activities
    base, last = int(steps.ts.min()), int(steps.end.max())
    inside = np.flatnonzero(_meanwhile(timeline))
    orphans = np.flatnonzero((device.launch < 0) & (device.ts >= base) & (device.ts < last))
    begin = np.concatenate([calls.ts[inside], steps.end, device.ts[orphans]]) - base
    end = np.concatenate([calls.end[inside], steps.end, device.ts[orphans]]) - base
    none = np.full(len(steps) + len(orphans), -1, dtype=np.int64)
    tid = np.concatenate([calls.tid[inside], np.full(len(steps), leading_thread(timeline)), np.full(len(orphans), -1)])
    mark = np.zeros(len(begin), dtype=bool)
    mark[len(inside) : len(inside) + len(steps)] = True
    if not len(timeline.steps):
        begin, end = np.clip(begin, 0, last - base), np.clip(end, 0, last - base)
    order = np.lexsort((~mark, begin))
    begin, end, mark, tid = begin[order].astype(float), end[order].astype(float), mark[order], tid[order]
    asks = np.concatenate([calls.do(ASKING)[inside], np.zeros(len(steps) + len(orphans), dtype=bool)])[order]
    chain = _chains(tid, begin, end, mark, asks)
    pre, own, follows = _work(chain, begin, end)
    return HostPart(
        call=np.concatenate([inside, none])[order],
        orphan=np.concatenate([np.full(len(inside) + len(steps), -1), orphans])[order],
        step=np.minimum(np.cumsum(mark) - mark, len(steps) - 1),
        mark=mark, chain=chain, follows=follows, begin=begin, end=end, pre=pre, own=own,
    )  # fmt: skip


def leading_thread(timeline: Timeline) -> int:
    """The thread of the steps, else the one with the most calls."""
    tids, stepping = timeline.calls.tid, int(recorded_steps(timeline).tid[0])
    if (tids == stepping).any():
        return stepping
    threads, counts = np.unique(tids, return_counts=True)
    return int(threads[np.argmax(counts)])


def _chains(tid: Ints, begin: Floats, end: Floats, mark: Bools, asks: Bools) -> Ints:
    """The chain of each item. A thread that never calls while a call of the leading one lasts, nor the other way
    round, takes turns with it: main thread and autograd thread are one chain. One that only ``asks`` works beside it: a
    loader's thread that pins batches gives the device nothing to do and waits for nothing there."""
    lead = int(tid[mark][0])
    chain = np.where(tid == lead, 0, -1)
    number = 0
    for other in different(tid[(tid != lead) & (tid >= 0)]):
        mine, theirs = tid == other, (tid == lead) & ~mark
        overlaps = _during(begin[mine], begin[theirs], end[theirs]) + _during(begin[theirs], begin[mine], end[mine])
        beside = overlaps > 0 or bool(asks[mine].all())
        number += beside
        chain[mine] = number if beside else 0
    return chain


def _during(times: Floats, begin: Floats, end: Floats) -> int:
    """How many of ``times`` lie inside one of the long intervals."""
    long = end - begin >= LONG_CALL
    upto, from_ = np.searchsorted(times, end[long], side="left"), np.searchsorted(times, begin[long], side="right")
    return int((upto - from_).sum())


def _work(chain: Ints, begin: Floats, end: Floats) -> tuple[Floats, Floats, Bools]:
    """Host work before and inside each item, and whether it follows chain 0 rather than its own."""
    pre, own, follows = np.zeros(len(begin)), np.zeros(len(begin)), np.zeros(len(begin), dtype=bool)
    lead = np.flatnonzero(chain == 0)
    lead_reach = np.maximum.accumulate(end[lead]) if len(lead) else end[lead]
    for number in range(int(chain.max(initial=0)) + 1):
        rows = np.flatnonzero(chain == number)
        reach = np.concatenate([[0.0], np.maximum.accumulate(end[rows])[:-1]])
        if number:
            # A thread beside the leading one was set off by it, unless its own work lasted longer.
            before = np.searchsorted(begin[lead], begin[rows], side="left")
            theirs = np.concatenate([[0.0], lead_reach])[before]
            follows[rows] = (theirs > reach) & (theirs <= begin[rows])
            reach = np.where(follows[rows], theirs, reach)
        pre[rows] = np.maximum(begin[rows] - reach, 0)
        own[rows] = np.maximum(end[rows] - np.maximum(begin[rows], reach), 0)
    return pre, own, follows


class Loading(msgspec.Struct, frozen=True):
    """How each item's host work waited for a batch (n,), ns."""

    length: Floats
    """How much of the host's work before the call went into getting a batch; 0 none."""
    period: Floats
    """From the batch before to this one."""
    workers: bool | None
    """Whether worker processes made the batches; ``None`` where the trace does not say."""


def find_loading(timeline: Timeline, host: HostPart) -> Loading:
    """The batches that chain 0 got inside the steps.

    The pace of the workers is that of the steps without a profiler: starting the profiler takes long, and the recorded
    steps live on what the loader made meanwhile.
    """
    recording = timeline.trace.recording
    loader = recording.bare.loader if recording and recording.bare else None
    ahead = loader is not None and bool(loader.ready)
    begin, end, names = find_batches(timeline)
    in_a_step = max(len(begin) / len(recorded_steps(timeline)), 1.0)
    pace = _pace(recording.bare, in_a_step) if recording and recording.bare else None
    length, period = np.zeros(len(host)), np.zeros(len(host))
    step = float(recorded_steps(timeline).dur.mean())
    rows = np.flatnonzero(host.chain == 0)
    called, pre = host.begin[rows], host.pre[rows]
    order = np.argsort(end, kind="stable")
    begin, end = begin[order], end[order]
    slot = np.searchsorted(called, end, side="left")
    told = any(WITH_WORKERS in name for name in names) if names else None
    workers = told if loader is None else loader.workers > 0
    for number, (first, last, at) in enumerate(zip(begin, end, slot, strict=True)):
        if workers is False:  # a batch that the host makes itself may hold calls, those that pin it
            at = _greatest(first, last, called, pre, int(at))
        inside = min(last, called[at]) - max(first, called[at] - pre[at]) if at < len(rows) else 0.0
        # The first batch has none before it; it takes the usual time.
        apart = last - end[number - 1] if number else median(np.diff(end)) if len(end) > 1 else 0.0
        if pace is not None and at < len(rows):
            # What it takes to get a batch that is there is the host's own work.
            length[rows[at]], period[rows[at]] = 1.0 if ahead else max(inside, 1.0), pace
        elif inside >= LEAST_LOADING * step and apart > 0:
            length[rows[at]], period[rows[at]] = inside, apart
    return Loading(length, period, workers)


def _greatest(first: float, last: float, called: Floats, pre: Floats, after: int) -> int:
    """The call before which most of a batch was made, from ``first`` to ``last``: up to ``after``, the first call when
    it was there."""
    some = np.arange(int(np.searchsorted(called, first, side="left")), min(after + 1, len(called)))
    if not len(some):
        return after
    inside = np.minimum(called[some], last) - np.maximum(called[some] - pre[some], first)
    return int(some[np.argmax(inside)])


def _pace(bare: Bare, in_a_step: float) -> float | None:
    """Nanoseconds between two batches of the workers, at most; ``None`` unknown.

    Where the bare steps waited for them it was measured. Where batches were ready, as many as were missing of those
    that the workers may have ready were in the making, and ``in_a_step`` batches came every step, several where
    gradients are accumulated: so long one is in the making (Little's law), and each worker makes one at a time.
    """
    loader = bare.loader
    if loader is None or loader.workers <= 0:
        return None
    if not loader.ready:
        return float(loader.interval_ns) if loader.interval_ns else None
    step_ns = bare_step_ns(bare)
    if step_ns is None or not loader.prefetch:
        return None
    making = max(loader.workers * loader.prefetch - loader.ready, 0)
    return step_ns / in_a_step * float(min(making / loader.workers, 1.0))


def find_batches(timeline: Timeline) -> tuple[Floats, Floats, set[str]]:
    """When the steps' thread got its batches (ns since the first step began), and the annotations of loaders.

    The collector's own record counts before the annotations, where there is one.
    """
    steps, loads = recorded_steps(timeline), timeline.loads
    base, last = int(steps.ts.min()), int(steps.end.max())
    recorded = loads.name == RECORDED_LOAD
    noted = np.array([WITH_WORKERS in str(n) or WITHOUT_WORKERS in str(n) for n in loads.name], dtype=bool)
    mine = (recorded if recorded.any() else noted) & (loads.end > base) & (loads.end <= last)
    mine &= loads.tid == leading_thread(timeline)
    names = set(map(str, loads.name[noted]))
    return (loads.ts[mine] - base).astype(float), (loads.end[mine] - base).astype(float), names
