from __future__ import annotations

import numpy as np

from syncscope.advice import Advice
from syncscope.rules.base.groups import Group
from syncscope.rules.base.occurrences import of_copies
from syncscope.rules.base.question import Intervention
from syncscope.rules.base.rule import Hit, Inspection, RankRule
from syncscope.timeline import Timeline
from syncscope.timeline.copies import count_engines, find_serialised


class CopiesSerialised(RankRule):
    """A copy in and a copy out run one after the other on one stream, though the device could make both at once.

    Why it costs: a device has a copy engine for each direction, and the bus carries both at full speed, but a stream
    is in order. A stream for copies that both directions share halves what the bus could move. The cost is the
    shorter copy of each pair, without the time in which something computes beside it.

    Bad:
        with torch.cuda.stream(copy_stream):
            host.copy_(result, non_blocking=True)
            batch.copy_(source, non_blocking=True)       # waits for the copy above

    Good:
        with torch.cuda.stream(copy_out):
            host.copy_(result, non_blocking=True)
        with torch.cuda.stream(copy_in):
            batch.copy_(source, non_blocking=True)

    Fine:
        with torch.cuda.stream(copy_stream):
            batch.copy_(source, non_blocking=True)       # one direction, or a second copy that needs the first

    Reported for asynchronous copies of pinned memory on a stream that does not compute (else see OVL301), where the
    second was launched before the first was over. A trace does not tell whether it needs what the first brings.
    """

    code = "OVL304"
    name = "copies-serialised"
    severity = "warning"
    needs = ("runtime", "device")
    gated = False
    question = Intervention.SEPARATE_DIRECTIONS
    needs_async_launches = True
    advice = (
        Advice("", "Give each direction a stream of its own, unless this copy needs what the one before it brings."),
    )

    def find(self, inspection: Inspection) -> list[Hit]:
        timeline, tables = inspection.timeline, inspection.timeline
        if (count_engines(timeline.trace.devices, tables.copies, tables.device) or 0) < 2:
            return []
        rows, exposed = find_serialised(tables.copies, tables.activities)
        occurrences = of_copies(tables.copies.take(rows), timeline)
        return self.hits(timeline, occurrences.replace(stall=np.full(len(occurrences), -1), exposed=exposed))

    def why_unchecked(self, timeline: Timeline) -> str | None:
        if why := super().why_unchecked(timeline):
            return why
        tables = timeline
        known = count_engines(timeline.trace.devices, tables.copies, tables.device)
        if known is None and len(find_serialised(tables.copies, tables.activities)[0]):
            return "the trace does not say how many copies the device can make at once"
        return None

    def reports(self, group: Group) -> bool:
        return group.is_exposed()

    def message(self, group: Group) -> str:
        time = group.in_words("exposed")
        return f"{group.subject} waits for a copy the other way on its stream: both at once would save up to {time}"
