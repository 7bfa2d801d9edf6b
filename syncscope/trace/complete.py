"""The events that most of a file is: complete ones of the categories that are read, and the arrows between them.

A list of nothing else is decoded in less time, into structs that have room only for what the tables use, and for an
arrow for nothing. They have the attributes of :class:`.Event` and :class:`.Args` that are used.
"""

from __future__ import annotations

import math
from functools import reduce
from operator import or_
from types import GenericAlias
from typing import Any, Literal

import msgspec

from syncscope.trace.events import Args

# The table of each category of event, in lower case; before torch 1.12 they were capitalised and called otherwise.
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
    """A struct that is chosen where ``cat`` is ``category``."""
    return msgspec.defstruct(
        category, fields, bases=bases, namespace=constants, tag_field="cat", tag=category, gc=False
    )


def _args(table: str) -> Any:
    known = {one.name: one for one in msgspec.structs.fields(Args)}
    used = [known[name] for name in _USED[table]]
    fields = [(one.name, Any, msgspec.field(default=one.default, name=one.encode_name)) for one in used]
    return msgspec.defstruct(f"{table}_args", fields, gc=False)


def complete_events() -> Any:
    """The type of a list of such events."""
    args = {table: _args(table) for table in _USED}
    complete = [_complete(category, args[table]) for category, table in TABLE_OF.items()]
    return GenericAlias(list, (reduce(or_, complete + [_arrow(category) for category in _ARROWS]),))
