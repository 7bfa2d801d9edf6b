from __future__ import annotations

from syncscope.advice import Advice
from syncscope.rules.base.race_rule import NO_SAVING, RaceRule
from syncscope.timeline import Timeline
from syncscope.timeline.places import Hazard


class OverwriteInFlight(RaceRule):
    """The host writes pinned memory that a `non_blocking` copy may still be reading, or filling.

    Why it costs: a copy from pinned memory returns before the device has read it. What is written meanwhile may reach
    the device instead of the values that were there when the copy was asked for. Dropping the tensor is safe (the
    allocator keeps its memory until the copy is over); writing to it is not.

    Bad:
        batch = buffer.to("cuda", non_blocking=True)      # buffer is pinned
        buffer.zero_()                                    # may zero the batch

    Good:
        batch = buffer.to("cuda", non_blocking=True)
        sent = torch.cuda.current_stream().record_event()
        ...                                               # or fill a second buffer meanwhile
        sent.synchronize()
        buffer.zero_()

    Fine:
        batch = next(loader).to("cuda", non_blocking=True)    # a new pinned tensor each time, then dropped
        batch = pageable.to("cuda", non_blocking=True)        # from pageable memory the bytes are taken at once
    """

    code = "HAZ402"
    name = "overwrite-in-flight"
    severity = "error"
    needs = ("hazards",)
    gated = False
    question = NO_SAVING
    advice = (
        Advice(
            "",
            "Record an event after the copy and call its synchronize() before writing; with two buffers used in turn "
            "that wait is free. Or make a new pinned tensor each time (DataLoader(pin_memory=True) does).",
        ),
    )

    def is_needless(self, timeline: Timeline) -> bool:
        copies = timeline.copies
        in_flight = (copies.direction == "HtoD") & (copies.memory != "pageable") & (copies.wait < 0)
        return timeline.device is not None and not bool(in_flight.any())

    def clash(self, hazard: Hazard) -> str:
        doing = "read from" if hazard.event.earlier.direction == "HtoD" else "fill"
        return f"writes pinned memory with no wait after the copy that may still {doing} it, at"
