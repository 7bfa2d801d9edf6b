"""The host's work measured stretch by stretch, from moments that were stamped in steps without a profiler.

Such a moment (the return of a wait or of the loader, the end of a backward) is in the recorded steps, too. Between two
of them the replay takes as long as the bare steps did at one scale of the host's work: that is the scale of this
stretch. Where the device bounds a stretch its length does not show a scale, and it keeps that of the others.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

import msgspec
import numpy as np
from msgspec.structs import replace

from syncscope.estimate.fit import SPREAD, USUAL, standard_error
from syncscope.estimate.host import leading_thread
from syncscope.estimate.profiler_cost import without_profiler
from syncscope.estimate.program import Program
from syncscope.estimate.replay import Replayed, Scenario, replay
from syncscope.schema.recording import LOADER_START, Bare, BareStamp, SiteEvent
from syncscope.timeline import Timeline
from syncscope.timeline.bare import bare_step_ns, typical_ns
from syncscope.timeline.intervals import Floats, Ints

SCALES = np.linspace(0.4, 1.3, 10)
"""Scales at which the stretches are replayed."""

SHOWS = 0.3
"""A stretch shows its scale where its length changes by at least this share of what the scale changes."""

SHORTEST = 0.02
"""Share of the step below which a stretch belongs to the next."""

MOST = 40
"""Moments of a step that are looked at, at most."""


class Stamped(msgspec.Struct, frozen=True):
    """Moments that bare and recorded steps have."""

    items: Ints
    """The last item before each moment, in every recorded step (moments, steps)."""
    ns: Floats
    """The moment in the bare steps, since the step began (moments,)."""
    step_ns: float
    """A bare step."""


class _Key(NamedTuple):
    kind: str
    stack: int
    ordinal: int


def find_stamped(timeline: Timeline, program: Program, bare: Bare | None) -> Stamped | None:
    """The stamps of the bare steps that every recorded step has, in order; ``None`` without any."""
    recording = timeline.trace.recording
    step_ns = bare_step_ns(bare) if bare else None
    if bare is None or recording is None or not bare.stamps or step_ns is None or not len(timeline.steps):
        return None
    seen = _in_steps(timeline, recording.sites)
    found = _ends_of_backward(timeline, program, bare)
    for stamp in bare.stamps[:MOST]:
        kind = _kind(stamp)
        if kind is None or stamp.stack is None or len(stamp.ends_ns) != len(bare.steps_ns):
            continue
        times = seen.get(_Key(kind, stamp.stack, stamp.ordinal), {})
        if len(times) == program.steps:
            found.append((typical_ns(bare, stamp.ends_ns), _items_at(program, times)))
    found = _in_order(found)
    if not found:
        return None
    return Stamped(np.array([items for _, items in found]), np.array([ns for ns, _ in found]), step_ns)


def _ends_of_backward(timeline: Timeline, program: Program, bare: Bare) -> list[tuple[float, list[int]]]:
    """When each backward of a bare step ended, and the last item of the same one in each recorded step; nothing where
    those steps do not have as many.

    Recorded steps have no such moment, but a backward runs on a thread of its own, which launches in turn with the
    program's. Nothing waits at its end, so the moment may differ much from step to step: one that tells less than what
    is usual is left out."""
    stamps = [stamp for stamp in bare.stamps if stamp.event == "backward"]
    if not stamps or any(len(stamp.ends_ns) != len(bare.steps_ns) for stamp in stamps):
        return []
    stamps = sorted(stamps, key=lambda stamp: typical_ns(bare, stamp.ends_ns))
    last = [_last_of_turns(timeline, program, step) for step in range(program.steps)]
    if any(len(items) != len(stamps) for items in last):
        return []
    return [
        (typical_ns(bare, stamp.ends_ns), list(items))
        for stamp, *items in zip(stamps, *last, strict=True)
        if standard_error(stamp.ends_ns) <= SPREAD
    ]


def _last_of_turns(timeline: Timeline, program: Program, step: int) -> list[int]:
    """The last item of each turn that another thread than the steps' takes in chain 0."""
    items = program.items
    rows = np.flatnonzero((items.chain == 0) & (items.step == step) & ~items.mark & (items.call >= 0))
    other = timeline.calls.tid[items.call[rows]] != leading_thread(timeline)
    ends = np.flatnonzero(other & ~np.append(other[1:], False))
    turns: list[int] = rows[ends].tolist()
    return turns


def _kind(stamp: BareStamp) -> str | None:
    """The kind of event that recorded steps have in place of a stamp: PyTorch's warning of a wait, or an entry point of
    its name. They have none of modules and optimizers."""
    if stamp.event == "wait":
        return "call" if stamp.name else "warning"
    return "call" if stamp.event == "loader" else None


def _in_steps(timeline: Timeline, sites: Iterable[SiteEvent]) -> dict[_Key, dict[int, float]]:
    """When each event ended in each recorded step, ns since the first began."""
    steps, base = timeline.steps, int(timeline.steps.ts.min())
    ends: dict[_Key, dict[int, float]] = defaultdict(dict)
    count: dict[tuple[str, int, int], int] = defaultdict(int)
    for event in sorted(sites, key=lambda event: event.end_ns):
        if event.name == LOADER_START:  # at the place of a fetch, which a bare step has a stamp of
            continue
        at = event.end_ns - timeline.trace.base_ns
        step = int(np.searchsorted(steps.end, at, side="left"))
        if step >= len(steps) or at < steps.ts[step]:
            continue
        ordinal = count[event.kind, event.stack, step]
        count[event.kind, event.stack, step] += 1
        ends[_Key(event.kind, event.stack, ordinal)][step] = float(at - base)
    return ends


def _items_at(program: Program, times: dict[int, float]) -> list[int]:
    """The last item of chain 0 that had ended at a time in each step; −1 for none of that step."""
    items, found = program.items, []
    for step in range(program.steps):
        rows = np.flatnonzero((items.chain == 0) & (items.step == step) & ~items.mark)
        place = int(np.searchsorted(items.end[rows], times[step] + 1, side="right")) - 1
        found.append(int(rows[place]) if place >= 0 else -1)
    return found


def _in_order(found: list[tuple[float, list[int]]]) -> list[tuple[float, list[int]]]:
    """Moments after an item of their step, each later than the one before, in bare steps and in all recorded ones."""
    kept: list[tuple[float, list[int]]] = []
    for ns, items in sorted(found):
        if min(items) >= 0 and (not kept or all(a < b for a, b in zip(kept[-1][1], items, strict=True))):
            kept.append((ns, items))
    return kept


def scale_stretches(program: Program, stamped: Stamped, order: list[int], skipped: int) -> tuple[Program, float]:
    """The program without the profiler, with the host's work of each stretch such that at the scale ``USUAL`` it takes
    as long as in the bare steps, and the mean factor on it. The same program and 1 where they do not show it of any.

    ``order`` are the steps that are replayed, the first ``skipped`` to fill the queues."""
    scenarios = [Scenario(float(scale), worker_paced=float(program.workers is not False)) for scale in SCALES]
    run = replay(program, [{}], scenarios, order, probes=frozenset(stamped.items.ravel().tolist()))
    lengths = _stretches(run, program, stamped, order, skipped)
    wanted = np.diff([0.0, *stamped.ns, stamped.step_ns])
    bare = without_profiler(program.items)
    work = _work_of(bare.pre + bare.own, program, stamped)
    merged = _merge(work, lengths, wanted)
    scales = [_scale(*one) for one in merged.parts]
    known = [scale for scale in scales if scale is not None]
    if not known:
        return program, 1.0
    weights = [part.work for part, scale in zip(merged.parts, scales, strict=True) if scale is not None]
    usual = float(np.average(known, weights=weights))
    each = np.array([usual if scale is None else scale for scale in scales])[merged.of]
    factor = each[_stretch_of(program, stamped)] / USUAL
    items = bare.replace(pre=bare.pre * factor, own=bare.own * factor, profiler=np.zeros(len(bare)))
    return replace(program, items=items), usual / USUAL


class _Part(NamedTuple):
    work: float
    """Host work a step at scale 1, ns."""
    lengths: Floats
    """Of the replay, (scales,)."""
    wanted: float


class _Merged(NamedTuple):
    parts: list[_Part]
    of: Ints
    """The part of each stretch."""


def _stretches(run: Replayed, program: Program, stamped: Stamped, order: list[int], skipped: int) -> Floats:
    """Mean length of each stretch (stretches, scales)."""
    begins = np.concatenate([np.zeros((1, len(SCALES))), run.host[:-1, 0]])
    times = {(number, item): at for number, item, at in run.probed}
    sums = np.zeros((len(stamped.ns) + 1, len(SCALES)))
    for number in range(skipped, len(order)):
        moments = [begins[number]]
        moments += [times[number, int(items[order[number]])] for items in stamped.items]
        sums += np.diff([*moments, run.host[number, 0]], axis=0)
    return sums / (len(order) - skipped)


def _stretch_of(program: Program, stamped: Stamped) -> Ints:
    """The stretch of each item: how many moments of its step lie before it."""
    stretch = np.zeros(len(program.items), dtype=np.int64)
    for step in range(program.steps):
        mine = np.flatnonzero(program.items.step == step)
        stretch[mine] = np.searchsorted(stamped.items[:, step], mine, side="left")
    return stretch


def _work_of(work: Floats, program: Program, stamped: Stamped) -> Floats:
    """Host work of chain 0 in each stretch, ns a step."""
    mine = np.where(program.items.chain == 0, work, 0.0)
    return np.bincount(_stretch_of(program, stamped), weights=mine, minlength=len(stamped.ns) + 1) / program.steps


def _merge(work: Floats, lengths: Floats, wanted: Floats) -> _Merged:
    """Stretches that are too short to be measured, with the next ones."""
    parts: list[_Part] = []
    of = np.zeros(len(wanted), dtype=np.int64)
    least, open_ = SHORTEST * float(wanted.sum()), False
    for number, (mine, length, ns) in enumerate(zip(work.tolist(), lengths, wanted.tolist(), strict=True)):
        if open_:
            before = parts.pop()
            mine, length, ns = before.work + mine, before.lengths + length, before.wanted + ns
        parts.append(_Part(mine, length, ns))
        of[number] = len(parts) - 1
        open_ = ns < least
    return _Merged(parts, of)


def _scale(work: float, lengths: Floats, wanted: float) -> float | None:
    """The scale at which a stretch is as long as in the bare steps; ``None`` where its length does not show it."""
    slope = np.diff(lengths) / np.diff(SCALES)
    if work <= 0 or float(np.mean(slope)) < SHOWS * work:
        return None
    return float(np.interp(wanted, np.maximum.accumulate(lengths), SCALES))
