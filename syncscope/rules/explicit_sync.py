from __future__ import annotations

import numpy as np
import pandas as pd

from syncscope.rules.grouping import Group
from syncscope.rules.rule import WaitRule, waited_for_nothing
from syncscope.timeline import Place, Timeline
from syncscope.timeline.intervals import Bools

TARGETS = {"device": "everything on the device", "event": "an event", "stream": "a stream"}


class ExplicitSync(WaitRule):
    """The program waits for the device by itself: a device, stream or event synchronize.

    Why it costs: the host stops launching until the device has caught up, and then the device has nothing queued.
    PyTorch orders its own work; a program needs no wait for its results to be right. Where the step is bound by the
    device, removing the wait gives little back: look at the saving, not at the time blocked.

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

    A wait that finds nothing queued costs no more than its call: it is a note.
    """

    code = "SYN105"
    name = "explicit-sync"
    needs = ("runtime",)

    def takes(self, waits: pd.DataFrame, timeline: Timeline) -> Bools:
        places = [timeline.places[place] for place in waits["place"]]
        asked = np.array([asks(place) for place in places], dtype=bool)
        # A wait that was seen at a line which does not ask for it is something else's.
        unseen = np.array([place.source != "hook" for place in places], dtype=bool)
        bare = np.array([not ops for ops in waits["ops"]], dtype=bool) & (waits["copy_call"] < 0).to_numpy(bool)
        found: Bools = asked | (np.isin(waits["kind"].to_numpy(object), list(TARGETS)) & bare & unseen)
        return found

    def message(self, group: Group) -> str:
        first = group.rows["wait"].iloc[0]
        kind = group.timeline.waits["kind"].iloc[first]
        nothing = ", but nothing was queued: it costs no more than its call" if waited_for_nothing(group) else ""
        return f"{group.what} makes the host wait for {TARGETS.get(kind, 'the device')}{nothing}"


def asks(place: Place) -> bool:
    """Whether the place is a call of one of the entry points that wait."""
    if place.entry.endswith(".synchronize") or (place.running or "").endswith(".synchronize()"):
        return True
    at = place.at
    return at is not None and at.function.endswith("synchronize") and "torch/cuda/" in at.file
