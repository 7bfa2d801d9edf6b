"""What happened in a trace: waits, copies, collectives, idle time, and the line that each belongs to.

``timeline.py`` puts it together and keeps each table once it is found; ``tables.py`` says what the tables hold; the
other files find one thing each. Rules, estimates and reports read the timeline, not the trace.
"""

from syncscope.timeline.places import Place
from syncscope.timeline.timeline import Timeline

__all__ = ["Place", "Timeline"]
