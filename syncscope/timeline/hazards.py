"""Races that the collector saw: two accesses to the same memory that nothing orders."""

from __future__ import annotations

from dataclasses import dataclass

from syncscope.schema.recording import HazardEvent, Recording
from syncscope.timeline.places import Place, recorded_place


@dataclass(frozen=True)
class Hazard:
    """A race, with both of its lines."""

    event: HazardEvent
    place: Place
    """Of the later access."""
    earlier: Place
    """Of the copy, or other work of a stream, that may still run."""


def find_hazards(recording: Recording | None) -> tuple[Hazard, ...] | None:
    """The races of a recording, in the order they were first seen; ``None`` when nobody looked for them."""
    if recording is None or recording.hazards is None:
        return None
    return tuple(
        Hazard(
            event,
            recorded_place(recording, event.access.stack, event.access.op, event.expected),
            recorded_place(recording, event.earlier.stack, event.earlier.op, None),
        )
        for event in recording.hazards
    )
