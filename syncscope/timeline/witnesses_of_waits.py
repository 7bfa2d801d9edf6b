"""Witnesses of waits: PyTorch's warnings, the recorded calls and the count of the run, the device's own records, and
ops that always wait.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from syncscope.timeline.calls import COMMANDS
from syncscope.timeline.disagreement import Disagreement, disagree, find_correlations
from syncscope.timeline.intervals import Bools, Ints, are_among
from syncscope.timeline.matching import CALL_SLACK, match_calls
from syncscope.timeline.steps import step_of
from syncscope.timeline.waits import KINDS
from syncscope.trace.names import SYNC_ROLES
from syncscope.trace.sets import different

if TYPE_CHECKING:
    from syncscope.timeline.timeline import Timeline

WAITING_CALLS = ("torch.cuda.synchronize", "torch.accelerator.synchronize", "Stream.synchronize", "Event.synchronize")
"""Entry points that wait whenever they are called, by ``SiteEvent.name``."""

COPY_TO_HOST = "Tensor.cpu"
"""The entry point that waits for each copy to the host that it makes; it cannot be told not to."""

READING_OPS = ("aten::_local_scalar_dense", "aten::nonzero")
"""Ops that copy a few bytes from the device and wait for them, always."""

HOST_WAITS = ("Stream Sync", "Event Sync", "Context Sync")
"""Rows of ``Trace.sync`` that stand for a wait of the host."""


def _counted(timeline: Timeline, times: Ints) -> Bools:
    """Which times (n,) lie inside the steps, or inside the calls of a trace without steps."""
    steps, calls = timeline.steps, timeline.calls
    if len(steps):
        inside: Bools = step_of(steps, times) >= 0
        return inside
    during: Bools = (times >= calls.ts.min(initial=0)) & (times <= calls.end.max(initial=0))
    return during


def about_warnings(timeline: Timeline) -> tuple[Disagreement, ...]:
    times = np.array([warning.time for warning in timeline.warnings_without_wait], dtype=np.int64)
    return disagree(
        "runtime", int(_counted(timeline, times).sum()),
        "PyTorch warned of a wait that the trace does not hold",
        "PyTorch warned of {} waits that the trace does not hold",
    )  # fmt: skip


def about_recorded_calls(timeline: Timeline) -> tuple[Disagreement, ...]:
    calls = timeline.recorded_calls
    events_recorded = bool(timeline.calls.do(["event-record"]).any())
    waiting = np.isin(calls.name, WAITING_CALLS) & _counted(timeline, calls.ts)
    waiting &= (calls.name != "Event.synchronize") | events_recorded  # of an event never recorded it does nothing
    sought = calls.take(waiting)
    waits = timeline.calls.take(timeline.calls.do(KINDS))
    missing = 0
    for tid in different(sought.tid):
        own = waits.take(waits.tid == tid)
        begins = sought.ts[sought.tid == tid] - CALL_SLACK
        ends = sought.end[sought.tid == tid] + CALL_SLACK
        missing += int((np.searchsorted(own.ts, begins) == np.searchsorted(own.ts, ends)).sum())
    return disagree(
        "runtime", missing,
        "the program waited in a recorded call of synchronize(), and the trace does not hold the wait",
        "the program waited in {} recorded calls of synchronize(), and the trace does not hold the waits",
    )  # fmt: skip


def about_recorded_copies(timeline: Timeline) -> tuple[Disagreement, ...]:
    """Recorded calls of ``Tensor.cpu()`` that copy from the device, without a wait in them."""
    recorded, copies = timeline.recorded_calls, timeline.copies
    recorded = recorded.take((recorded.name == COPY_TO_HOST) & _counted(timeline, recorded.ts))
    begun = copies.take((copies.direction == "DtoH") & np.append(timeline.calls.do(["copy"]), False)[copies.launch])
    waits = timeline.calls.take(timeline.calls.do(KINDS))
    copying = match_calls(recorded, begun.launch_ts, begun.launch_end, begun.tid)
    waiting = match_calls(recorded, waits.ts, waits.end, waits.tid)
    copying = different(copying[copying >= 0])
    missing = copying[~are_among(copying, waiting)]
    return disagree(
        "runtime", len(missing),
        "the program copied from the device in a recorded call of cpu(), and the trace does not hold the wait",
        "the program copied from the device in {} recorded calls of cpu(), and the trace does not hold the waits",
    )  # fmt: skip


def about_sync_records(timeline: Timeline) -> tuple[Disagreement, ...]:
    records = timeline.sync_records
    recorded = np.isin(records.name, HOST_WAITS) & (records.correlation >= 0)
    missing = recorded & ~are_among(records.correlation, find_correlations(timeline))
    return disagree(
        "runtime", int(missing.sum()),
        "a wait is recorded for the device, and its runtime call is not in the trace",
        "{} waits are recorded for the device, and their runtime calls are not in the trace",
    )  # fmt: skip


def about_reads(timeline: Timeline) -> tuple[Disagreement, ...]:
    """Ops that copy a value from the device and then wait for it, without the wait."""
    calls, ops = timeline.calls, timeline.ops
    op = ops.around(calls)[calls.do(["copy"])]
    reading = different(op[np.isin(np.append(ops.name, "")[op], READING_OPS)])
    waiting = ops.around(calls)[calls.do(KINDS)]
    return disagree(
        "runtime", int((~np.isin(reading, waiting)).sum()),
        "an op reads a value from the device, and the trace does not hold its wait",
        "{} ops read a value from the device, and the trace does not hold their waits",
    ) or _about_no_wait(timeline)  # fmt: skip


def _about_no_wait(timeline: Timeline) -> tuple[Disagreement, ...]:
    """A trace of somebody else's, in which the host gave the device something to do and which holds not one wait: the
    profiler waits for the device itself when it ends. Copies that block are rows of another kind, and do not show that
    those of waits were kept (ROCm makes them for what CUDA copies and then waits for). Of 524 traces of others that
    hold calls, 7 have no wait; from most of these rows were left out. Where there are copies to pageable memory of the
    host, the program waited too."""
    rows, calls = timeline.activities, timeline.calls
    if calls.do(SYNC_ROLES - {"copy-sync"}).any():
        return ()
    if blocking := int(calls.do(["copy-sync"]).sum()):
        return _about_copies_alone(timeline, blocking)
    reads = int(((rows.direction == "DtoH") & (rows.memory == "pageable")).sum())
    foreign = timeline.trace.recording is None and bool(calls.do(COMMANDS).any())
    return disagree(
        "runtime", reads,
        "the trace holds a copy to pageable memory of the host, and not one wait, not even the profiler's own",
        "the trace holds {} copies to pageable memory of the host, and not one wait, not even the profiler's own",
    ) or disagree(
        "runtime", int(foreign),
        "the trace holds not one wait, not even the profiler's own, so it does not say whether the program waits", "",
        waits_alone=True,
    )  # fmt: skip


def _about_copies_alone(timeline: Timeline, blocking: int) -> tuple[Disagreement, ...]:
    return disagree(
        "runtime", blocking if timeline.trace.recording is None else 0,
        "the trace holds no wait but a copy that blocks, not even the profiler's own, so others may have been left out",
        "the trace holds no wait but {} copies that block, not even the profiler's own, so others may have been left "
        "out",
        waits_alone=True,
    )  # fmt: skip


def about_counts(timeline: Timeline) -> tuple[Disagreement, ...]:
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
    return disagree(
        "runtime", len(always - waited),
        "a line waited in every step of the run, and the trace does not hold the wait",
        "{} lines waited in every step of the run, and the trace does not hold the waits",
    )  # fmt: skip
