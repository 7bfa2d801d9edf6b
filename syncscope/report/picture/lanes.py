"""What a picture of the timeline is made of: host threads, streams, idle devices and steps, in few bytes.

Times are nanoseconds since the first row (``Lanes.start_ns``).
"""

from __future__ import annotations

from typing import Literal

import msgspec

MOST_ITEMS = 1_000_000
"""Bars of a page, all its ranks together: some 4 MB."""

KINDS = (
    "annotation", "op", "call", "launch", "wait", "idle",
    "memset", "compute", "DtoD", "copy", "collective", "HtoD", "DtoH", "exposed",
)  # fmt: skip
"""What a row is, in the order of drawing: later ones lie over earlier ones. ``launch`` is a runtime call that hands
work to the device, ``call`` any other one; ``copy`` is a copy between other places or of unknown direction. No event is
``exposed``, the part of copies and collectives with no compute beside it, and ``idle``, a bubble named by its cause."""

MEMORY = ("", "pageable", "pinned")

BARS = {
    "ts": "int64", "dur": "int64",  # ns; in order within a series
    "name": "int64",  # index in Lanes.names; of the longest where several were merged
    "bytes": "int64",  # −1 unknown or none
    "memory": "int64",  # the host side of a copy: index in Lanes.memory; "" unknown or no host side
    "spot": "int64",  # index in Lanes.spots, for waits and copies; −1 none
    "merged": "int64",  # how many events the bar stands for
    "gaps": "int64",  # ns of dur not in use: between merged events
}  # fmt: skip
"""The columns of ``Lanes.bars``."""


class Column(msgspec.Struct, frozen=True, kw_only=True):
    """``count`` numbers. In JSON ``data`` is base64."""

    count: int
    planes: int
    """Bytes a number."""
    steps: bool
    """What is kept is the difference to the number before; the first one's to 0."""
    data: bytes


class Spot(msgspec.Struct, frozen=True, kw_only=True):
    """The line of waits or copies, and the findings that speak of them."""

    file: str | None
    line: int | None
    findings: tuple[int, ...] = ()
    """Their numbers (``Finding.number``): those of the wait itself, or of the copy itself, come first."""


class KernelLine(msgspec.Struct, frozen=True, kw_only=True):
    """One of the lines that a kernel comes from."""

    file: str
    line: int | None
    function: str
    expression: str | None
    inside: str | None
    """The line of a library, ``model.py:12``, that this one leads to."""


class KernelLines(msgspec.Struct, frozen=True, kw_only=True):
    name: int
    """Of the kernel: index in ``Lanes.names``."""
    lines: tuple[KernelLine, ...]


class Lane(msgspec.Struct, frozen=True, kw_only=True):
    """A host thread, a stream, or the idle time of a device."""

    label: str
    place: Literal["host", "idle", "stream"]
    tid: int | None = None
    device: int | None = None
    stream: int | None = None


class Series(msgspec.Struct, frozen=True, kw_only=True):
    """The bars of one kind in one lane: ``count`` rows from ``first`` on."""

    lane: int
    kind: int
    """Index into ``Lanes.kinds``."""
    first: int
    count: int


class StepMark(msgspec.Struct, frozen=True, kw_only=True):
    number: int
    ts: int
    dur: int
    until: int
    """When the step and the device work that it launched have ended."""


class Lanes(msgspec.Struct, frozen=True, kw_only=True):
    """One rank's picture."""

    path: str
    rank: int | None = None
    start_ns: int
    """When the first row or step begins, nanoseconds since the trace's base."""
    dur: int
    """Until the last one ends, nanoseconds."""
    steps: tuple[StepMark, ...]
    kinds: tuple[str, ...] = KINDS
    memory: tuple[str, ...] = MEMORY
    names: tuple[str, ...]
    spots: tuple[Spot, ...] = ()
    kernel_lines: tuple[KernelLines, ...] = ()
    """The lines that compiled kernels come from, where the recording knows them."""
    lanes: tuple[Lane, ...]
    series: tuple[Series, ...]
    """By lane and kind."""
    bars: dict[str, Column]
    """The table ``BARS``, a column each."""
    links: tuple[Column, Column]
    """The two ends of each link, as bars: a launch and its activity, a wait and what it waited for, idle time and the
    wait that caused it."""
    blocked_ms_per_step: float | None = None
    """``Timeline.blocked_ms_per_step``."""
    events: int
    """How many events of the trace the bars stand for."""
    events_merged: int = 0
    """How many of them share a bar with others."""
    sources: dict[str, dict[str, str]] = {}
    """Source text around sites: file → line number → text, as it was recorded."""
