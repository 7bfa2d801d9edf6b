"""Trace → views: what waited, what was copied, what overlapped, where the device was idle.

One file a view; ``Timeline`` computes each once and keeps it. Rules ask the timeline and nobody else
reads the tables again.
"""

from syncscope.timeline.places import Place
from syncscope.timeline.timeline import Timeline

__all__ = ["Place", "Timeline"]
