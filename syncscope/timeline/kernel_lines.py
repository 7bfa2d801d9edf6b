"""The lines that compiled kernels come from, as the recording knows them."""

from __future__ import annotations

from collections.abc import Mapping

from syncscope.schema.findings import Frame
from syncscope.schema.recording import Recording
from syncscope.timeline.places import NOWHERE, Place, recorded_place

Lines = Mapping[str, tuple[Place, ...]]


def find_kernel_lines(recording: Recording | None) -> Lines:
    """By the name of a kernel. Only those are in it of which a line is known."""
    run = recording.run if recording is not None else None
    if recording is None or run is None or run.compiled is None:
        return {}
    found: dict[str, tuple[Place, ...]] = {}
    for kernel in run.compiled.kernels:
        places = (recorded_place(recording, stack, "", None) for stack in kernel.stacks)
        if known := tuple(place for place in places if place != NOWHERE):
            found[kernel.name] = known
    return found


def inner_frame(place: Place) -> Frame | None:
    """The frame of a library that the line of ``place`` leads to; ``None`` where the line itself is the innermost."""
    site, at = place.site, place.at
    return at if at is not None and (site is None or (at.file, at.line) != (site.file, site.line)) else None
