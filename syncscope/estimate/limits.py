"""What a trace leaves to gain from a finding, whatever its replay says: idle time, exposed time, lateness of the host.

The replay takes a program apart and puts it together again. Where it misses something of how the program ran, or where
a question also changes what is done once, it finds gains in time that was never lost.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from syncscope.advice import LAST_TO_HOST, MOVED_WEIGHTS
from syncscope.estimate.host_lateness import Lateness
from syncscope.estimate.idle import BEYOND_ITSELF, ONCE
from syncscope.estimate.idle_since import share_since
from syncscope.estimate.questions import is_at_most
from syncscope.estimate.study import Study
from syncscope.rules import BY_CODE, Hit
from syncscope.rules.base.collective_advice import is_made_cheaper
from syncscope.rules.base.idle_circumstances import SPACE_NS
from syncscope.rules.base.question import Intervention
from syncscope.rules.copy_not_overlapped import CopyNotOverlapped
from syncscope.rules.launch_bound import find_most_ms
from syncscope.rules.pageable_copy import PageableCopy
from syncscope.rules.pin_then_copy import PinThenCopy
from syncscope.schema.findings import LATE_PEER
from syncscope.schema.idle import own_cause
from syncscope.timeline import Timeline
from syncscope.timeline.intervals import Ints, Union
from syncscope.timeline.late_peers import find_transfers, mostly_wait
from syncscope.timeline.pauses import ONCE as PAUSE
from syncscope.timeline.row_groups import group_rows
from syncscope.timeline.tables import Activities, Waits
from syncscope.timeline.waits import is_wait

OF_WAITS = (
    Intervention.REMOVE_WAIT, Intervention.REMOVE_READ, Intervention.KEEP_SHAPE, Intervention.COPY_ASYNCHRONOUSLY,
    Intervention.PREFETCH,
)  # fmt: skip
"""Interventions by which the host launches sooner, and copies go out of the way."""

SIDE_BY_SIDE = 0.001
"""Share of the compute up to which kernels of several streams come one after the other, as those of a CUDA graph and of
the stream that replays it do."""

TOUCHING_NS = 1_000
"""Rows of kernels that follow each other on a stream, as in a CUDA graph, overlap by up to this."""

LEAST_STEPS, ALL_SAVE = 3, 0.2
"""The first of at least this many steps is odd where each of the others saves, or holds the host, at least this share
of what the most of them does, and it does more."""

NEVER = np.iinfo(np.int64).max
"""A time after all others, ns."""

BEYOND, BEYOND_SHARE = ("unknown", "warm-up", PAUSE), 0.1
"""Causes of idle time that no change of the host makes less, and the share of the step from which on they count."""

LAST = "nothing follows it that could begin sooner"


class Limit(msgspec.Struct, frozen=True):
    """The most that a finding can save of a step; ``None`` and 1 where nothing is known."""

    ms: float | None = None
    share: float = 1.0
    """Share of the step, however long it is without the profiler."""
    late_ms: float | None = None
    """The same by how late the host was for the device, which counts where the replay does not meet the trace."""
    of_left: float = 1.0
    """Share of what the step does not compute without the profiler, which takes less of it than the trace shows."""

    def of(self, step_ms: float, left_ms: float, *, doubted: bool) -> float:
        """Milliseconds of a step of some length, for ``left_ms`` of which the device does not compute; ``doubted`` is
        whether the replay does not meet the trace."""
        known = [self.ms, self.late_ms if doubted else None, self.of_left * left_ms if self.of_left < 1 else None]
        return min(self.share * step_ms, *(ms for ms in known if ms is not None), step_ms)


def find_limits(study: Study, hits: Sequence[Hit]) -> tuple[Limit, ...]:
    """The limit of each finding."""
    lateness = Lateness.of(study.timeline)
    return tuple(_limit(study, hit, lateness) for hit in hits)


def find_whole_limit(timeline: Timeline) -> float | None:
    """The most that all findings together can save of a step, ms, where a large part of the idle time is unknown or
    warm-up, which no change of the host makes less; else ``None``, as streams may also compute side by side."""
    overlap, span = timeline.overlap, timeline.span
    if overlap is None or span is None:
        return None
    beyond_ms = sum(overlap.idle_by_cause.get(cause, 0.0) for cause in BEYOND)
    if beyond_ms < BEYOND_SHARE * (span[1] - span[0]) * 1e-6 / max(len(timeline.steps), 1):
        return None
    return overlap.idle_ms - beyond_ms + overlap.copy_exposed_ms + overlap.comm_exposed_ms


def find_left(timeline: Timeline) -> float | None:
    """Milliseconds a step in which a device that computes one kernel at a time does not compute, in a trace that
    somebody else recorded: all that can be gained but by kernels that a fix takes away. ``None`` elsewhere."""
    overlap = timeline.overlap
    if overlap is None or timeline.trace.recording is not None or _computes_side_by_side(timeline):
        return None
    return overlap.idle_ms + overlap.copy_exposed_ms + overlap.comm_exposed_ms


def find_computed(timeline: Timeline) -> float:
    """Milliseconds a step for which the device computes, whatever the host does: where kernels run side by side, and
    more of them may, what the busiest stream does."""
    if timeline.overlap is None:
        return 0.0
    if not _computes_side_by_side(timeline):
        return timeline.overlap.compute_ms
    kernels, span = _computing(timeline), timeline.span
    if span is None:
        return 0.0
    busiest = max(_covered_ns(kernels.take(kernels.stream == stream), span) for stream in np.unique(kernels.stream))
    return busiest * 1e-6 / max(len(timeline.steps), 1)


def is_first_pass(timeline: Timeline, hits: Sequence[Hit]) -> bool:
    """Whether a trace without steps is little besides warm-up, as its note on idle time says: what else is in it need
    not come back."""
    return not len(timeline.steps) and any(_explains_idle_time_by_warm_up(hit) for hit in hits)


def _explains_idle_time_by_warm_up(hit: Hit) -> bool:
    fills = BY_CODE[hit.finding.rule].question is Intervention.FILL_IDLE
    return fills and hit.finding.severity == "note" and not hit.finding.causes


def why_untried(timeline: Timeline, hit: Hit) -> str | None:
    """Why to leave a finding's waits and copies out gains nothing: they are warm-up, as all idle time of a finding
    without causes is, collectives that wait for another rank, or what the trace ends with. ``None``
    where it may gain something."""
    if BY_CODE[hit.finding.rule].question is Intervention.FILL_IDLE and not hit.finding.causes:
        return ONCE
    if LAST_TO_HOST.gave(hit.finding.fix):
        return LAST
    noted = hit.finding.rule == PageableCopy.code and hit.finding.severity == "note"
    if (noted or MOVED_WEIGHTS.gave(hit.finding.fix)) and not len(timeline.steps):
        return ONCE
    waits, copies, of_waits, of_copies = timeline.waits, timeline.copies, sorted(hit.waits), sorted(hit.copies)
    ts, end, tid = (
        np.concatenate((of_wait[of_waits], of_copy[of_copies]))
        for of_wait, of_copy in ((waits.ts, copies.launch_ts), (waits.end, copies.launch_end), (waits.tid, copies.tid))
    )
    if hit.collectives:
        rows = np.array(sorted(hit.collectives), dtype=np.int64)
        late = mostly_wait(timeline.waiting_for_peers[rows], timeline.collectives.exposed[rows])
        return LATE_PEER if late else None
    if not len(ts):
        return None
    if (timeline.warming_up(ts, end, tid) != "").all():
        return ONCE
    held = np.append(waits.pending[of_waits] != 0, np.full(len(of_copies), True))  # had something to wait for
    after = ts[held if held.any() else slice(None)].min() >= max(timeline.last_command, 0)
    return LAST if hit.finding.severity == "note" and not len(timeline.steps) and after else None


def _limit(study: Study, hit: Hit, lateness: Lateness) -> Limit:
    timeline = study.timeline
    intervention, idle_ms = BY_CODE[hit.finding.rule].question, hit.finding.idle_ms_per_step
    steps, span = max(len(timeline.steps), 1), timeline.span
    if span is None:
        return Limit()
    if intervention is Intervention.FILL_IDLE and idle_ms is not None:
        own = own_cause(hit.finding)
        own_ms = idle_ms if own is None or own.cause in BEYOND_ITSELF else own.ms_per_step
        by_cause = timeline.overlap.idle_by_cause if timeline.overlap else {}
        once_ms = by_cause.get("warm-up", 0.0) + by_cause.get(PAUSE, 0.0)
        left_ms = (span[1] - span[0]) * 1e-6 / steps - once_ms
        return Limit(ms=own_ms, share=min(idle_ms / left_ms, 1.0) if left_ms > 0 else 1.0)
    if intervention is Intervention.REPLAY_GRAPHS and is_at_most(study, hit):
        return Limit(ms=find_most_ms(timeline))
    if intervention is Intervention.OVERLAP_COLLECTIVES and hit.collectives:
        rows = sorted(hit.collectives)
        alone, known = timeline.collectives.exposed[rows], hit.finding.exposed_ms_per_step
        waiting_ms = float(np.minimum(timeline.waiting_for_peers[rows], alone).sum()) * 1e-6 / steps
        exposed_ms = float(alone.sum()) * 1e-6 / steps if known is None else known
        exposed_ms = max(exposed_ms - waiting_ms, 0.0)
        if is_made_cheaper(hit.finding.fix):
            transfers = find_transfers(timeline.collectives)[rows]
            return Limit(ms=min(exposed_ms, float(np.minimum(transfers, alone).sum()) * 1e-6 / steps))
        return Limit(ms=min(exposed_ms, _left_to_hide_ms(timeline)))
    if hit.finding.rule == CopyNotOverlapped.code and timeline.trace.recording is None:
        late_ms = _gained_by_launching_sooner(timeline, hit, lateness) * 1e-6 / steps
        found = hit.finding
        return Limit(ms=found.exposed_ms_per_step if len(timeline.steps) else found.exposed_ms, late_ms=late_ms)
    if hit.finding.rule == PinThenCopy.code and timeline.trace.recording is None:
        # Whoever lets another thread pin, or leaves it out, has the copy still.
        return Limit(ms=hit.finding.stall_ms_per_step if len(timeline.steps) else hit.finding.stall_ms)
    # What runs differ by is no gain: how steps of a program differ that somebody else ran is not known.
    foreign = timeline.trace.recording is None
    steady = _steady_share(timeline, hit) if foreign and intervention in OF_WAITS else 1.0
    held_ms = _held(timeline, hit) * steady * 1e-6 / steps if foreign else None
    if intervention in OF_WAITS:
        late_ms = _gained_by_launching_sooner(timeline, hit, lateness) * 1e-6 / steps
        if held_ms is not None:
            late_ms = min(late_ms, held_ms) if steady < 1 else late_ms
            left_ms = _left_to_fill_ms(timeline, _first_held(timeline, hit))
            held_ms = min(held_ms, left_ms, _gained_until_another_wait(timeline, hit, lateness) * 1e-6 / steps)
        of_left = share_since(timeline, _first_held(timeline, hit)) if foreign else 1.0
        return Limit(ms=late_ms if lateness.lost_much else held_ms, late_ms=late_ms, of_left=of_left)
    if intervention is Intervention.GATHER_COPIES and foreign:
        return Limit(ms=_left_to_fill_ms(timeline))
    if intervention is Intervention.REMOVE_ALLOCATION and held_ms is not None:
        return Limit(ms=min(held_ms, _gained_without_allocations(timeline, hit, lateness) * 1e-6 / steps))
    return Limit()


def _held(timeline: Timeline, hit: Hit) -> int:
    """Nanoseconds that the calls of a finding hold the host, with what their copies take beyond: all that comes after
    begins sooner by no more than that. A copy that the host waits for takes no time besides the wait, and nothing comes
    after the waits that end a trace without steps."""
    waits, copies = timeline.waits, timeline.copies
    copies = copies.take(sorted(hit.copies | _known(waits.copy[sorted(hit.waits)])))
    waits = waits.take(sorted(hit.waits | _known(copies.wait)))
    if not len(timeline.steps):
        waits = waits.take(waits.end <= timeline.last_command)
    launched, alone = copies.take(copies.launch >= 0), copies.take(copies.wait < 0)
    calls = Union(np.concatenate((waits.ts, launched.launch_ts)), np.concatenate((waits.end, launched.launch_end)))
    return calls.length + int(alone.exposed.sum())


def _steady_share(timeline: Timeline, hit: Hit) -> float:
    """Share of the time for which a finding holds the host that is left if the first step counts no more than the one
    of the others with the most, where all hold it: in the first the host also waits for what was queued before the
    recording."""
    copies = timeline.copies.take(sorted(hit.copies))
    waits = timeline.waits.take(sorted(hit.waits | _known(copies.wait)))
    alone = copies.take((copies.wait < 0) & (copies.launch >= 0))
    step, held = np.append(waits.step, alone.step), np.append(waits.stall, alone.launch_dur)
    by_step = np.bincount(step[step >= 0], weights=held[step >= 0], minlength=len(timeline.steps))
    if len(by_step) < LEAST_STEPS:
        return 1.0
    most = by_step[1:].max()
    odd = by_step[0] > most and by_step[1:].min() > ALL_SAVE * most
    return float((most + by_step[1:].sum()) / by_step.sum()) if odd else 1.0


def _first_held(timeline: Timeline, hit: Hit) -> int | None:
    """When a finding first holds the host in a trace without steps, ns: nothing before that can begin sooner. In a
    loop, what is before the first of them is behind others that the trace lacks."""
    waits, copies = timeline.waits.take(sorted(hit.waits)), timeline.copies.take(sorted(hit.copies))
    ts = np.append(waits.ts, copies.launch_ts[copies.launch >= 0])
    return int(ts.min()) if len(ts) and not len(timeline.steps) else None


def _left_to_fill_ms(timeline: Timeline, since: int | None = None) -> float:
    """Milliseconds a step in which a device that computes one kernel at a time does not compute, but for the spaces
    between kernels that were queued, which launching sooner does not fill; ``since`` a time, ns, if given."""
    overlap = timeline.overlap
    if overlap is None or _computes_side_by_side(timeline):
        return np.inf
    bubbles, steps = timeline.bubbles, max(len(timeline.steps), 1)
    before = np.zeros(len(bubbles), dtype=np.int64) if since is None else np.clip(since - bubbles.ts, 0, bubbles.dur)
    queued = bubbles.due_to("queued on device")
    spaces = queued[(queued < SPACE_NS) & (before < bubbles.dur)]
    idle_ms = overlap.idle_ms - float(before.sum() + spaces.sum()) * 1e-6 / steps
    return max(idle_ms, 0.0) + overlap.copy_exposed_ms + overlap.comm_exposed_ms


def _computes_side_by_side(timeline: Timeline) -> bool:
    """Whether kernels run beside others, by more than what the rows of those that follow each other overlap."""
    kernels = _computing(timeline)
    before = np.maximum.accumulate(np.append(0, kernels.end))[:-1]
    beside = np.clip(before - kernels.ts, 0, kernels.dur)
    return int(beside[beside > TOUCHING_NS].sum()) > SIDE_BY_SIDE * int(kernels.dur.sum())


def _computing(timeline: Timeline) -> Activities:
    """The kernels of the recorded steps that are no collectives, as they begin."""
    every = timeline.on_device
    kernels = every.take((every.kind == "kernel") & (every.collective == ""))
    return kernels.take(np.argsort(kernels.ts, kind="stable"))


def _covered_ns(kernels: Activities, span: tuple[int, int]) -> int:
    """The time of ``span`` in which one of them runs at least."""
    before = np.maximum.accumulate(np.append(span[0], kernels.end))[:-1]
    return int(np.clip(np.minimum(kernels.end, span[1]) - np.maximum(kernels.ts, before), 0, None).sum())


def _left_to_hide_ms(timeline: Timeline) -> float:
    """Milliseconds of compute a step beside which no collective runs yet."""
    overlap = timeline.overlap
    return np.inf if overlap is None else max(overlap.compute_ms - (overlap.comm_ms - overlap.comm_exposed_ms), 0.0)


def _gained_by_launching_sooner(timeline: Timeline, hit: Hit, lateness: Lateness) -> int:
    """Nanoseconds that the device gains if the host waits neither where a finding says nor in its copies, which take
    no time without compute then."""
    waits = timeline.waits
    copies = timeline.copies.take(sorted(hit.copies | _known(waits.copy[sorted(hit.waits)])))
    waits = waits.take(sorted(hit.waits | _known(copies.wait)))
    staged = copies.take((copies.wait < 0) & (copies.launch >= 0))
    end, stall = (np.concatenate(pair) for pair in ((waits.end, staged.launch_end), (waits.stall, staged.launch_dur)))
    return lateness.after(end, stall) + int(copies.exposed.sum())


def _gained_until_another_wait(timeline: Timeline, hit: Hit, lateness: Lateness) -> float:
    """Nanoseconds that a device which computes one kernel at a time gains at most if a finding's calls hold the host no
    longer: what the host is ahead then it loses in the next wait for the device that is not the finding's, so between
    two of those it gains no more than the calls take there, and no more than the device is late. Late while one of the
    finding's copies runs is what the copy takes, which counts once."""
    if _computes_side_by_side(timeline) or not len(lateness.late):
        return np.inf
    waits = timeline.waits
    copies = timeline.copies.take(sorted(hit.copies | _known(waits.copy[sorted(hit.waits)])))
    mine = np.zeros(len(waits), dtype=bool)
    mine[sorted(hit.waits | _known(copies.wait))] = True
    stops = waits.take(~mine & is_wait(waits.kind) & (waits.kind != "event") & (waits.pending > 0))
    own, staged = waits.take(mine), copies.take((copies.wait < 0) & (copies.launch >= 0))
    begin, stall, tid = (
        np.concatenate(pair)
        for pair in ((own.ts, staged.launch_ts), (own.stall, staged.launch_dur), (own.tid, staged.tid))
    )
    gained, copying = int(copies.exposed.sum()), Union(copies.ts, copies.end)
    for thread in np.unique(tid):
        rows = np.flatnonzero(tid == thread)
        stop = np.append(np.sort(stops.ts[stops.tid == thread]), NEVER)
        slot = np.searchsorted(stop, begin[rows])
        for group in group_rows(slot):
            # In a loop, what is before the first of them is behind others that the trace lacks.
            first = slot[group[0]] == slot.min() and len(timeline.steps) > 0
            since = 0 if first else int(begin[rows[group]].min())
            late = lateness.between(since, int(stop[slot[group[0]]]), copying)
            gained += min(late, int(stall[rows[group]].sum()))
    return gained


def _gained_without_allocations(timeline: Timeline, hit: Hit, lateness: Lateness) -> int:
    """Nanoseconds that the device gains if the calls of a finding take no time. Steps get no shorter than the shortest
    of them without its calls."""
    waits, steps = timeline.waits, timeline.steps
    calls = waits.take(sorted(hit.waits))
    others = np.ones(len(waits), dtype=bool)
    others[sorted(hit.waits)] = False
    stops = waits.take(others & is_wait(waits.kind) & (waits.pending != 0))
    gained = _gained_until_the_host_waits(calls, stops, lateness)
    if not len(steps):
        return gained
    length, shortest = steps.end - steps.ts, int(np.argmin(steps.end - steps.ts))
    of_shortest = _gained_until_the_host_waits(calls.take(calls.step == shortest), stops, lateness)
    return min(gained, int((length - length[shortest] + of_shortest).sum()))


def _gained_until_the_host_waits(calls: Waits, stops: Waits, lateness: Lateness) -> int:
    """Nanoseconds for which the device is late between some calls and the next of the ``stops`` of their thread, in
    which the host loses what it was ahead, and for no longer than the calls took."""
    gained = 0
    for tid in np.unique(calls.tid):
        of, stop = calls.take(calls.tid == tid), np.append(np.sort(stops.ts[stops.tid == tid]), NEVER)
        for rows in group_rows(np.searchsorted(stop, of.end)):
            begin, end = int(of.end[rows[0]]), int(stop[np.searchsorted(stop, of.end[rows[0]])])
            gained += min(lateness.between(begin, end), int(of.stall[rows].sum()))
    return gained


def _known(rows: Ints) -> frozenset[int]:
    return frozenset(rows[rows >= 0].tolist())
