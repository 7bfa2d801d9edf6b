from __future__ import annotations

import numpy as np

from syncscope.advice import SYNCHRONIZE, Advice
from syncscope.rules.base.ends import ends_trace
from syncscope.rules.base.groups import Group
from syncscope.rules.base.question import Intervention
from syncscope.rules.base.wait_rule import WaitRule, waited_for_nothing
from syncscope.schema.findings import Severity
from syncscope.timeline import Place, Timeline
from syncscope.timeline.intervals import Bools
from syncscope.timeline.run import PlacedWait
from syncscope.timeline.tables import Waits

TARGETS = {"device": "everything on the device", "event": "an event", "stream": "a stream"}


class ExplicitSync(WaitRule):
    """The program itself waits for the device: a device, stream or event synchronize.

    Why it costs: the host stops launching until the device has caught up, and then the device has nothing queued.
    PyTorch orders its own work, so a program needs no wait for its results to be right. Where the step is bound by the
    device, removing the wait saves little: look at the saving, not at the blocked time.

    Bad:
        loss.backward()
        torch.cuda.synchronize()         # "to be safe", or to time the step
        seconds = time.time() - start

    Good:
        start.record(); loss.backward(); end.record()   # torch.cuda.Event(enable_timing=True)
        ...
        milliseconds = start.elapsed_time(end)          # read once the run is over
        side.wait_stream(torch.cuda.current_stream())   # the device waits, the host does not

    Fine:
        torch.cuda.synchronize()         # once, around a benchmark
        done.synchronize()               # before the host reads what a non_blocking copy brought

    A wait that finds nothing queued costs no more than its call, and is a note. So is the last wait of a trace without
    steps: nothing follows it.
    """

    code = "SYN105"
    name = "explicit-sync"
    severity = "error"
    needs = ("runtime",)
    gated = True
    counted = True
    question = Intervention.REMOVE_WAIT
    advice = (
        Advice(
            "event",
            "Wait for the event just before the host reads what it stands for; to order streams, let the device wait "
            "(stream.wait_event), and read times once the run is over.",
            before="""
            end.record()
            end.synchronize()
            times.append(start.elapsed_time(end))
            """,
            after="""
            end.record()
            pairs.append((start, end))
            # after the loop
            torch.cuda.synchronize()
            times = [a.elapsed_time(b) for a, b in pairs]
            """,
        ),
        Advice(
            "stream",
            "Remove it: PyTorch orders its work by itself. To order streams, let the device wait (stream.wait_stream, "
            "stream.wait_event).",
            before="side.synchronize()\nuse(y)",
            after="torch.cuda.current_stream().wait_stream(side)   # the device waits\nuse(y)",
        ),
        SYNCHRONIZE,
    )

    def claims(self, waits: Waits, timeline: Timeline) -> Bools:
        places = timeline.places
        asked = np.array([_asks_to_wait(place) for place in places], dtype=bool)[waits.place]
        # A wait seen at a line that does not ask for it is another rule's.
        unseen = np.array([place.source != "hook" for place in places], dtype=bool)[waits.place]
        bare = np.array([not ops for ops in waits.ops], dtype=bool) & (waits.copy_call < 0)
        targeted = np.array([kind in TARGETS for kind in waits.kind], dtype=bool)
        claimed: Bools = asked | (targeted & bare & unseen)
        return claimed

    def claims_counted(self, counted: PlacedWait) -> bool:
        return _asks_to_wait(counted.place)

    def severity_of(self, group: Group) -> Severity:
        return "note" if ends_trace(group) else super().severity_of(group)

    def message(self, group: Group) -> str:
        kind = group.timeline.waits.kind[group.rows.wait[0]]
        why = "it had happened" if kind == "event" else "nothing was queued"
        nothing = f", but {why}: it costs no more than its call" if waited_for_nothing(group) else ""
        last = "; nothing follows it in the trace" if not nothing and ends_trace(group) else ""
        return f"{group.subject} makes the host wait for {TARGETS.get(kind, 'the device')}{nothing}{last}"


def _asks_to_wait(place: Place) -> bool:
    """Whether the place is a call of one of the entry points that wait."""
    if place.entry.endswith(".synchronize") or (place.running or "").endswith(".synchronize()"):
        return True
    at = place.at
    return at is not None and at.function.endswith("synchronize") and "torch/cuda/" in at.file
