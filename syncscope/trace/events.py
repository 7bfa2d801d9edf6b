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
    """``args`` of an event: what any table uses."""

    correlation: Any = None
    external_id: Any = field(default=None, name="External id")
    external_id_old: Any = field(default=None, name="external id")
    sequence: Any = field(default=None, name="Sequence number")
    forward_tid: Any = field(default=None, name="Fwd thread id")
    device: Any = None
    stream: Any = None
    bytes: Any = None
    size: Any = None  # HIP's calls: a string
    kind: Any = None  # HIP's calls: hipMemcpyKind, a string
    copy_kind: Any = field(default=None, name="copy kind")
    source_kind: Any = field(default=None, name="src kind")
    target_kind: Any = field(default=None, name="dst kind")
    collective: Any = field(default=None, name="Collective name")
    group: Any = field(default=None, name="Process Group Name")
    dtype: Any = None  # of a collective
    elements_in: Any = field(default=None, name="In msg nelems")
    elements_out: Any = field(default=None, name="Out msg nelems")
    graph: Any = field(default=None, name="graph id")
    wait_on_stream: Any = None
    wait_on_event: Any = field(default=None, name="wait_on_cuda_event_record_corr_id")
    python_id: Any = field(default=None, name="Python id")
    python_parent: Any = field(default=None, name="Python parent id")
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
    dur: float | None = None
    args: Args | None = None


class Document(msgspec.Struct):
    """The root object. ``traceEvents`` is ``None`` when there is none."""

    events: list[Event] | None = field(default=None, name="traceEvents")
    base_ns: Any = field(default=None, name="baseTimeNanoseconds")
    devices: Any = field(default=None, name="deviceProperties")
    distributed: Any = field(default=None, name="distributedInfo")
    syncscope: Any = None
