"""The attribution window reduced to a table: which ops were around each wait and copy of a step."""

from __future__ import annotations

import tempfile
from pathlib import Path

import msgspec

from syncscope.collect.tracefile import splice, write_trace
from syncscope.collect.windows import Window
from syncscope.schema.recording import RecordedSteps, Recording
from syncscope.timeline import Timeline
from syncscope.trace import TraceError, load


def attribute(recording: Recording, window: Window | None) -> Recording:
    """``recording`` of the timed window with the table of ``window``; without one, with a note that says so."""
    if window is None:
        note = "The program ended before the attribution window: ops are known only where the line tells them."
        return msgspec.structs.replace(recording, notes=(*recording.notes, note))
    steps = RecordedSteps(
        source=recording.steps.source,
        first=window.first_step,
        boundaries_ns=window.boundaries_ns,
        drained_ns=window.drained_ns,
        tid=recording.steps.tid,
    )
    own = msgspec.structs.replace(recording, mode="full", steps=steps, sites=window.sites)
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "attribution.json"
        write_trace(path, splice(window.exported, own))
        try:
            table = Timeline(load(path)).attributed()
        except TraceError as error:
            note = f"The attribution window could not be read ({error.reason}): ops are missing."
            return msgspec.structs.replace(recording, notes=(*recording.notes, note))
    return msgspec.structs.replace(recording, attribution=tuple(table))
