from __future__ import annotations

from syncscope.advice import Advice
from syncscope.rules.base.race_rule import NO_SAVING, RaceRule
from syncscope.timeline import Timeline
from syncscope.timeline.places import Hazard


class ReadBeforeArrival(RaceRule):
    """The host reads the result of a `non_blocking` copy from the device before anything waited for it.

    Why it costs: `t.to("cpu", non_blocking=True)` returns pinned memory at once, and the device fills it later. What
    the host reads meanwhile is whatever lay there: zeros, or the last step's values. It depends on timing, so it may
    go well for months. The order decides, not the time: an event, stream or device wait must come after the copy, or
    an `Event.query()` that answered true.

    Bad:
        mean = t.to("cpu", non_blocking=True).mean()      # reads before the copy is over

    Good:
        host = t.to("cpu", non_blocking=True)
        arrived = torch.cuda.current_stream().record_event()
        ...                                               # work that does not need it
        arrived.synchronize()
        mean = host.mean()

    Fine:
        mean = t.to("cpu").mean()                         # waits by itself (see SYN101)
        t.to(pageable, non_blocking=True)                 # into pageable memory a copy always blocks
    """

    code = "HAZ401"
    name = "read-before-arrival"
    severity = "error"
    needs = ("hazards",)
    gated = False
    question = NO_SAVING
    advice = (
        Advice(
            "",
            "Record an event after the copy (arrived = torch.cuda.current_stream().record_event()) and call "
            "arrived.synchronize() before the first read; or copy without non_blocking.",
        ),
    )

    def is_needless(self, timeline: Timeline) -> bool:
        copies = timeline.copies
        return timeline.device is not None and not bool(((copies.direction == "DtoH") & (copies.wait < 0)).any())

    def clash(self, hazard: Hazard) -> str:
        return "reads host memory with no wait after the copy that fills it, at"
