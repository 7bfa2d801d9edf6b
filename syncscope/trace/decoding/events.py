"""The parts of a chrome trace that are read, as typed structs. ``msgspec`` skips every field that is not named.

Fields whose type varies between versions and vendors are ``Any`` and become numbers where columns are built, so
that one odd value does not make a file unreadable.

:class:`Event` takes events of any kind. Most of a file is complete events of the categories that are read, and arrows
between them. :func:`complete_events` is a type for lists of only those: it decodes faster, since each of its structs
has only the fields that the category's table uses, and an arrow's has none.
"""

# Without postponed annotations: msgspec evaluates each of some 150 texts anew, which takes 3 ms.

import math
from functools import reduce
from operator import or_
from types import GenericAlias
from typing import Any, Literal

import msgspec
from msgspec import field


class Args(msgspec.Struct, gc=False):
    """``args`` of an event: every argument that some table uses. A number that is absent is −1."""

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
"""Stands in the list of events for one that is not read, so that the others keep their index."""


class Document(msgspec.Struct):
    """The root object. ``traceEvents`` is ``None`` when there is none."""

    events: list[Event] | None = field(default=None, name="traceEvents")
    base_ns: Any = field(default=None, name="baseTimeNanoseconds")
    devices: Any = field(default=None, name="deviceProperties")
    distributed: Any = field(default=None, name="distributedInfo")
    syncscope: Any = None


# ------------------------------------------------------------------------------------------------ complete events

TABLE_OF = {
    "cpu_op": "ops",
    "operator": "ops",
    "cuda_runtime": "runtime",
    "cuda_driver": "runtime",
    "runtime": "runtime",
    "xpu_runtime": "runtime",
    "xpu_driver": "runtime",
    "kernel": "kernel",
    "gpu_memcpy": "memcpy",
    "memcpy": "memcpy",
    "gpu_memset": "memset",
    "memset": "memset",
    "cuda_sync": "sync",
    "xpu_sync": "sync",
    "python_function": "frames",
    "user_annotation": "annotations",
    "gpu_user_annotation": "device_annotations",
}
"""The table of each category of event, in lower case. Before torch 1.12 categories were capitalised, and some had other
names."""

TABLES = tuple(dict.fromkeys(TABLE_OF.values()))

_ARROWS = ("ac2g", "fwdbwd", "async_cpu_to_gpu", "forward_backward")
"""From a launch to what it launched, from an operator to its backward."""

_LINKS = ("correlation", "external_id", "external_id_old")
_COPY = ("bytes", "copy_kind", "source_kind", "target_kind")
_COLLECTIVE = ("collective", "group", "dtype", "elements_in", "elements_out")
_DEVICE = (*_LINKS, "device", "stream", *_COPY, *_COLLECTIVE, "graph")
_USED: dict[str, tuple[str, ...]] = {
    "ops": ("external_id", "external_id_old", "sequence", "forward_tid"),
    "runtime": (*_LINKS, "bytes", "size", "kind"),
    "kernel": _DEVICE,
    "memcpy": _DEVICE,
    "memset": _DEVICE,
    "sync": ("correlation", "device", "stream", "wait_on_stream", "wait_on_event"),
    "frames": ("python_id", "python_parent"),
    "annotations": (),
    "device_annotations": (),
}
"""The arguments that make the columns of each table."""


class _Complete(msgspec.Struct, gc=False):
    """Has the attributes of :class:`Event`, so that both are read alike."""

    ph: Literal["X"]
    name: str = ""
    pid: Any = None
    tid: Any = None
    ts: float = math.nan
    dur: float | None = 0.0


def _complete(category: str, args: Any) -> Any:
    return _struct(category, [("args", args | None, None)], {"cat": category}, (_Complete,))


def _arrow(category: str) -> Any:
    return _struct(category, [], {"ph": ""}, ())


def _struct(category: str, fields: list[Any], constants: dict[str, Any], bases: tuple[type, ...]) -> Any:
    """The struct that msgspec decodes to where ``cat`` is ``category``."""
    return msgspec.defstruct(
        category, fields, bases=bases, namespace=constants, tag_field="cat", tag=category, gc=False
    )


def _args(table: str) -> Any:
    known = {one.name: one for one in msgspec.structs.fields(Args)}
    used = [known[name] for name in _USED[table]]
    fields = [(one.name, Any, msgspec.field(default=one.default, name=one.encode_name)) for one in used]
    return msgspec.defstruct(f"{table}_args", fields, gc=False)


def complete_events() -> Any:
    """The type of a list of complete events and arrows."""
    args = {table: _args(table) for table in _USED}
    complete = [_complete(category, args[table]) for category, table in TABLE_OF.items()]
    return GenericAlias(list, (reduce(or_, complete + [_arrow(category) for category in _ARROWS]),))
