"""Bytes → :class:`Trace`: a table for each kind of event that a profile recorded. :mod:`.model` documents them.

The names load on first use, so that a worker process, which only decodes, does not import the tables.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from syncscope.trace.model import Device, Trace
    from syncscope.trace.reader import load
    from syncscope.trace.source import TraceError

__all__ = ["Device", "Trace", "TraceError", "load"]

_HOME = {"Device": "model", "Trace": "model", "TraceError": "source", "load": "reader"}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value  # the next look-up does not come here
    return value
