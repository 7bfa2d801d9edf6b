"""Whether a finding is about the end of what was recorded: nothing follows that could begin sooner."""

from __future__ import annotations

from syncscope.rules.base.groups import Group

LAST = "last"
"""Stands for a wait or copy behind which a trace without steps gives the device nothing more."""


def ends_trace(group: Group) -> bool:
    """Whether somebody else's trace without steps gives the device nothing more after the waits, or the one copy, of a
    group. Waits that found nothing to wait for do not count among others."""
    timeline, rows = group.timeline, group.rows
    if not len(rows) or len(timeline.steps) or timeline.trace.recording is not None:
        return False
    if (rows.wait >= 0).all():
        waits = timeline.waits.take(rows.wait)
        held = waits.take(waits.pending != 0) if (waits.pending != 0).any() else waits
        return bool(timeline.last_command < held.end.min())
    copy = int(rows.copy[0])
    return len(rows) == 1 and copy >= 0 and 0 <= timeline.last_command <= int(timeline.copies.launch_ts[copy])
