"""What ``torch.compile`` did in the run of a trace, with the lines that it is about."""

from __future__ import annotations

import msgspec
import numpy as np
from msgspec.structs import replace

from syncscope.schema.compiling import CompileEvent, CompileKind
from syncscope.schema.counting import RecordedPhase
from syncscope.schema.recording import RecordedFrame, Recording
from syncscope.timeline.places import NOWHERE, Place, recorded_frames, recorded_place
from syncscope.timeline.run import speaks_for
from syncscope.timeline.steps import step_of
from syncscope.timeline.tables import Steps


class CompiledSpan(msgspec.Struct, frozen=True):
    """One compilation, or one recording of a CUDA graph, in the windows. Times are ns since the trace's base."""

    event: int
    """Index in ``RecordedCompiling.events``."""
    kind: CompileKind
    ts: int
    end: int
    tid: int
    step: int
    """Row in ``steps``, −1 outside."""


class BetweenGraphs(msgspec.Struct, frozen=True):
    """What the host does in one run of a function outside of its graphs: guards, and the Python at its breaks. Medians
    over its runs."""

    host_ns: int
    launches: int


class CompiledEvent(msgspec.Struct, frozen=True):
    """A row of the recording, with what it refers to."""

    event: CompileEvent
    phase: RecordedPhase
    place: Place
    function: RecordedFrame | None
    """The ``def`` of the function that was compiled."""
    spans: tuple[CompiledSpan, ...] = ()
    """Those in the steps of the trace."""
    between: BetweenGraphs | None = None
    """Of a break, where a trace of others has rows for the graphs too. A recording times nothing there."""


class Compiled(msgspec.Struct, frozen=True):
    events: tuple[CompiledEvent, ...]
    """Those of the phases that the trace speaks for."""
    spans: tuple[CompiledSpan, ...]
    """Of the windows, whatever their phase."""
    dropped: int
    missing: tuple[str, ...]

    def of(self, *kinds: CompileKind) -> tuple[CompiledEvent, ...]:
        """The events of some kinds."""
        return tuple(one for one in self.events if one.event.kind in kinds)


def find_compiled(recording: Recording | None, base_ns: int, steps: Steps) -> Compiled | None:
    """What a recording says of ``torch.compile``; ``None`` where it did not look."""
    run = recording.run if recording is not None else None
    if recording is None or run is None or run.compiled is None:
        return None
    spans = _spans(recording, base_ns, steps)
    mine = {number for number, phase in enumerate(run.phases) if speaks_for(recording, phase)}
    events = (
        CompiledEvent(
            event,
            run.phases[event.phase],
            _place(recording, event),
            next(iter(recorded_frames(recording, -1 if event.compiled is None else event.compiled)), None),
            tuple(span for span in spans if span.event == number and span.step >= 0),
        )
        for number, event in enumerate(run.compiled.events)
        if event.phase in mine
    )
    return Compiled(tuple(events), spans, run.compiled.dropped, run.compiled.missing)


def _spans(recording: Recording, base_ns: int, steps: Steps) -> tuple[CompiledSpan, ...]:
    assert recording.run is not None
    assert recording.run.compiled is not None
    events = recording.run.compiled.events
    known = [span for span in recording.compiling if 0 <= span.event < len(events)]
    begins = np.array([span.start_ns - base_ns for span in known], dtype=np.int64)
    return tuple(
        CompiledSpan(
            span.event, events[span.event].kind, span.start_ns - base_ns, span.end_ns - base_ns, span.tid, step
        )
        for span, step in zip(known, step_of(steps, begins).tolist(), strict=True)
    )


def _place(recording: Recording, event: CompileEvent) -> Place:
    if event.stack is None:
        return replace(NOWHERE, source="compile", expected=event.expected)
    return replace(recorded_place(recording, event.stack, "", event.expected), source="compile")
