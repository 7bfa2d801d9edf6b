"""Whether a finding is about the end of what was recorded: nothing follows that could begin sooner."""

from __future__ import annotations

from syncscope.rules.base.groups import Group
from syncscope.timeline.calls import COMMANDS
from syncscope.timeline.op_chains import reads_scalar

LAST = "last"
"""Stands for a wait or copy behind which the trace gives the device nothing more."""


def ends_trace(group: Group) -> bool:
    """Whether somebody else's trace without steps gives the device nothing more after the waits, or the one copy, of a
    group."""
    return not len(group.timeline.steps) and _nothing_follows(group)


def is_result(group: Group) -> bool:
    """Whether the copies of a group bring the host what somebody else's trace ends with, a trace without steps or of a
    single one: the result of a call, which is read at once. A value that an op reads may be asked for a step later."""
    directions, copied = group.timeline.copies.direction, group.rows.copy[group.rows.copy >= 0]
    to_host = len(copied) > 0 and bool((directions[copied] == "DtoH").all())
    called = to_host and len(group.timeline.steps) <= 1 and not reads_scalar(group.ops)
    return called and _nothing_follows(group)


def is_alone(group: Group) -> bool:
    """Whether one copy is all that somebody else's trace without steps asks of the device: nothing there shows that it
    comes back, or is waited for."""
    timeline = group.timeline
    others = timeline.trace.recording is not None or len(timeline.steps) > 0
    return not others and len(group.rows) == 1 and int(timeline.calls.do(COMMANDS).sum()) == 1


def _nothing_follows(group: Group) -> bool:
    """Waits that found nothing to wait for do not count among others."""
    timeline, rows = group.timeline, group.rows
    if not len(rows) or timeline.trace.recording is not None:
        return False
    if (rows.wait >= 0).all():
        waits = timeline.waits.take(rows.wait)
        held = waits.take(waits.pending != 0) if (waits.pending != 0).any() else waits
        return bool(timeline.last_command < held.end.min())
    copy = int(rows.copy[0])
    return len(rows) == 1 and copy >= 0 and 0 <= timeline.last_command <= int(timeline.copies.launch_ts[copy])
