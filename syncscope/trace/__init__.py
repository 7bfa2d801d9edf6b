"""Bytes → :class:`Trace`: typed columns of what a profile recorded. Documented in :mod:`.model`."""

from syncscope.trace.model import Device, Trace
from syncscope.trace.reader import load
from syncscope.trace.source import TraceError

__all__ = ["Device", "Trace", "TraceError", "load"]
