"""The whole run of the process that wrote a trace: its phases, and the places of the waits that were counted."""

from __future__ import annotations

from collections import Counter

import msgspec

from syncscope.schema.counting import CountedWait, RecordedPhase, RecordedRun
from syncscope.schema.expressions import Chain, ops_of_expression, ops_of_subscript
from syncscope.schema.findings import TRAINING, Frame, Site
from syncscope.schema.preparation import prepares, tunes
from syncscope.schema.recording import Recording
from syncscope.schema.run import CompilingWaits, Counted, Phase, PhaseLine, Run, StepTime, Stretch
from syncscope.timeline.places import NOWHERE, Place, recorded_frames, recorded_place, recorded_site

RUN_AHEAD = 1.5
"""Where steps take so many times their median on average, and no longer than one in twenty of them does, the host runs
ahead of the device in the others."""


class PlacedWait(msgspec.Struct, frozen=True):
    """A counted wait, with what it refers to."""

    wait: CountedWait
    phase: RecordedPhase
    place: Place
    ops: tuple[str, ...] = ()
    """The chain of ops around it, outermost first: from the attribution window, else from the expression where that
    leaves no doubt."""
    prepares: bool = False
    """PyTorch waits on its own account, to compile or to capture."""


def place_waits(recording: Recording | None) -> tuple[PlacedWait, ...]:
    """The counted waits of the phases that this trace speaks for: its own, and in the main trace of a process those of
    which no window was recorded. ``may_wait`` entries are among them, but for those of PyTorch's own preparation; waits
    of the compiler are not."""
    if recording is None or recording.run is None:
        return ()
    phases = recording.run.phases
    mine = {number for number, phase in enumerate(phases) if speaks_for(recording, phase)}
    ops = {seen.stack: seen.ops for seen in reversed(recording.attribution or ())}
    placed = []
    for wait in recording.run.waits:
        if wait.phase in mine and not wait.compiling:
            place = recorded_place(recording, wait.stack, wait.name, wait.expected)
            frames = recorded_frames(recording, wait.stack)
            files = (frame.file for frame in reversed(frames))
            preparing = prepares(files, explicit=wait.kind == "call" and not wait.may_wait)
            preparing = preparing or tunes((frame.file, frame.function) for frame in frames)
            if preparing and wait.may_wait:
                continue
            known = ops.get(wait.stack) or ops_of_expression(place.running) or _ops_of_line(recording, wait) or ()
            placed.append(PlacedWait(wait, phases[wait.phase], place, known, preparing))
    return tuple(placed)


def _ops_of_line(recording: Recording, wait: CountedWait) -> Chain | None:
    """The ops of a subscript that waited, where the source around it tells them."""
    frames = recorded_frames(recording, wait.stack)
    if wait.kind != "warning" or wait.name or wait.direction is not None or not frames:
        return None
    inner = frames[-1]
    return ops_of_subscript(inner.expression, recording.sources.get(inner.file, {}).get(str(inner.line)))


def speaks_for(recording: Recording, phase: RecordedPhase) -> bool:
    """Whether what is found in a phase is reported for this trace."""
    assert recording.run is not None
    return phase.name == recording.phase or (recording.run.main and not phase.recorded)


def turns(phase: RecordedPhase) -> int:
    """How many times what is counted of a phase could have happened: its steps, else how often it was entered."""
    return phase.steps or max(phase.times, 1)


def counted_turns(phase: RecordedPhase) -> int:
    """Those that were counted."""
    return phase.counted_steps if phase.steps else turns(phase)


def describe_run(recording: Recording | None) -> Run | None:
    """The run in the report, as far as one trace of it knows."""
    if recording is None or recording.run is None:
        return None
    run = recording.run
    others = run.processes_on_device
    judged = _main_phases(run)
    # One that turned out to be part of another was left with nothing.
    kept = [number for number, phase in enumerate(run.phases) if phase.times or phase.steps or phase.time_ns]
    place = {number: index for index, number in enumerate(kept)}
    return Run(
        id=run.id,
        seconds=_seconds(run.time_ns),
        complete=run.complete,
        stopped=run.stopped,
        steps=sum(phase.steps for phase in judged),
        counted=_counted(recording, run, judged),
        pid=recording.pid,
        shared_device=None if others is None else others > 0,
        main=run.main,
        phases=tuple(_phase(recording, run, number) for number in kept),
        stretches=tuple(
            Stretch(
                start_s=_seconds(one.start_ns),
                seconds=_seconds(one.length_ns),
                phase=place[one.phase],
                steps=one.steps,
                waits_per_step=round(one.waits / one.counted_steps, 4) if run.counted and one.counted_steps else None,
                windows=one.windows,
            )
            for one in run.bins
            if one.phase in place
        ),
    )


def _main_phases(run: RecordedRun) -> list[RecordedPhase]:
    """The phases of training, else the longest that has steps."""
    training = [phase for phase in run.phases if phase.kind == TRAINING]
    stepping = [phase for phase in run.phases if phase.steps] or run.phases
    return training or sorted(stepping, key=lambda phase: -phase.time_ns)[:1]


def _counted(recording: Recording, run: RecordedRun, judged: list[RecordedPhase]) -> Counted | None:
    if not run.counted:
        return None
    return Counted(
        one_in=round(max((phase.one_in for phase in judged), default=1.0), 4),
        overhead_share=run.overhead_share,
        compiling=_compiling(recording, run),
    )


def _compiling(recording: Recording, run: RecordedRun) -> tuple[CompilingWaits, ...]:
    """The compiler's waits by the program's line and the compiler's, those of all phases together."""
    found: dict[tuple[Site, Frame], CompilingWaits] = {}
    for wait in run.waits:
        place = recorded_place(recording, wait.stack, wait.name, None) if wait.compiling else NOWHERE
        if place.site is None or place.at is None:
            continue
        phase = run.phases[wait.phase]
        missed = phase.counted_steps < phase.steps or phase.one_in > 1
        new = CompilingWaits(site=place.site, at=place.at, waits=0)
        old = found.get((place.site, place.at), new)
        found[place.site, place.at] = msgspec.structs.replace(
            old, waits=old.waits + wait.count + wait.before, at_least=old.at_least or missed
        )
    return tuple(sorted(found.values(), key=lambda one: -one.waits))


def _phase(recording: Recording, run: RecordedRun, number: int) -> Phase:
    phase = run.phases[number]
    known = run.counted and counted_turns(phase) > 0
    mine = [wait for wait in run.waits if wait.phase == number and not wait.may_wait and not wait.compiling]
    in_part = phase.counted_steps < phase.steps or (not phase.steps and phase.one_in > 1)
    if in_part and all(wait.estimate is not None for wait in mine):
        waits, among = sum(wait.estimate or 0.0 for wait in mine), turns(phase)
    else:
        waits, among = sum(wait.count for wait in mine), counted_turns(phase)
    return Phase(
        name=phase.name,
        kind=phase.kind,
        where=None if phase.file is None else _where(phase),
        steps=phase.steps,
        counted_steps=phase.counted_steps,
        one_in=round(phase.one_in, 4),
        times=phase.times,
        share=round(phase.time_ns / run.time_ns, 6) if run.time_ns else 0.0,
        step_ms=_step_time(phase),
        waits_per_step=round(waits / among, 4) if known else None,
        recorded=phase.recorded,
        recorded_steps=phase.recorded_steps,
        looks=phase.samples,
        lines=_lines(recording, phase),
    )


def _lines(recording: Recording, phase: RecordedPhase) -> tuple[PhaseLine, ...]:
    """The innermost line of the user's of each sampled stack, once."""
    samples: Counter[tuple[str, int | None]] = Counter()
    sites: dict[tuple[str, int | None], Site] = {}
    for one in phase.lines:
        frames = [frame for frame in recorded_frames(recording, one.stack) if frame.user]
        if frames:
            line = frames[-1].file, frames[-1].line
            samples[line] += one.samples
            sites.setdefault(line, recorded_site(frames[-1]))
    return tuple(
        PhaseLine(site=sites[line], share=round(number / phase.samples, 4)) for line, number in samples.most_common()
    )


def _step_time(phase: RecordedPhase) -> StepTime | None:
    median, p95, mean = phase.median_ns, phase.p95_ns, phase.mean_ns
    if median is None or p95 is None:
        return None
    if mean is None:  # an older recording: windows and steps unlike the others are part of the phase's time
        over_all = phase.time_ns / phase.steps if phase.steps else 0.0
        mean = int(over_all) if RUN_AHEAD * median < over_all <= p95 else median
    return StepTime(median=round(median * 1e-6, 6), p95=round(p95 * 1e-6, 6), mean=round(mean * 1e-6, 6))


def _where(phase: RecordedPhase) -> str:
    line = f":{phase.line}" if phase.line is not None else ""
    return f"{phase.file}{line}{f' {phase.function}' if phase.function else ''}"


def _seconds(ns: int) -> float:
    return round(ns * 1e-9, 6)
