from __future__ import annotations

import numpy as np

from syncscope.advice import DRAWN_ON_DEVICE, INDEXED, MADE_ON_DEVICE, MADE_ONCE, STACK, TO_HOST_IN_BACKWARD, Advice
from syncscope.rules.base.groups import MANY, Group
from syncscope.rules.base.occurrences import between_host_and_device, of_copies
from syncscope.rules.base.question import Intervention
from syncscope.rules.base.rule import Hit, Inspection, RankRule
from syncscope.timeline import Timeline


class SmallCopies(RankRule):
    """Many small copies between host and device at one line, where one copy would do.

    Why it costs: a copy has a price that does not depend on its size. The host is in the call for 4 µs or more (some
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

    Reported from 8 copies a step at one line, of 64 KiB or less on average. A pinned buffer that is filled again must
    not be in flight: keep two, and wait for the event of the copy before the last (see HAZ402).
    """

    code = "CPY203"
    name = "small-copies"
    severity = "warning"
    needs = ("runtime", "device")
    gated = False
    question = Intervention.GATHER_COPIES
    advice = (
        TO_HOST_IN_BACKWARD,
        *INDEXED,
        DRAWN_ON_DEVICE,
        MADE_ON_DEVICE,
        MADE_ONCE,
        Advice(
            "DtoH",
            "Gather them on the device (torch.stack, torch.cat), copy the result once with non_blocking=True, and "
            "take it apart on the host.",
            before="values = [loss.cpu() for loss in losses]",
            after="values = torch.stack(losses).to('cpu', non_blocking=True)",
        ),
        STACK,
    )

    def find(self, inspection: Inspection) -> list[Hit]:
        timeline, copies = inspection.timeline, inspection.timeline.copies
        crosses = between_host_and_device(copies) & (copies.launch >= 0)
        occurrences = of_copies(copies.take(crosses & ~inspection.part_of_read(copies.wait)), timeline)
        return self.hits(timeline, occurrences.replace(stall=np.full(len(occurrences), -1)))

    def reports(self, group: Group) -> bool:
        return group.place.site is not None and group.many_small

    def why_unchecked(self, timeline: Timeline) -> str | None:
        if not {"sites", "stacks"} & set(timeline.has):
            return "the trace holds no lines, so copies of one line cannot be told from those of several"
        if not len(timeline.steps):
            return "the trace has no steps, so copies a step cannot be counted"
        return super().why_unchecked(timeline)

    def is_needless(self, timeline: Timeline) -> bool:
        return timeline.device is not None and int(between_host_and_device(timeline.copies).sum()) < MANY

    def message(self, group: Group) -> str:
        many, size = len(group.inside) / group.steps, group.inside.bytes.mean()
        return f"{group.subject} makes {many:,.3g} copies a step of {size:,.0f} bytes each: one copy would do"
