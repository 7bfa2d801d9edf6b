from __future__ import annotations

from syncscope.advice import Advice
from syncscope.rules.base.race_rule import NO_SAVING, RaceRule
from syncscope.timeline import Timeline
from syncscope.timeline.places import Hazard
from syncscope.trace.sets import different


class CrossStreamRace(RaceRule):
    """Two streams touch the same memory, at least one writes it, and no event puts them in order.

    Why it costs: streams run beside each other. Without an event between them, one may read what the other has not
    yet written, or write what it still reads. Which of them comes first changes with load and with the machine.

    Bad:
        a.normal_()                                       # on the default stream
        with torch.cuda.stream(side):
            total = torch.sum(a)                          # may begin before a is filled

    Good:
        a.normal_()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            total = torch.sum(a)
        torch.cuda.current_stream().wait_stream(side)     # before total is used here

    Fine:
        with torch.cuda.stream(side):
            total = torch.sum(weights)                    # both streams only read

    A tensor that one stream allocated and another uses also needs `t.record_stream(other)`, so that its memory is not
    given away too early. This rule does not look at that.
    """

    code = "HAZ403"
    name = "cross-stream-race"
    severity = "error"
    needs = ("hazards",)
    gated = False
    question = NO_SAVING
    advice = (
        Advice(
            "",
            "Before the access let its stream wait for the other one: stream.wait_stream(other), or wait_event() on "
            "an event recorded right after the other access.",
        ),
    )

    def is_needless(self, timeline: Timeline) -> bool:
        return timeline.device is not None and len(different(timeline.on_device.stream)) < 2

    def clash(self, hazard: Hazard) -> str:
        access, earlier = hazard.event.access, hazard.event.earlier
        does = "writes" if access.writes else "reads"
        other = "writing" if earlier.writes else "reading"
        return f"{does} on {access.stream} what {earlier.stream} may still be {other}, with no event between, from"
