from __future__ import annotations

import numpy as np

from syncscope.rules.grouping import Group
from syncscope.rules.pageable_copy import PART_OF_A_READ
from syncscope.rules.rule import Case, Hit, Rule, copy_occurrences
from syncscope.timeline import Timeline
from syncscope.timeline.copies import HOST_COPIES


class SmallCopies(Rule):
    """Many small copies between host and device at one line, where one copy would do.

    Why it costs: a copy has a price that its size does not change. The host is in the call for 4 µs and more (some
    10 µs where it waits as well), and the device takes 1 µs for the smallest. Up to 64 KiB, which an H200 moves in
    1.2 µs, that price is nearly all there is, and it is paid for each copy.

    Bad:
        on_device = [feature.to("cuda") for feature in features]   # 200 copies, 200 waits
        values = [loss.cpu() for loss in losses]

    Good:
        buffer = torch.stack(features, out=buffer)                 # buffer pinned once
        on_device = buffer.to("cuda", non_blocking=True).unbind()
        values = torch.stack(losses).cpu()

    Fine:
        x, y, mask = (t.to("cuda", non_blocking=True) for t in batch)   # a handful

    Spoken of from 8 copies a step at one line, of 64 KiB and less on average. A pinned buffer that is filled again
    must not be in flight: keep two, and wait for the event of the copy before the last (see HAZ402).
    """

    code = "CPY203"
    name = "small-copies"
    severity = "warning"
    needs = ("runtime", "device")
    intervention = "change the copy"

    def run(self, case: Case) -> list[Hit]:
        copies = case.timeline.copies
        crosses = copies["direction"].isin(HOST_COPIES).to_numpy(bool) & (copies["launch"] >= 0).to_numpy(bool)
        inside = case.taken_by(copies["wait"].to_numpy(np.int64), PART_OF_A_READ)
        return self.hits(case, copy_occurrences(copies[crosses & ~inside], case.timeline).assign(stall=-1))

    def worth(self, group: Group) -> bool:
        return group.place.site is not None and group.many_small

    def blind(self, timeline: Timeline) -> str | None:
        if not {"sites", "stacks"} & set(timeline.has):
            return "the trace holds no lines, so copies of one line cannot be told from those of several"
        if not len(timeline.steps):
            return "the trace has no steps, so copies a step cannot be counted"
        return super().blind(timeline)

    def message(self, group: Group) -> str:
        many = len(group.inside) / len(group.timeline.steps)
        size = group.inside["bytes"].to_numpy(np.int64).mean()
        return f"{group.what} makes {many:,.3g} copies a step of {size:,.0f} bytes each: one copy would do"
