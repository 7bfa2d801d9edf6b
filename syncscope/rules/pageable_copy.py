from __future__ import annotations

import numpy as np

from syncscope.rules.grouping import Group
from syncscope.rules.rule import Case, Hit, Rule, copy_occurrences
from syncscope.timeline import Timeline
from syncscope.timeline.copies import HOST_COPIES

PART_OF_A_READ = frozenset({"SYN102", "SYN103", "SYN104", "SYN109", "SYN110"})
"""Rules whose waits come with a small copy that is no copy of the program's own."""

HELD = ": it looks asynchronous, but the host sits in the call until the copy is staged"
AT_ONCE = "; the driver took the bytes at once, so the host was not held here; by larger ones it is"


class PageableCopy(Rule):
    """A copy from or to pageable host memory, also when `non_blocking=True` makes it look asynchronous.

    Why it costs: the device can only reach page-locked memory, so the driver copies through a staging buffer of its
    own, and the host sits inside the call until that is done. The copy is slower (one of 4 MB on an H200: 0.35 ms
    against 0.10 ms), cannot overlap compute, and `non_blocking=True` changes nothing about it.

    Bad:
        for x in DataLoader(data):                      # pageable batches
            x = x.to("cuda", non_blocking=True)         # still blocks
        host = y.to("cpu")                              # a new pageable tensor each time

    Good:
        for x in DataLoader(data, pin_memory=True):     # pinned by a thread of the loader
            x = x.to("cuda", non_blocking=True)
        buffer.copy_(y, non_blocking=True)              # buffer pinned once, reused

    Fine:
        weights = torch.load(path).cuda()               # once

    Of a small one (up to 1 MiB on an H200) on its way to the device the driver takes the bytes at once: with
    `non_blocking=True` it holds nobody up until it grows. The message says which it was.
    `x.pin_memory().to("cuda")` in the main thread costs the host a copy of its own (see CPY202).
    """

    code = "CPY201"
    name = "pageable-copy"
    severity = "warning"
    needs = ("runtime", "device")
    intervention = "change the copy"

    def run(self, case: Case) -> list[Hit]:
        copies = case.timeline.copies
        crosses = copies["direction"].isin(HOST_COPIES) & (copies["memory"] == "pageable")
        small = case.taken_by(copies["wait"].to_numpy(np.int64), PART_OF_A_READ)
        return self.hits(case, copy_occurrences(copies[crosses.to_numpy(bool) & ~small], case.timeline))

    def blind(self, timeline: Timeline) -> str | None:
        copies = timeline.copies[timeline.copies["direction"].isin(HOST_COPIES).to_numpy(bool)]
        if len(copies) and (copies["memory"] == "").all():
            return "the trace does not say whether host memory is pinned (ROCm never does)"
        return super().blind(timeline)

    def message(self, group: Group) -> str:
        to_device = group.timeline.copies["direction"].iloc[group.rows["copy"].iloc[0]] == "HtoD"
        route = "from pageable memory to the device" if to_device else "from the device into pageable memory"
        alone = group.timeline.copies["wait"].iloc[group.rows["copy"].iloc[0]] < 0
        blocks = HELD if alone and not _returned_at_once(group) else AT_ONCE if alone else ""
        return f"{group.what} copies {route}{blocks}"


def _returned_at_once(group: Group) -> bool:
    """Whether no wait completes the copies, and the call of each returned before the device began it."""
    copies = group.timeline.copies.iloc[group.rows["copy"].to_numpy(np.int64)]
    alone = (copies["wait"] < 0) & (copies["launch"] >= 0)
    return bool((alone & (copies["launch_end"] <= copies["ts"])).all())
