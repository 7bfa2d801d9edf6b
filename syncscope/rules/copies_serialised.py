from __future__ import annotations

from syncscope.rules.grouping import Group, say_ms, to_ms
from syncscope.rules.requirements import worth_saying
from syncscope.rules.rule import Case, Hit, Rule, copy_occurrences
from syncscope.timeline import Timeline
from syncscope.timeline.copies import engines, serialised


class CopiesSerialised(Rule):
    """A copy in and a copy out run one after the other on one stream, though the device could make both at once.

    Why it costs: a device has a copy engine for each direction and the bus carries both at full speed, but a stream is
    in order. A stream for copies that both directions share halves what the bus could move. The cost is the shorter
    of each pair, as far as nothing computes beside it.

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

    Said of asynchronous copies of pinned memory on a stream that does not compute (else see OVL301), the second of
    them launched before the first was over. Whether it needs what the first brings, a trace does not tell.
    """

    code = "OVL304"
    name = "copies-serialised"
    severity = "warning"
    needs = ("runtime", "device")
    intervention = "change the copy"

    def run(self, case: Case) -> list[Hit]:
        timeline = case.timeline
        if (engines(timeline.trace.devices, timeline.copies, timeline.device) or 0) < 2:
            return []
        found = serialised(timeline.copies, timeline.trace.device)
        return self.hits(case, copy_occurrences(found, timeline).assign(stall=-1, exposed=found["lost"]))

    def blind(self, timeline: Timeline) -> str | None:
        if why := super().blind(timeline):
            return why
        known = engines(timeline.trace.devices, timeline.copies, timeline.device)
        if known is None and len(serialised(timeline.copies, timeline.trace.device)):
            return "the trace does not say how many copies the device can make at once"
        return None

    def worth(self, group: Group) -> bool:
        return worth_saying(group.total("exposed"), group.timeline)

    def message(self, group: Group) -> str:
        steps = len(group.timeline.steps)
        time = say_ms(to_ms(group.total("exposed") or 0, max(steps, 1))) + (" ms a step" if steps else " ms in all")
        return f"{group.what} waits for a copy the other way on its stream: both at once would save up to {time}"

    def fix(self, group: Group) -> str:
        return "Give each direction a stream of its own, unless this copy needs what the one before it brings."
