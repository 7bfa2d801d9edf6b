"""The attribution window reduced to a table: which ops were around each wait and copy of a step."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path

import msgspec

from syncscope.collect.tracefile import splice, write_atomically
from syncscope.collect.windows import Window
from syncscope.recording import Attributed, RecordedSteps, Recording
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
        write_atomically(path, splice(window.exported, own))
        try:
            table = reduce(Timeline(load(path)))
        except TraceError as error:
            note = f"The attribution window could not be read ({error.reason}): ops are missing."
            return msgspec.structs.replace(recording, notes=(*recording.notes, note))
    return msgspec.structs.replace(recording, attribution=tuple(table))


def reduce(timeline: Timeline) -> list[Attributed]:
    """The chain of ops of each wait, by its stack and its ordinal among the waits of that stack in a step.

    Where steps differ the first one that got so far speaks.
    """
    waits, places = timeline.waits, timeline.places
    count: Counter[tuple[int, int]] = Counter()
    table: dict[tuple[int, int], Attributed] = {}
    for step, place, ops, known in zip(*(waits[c] for c in ("step", "place", "ops", "ops_known")), strict=True):
        stack = places[place].stack
        if step < 0 or stack < 0 or not known:
            continue
        ordinal = count[step, stack]
        count[step, stack] += 1
        table.setdefault((stack, ordinal), Attributed(stack=stack, ordinal=ordinal, ops=tuple(ops)))
    return list(table.values())
