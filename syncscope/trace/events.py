"""The parts of a chrome trace that are read, as typed structs; ``msgspec`` skips every field that is not named.

Fields whose type varies between versions and vendors are ``Any`` and become numbers where columns are built, so
that one odd value never sinks a file.
"""

from __future__ import annotations

import math
from typing import Any

import msgspec
from msgspec import field


class Args(msgspec.Struct, gc=False):
    """``args`` of an event: what any table uses. −1 where only a number is wanted and none is there."""

    correlation: Any = -1
    external_id: Any = field(default=None, name="External id")
    external_id_old: Any = field(default=-1, name="external id")
    sequence: Any = field(default=-1, name="Sequence number")
    forward_tid: Any = field(default=-1, name="Fwd thread id")
    device: Any = -1
    stream: Any = -1
    bytes: Any = -1
    size: Any = None  # HIP's calls: a string
    kind: Any = -1  # HIP's calls: hipMemcpyKind, a string
    copy_kind: Any = field(default=None, name="copy kind")
    source_kind: Any = field(default=None, name="src kind")
    target_kind: Any = field(default=None, name="dst kind")
    collective: Any = field(default=None, name="Collective name")
    group: Any = field(default=None, name="Process Group Name")
    dtype: Any = None  # of a collective
    elements_in: Any = field(default=-1, name="In msg nelems")
    elements_out: Any = field(default=-1, name="Out msg nelems")
    graph: Any = field(default=-1, name="graph id")
    wait_on_stream: Any = -1
    wait_on_event: Any = field(default=-1, name="wait_on_cuda_event_record_corr_id")
    python_id: Any = field(default=-1, name="Python id")
    python_parent: Any = field(default=-1, name="Python parent id")
    name: Any = None  # of metadata events


NO_ARGS = Args()


class Event(msgspec.Struct, gc=False):
    """A trace event. ``ts`` and ``dur`` are µs; NaN when the event has no ``ts``."""

    ph: str = ""
    cat: str | None = None
    name: str = ""
    pid: Any = None
    tid: Any = None
    ts: float = math.nan
    dur: float | None = 0.0
    args: Args | None = None


UNREAD = Event()
"""Stands in the list of events for one that is not read, so that the others keep their place."""


class Document(msgspec.Struct):
    """The root object. ``traceEvents`` is ``None`` when there is none."""

    events: list[Event] | None = field(default=None, name="traceEvents")
    base_ns: Any = field(default=None, name="baseTimeNanoseconds")
    devices: Any = field(default=None, name="deviceProperties")
    distributed: Any = field(default=None, name="distributedInfo")
    syncscope: Any = None
