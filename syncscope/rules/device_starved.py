from __future__ import annotations

from collections import defaultdict

import msgspec
import numpy as np

from syncscope.rules.base.culprits import Culprit, find_culprits, find_slowest_loader
from syncscope.rules.base.ended_by_copies import find_copies_after_work
from syncscope.rules.base.idle_advice import ADVICE
from syncscope.rules.base.idle_causes import find_idle_causes
from syncscope.rules.base.idle_circumstances import BEFORE_COPIES, name_circumstances, name_host_work
from syncscope.rules.base.idle_places import find_idle_place
from syncscope.rules.base.late_begins import LATE, is_mostly_late, tell_late
from syncscope.rules.base.pauses import paused_ms, tell_of_one_pause, tell_of_pauses, tell_of_single_pause
from syncscope.rules.base.question import Intervention
from syncscope.rules.base.recorded_graphs import count_recordings
from syncscope.rules.base.rule import Hit, Inspection, RankRule, Rule
from syncscope.rules.base.sampled_places import find_sampled_lines, name_sampled_lines
from syncscope.rules.comm_not_overlapped import CommNotOverlapped
from syncscope.rules.launch_bound import ONCE, LaunchBound
from syncscope.schema.findings import Finding, IdleCause, Severity
from syncscope.schema.idle import (
    BESIDE_THE_HOST,
    LAUNCHES,
    begin_beside,
    is_summed_up,
    label_cause,
    main_cause,
    main_of,
)
from syncscope.schema.numbers import milliseconds, percent
from syncscope.timeline import Timeline
from syncscope.timeline.bubbles import SLOW_PACE
from syncscope.timeline.pauses import ONCE as PAUSE
from syncscope.timeline.places import NOWHERE, Place

HOSTS = ("host work", "launching", "host collective", "host idle", "data loading", "pageable copy")
"""Causes of idle time that are what the host does meanwhile, so that the function is the answer."""

SAMPLED_CAUSES = ("host work", "data loading")
"""Causes for which the fix says which lines share what the host does, where it was sampled."""

LEAST_SHARE = 0.1
"""The device counts as starved if it is idle for at least this share of the span."""

LEAST_OWN_SHARE = 0.02
"""A device that is idle for less is starved, too, if it waits this share of the span for one thing that the host does,
for longer each time than any host takes from one launch to the next, and in all for longer than for what any other
finding is about."""

AT_LENGTH = ("host work", "host idle", "data loading")
"""Causes of idle time that no other finding is about, and that may be one thing at some length."""

FIRST_PASS, OF_WARM_UP = 0.05, 0.1
"""A trace without steps is of a first pass where the device is idle for less than this share of it besides warm-up, or
for less than this share of the warm-up."""

MAIN_SHARE = 0.1
"""A finding is named as a cause if it explains at least this share of the idle time."""

BESIDE_SHARE = 0.05
"""A cause that the host could leave out is told in a fix for another if it is at least this share of the idle time."""

SITE_SHARE = 0.5
"""This finding gets the site of another one if the bubbles after the other's waits are at least this share of the idle
time."""

FAR_LONGER = 3.0
"""A step that is so many times as long as the longest of the shorter half has something that the others lack."""


class DeviceStarved(RankRule):
    """The device is idle for a tenth of the step or more, or waits at length for the host.

    Why it costs: a device that has nothing queued is paid for and does nothing. Either a wait emptied the queue and
    the host had to start filling it again; or the host did something else than launch: loading data, allocating, a
    collective, work of its own; or it launched one small thing after the other (see LCH501). There is one finding a
    trace, with the idle time by cause, at the wait or the loader that caused the most of it.

    Bad:
        for x, y in DataLoader(data, num_workers=0):   # the device waits for the next batch
            loss = step(x, y)
            history.append(loss.item())                # the queue is emptied every step

    Good:
        for x, y in DataLoader(data, num_workers=8, pin_memory=True):
            history.append(step(x, y).detach())        # read at the end

    Fine:
        idle time under a tenth of the step, in many small gaps or behind waits that have findings of their own

    Under a tenth it is told where gaps of more than 1 ms each, in which the host works or loads, are 2 % of the step,
    and more than the device waits for because of any other finding.
    Where the bare step time is known, what the profiler adds to the step is not counted as idle. Warm-up is not either:
    while graphs are captured, code is compiled, or kernels are loaded and chosen, an idle device is no problem of the
    steps that follow. Nor are pauses of more than 1 ms that one step of three or more has at places where no other
    step has any. Both are said apart, and where there is little else, the finding is a note.
    A bubble behind a wait is charged to the wait only for as long as the wait blocked the host. The rest is the host's
    own work, and would be there without the wait.
    """

    code = "OVL303"
    name = "device-starved"
    severity = "warning"
    needs = ("runtime", "device")
    gated = False
    question = Intervention.FILL_IDLE
    needs_async_launches = True
    advice = ADVICE

    def find(self, inspection: Inspection) -> list[Hit]:
        timeline = inspection.timeline
        if timeline.overlap is None or timeline.span is None:
            return []
        steps = max(len(timeline.steps), 1)
        span_ms = (timeline.span[1] - timeline.span[0]) * 1e-6 / steps
        idle_ms = timeline.overlap.idle_ms - _profiler_ms(timeline)
        warm_ms, apart_ms = timeline.overlap.idle_by_cause.get(ONCE, 0.0), paused_ms(timeline)
        once_ms = warm_ms + apart_ms
        left_ms = span_ms - once_ms
        if span_ms <= 0:
            return []
        if idle_ms < LEAST_SHARE * span_ms:
            waits = self._waits_at_length(inspection, left_ms)
            return [Hit(self._finding(inspection, left_ms, warm_ms, self.severity))] if waits else []
        little_ms = max(FIRST_PASS * span_ms, OF_WARM_UP * once_ms)
        if once_ms > 0 and not len(timeline.steps) and idle_ms - once_ms < little_ms:
            return [Hit(self._warming_up(timeline, once_ms, span_ms))]
        unknown_ms = timeline.overlap.idle_by_cause.get("unknown", 0.0) if len(timeline.calls) else 0.0
        if left_ms >= LEAST_SHARE * span_ms and idle_ms - once_ms >= LEAST_SHARE * left_ms:
            sure = idle_ms - once_ms - unknown_ms >= LEAST_SHARE * (left_ms - unknown_ms)
            return [Hit(self._finding(inspection, left_ms, warm_ms, self.severity if sure else "note"))]
        if apart_ms > warm_ms:
            return [Hit(self._pausing(timeline, apart_ms, span_ms))] if apart_ms >= LEAST_SHARE * span_ms else []
        return [Hit(self._warming_up(timeline, once_ms, span_ms))] if once_ms > 0 else []

    def _waits_at_length(self, inspection: Inspection, span_ms: float) -> bool:
        """Whether the device waits for one thing of the host at length, and in all for longer than for what any other
        finding is about; ``span_ms`` is without the warm-up."""
        culprits = find_culprits(inspection)
        others_ms: defaultdict[str, float] = defaultdict(float)
        for culprit in culprits:
            others_ms[culprit.finding.fingerprint] += culprit.caused_ms
        for hit in inspection.hits:
            found = hit.finding
            exposed_ms = found.exposed_ms_per_step if len(inspection.timeline.steps) else found.exposed_ms
            others_ms[found.fingerprint] += exposed_ms or 0.0
        own_ms = max(_at_length_ms(inspection.timeline, cause) for cause in AT_LENGTH)
        own_ms -= _profiler_ms(inspection.timeline)
        return own_ms >= max(LEAST_OWN_SHARE * span_ms, max(others_ms.values(), default=0.0))

    def _causes(self, inspection: Inspection, culprits: list[Culprit]) -> tuple[IdleCause, ...]:
        """The causes of the idle time, the longest first."""
        launches, collectives = LaunchBound(), CommNotOverlapped()
        about: dict[str, Rule] = {"launching": launches, "launch latency": launches, "collective": collectives}
        return find_idle_causes(inspection, culprits, about)

    def _warming_up(self, timeline: Timeline, once_ms: float, span_ms: float) -> Finding:
        """The note on a trace whose device is idle because of warm-up."""
        steps, due = len(timeline.steps), timeline.bubbles.due_to(ONCE) > 0
        kinds = ", ".join(dict.fromkeys(timeline.warm_ups.name.tolist()))
        place = find_idle_place(timeline, ONCE)
        if place and place.place.at is None:  # of a function that is often called, the share is a guess
            kinds += f"; {place.share_in_words()} of it in {place.in_words()}"
        return self.finding(
            NOWHERE,
            severity="note",
            rank=timeline.trace.rank,
            count=int(due.sum()),
            per_step=float(due.sum()) / steps if steps else None,
            first_ns=int(timeline.bubbles.ts[due].min()),
            idle_ms_per_step=once_ms,
            message=f"{milliseconds(once_ms)} of {milliseconds(span_ms)} {'a step' if steps else 'in all'} are warm-up "
            f"({kinds}), in which the device is idle and which later steps do not repeat"
            f"{tell_of_pauses(timeline, ONCE, MAIN_SHARE)}",
            fix=self.advise(ONCE),
        )

    def _pausing(self, timeline: Timeline, apart_ms: float, span_ms: float) -> Finding:
        """The note on a trace whose device is idle in the pauses of a single step."""
        due = timeline.bubbles.due_to(PAUSE) > 0
        return self.finding(
            NOWHERE,
            severity="note",
            rank=timeline.trace.rank,
            count=int(due.sum()),
            per_step=float(due.sum()) / len(timeline.steps),
            first_ns=int(timeline.bubbles.ts[due].min()),
            idle_ms_per_step=apart_ms,
            message=f"the device is idle for {tell_of_single_pause(timeline)}: {percent(apart_ms, span_ms)} of all, "
            "and no part of each step",
            fix=self.advise(PAUSE),
        )

    def _finding(self, inspection: Inspection, span_ms: float, warm_ms: float, severity: Severity) -> Finding:
        """The finding of a device that is idle besides the warm-up and the pauses of a single step; ``span_ms`` is
        without them."""
        timeline = inspection.timeline
        overlap, steps, bubbles = timeline.overlap, len(timeline.steps), timeline.bubbles
        assert overlap is not None
        idle_ms = overlap.idle_ms - warm_ms - paused_ms(timeline)
        causes = {cause: ms for cause, ms in overlap.idle_by_cause.items() if cause not in (ONCE, PAUSE)}
        every = find_culprits(inspection)
        culprits = [culprit for culprit in every if culprit.caused_ms >= MAIN_SHARE * idle_ms]
        others = [culprit.finding for culprit in culprits]
        others += [hit.finding for hit in inspection.hits if hit.finding.rule == LaunchBound.code]
        named = self._causes(inspection, every)
        place, where = _find_place(timeline, causes, culprits, named, idle_ms)
        others_too = bool(timeline.processes_on_device)
        told = ((label_cause(cause, others_too), ms) for cause, ms in causes.items() if ms >= 0.01 * idle_ms)
        parts = ", ".join(f"{cause} {milliseconds(ms)}" for cause, ms in told)
        per = "a step" if steps else "in all"
        recorded = ("recorded",) if len(timeline.calls) else ()
        shared = ("shared",) if others_too else (LATE,) if is_mostly_late(timeline) else ()
        apart = [f"{milliseconds(warm_ms)} of warm-up"] if warm_ms else []
        apart += [tell_of_single_pause(timeline)] if paused_ms(timeline) else []
        besides_that = f", besides {' and '.join(apart)}" if apart else ""
        found = self.finding(
            place,
            severity=severity,
            related=tuple(dict.fromkeys(finding.fingerprint for finding in others)),
            rank=timeline.trace.rank,
            count=len(bubbles),
            per_step=len(bubbles) / steps if steps else None,
            first_ns=int(bubbles.ts.min()),
            idle_ms_per_step=idle_ms,
            causes=named,
            message=f"the device is idle for {milliseconds(idle_ms)} of {milliseconds(span_ms)} {per} "
            f"({percent(idle_ms, span_ms)}){besides_that}: {parts}{tell_late(timeline)}{where}",
            fix="",
        )
        main, sums_up, longest = main_cause(found), is_summed_up(found), next(iter(causes), "unknown")
        first = longest if main is None or sums_up else main.cause
        of_host = name_host_work(timeline) if first == "host work" else []
        entry = self.choose_advice(*shared, *name_circumstances(timeline), *of_host, *recorded, *first.split())
        besides = _of_host_beside(named, idle_ms) if first in BESIDE_THE_HOST and entry.asks_for_more else None
        said = "" if first == longest or timeline.processes_on_device else _about(first, named)
        ended = find_copies_after_work(timeline) if BEFORE_COPIES in of_host else None
        return msgspec.structs.replace(
            found,
            work_ends_at=ended.lines if ended else (),
            sums_up=sums_up,
            fix=_with_lines(entry.sentence, timeline, first)
            + self._fix_beside(timeline, besides)
            + tell_of_one_pause(timeline),
            asks_for_more=entry.asks_for_more,
            message=found.message + said,
        )

    def _fix_beside(self, timeline: Timeline, cause: IdleCause | None) -> str:
        """What a fix that only asks for another recording says of a cause that the host could leave out."""
        if cause is None:
            return ""
        of_host = name_host_work(timeline) if cause.cause == "host work" else []
        fix = self.advise(*name_circumstances(timeline), *of_host, *cause.cause.split())
        where = f" ({cause.site.file}:{cause.site.line})" if cause.site is not None and cause.site.line else ""
        return f"{begin_beside(cause.cause)}{where}. {_with_lines(fix, timeline, cause.cause)}"


def _of_host_beside(named: tuple[IdleCause, ...], idle_ms: float) -> IdleCause | None:
    """The longest cause that the host could leave out and no other finding is about, where it counts."""
    least_ms = BESIDE_SHARE * idle_ms
    own = (one for one in named if not one.covered_by and one.cause not in BESIDE_THE_HOST)
    return next((one for one in own if one.cause != LAUNCHES and one.ms_per_step >= least_ms), None)


def _find_place(
    timeline: Timeline, causes: dict[str, float], culprits: list[Culprit], named: tuple[IdleCause, ...], idle_ms: float
) -> tuple[Place, str]:
    """The place that makes the device wait, and the end of the message, which says where and beside whom it waits.
    ``causes`` in ms without the warm-up, of which ``idle_ms`` is the sum."""
    least_ms, half_ms = MAIN_SHARE * idle_ms, SITE_SHARE * idle_ms
    mine = [one.cause for one in named if not one.covered_by and one.ms_per_step >= least_ms]
    main = main_of(named, idle_ms)
    # What the device does by itself has no line, and the fix is for that: the host's line would be beside the point.
    beside = main is not None and main.cause in BESIDE_THE_HOST
    own = next((cause for cause in (main.cause if main else "", *mine) if cause in HOSTS), None)
    of_host = (own,) if own in causes else HOSTS
    host_ms = sum(causes.get(cause, 0.0) for cause in of_host)
    place = culprits[0].place(half_ms) if culprits else NOWHERE
    where = _largest_wait(culprits[0], causes) if culprits else ""
    where += "; other processes used the device too" if timeline.processes_on_device else ""
    asked = host_ms >= (half_ms if culprits else least_ms) and place == NOWHERE
    if asked and (idle_place := find_idle_place(timeline, *of_host)):
        part = f"the {own}" if own else "the host's part"
        where += f"; {idle_place.share_in_words()} of {part} in {idle_place.in_words()}"
        if not beside and idle_place.share * host_ms >= (SITE_SHARE * host_ms if own else half_ms):
            place = idle_place.place
    elif own == "host work" and place == NOWHERE and (lines := name_sampled_lines(timeline, own)):
        where += f"; of the host work: {', '.join(lines)}"
    elif own == "host work" and place == NOWHERE and (ended := find_copies_after_work(timeline)):
        where += f"; {ended.in_words()}"
        place = NOWHERE if beside else ended.place or NOWHERE
    recordings = count_recordings(timeline) if own == "host work" else 0
    where += f"; {recordings} calls there record CUDA graphs" if recordings else ""
    loading = causes.get("data loading", 0.0) >= half_ms
    return find_slowest_loader(timeline) if loading else place, where


def _with_lines(fix: str, timeline: Timeline, cause: str) -> str:
    """``fix`` with the lines that share the host's work of a cause, where several do."""
    found = find_sampled_lines(timeline, cause) if cause in SAMPLED_CAUSES else []
    lines = [line.said for line in found]
    if "{op}" in fix:  # of several lines it names those that can be moved
        return fix.replace("{op}", ", ".join([line.said for line in found if not line.of_step] or lines))
    return f"{fix} Of this work: {', '.join(lines)}." if len(lines) > 1 else fix


def _largest_wait(culprit: Culprit, causes: dict[str, float]) -> str:
    """The end of the message on where the device waits the longest for a wait of the host's; ``causes`` in ms."""
    share = percent(culprit.caused_ms, causes["wait"]) if "wait" in causes else "most"
    return f"; {share} of the waits at {_line(culprit.finding)}"


def _about(cause: str, named: tuple[IdleCause, ...]) -> str:
    """What a message says where the fix is not for the longest cause."""
    others = ", since the longest cause has findings of its own" if named[0].covered_by else ""
    return f"; the fix is for {cause}{others}"


def _at_length_ms(timeline: Timeline, cause: str) -> float:
    """Milliseconds a step that a cause has in gaps of which it takes longer than any host does to launch again."""
    due = timeline.bubbles.due_to(cause)
    return float(due[due >= SLOW_PACE].sum()) * 1e-6 / max(len(timeline.steps), 1)


def _profiler_ms(timeline: Timeline) -> float:
    """Milliseconds a step by which the profiler makes the host's, and so the device's idle time, longer. One that is
    ``FAR_LONGER`` than the others, such as the first of an epoch, is not because of the profiler."""
    steps = timeline.step_figures
    if steps.profiled_ms is None or steps.bare_ms is None:
        return 0.0
    lengths = np.sort(timeline.steps.end - timeline.steps.ts)
    usual = lengths[lengths <= FAR_LONGER * lengths[(len(lengths) - 1) // 2]] if len(lengths) else lengths
    profiled_ms = steps.profiled_ms - paused_ms(timeline)
    if len(usual) < len(lengths):
        profiled_ms = min(profiled_ms, float(usual.mean()) * 1e-6)
    return max(0.0, profiled_ms - steps.bare_ms)


def _line(finding: Finding) -> str:
    site = finding.site
    if site is None:
        return finding.annotation or finding.op or "a runtime call"
    return f"{site.file}:{site.line}" if finding.site_source == "hook" else f"{site.function} in {site.file}"
