"""Whether a finding is about the end of what was recorded: nothing follows that could begin sooner."""

from __future__ import annotations

from syncscope.rules.base.groups import Group

LAST = "last"
"""Stands for a wait or copy behind which a trace without steps gives the device nothing more."""


def ends_trace(group: Group) -> bool:
    """Whether somebody else's trace without steps gives the device nothing more after the one wait or copy of a
    group."""
    timeline, rows = group.timeline, group.rows
    if len(rows) != 1 or len(timeline.steps) or timeline.trace.recording is not None:
        return False
    wait, copy = int(rows.wait[0]), int(rows.copy[0])
    if wait >= 0:
        return bool(timeline.last_command < timeline.waits.end[wait])
    return copy >= 0 and 0 <= timeline.last_command <= int(timeline.copies.launch_ts[copy])
