from __future__ import annotations

import numpy as np
import pandas as pd

from syncscope.rules.chains import in_library, matching, only_copies
from syncscope.rules.grouping import Group
from syncscope.rules.rule import WaitRule
from syncscope.timeline import Timeline
from syncscope.timeline.intervals import Bools


class BlockingCopy(WaitRule):
    """A copy between host and device that the host waits for.

    Why it costs: `.to`, `.cuda`, `.cpu`, `.tolist` and `torch.tensor(..., device="cuda")` put the copy on the stream
    and wait for the stream, so for all work queued before it as well. Nothing is launched in the meantime.

    Bad:
        x = x.to("cuda")                       # in the training loop
        mask = torch.tensor([0, 1], device="cuda")
        y = x[cpu_index]                       # ships the index, and waits

    Good:
        x = x.to("cuda", non_blocking=True)    # from pinned memory: DataLoader(pin_memory=True)
        mask = MASK                            # made once
        host = y.to("cpu", non_blocking=True)  # read after an event has been waited for

    Fine:
        model.cuda()                           # once, before the loop

    From pageable memory `non_blocking=True` still blocks (see CPY201). Pinning in the main thread just before the copy
    costs the host a copy of its own (see CPY202). Where the device is the bottleneck the wait costs little by itself.
    """

    code = "SYN101"
    name = "blocking-copy"
    needs = ("runtime",)

    def takes(self, waits: pd.DataFrame, timeline: Timeline) -> Bools:
        copies = np.isin(waits["kind"].to_numpy(object), ["stream", "copy"])
        completes = (waits["copy_call"] >= 0).to_numpy(bool)
        bare = np.array([not ops for ops in waits["ops"]], dtype=bool)
        elsewhere = in_library(waits, timeline.places)
        found: Bools = copies & ~elsewhere & (matching(waits, only_copies) | (completes & bare))
        return found

    def message(self, group: Group) -> str:
        kind, memory = copy_kind(group)
        route = {"HtoD": " to the device", "DtoH": " to the host"}.get(kind, "")
        source = f" ({memory} memory)" if memory else ""
        untold = "; the trace does not say which op did it" if not group.ops and group.place.site is None else ""
        return f"{group.what} copies{route}{source} and waits for the copy and all work queued before it{untold}"


def copy_kind(group: Group) -> tuple[str, str]:
    """Direction and host memory of the copies, from the first that the trace holds; ``""`` where unknown."""
    known = group.rows["copy"][group.rows["copy"] >= 0]
    if not len(known):
        return "", ""
    row = group.timeline.copies.loc[known.iloc[0]]
    return str(row["direction"]), str(row["memory"])
