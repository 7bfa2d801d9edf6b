"""Hold the rows of a trace against each other: what one kind of row says must be there, and is not, was lost.

PyTorch's warnings, the recorded calls and the count of the run are witnesses of waits, device rows of the calls that
launched them, calls of device rows, ops of what they always do, and the events of when the steps were. Each check asks
only for what every undamaged trace holds, so that a program that never waits stays clean.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from syncscope.timeline.intervals import Bools, Ints, are_among, different
from syncscope.timeline.matching import CALL_SLACK, match_calls
from syncscope.timeline.nesting import Nesting
from syncscope.timeline.row_groups import group_rows, number_groups, passing
from syncscope.timeline.steps import step_of
from syncscope.timeline.tables import Activities, Calls
from syncscope.timeline.waits import KINDS
from syncscope.timeline.warm_up import in_capture
from syncscope.trace.names import SYNC_ROLES

if TYPE_CHECKING:
    from syncscope.timeline.timeline import Timeline

Lost = Literal["runtime", "device", "cpu_op", "steps"]

WAITING_CALLS = ("torch.cuda.synchronize", "torch.accelerator.synchronize", "Stream.synchronize", "Event.synchronize")
"""Entry points that wait whenever they are called, by ``SiteEvent.name``."""

COPY_TO_HOST = "Tensor.cpu"
"""The entry point that waits for each copy to the host that it makes; it cannot be told not to."""

READING_OPS = ("aten::_local_scalar_dense", "aten::nonzero")
"""Ops that copy a few bytes from the device and wait for them, always."""

HOST_WAITS = ("Stream Sync", "Event Sync", "Context Sync")
"""Rows of ``Trace.sync`` that stand for a wait of the host."""

DEVICE_COMMANDS = ("launch", "graph-launch", "copy", "copy-sync")
"""Roles of calls that each make a device row. A memset of nothing makes none."""

OFTEN = 20
"""An op that occurs as often shows whether it launches something."""

NEARLY_ALWAYS = 0.95
"""Share of its occurrences in which an op that launches does so: now and then its tensors are empty, or on the host."""

MOST_ON_HOST = 25
"""Such ops without a launch between two launches, at most. Ten is the most that whole traces were seen to have."""

LEAST_KINDS = 8
"""Kinds of such ops, at least: a program computes something on the host too, but not a whole step of it. To print a
tensor takes six."""

LEAST_SILENT = 0.2
"""Share of them among the ops without a launch, at least: 0.28 to 0.58 where calls were lost, 0.1 where a large tensor
is printed."""

EARLY = 50_000
"""Nanoseconds by which the clocks of host and device may be apart."""

BUSY_STEP = 10
"""Runtime calls that every step but one has, at least, where the one has lost its own."""

CUT_SHORT = 0.5
"""Share of the length of the other steps, and theirs of its own, from which on the last step is a whole one."""

OWN = "at::native::"
"""In the names of PyTorch's own kernels."""

UNREADABLE = "\ufffd"
"""In the place of bytes that are not UTF-8."""


@dataclass(frozen=True)
class Disagreement:
    """What some rows of a trace say of others that are not there."""

    lost: Lost
    """The kind of rows that are not there, in the words of ``Rule.needs``; ``steps`` for steps that are not true."""
    text: str
    """One sentence."""


def find_disagreements(timeline: Timeline) -> tuple[Disagreement, ...]:
    """What the witnesses disagree about."""
    found = [*_about_steps(timeline)]
    if len(timeline.calls):
        found += [
            *_about_warnings(timeline),
            *_about_recorded_calls(timeline),
            *_about_recorded_copies(timeline),
            *_about_sync_records(timeline),
            *_about_reads(timeline),
            *_about_launches(timeline),
            *_about_devices(timeline),
            *_about_commands(timeline),
            *_about_clocks(timeline),
            *_about_launching_ops(timeline),
            *_about_empty_steps(timeline),
            *_about_ops(timeline),
            *_about_names(timeline),
            *_about_counts(timeline),
        ]
    return tuple(found)


def _disagree(lost: Lost, number: int, one: str, many: str) -> tuple[Disagreement, ...]:
    """A disagreement about a number of rows, none where it is 0."""
    return (Disagreement(lost, one if number == 1 else many.format(f"{number:,}")),) if number else ()


def _counted(timeline: Timeline, times: Ints) -> Bools:
    """Which times (n,) lie inside the steps, or inside the calls of a trace without steps."""
    steps, calls = timeline.steps, timeline.calls
    if len(steps):
        inside: Bools = step_of(steps, times) >= 0
        return inside
    during: Bools = (times >= calls.ts.min(initial=0)) & (times <= calls.end.max(initial=0))
    return during


def _about_warnings(timeline: Timeline) -> tuple[Disagreement, ...]:
    times = np.array([warning.time for warning in timeline.warnings_without_wait], dtype=np.int64)
    return _disagree(
        "runtime", int(_counted(timeline, times).sum()),
        "PyTorch warned of a wait that the trace does not hold",
        "PyTorch warned of {} waits that the trace does not hold",
    )  # fmt: skip


def _about_recorded_calls(timeline: Timeline) -> tuple[Disagreement, ...]:
    calls = timeline.recorded_calls
    events_recorded = bool((timeline.calls.role == "event-record").any())
    waiting = np.isin(calls.name, WAITING_CALLS) & _counted(timeline, calls.ts)
    waiting &= (calls.name != "Event.synchronize") | events_recorded  # of an event never recorded it does nothing
    sought = calls.take(waiting)
    waits = timeline.calls.take(np.isin(timeline.calls.role, list(KINDS)))
    missing = 0
    for tid in np.unique(sought.tid):
        own = waits.take(waits.tid == tid)
        begins = sought.ts[sought.tid == tid] - CALL_SLACK
        ends = sought.end[sought.tid == tid] + CALL_SLACK
        missing += int((np.searchsorted(own.ts, begins) == np.searchsorted(own.ts, ends)).sum())
    return _disagree(
        "runtime", missing,
        "the program waited in a recorded call of synchronize(), and the trace does not hold the wait",
        "the program waited in {} recorded calls of synchronize(), and the trace does not hold the waits",
    )  # fmt: skip


def _about_recorded_copies(timeline: Timeline) -> tuple[Disagreement, ...]:
    """Recorded calls of ``Tensor.cpu()`` that copy from the device, without a wait in them."""
    recorded, copies = timeline.recorded_calls, timeline.copies
    recorded = recorded.take((recorded.name == COPY_TO_HOST) & _counted(timeline, recorded.ts))
    begun = copies.take((copies.direction == "DtoH") & np.append(timeline.calls.role == "copy", False)[copies.launch])
    waits = timeline.calls.take(np.isin(timeline.calls.role, list(KINDS)))
    copying = match_calls(recorded, begun.launch_ts, begun.launch_end, begun.tid)
    waiting = match_calls(recorded, waits.ts, waits.end, waits.tid)
    missing = np.setdiff1d(copying[copying >= 0], waiting)
    return _disagree(
        "runtime", len(missing),
        "the program copied from the device in a recorded call of cpu(), and the trace does not hold the wait",
        "the program copied from the device in {} recorded calls of cpu(), and the trace does not hold the waits",
    )  # fmt: skip


def _about_sync_records(timeline: Timeline) -> tuple[Disagreement, ...]:
    records = timeline.sync_records
    recorded = np.isin(records.name, HOST_WAITS) & (records.correlation >= 0)
    missing = recorded & ~are_among(records.correlation, _correlations(timeline))
    return _disagree(
        "runtime", int(missing.sum()),
        "a wait is recorded for the device, and its runtime call is not in the trace",
        "{} waits are recorded for the device, and their runtime calls are not in the trace",
    )  # fmt: skip


def _about_reads(timeline: Timeline) -> tuple[Disagreement, ...]:
    """Ops that copy a value from the device and then wait for it, without the wait."""
    calls, ops = timeline.calls, timeline.ops
    copies = calls.take(calls.role == "copy")
    op = ops.nesting.innermost(copies.tid, copies.ts, copies.end)
    reading = np.unique(op[np.isin(np.append(ops.name, "")[op], READING_OPS)])
    waits = calls.take(np.isin(calls.role, list(KINDS)))
    waiting = ops.nesting.innermost(waits.tid, waits.ts, waits.end)
    return _disagree(
        "runtime", int((~np.isin(reading, waiting)).sum()),
        "an op reads a value from the device, and the trace does not hold its wait",
        "{} ops read a value from the device, and the trace does not hold their waits",
    ) or _about_pageable_copies(timeline)  # fmt: skip


def _about_pageable_copies(timeline: Timeline) -> tuple[Disagreement, ...]:
    """Copies to pageable memory of the host, which the host waits for, in a trace that holds no wait at all: not even
    the profiler's own."""
    rows = timeline.activities
    waits = bool(np.isin(timeline.calls.role, list(SYNC_ROLES)).any())
    reads = 0 if waits else int(((rows.direction == "DtoH") & (rows.memory == "pageable")).sum())
    return _disagree(
        "runtime", reads,
        "the trace holds a copy to pageable memory of the host, and not one wait, not even the profiler's own",
        "the trace holds {} copies to pageable memory of the host, and not one wait, not even the profiler's own",
    )  # fmt: skip


def _about_launches(timeline: Timeline) -> tuple[Disagreement, ...]:
    """Device rows without the call that launched them. What was launched before the trace began has none. Neither has
    a kernel that a call of the driver launched, where the profiler records none of those: then no row of it has one.
    PyTorch's own kernels are launched by calls of the runtime."""
    rows = timeline.activities
    inside = _after_first_launch(rows)
    if timeline.drained is not None and len(timeline.steps):  # the steps began with an idle device
        inside |= rows.ts >= timeline.steps.ts.min()
    unlaunched = (rows.launch < 0) & ~are_among(rows.correlation, _correlations(timeline)) & inside
    launched = set(rows.name[rows.launch >= 0].tolist())
    suspects = rows.take(unlaunched)
    surely = [
        kind != "kernel" or name in launched or OWN in name
        for kind, name in zip(suspects.kind, suspects.name, strict=True)
    ]
    return _disagree(
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


def _about_devices(timeline: Timeline) -> tuple[Disagreement, ...]:
    """Devices that ran something while the process made calls, and of which not one launch is there."""
    rows, calls = timeline.activities, timeline.calls
    during = (rows.ts >= calls.ts.min()) & (rows.ts <= calls.end.max())
    joined = (rows.launch >= 0) | are_among(rows.correlation, _correlations(timeline))
    missing = np.setdiff1d(different(rows.device[during & (rows.device >= 0)]), different(rows.device[joined]))
    return _disagree(
        "runtime", len(missing),
        f"the trace holds no launch of what device {missing[0] if len(missing) else -1} ran",
        "the trace holds no launch of what {} of its devices ran",
    )  # fmt: skip


def _about_clocks(timeline: Timeline) -> tuple[Disagreement, ...]:
    """Rows that begin before they were launched: the profiler took their times from another clock, or from nowhere
    (CUPTI 12.6 to 13.0, github.com/pytorch/pytorch/issues/192021)."""
    rows, calls = timeline.activities, timeline.calls
    known = rows.take(rows.launch >= 0)
    return _disagree(
        "device", int((known.ts < calls.ts[known.launch] - EARLY).sum()),
        "the device began something before it was launched, so its times are wrong",
        "the device began {} things before they were launched, so its times are wrong",
    )  # fmt: skip


def _about_launching_ops(timeline: Timeline) -> tuple[Disagreement, ...]:
    """Many ops in a row, of several kinds, that launch nothing and do so nearly always elsewhere: the profiler lost its
    buffer of calls there."""
    calls, ops = timeline.calls, timeline.ops
    commands = calls.take(np.isin(calls.role, DEVICE_COMMANDS))
    launching = np.zeros(len(ops), dtype=bool)
    row = different(ops.nesting.innermost(commands.tid, commands.ts, commands.end))
    while len(row := row[row >= 0]):
        launching[row] = True
        row = different(ops.nesting.parent[row])
    silent = np.flatnonzero(~launching & (timeline.warming_up(ops.ts, ops.end, ops.tid) == ""))
    texts = timeline.trace.rows["ops"].texts["name"]
    name, names = texts.codes.astype(np.int64), texts.names
    launched, times = (np.bincount(name[rows], minlength=len(names)) for rows in (launching, slice(None)))
    _, many_silent = np.unique(np.searchsorted(np.sort(commands.ts), ops.ts[silent]), return_counts=True)
    ends = np.cumsum(many_silent)
    missing = 0
    for end, size in zip(ends[many_silent > MOST_ON_HOST], many_silent[many_silent > MOST_ON_HOST], strict=True):
        own = name[silent[end - size : end]]
        here = np.bincount(own, minlength=len(names))
        surely = (launched >= OFTEN) & (launched >= NEARLY_ALWAYS * (times - here))
        kinds, many = int((surely & (here > 0)).sum()), int(here[surely].sum())
        lost = many > MOST_ON_HOST and kinds >= LEAST_KINDS and many >= LEAST_SILENT * len(own)
        missing += many if lost else 0
    return _disagree("runtime", missing, "", "{} ops in a row launch nothing that do so everywhere else")


def _about_empty_steps(timeline: Timeline) -> tuple[Disagreement, ...]:
    """Steps without a runtime call between steps that all have many; the last may be cut short, or what came behind the
    loop."""
    steps, calls = timeline.steps, timeline.calls
    if len(steps) < 3:
        return ()
    made = np.searchsorted(calls.ts, steps.end) - np.searchsorted(calls.ts, steps.ts)
    last, others = steps.dur[-1], np.median(steps.dur[:-1])
    whole = CUT_SHORT * others <= last <= others / CUT_SHORT
    made = made if whole else made[:-1]
    empty = made == 0
    regular = empty.any() and made[~empty].min(initial=BUSY_STEP) >= BUSY_STEP and empty.mean() < 0.5
    return _disagree(
        "runtime", int(empty.sum()) if regular else 0,
        "a step has no runtime call, and all others have many",
        "{} steps have no runtime call, and all others have many",
    )  # fmt: skip


def _about_commands(timeline: Timeline) -> tuple[Disagreement, ...]:
    """Launches and copies without a device row, but for those that may still have been queued at the end, and those
    that a CUDA graph captured."""
    return _disagree(
        "device", len(find_unmade(timeline.calls, timeline.activities)),
        "a launch or copy has no device row",
        "{} launches and copies have no device row",
    )  # fmt: skip


def find_unmade(calls: Calls, rows: Activities) -> Ints:
    """The rows of the launches and copies that made no device row, as ``_about_commands``."""
    known = rows.launch[rows.launch >= 0]
    if not len(known):
        return np.empty(0, dtype=np.int64)
    # What was launched before something that ran, or before the host waited for the whole device, ran too.
    waited = calls.ts[calls.role == "device-sync"].max(initial=0)
    commands = np.isin(calls.role, DEVICE_COMMANDS) & (calls.correlation >= 0)
    commands &= (calls.ts < max(calls.ts[known].max(), waited)) & ~in_capture(calls)
    return np.flatnonzero(commands & ~are_among(calls.correlation, rows.correlation))


def _about_ops(timeline: Timeline) -> tuple[Disagreement, ...]:
    """Runtime calls of ops that are not there; those inside an annotation may be the annotation's own."""
    calls, ops = timeline.trace.rows["runtime"], timeline.trace.rows["ops"]
    if not len(ops):
        return ()
    external = calls["external_id"]
    orphans = (external > 0) & (calls["ts"] > ops["ts"][0]) & ~are_among(external, ops["external_id"])
    rows = calls.take(orphans)
    marks = timeline.annotations
    marks = marks.take(np.array([not name.startswith("ProfilerStep#") for name in marks.name.tolist()], dtype=bool))
    nesting = Nesting(marks.ts, marks.end, marks.tid)
    around = nesting.innermost(rows["tid"], rows["ts"], rows["end"])
    missing = np.unique(external[orphans][around < 0])
    return _disagree(
        "cpu_op", len(missing),
        "an op of PyTorch that made a runtime call is not in the trace",
        "{} ops of PyTorch that made runtime calls are not in the trace",
    )  # fmt: skip


def _about_names(timeline: Timeline) -> tuple[Disagreement, ...]:
    unreadable = int(passing(timeline.calls.name, lambda name: UNREADABLE in name).sum())
    return _disagree(
        "runtime", unreadable,
        "the name of a runtime call is not readable",
        "the names of {} runtime calls are not readable",
    )  # fmt: skip


def _about_counts(timeline: Timeline) -> tuple[Disagreement, ...]:
    """Lines that PyTorch warned of in every single step of the phase, and where no recorded step waits."""
    recording = timeline.trace.recording
    if recording is None or len(timeline.steps) < 2:
        return ()
    waited = {(timeline.places[place].site, timeline.places[place].at) for place in set(timeline.waits.place.tolist())}
    always = {
        (one.place.site, one.place.at)
        for one in timeline.counted
        if one.wait.kind == "warning"
        and one.phase.name == recording.phase
        and one.wait.steps >= one.phase.steps > len(timeline.steps)
    }
    return _disagree(
        "runtime", len(always - waited),
        "a line waited in every step of the run, and the trace does not hold the wait",
        "{} lines waited in every step of the run, and the trace does not hold the waits",
    )  # fmt: skip


def _about_steps(timeline: Timeline) -> tuple[Disagreement, ...]:
    steps, trace = timeline.steps, timeline.trace
    tables = [trace.rows[name] for name in ("runtime", "ops", "device", "frames") if len(trace.rows[name])]
    if not len(steps) or not tables:
        return ()
    first = min(int(table["ts"][0]) for table in tables)
    last = max(int(table["end"].max()) for table in tables)
    outside = (steps.end < first) | (steps.ts > last)
    begun = sum(np.searchsorted(table["ts"], steps.end) - np.searchsorted(table["ts"], steps.ts) for table in tables)
    if trace.step_source == "profiler":
        outside[-1] &= bool(outside[:-1].any()) or len(steps) == 1  # the program may have ended after its last step()
    elif trace.step_source == "seconds":
        outside &= bool(outside.all())  # the program may have done nothing for a while
    if outside.any():
        return _disagree(
            "steps", int(outside.sum()),
            "a step lies outside the time of all events",
            "{} steps lie outside the time of all events",
        )  # fmt: skip
    return () if np.any(begun > 0) else (Disagreement("steps", "no event lies inside the steps"),)


def _correlations(timeline: Timeline) -> Ints:
    """Those of all runtime calls, of other processes too."""
    return timeline.trace.rows["runtime"]["correlation"]
