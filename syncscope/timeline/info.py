"""Describe a trace as a whole for the report: its steps, overlap, coverage, and where it meets the other ranks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from msgspec import structs

from syncscope.schema.numbers import milliseconds
from syncscope.schema.report import Coverage, EachStep, Meetings, StepSource, TraceInfo
from syncscope.schema.report import Steps as StepFigures
from syncscope.timeline.bare import bare_step_ns
from syncscope.timeline.collectives import find_meetings, places_behind
from syncscope.timeline.gpu import describe_gpu
from syncscope.timeline.held_hosts import find_unseen_waits
from syncscope.timeline.intervals import Ints, Union
from syncscope.timeline.overlap import is_compute, union_of
from syncscope.timeline.run import describe_run
from syncscope.timeline.steps import device_steps, exposed_copies, exposed_in_steps
from syncscope.timeline.waits import is_wait

if TYPE_CHECKING:
    from syncscope.timeline.timeline import Timeline


MOST_GROUPS = 64
"""Process groups that are told apart."""

LEAST_BEFORE, LOADING_SHARE, WAITING_SHARE = 10_000_000, 0.1, 0.5
"""Nanoseconds of the host before the first work of the device from which on they are told, the share of them that the
data loader takes from which on it is named, and that of one wait that is most of them."""


def describe(timeline: Timeline) -> TraceInfo:
    """The trace in the report."""
    trace, recording = timeline.trace, timeline.trace.recording
    notes = recording.notes if recording else ()
    contradictions = (disagreement.text for disagreement in timeline.disagreements)
    return TraceInfo(
        path=trace.path,
        rank=trace.rank,
        world_size=trace.world_size,
        device=timeline.device_name,
        torch=recording.torch if recording else None,
        has=timeline.has,
        steps=timeline.step_figures,
        coverage=_measure_coverage(timeline),
        overlap=timeline.overlap,
        each_step=_measure_each_step(timeline),
        files=recording.files if recording else None,
        warnings=tuple(
            dict.fromkeys(
                (
                    *trace.warnings,
                    *contradictions,
                    *_about_run(timeline),
                    *_tell_sharing(timeline),
                    *_ahead(timeline),
                    *_before_first_work(timeline),
                    *_behind_last_work(timeline),
                    *notes,
                )
            )
        ),
        lost=trace.lost,
        meetings=_find_meetings(timeline),
        mode=recording.mode if recording else None,
        phase=recording.phase if recording else None,
        run=describe_run(recording),
        gpu=describe_gpu(recording.gpu if recording else None),
    )


def _about_run(timeline: Timeline) -> Iterator[str]:
    """What the reader must know of the run, one sentence each."""
    run = timeline.trace.recording.run if timeline.trace.recording else None
    if run is None:
        return
    if timeline.only_counted and run.complete and not any(phase.steps for phase in run.phases):
        yield (
            "no step of the program could be told, so no window was recorded, and what its waits cost is not known: "
            "call syncscope.step() at the end of each step, or record by time with syncscope profile --seconds 1"
        )
    elif timeline.only_counted:
        yield "no window was recorded: waits were counted, and what they cost is not known"
    if not run.complete:
        yield f"the program was killed or had not ended: its first {run.time_ns * 1e-9:,.1f} s were counted"
    if run.dropped:
        yield f"{run.dropped:,} waits at further places were not kept"


def measure_steps(timeline: Timeline) -> StepFigures:
    """How many steps there are and how long they take, bare and profiled."""
    bare = timeline.trace.recording.bare if timeline.trace.recording else None
    step_ns = bare_step_ns(bare) if bare else None
    source: StepSource = timeline.trace.step_source  # type: ignore[assignment]
    return StepFigures(
        count=len(timeline.steps),
        profiled_ms=_mean_step_ms(timeline),
        bare_ms=None if step_ns is None else round(step_ns * 1e-6, 6),
        source=source,
    )


def _mean_step_ms(timeline: Timeline) -> float | None:
    """Mean length of a recorded step. It includes the time until the device had drained, where that was recorded,
    because bare steps are timed so."""
    tables = timeline
    if not len(tables.steps):
        return None
    if (tables.drained is None and tables.outlasted is None) or tables.span is None:
        return round(float(tables.steps.dur.mean()) * 1e-6, 6)
    return round((tables.span[1] - tables.span[0]) * 1e-6 / len(tables.steps), 6)


def _measure_each_step(timeline: Timeline) -> EachStep | None:
    """How the steps differ; ``None`` without steps."""
    tables = timeline
    steps, device, blocked = tables.steps, tables.device, timeline.blocked
    if not len(steps):
        return None
    each = EachStep(
        length_ms=_in_ms(steps.dur),
        blocked_ms=None if blocked is None else _in_ms(blocked.within(steps.ts, steps.end)),
        copy_exposed_ms=None,
    )
    if device is None or tables.span is None:
        return each
    here = tables.on_device
    compute = union_of(here, is_compute(here))
    comm = tables.collectives.take(tables.collectives.device == device)
    launched = np.where(here.launch >= 0, np.append(tables.calls.ts, 0)[here.launch], here.ts)
    lengths, idle = device_steps(steps, here, launched, tables.span)
    return structs.replace(
        each,
        copy_exposed_ms=_in_ms(exposed_copies(steps, tables.copies.take(tables.copies.device == device), compute)),
        comm_exposed_ms=_in_ms(exposed_in_steps(steps, comm, compute)),
        comm_exposed_by_group_ms=_by_group(timeline, compute),
        device_ms=_in_ms(lengths),
        idle_ms=_in_ms(idle),
    )


def _by_group(timeline: Timeline, compute: Union) -> dict[str, tuple[float, ...]] | None:
    """Exposed ms of collectives of the device in each step, by process group; ``None`` where it is not known of all, or
    there are very many."""
    here = timeline.collectives.device == timeline.device
    comm, of_group = timeline.collectives.take(here), timeline.groups_of_collectives[here]
    groups = sorted(set(of_group.tolist()))
    if "" in groups or len(groups) > MOST_GROUPS:
        return None
    return {group: _in_ms(exposed_in_steps(timeline.steps, comm.take(of_group == group), compute)) for group in groups}


def _in_ms(lengths: Ints) -> tuple[float, ...]:
    return tuple(round(length * 1e-6, 6) for length in lengths.tolist())


def _measure_coverage(timeline: Timeline) -> Coverage:
    """How many waits of the steps (of the whole trace where it has no steps) have an exact line."""
    waits, places = timeline.waits, timeline.places
    counted = is_wait(waits.kind) & ((waits.step >= 0) | (not len(timeline.steps)))
    lines = [places[place].source == "hook" for place in waits.place[counted]]
    return Coverage(waits=len(lines), with_line=sum(lines))


def _find_meetings(timeline: Timeline) -> Meetings | None:
    """Where the rank meets the others, on its busiest device; ``None`` in a program of one rank."""
    if timeline.trace.world_size == 1:
        return None
    tables, met = timeline, timeline.collectives_here
    behind = places_behind(tables.bubbles, tables.waits, tables.loads)
    starts = [int(table.ts.min()) for table in (tables.calls, tables.ops, tables.annotations) if len(table)]
    ran = tables.activities.ts[tables.activities.device == tables.device]
    meetings = find_meetings(
        met, tables.bubbles, behind, tables.steps, tables.places, timeline.trace.base_ns, min(starts, default=None),
        int(ran.min()) if len(ran) else None, ranks=timeline.trace.world_size,
    )  # fmt: skip
    if meetings is None or not len(tables.steps):
        return meetings and structs.replace(meetings, groups=timeline.trace.group_names)
    unseen = find_unseen_waits(tables.calls, met.take(met.step >= 0)) * 1e-6 / len(tables.steps)
    return structs.replace(meetings, groups=timeline.trace.group_names, unseen_ms=round(unseen, 6))


def _tell_sharing(timeline: Timeline) -> tuple[str, ...]:
    """A sentence on the other processes that used the device, none where the recording says of none."""
    others = timeline.processes_on_device
    if not others:
        return ()
    who = "another process" if others == 1 else f"{others} other processes"
    return (f"{who} used the device too: times are not this program's alone",)


def _ahead(timeline: Timeline) -> tuple[str, ...]:
    """A sentence on a host that runs ahead of the device by more than all steps."""
    if timeline.outlasted is None or timeline.span is None:
        return ()
    many = len(timeline.steps)
    host, device = float(timeline.steps.dur.mean()), (timeline.span[1] - timeline.span[0]) / many
    steps, each = ("steps", "each") if many > 1 else ("a step", "it")
    return (
        f"the device sets the pace: the host runs ahead with {steps} of {host * 1e-6:.3g} ms, and the device takes "
        f"{device * 1e-6:.3g} ms for {each}, which is the length of a step here",
    )


def _before_first_work(timeline: Timeline) -> tuple[str, ...]:
    """A sentence on what the host did before the device's first work, where no step says that it belongs to any, and
    that is longer than all that is looked at and not done once."""
    starts = [int(table.ts.min()) for table in (timeline.calls, timeline.ops, timeline.annotations) if len(table)]
    if timeline.span is None or timeline.device is None or len(timeline.steps) or not starts:
        return ()
    first, last = timeline.span
    before = first - min(starts)
    waits = timeline.waits
    behind = np.minimum(waits.end, first)[waits.ts < first] - waits.ts[waits.ts < first]
    waiting = int(behind.max(initial=0))
    if waiting >= max(WAITING_SHARE * before, LEAST_BEFORE):
        return (
            f"the trace begins with a wait of {milliseconds(waiting * 1e-6)} for work that was launched before it: "
            "that is no part of what the recorded work takes",
        )
    if before < max(last - first - _done_once_ns(timeline), LEAST_BEFORE):
        return ()
    loads = timeline.loads
    loading = Union(loads.ts, loads.end).clipped(min(starts), first).length
    part = f", {milliseconds(loading * 1e-6)} of them in the data loader" if loading >= LOADING_SHARE * before else ""
    return (
        f"nothing is said of the {milliseconds(before * 1e-6)} before the device's first work{part}: where they come "
        "back, mark the steps (prof.step())",
    )


def _behind_last_work(timeline: Timeline) -> tuple[str, ...]:
    """The same of what the host did behind the device's last work, as ops show it: a last call is the profiler's own
    wait."""
    if timeline.span is None or timeline.device is None or len(timeline.steps) or not len(timeline.ops):
        return ()
    first, last = timeline.span
    behind = int(timeline.ops.end.max()) - last
    if behind < max(last - first - _done_once_ns(timeline), LEAST_BEFORE):
        return ()
    return (
        f"nothing is said of the {milliseconds(behind * 1e-6)} behind the device's last work: where they come back, "
        "mark the steps (prof.step())",
    )


def _done_once_ns(timeline: Timeline) -> float:
    """Nanoseconds of a trace without steps in which the device is idle for what is done once."""
    return timeline.overlap.idle_by_cause.get("warm-up", 0.0) * 1e6 if timeline.overlap else 0.0


def name_device(timeline: Timeline) -> str | None:
    """What the trace calls the device, else its recording. ROCm may list devices under other numbers than it uses: then
    the one name that all of them have."""
    names: dict[int | None, str] = {device.id: device.name for device in timeline.trace.devices}
    only = next(iter(names.values())) if len(set(names.values())) == 1 else None
    name, recording = names.get(timeline.device, only), timeline.trace.recording
    return name or (recording.device if recording else None)
